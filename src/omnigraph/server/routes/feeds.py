"""Operations that stream or page the contents and changes of a graph: exports, baselines, changes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
import orjson

from omnigraph.changes.feed import FeedPage
from omnigraph.changes.filter import read_filter
from omnigraph.commit.model import MAIN
from omnigraph.errors import CommitNotFound, Denied
from omnigraph.graph.snapshot import Snapshot
from omnigraph.server import answers, bodies
from omnigraph.server.access import EXPORT, READ, Need
from omnigraph.server.operation import JSON, NDJSON, Answer, Call, Follow, Operation, Stream
from omnigraph.server.routes.reads import names_snapshot, target_branch
from omnigraph.server.routes.sources import named


def _commit_branch_needs(call: Call) -> Iterable[Need]:
    """Check the permission to read the branch of the commit; a forbidden commit is reported as not found."""
    commit_id = call.path["commit_id"]
    found = call.graph.commit(commit_id)
    try:
        call.check(Need(READ, found.branch))
    except Denied:
        raise CommitNotFound(f"commit '{commit_id}' not found", commit=commit_id) from None
    return ()


def _commit_changes(call: Call) -> Answer:
    asked: bodies.CommitChangesParameters = call.parameters
    page = call.graph.commit_changes(
        call.path["commit_id"],
        # Over HTTP a page is always bounded.
        limit=DEFAULT_PAGE if asked.limit is None else asked.limit,
        page_token=asked.page_token,
        kinds=asked.kind,
        types=asked.type,
        ops=asked.op,
    )
    return call.json(page.to_dict(), {"commit": page.commit.to_dict()})


EVENTS = "text/event-stream"
#: How many changes a page of one commit has unless a limit is given.
DEFAULT_PAGE = 1_000


def _branch(given: str | None) -> str:
    return (given or "").strip() or MAIN


def _feed_needs(call: Call) -> Iterable[Need]:
    return [Need(READ, _branch(call.parameters.branch))]


def _feed(call: Call) -> Answer:
    asked: bodies.FeedParameters = call.parameters
    page = call.graph.changes(
        _branch(asked.branch),
        cursor=asked.cursor,
        start=asked.start,
        page_token=asked.page_token,
        limit=asked.limit,
        max_commits=asked.max_commits,
        kinds=asked.kind,
        types=asked.type,
        ops=asked.op,
    )
    commits = {block.commit.id: block.commit.to_dict() for block in page.blocks} if call.whole else None
    return call.json(page.to_dict(), commits)


def _feed_stream(call: Call) -> Follow:
    """The feed as server-sent events; the id of an event is the cursor after it, so that a client can resume there."""
    asked: bodies.StreamParameters = call.parameters
    last = call.header("last-event-id")
    if last is not None and (asked.cursor is not None or asked.start is not None):
        # A reconnecting client repeats its first URL; the last event that it has seen takes precedence.
        asked = msgspec.structs.replace(asked, cursor=None, start=None)
    wanted: dict[str, Any] = {"kinds": asked.kind, "types": asked.type, "ops": asked.op}
    branch = _branch(asked.branch)
    first = call.graph.changes(branch, cursor=last or asked.cursor, start=asked.start, **wanted)
    waiting: list[FeedPage] = [first]
    seen: list[str | None] = [None]

    def poll() -> bytes | None:
        page = waiting.pop() if waiting else call.graph.changes(branch, cursor=seen[0], **wanted)
        told: list[dict[str, Any]] = [block.to_dict() for block in page.blocks]
        while page.next_page_token is not None:
            page = call.graph.changes(branch, page_token=page.next_page_token, **wanted)
            told += [block.to_dict() for block in page.blocks]
        is_first = seen[0] is None
        seen[0] = page.cursor
        if not told and not is_first:
            return None
        data = orjson.dumps({"blocks": told, "cursor": page.cursor, "caught_up": page.caught_up})
        return b"id: " + (page.cursor or "").encode() + b"\nevent: changes\ndata: " + data + b"\n\n"

    return Follow(poll, EVENTS, {"Cache-Control": "no-store"}, of_graph=True)


def _export_needs(call: Call) -> Iterable[Need]:
    return [Need(EXPORT, named(call.body.branch))]


def _snapshot_export_needs(call: Call) -> Iterable[Need]:
    return [Need(EXPORT, target_branch(call))]


def _export(call: Call) -> Stream:
    body: bodies.ExportBody = call.body
    branch = named(body.branch) if body.snapshot is None else None
    return Stream(call.graph.export_chunks(branch=branch, snapshot=body.snapshot, types=body.type_names), NDJSON)


def _baseline(call: Call) -> Stream:
    """The lines of a snapshot, then its cursor, which only a client that has read all data gets."""
    body: bodies.BaselineBody = call.body
    captured = call.graph.baseline(named(body.branch), kinds=body.kind, types=body.type, ops=body.op)
    assert isinstance(captured.snapshot, Snapshot)
    wanted = read_filter(body.kind, body.type, body.op)
    types = [entry.key for entry in captured.snapshot.entries() if wanted.wants_type(*_kind_and_names(entry.key))]
    lines = call.graph.export_chunks(snapshot=captured.snapshot, types=types)

    def pieces() -> Iterator[bytes]:
        yield from lines
        yield orjson.dumps({"baseline": captured.to_dict()}, option=orjson.OPT_APPEND_NEWLINE)

    return Stream(pieces(), NDJSON)


def _kind_and_names(type_key: str) -> tuple[str, list[str]]:
    kind, _, name = type_key.partition(":")
    return kind, [name]


OPERATIONS = [
    Operation(
        "commit_changes",
        "GET",
        "/commits/{commit_id}/changes",
        "What one commit did against its first parent.",
        _commit_changes,
        _commit_branch_needs,
        needs_look_up=lambda call: True,
        parameters=bodies.CommitChangesParameters,
        answers=answers.CommitChanges,
        statuses=(404, 409, 410, 413),
    ),
    Operation(
        "changes",
        "GET",
        "/changes",
        "The next page of a branch's change feed.",
        _feed,
        _feed_needs,
        parameters=bodies.FeedParameters,
        answers=answers.FeedPage,
        statuses=(404, 409, 410, 413),
    ),
    Operation(
        "changes_stream",
        "GET",
        "/changes/stream",
        "A branch's change feed as server-sent events; the id of an event is a cursor.",
        _feed_stream,
        _feed_needs,
        parameters=bodies.StreamParameters,
        answers=EVENTS,
        statuses=(404, 409, 410, 413),
        request_headers={"Last-Event-ID": "The id of the last event that was seen."},
    ),
    Operation(
        "baseline",
        "POST",
        "/changes/baseline",
        "All that a branch holds, and the cursor of the changes behind it.",
        _baseline,
        _export_needs,
        body=bodies.BaselineBody,
        body_optional=True,
        answers=NDJSON,
        statuses=(404, 410, 413),
        exports=True,
    ),
    Operation(
        "export",
        "POST",
        "/export",
        "All that a branch holds, as JSON lines.",
        _export,
        _snapshot_export_needs,
        needs_look_up=names_snapshot,
        body=bodies.ExportBody,
        body_type=JSON,
        answers=NDJSON,
        statuses=(404, 409, 410, 413, 415),
        exports=True,
        can_be_job=True,
    ),
]
