"""The reading verbs as generators of requests; see `requests`. They take the arguments of the verbs in `omnigraph.graph`."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from omnigraph.changes.commits import CommitChanges
from omnigraph.changes.feed import FeedPage
from omnigraph.changes.filter import Names
from omnigraph.changes.model import ChangeSet
from omnigraph.client.handle import Handle, Reference, Target, storage_only, words
from omnigraph.client.requests import Answer, Ask, Request, get, post, segment
from omnigraph.client.sending import sent_params
from omnigraph.client.values import (
    BlobPlace,
    ChangePages,
    RemoteBaseline,
    RemoteSnapshot,
    captured_baseline,
    snapshot_from,
)
from omnigraph.commit.model import MAIN, Commit
from omnigraph.errors import BadRequest, OmnigraphError
from omnigraph.evolution.backfill import GivenBackfill, texts_of
from omnigraph.evolution.plan import Plan, plan_of, steps_of
from omnigraph.export.run import ExportProgress
from omnigraph.graph.handle import NOW, SchemaOf
from omnigraph.graph.history import Moment, micros
from omnigraph.graph.sources import read_source, require_named
from omnigraph.query.limits import Cancel, parse_size
from omnigraph.query.result import Explanation, Result
from omnigraph.shown import Listing
from omnigraph.wire import results
from omnigraph.wire.arrow import ARROW_STREAM, result_of
from omnigraph.wire.failures import LIBRARY, LIBRARY_JSON

#: The largest number that a request holds; no server has so much memory.
_MOST_BYTES = 2**63 - 1
#: Rows come as Arrow, errors and all else in the library's form.
ROWS = {"Accept": f"{ARROW_STREAM}, {LIBRARY_JSON}"}


# --- queries ----------------------------------------------------------------------------------------------------------


def query(
    handle: Handle,
    source: str | Path,
    name: str | None = None,
    params: Mapping[str, object] | None = None,
    *,
    branch: str | None = None,
    snapshot: Reference = None,
    engine: str = "local",
    schema: SchemaOf = NOW,
    memory_limit: int | str | None = None,
    timeout: float | None = None,
    cancel: Cancel | None = None,
) -> Ask[Result]:
    """Run a read query on a branch as it is now, or on a snapshot; see `Graph.query`."""
    _refuse_engine(engine)
    body = _asked(handle, source, name, params, branch, snapshot, schema, memory_limit)
    answer = yield post("/query", body, ROWS | deadline(timeout), cancel=cancel)
    return result_of(answer.content)


def explain(
    handle: Handle,
    source: str | Path,
    name: str | None = None,
    params: Mapping[str, object] | None = None,
    *,
    branch: str | None = None,
    snapshot: Reference = None,
    analyze: bool = False,
    engine: str = "local",
    schema: SchemaOf = NOW,
    memory_limit: int | str | None = None,
    timeout: float | None = None,
    cancel: Cancel | None = None,
) -> Ask[Explanation]:
    """How a read query is answered."""
    _refuse_engine(engine)
    body = _asked(handle, source, name, params, branch, snapshot, schema, memory_limit) | {"analyze": analyze}
    answer = yield post("/explain", body, deadline(timeout), cancel=cancel)
    return Explanation(**answer.json)


#: The engines of a graph that is opened here, whose code a client does not load.
_ENGINES = ("local", "spark", "auto")


def _refuse_engine(engine: str) -> None:
    """Raise BadRequest for an engine other than "local": a server reads with its own engine."""
    if engine not in _ENGINES:
        raise BadRequest(f"there is no engine '{engine}'; the engines are {', '.join(_ENGINES)}")
    if engine != "local":
        raise BadRequest(f"a server answers with its own engine; engine='{engine}' is for a graph that is opened here")


def _asked(
    handle: Handle,
    source: str | Path,
    name: str | None,
    params: Mapping[str, object] | None,
    branch: str | None,
    snapshot: Reference,
    schema: SchemaOf,
    memory_limit: int | str | None,
) -> dict[str, Any]:
    place = handle._place(branch, snapshot)
    text, _ = read_source(source)
    require_named(name, params)
    body: dict[str, Any] = {"query": text, "name": name, "params": sent_params(text, name, params)} | place
    if schema != NOW:
        body["schema"] = schema
    if memory_limit is not None:
        body["memory_limit"] = min(parse_size(memory_limit, "memory_limit"), _MOST_BYTES)
    return body


def deadline(timeout: float | None) -> dict[str, str]:
    """The header of a deadline, in seconds."""
    if timeout is None:
        return {}
    if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not 0 < timeout < 2**31:
        raise BadRequest(f"timeout is a number of seconds above 0, not {timeout!r}")
    return {"Omnigraph-Timeout-Ms": str(max(1, round(timeout * 1000)))}


def stored_queries(handle: Handle) -> Ask[list[dict[str, Any]]]:
    """The stored queries of the graph: their names, whether they write, and their parameters."""
    told = yield from get("/queries")
    listed: list[dict[str, Any]] = told["queries"]
    return listed


# --- history ----------------------------------------------------------------------------------------------------------


def branches(handle: Handle) -> Ask[list[str]]:
    """The names of all branches: main first, then by name."""
    told = yield from get("/branches")
    return [MAIN, *(name for name in told["branches"] if name != MAIN)]


def commits(
    handle: Handle,
    branch: str | None = None,
    *,
    actor: str | None = None,
    kind: str | None = None,
    since: Moment | None = None,
    until: Moment | None = None,
) -> Ask[list[Commit]]:
    """The history reachable from a branch's head, newest first, filtered by actor, kind and time."""
    wanted = {"actor": actor, "kind": kind, "since": micros(since), "until": micros(until)}
    told = yield from get("/commits", {"branch": handle._named(branch), **wanted})
    return Listing(results.commit_of(found) for found in told[LIBRARY])


def commit(handle: Handle, commit_id: str) -> Ask[Commit]:
    """A commit by its id, wherever it was made."""
    told = yield from get(f"/commits/{segment(commit_id)}")
    return results.commit_of(told[LIBRARY])


def head(handle: Handle, branch: str | None = None) -> Ask[Commit]:
    """The newest commit of a branch; a fresh branch has its fork point."""
    told = yield from get("/commits", {"branch": handle._named(branch), "limit": 1})
    return results.commit_of(told[LIBRARY][0])


def snapshot(
    handle: Handle, branch: str | None = None, at: Reference = None, *, schema: SchemaOf = NOW
) -> Ask[RemoteSnapshot]:
    """The graph now, or at a commit id, tag, manifest version or snapshot id."""
    storage_only("snapshot", schema=(schema, NOW))
    if isinstance(at, RemoteSnapshot):
        return at
    asked = {"branch": handle._named(branch)} if at is None else {"snapshot": handle._reference(at)}
    return snapshot_from((yield from get("/snapshot", asked)))


def tags(handle: Handle) -> Ask[dict[str, str]]:
    """The ids of the tagged commits by tag name, in name order."""
    told = yield from get("/tags")
    found: dict[str, str] = told["tags"]
    return found


# --- changes ----------------------------------------------------------------------------------------------------------


def diff(
    handle: Handle,
    before: Target,
    after: Target = None,
    *,
    kinds: Names = None,
    types: Names = None,
    ops: Names = None,
) -> Ask[ChangeSet]:
    """What changed from one read target to another, this handle's branch unless given."""
    body = {
        "before": handle._target(before),
        "after": handle._target(after) or handle.branch,
        "kinds": words(kinds),
        "types": words(types),
        "ops": words(ops),
    }
    answer = yield post("/diff", body)
    changes = [results.change_of(change) for change in answer.json["changes"]]
    return ChangeSet(changes, schema=steps_of(answer.json.get("schema", ())))


def commit_changes(
    handle: Handle,
    commit_id: str,
    *,
    limit: int | None = None,
    page_token: str | None = None,
    kinds: Names = None,
    types: Names = None,
    ops: Names = None,
) -> Ask[ChangePages]:
    """What one commit did against its first parent: all of it, or with `limit` or `page_token` a page."""
    wanted = {"kind": words(kinds), "type": words(types), "op": words(ops), "limit": limit}

    def page(token: str | None) -> Ask[CommitChanges]:
        told = yield from get(f"/commits/{segment(commit_id)}/changes", wanted | {"page_token": token})
        return results.commit_changes_of(told, told[LIBRARY]["commit"])

    first = yield from page(page_token)
    return ChangePages(first, page, follow=limit is None and page_token is None)


def changes(
    handle: Handle,
    branch: str | None = None,
    *,
    cursor: str | None = None,
    start: str | None = None,
    page_token: str | None = None,
    limit: int | None = None,
    max_commits: int | None = None,
    kinds: Names = None,
    types: Names = None,
    ops: Names = None,
) -> Ask[FeedPage]:
    """The next page of a branch's change feed; see `Graph.changes`."""
    asked = {
        "branch": handle._named(branch),
        "cursor": cursor,
        "start": start,
        "page_token": page_token,
        "limit": limit,
        "max_commits": max_commits,
        "kind": words(kinds),
        "type": words(types),
        "op": words(ops),
    }
    told = yield from get("/changes", asked)
    return results.feed_page_of(told, told[LIBRARY])


def baseline(
    handle: Handle,
    branch: str | None = None,
    out: Any = None,
    *,
    kinds: Names = None,
    types: Names = None,
    ops: Names = None,
) -> Ask[RemoteBaseline]:
    """All that a branch holds now, written to `out` as export lines, and the cursor of the changes behind it."""
    body = {"branch": handle._named(branch), "kind": words(kinds), "type": words(types), "op": words(ops)}
    answer = yield post("/changes/baseline", body, safe=False, consume=lambda pieces: captured_baseline(pieces, out))
    entities, told = answer.consumed
    held = yield from snapshot(handle, at=told["snapshot_commit_id"])
    return RemoteBaseline(held, told["snapshot_commit_id"], told["resume_cursor"], entities)


# --- entities ---------------------------------------------------------------------------------------------------------


def entity(
    handle: Handle,
    kind: Literal["node", "edge"],
    type_name: str,
    entity_id: str,
    *,
    branch: str | None = None,
    snapshot: Reference = None,
    schema: SchemaOf = NOW,
) -> Ask[dict[str, Any] | None]:
    """One entity as a dict, or None when there is none with this id."""
    storage_only("read of an entity", schema=(schema, NOW))
    asked = {"entity": kind, "type": type_name, "id": entity_id} | handle._place(branch, snapshot)
    told = yield from get("/entity", asked)
    found: dict[str, Any] | None = told["entity"]
    return found


def read_blob(
    handle: Handle,
    kind: Literal["node", "edge"],
    type_name: str,
    entity_id: str,
    property: str,
    *,
    branch: str | None = None,
    snapshot: Reference = None,
    schema: SchemaOf = NOW,
) -> Ask[BlobPlace]:
    """One blob value: its size and ETag at once, its bytes by `read(start, end)`."""
    storage_only("read of a blob", schema=(schema, NOW))
    asked = {"entity": kind, "type": type_name, "id": entity_id, "property": property}
    params = asked | handle._place(branch, snapshot)
    try:
        answer = yield Request("HEAD", "/blob", params=params)
    except OmnigraphError:
        # An error answer to HEAD has no body with the reason, so GET is tried.
        answer = yield Request("GET", "/blob", params=params, headers={"Range": "bytes=0-0"})
    return _blob_place(asked, answer)


def _blob_place(asked: dict[str, str], answer: Answer) -> BlobPlace:
    snapshot_id = answer.headers["omnigraph-snapshot-id"]
    if answer.status == 302:
        return BlobPlace("external", None, None, answer.headers["location"], snapshot_id, None)

    def fetch(start: int, end: int) -> Ask[bytes]:
        pinned = asked | {"snapshot": snapshot_id}
        part = yield Request("GET", "/blob", params=pinned, headers={"Range": f"bytes={start}-{end - 1}"})
        return part.content

    length = int(answer.headers["content-length"])
    return BlobPlace("managed", length, answer.headers["etag"].strip('"'), None, snapshot_id, fetch)


# --- schema and export ------------------------------------------------------------------------------------------------


def schema(handle: Handle, branch: str | None = None, *, snapshot: Reference = None) -> Ask[str]:
    """The source of the schema of a branch, or of the one that a snapshot was written under."""
    told = yield from get("/schema", handle._place(branch, snapshot))
    return str(told["schema_source"])


def plan_schema(
    handle: Handle,
    schema: str | Path,
    *,
    branch: str | None = None,
    allow_data_loss: bool = False,
    backfill: GivenBackfill = None,
) -> Ask[Plan]:
    """What applying a schema would do, and which rows stand in the way of it."""
    body = schema_body(schema, allow_data_loss, backfill)
    answer = yield post("/schema/plan", body, params={"branch": handle._named(branch)})
    return plan_of(answer.json)


def schema_body(schema: str | Path, allow_data_loss: bool, backfill: GivenBackfill) -> dict[str, Any]:
    """The body of a request with a schema; `backfill` is sent only when given, since older servers do not know it."""
    texts = texts_of(backfill)
    body = {"schema_source": read_source(schema, ".pg")[0], "allow_data_loss": allow_data_loss}
    return body | ({"backfill": list(texts)} if texts else {})


def export(
    handle: Handle,
    out: str | os.PathLike[str],
    *,
    branch: str | None = None,
    snapshot: Reference = None,
    types: Collection[str] | None = None,
    format: Literal["jsonl", "parquet", "arrow", "csv"] = "jsonl",
    files: Literal["one", "many"] = "one",
    engine: Literal["auto", "local", "spark"] = "auto",
    schema: SchemaOf = NOW,
    progress: ExportProgress | None = None,
) -> Ask[int]:
    """Write the nodes and edges of a snapshot as JSON lines; returns how many there are."""
    if format != "jsonl" or files != "one":
        raise BadRequest("a served export is one stream of JSON lines; open the graph with og.open for other files")
    storage_only("served export", engine=(engine, "auto"))
    place = os.fspath(out)
    write = _write_out if place == "-" else _writer(place)
    answer = yield exporting(
        handle, branch=branch, snapshot=snapshot, types=types, schema=schema, consume=_counting(write, progress)
    )
    count: int = answer.consumed
    return count


def exporting(
    handle: Handle,
    *,
    branch: str | None = None,
    snapshot: Reference = None,
    types: Collection[str] | None = None,
    schema: SchemaOf = NOW,
    consume: Callable[[Iterator[bytes]], Any] | None = None,
) -> Request:
    """The request for the lines of an export."""
    storage_only("served export", schema=(schema, NOW))
    named = [types] if isinstance(types, str) else types
    body = handle._place(branch, snapshot) | ({} if named is None else {"type_names": list(named)})
    return post("/export", body, safe=False, consume=consume)


def _counting(
    write: Callable[[Iterator[bytes]], None], progress: ExportProgress | None
) -> Callable[[Iterator[bytes]], int]:
    def consume(pieces: Iterator[bytes]) -> int:
        count = 0

        def counted() -> Iterator[bytes]:
            nonlocal count
            for piece in pieces:
                count += piece.count(b"\n")
                yield piece
                if progress is not None:
                    # The total is only known at the end of the stream.
                    progress(count, count)

        write(counted())
        return count

    return consume


def _write_out(pieces: Iterator[bytes]) -> None:
    sys.stdout.buffer.writelines(pieces)
    sys.stdout.buffer.flush()


def _writer(place: str) -> Callable[[Iterator[bytes]], None]:
    from omnigraph.storage.outputs import Output

    return Output.parse(place).write


def refresh(handle: Handle) -> Ask[list[Any]]:
    """Nothing is kept that could be old; recovery is the server's."""
    return []
    yield  # a verb is a generator
