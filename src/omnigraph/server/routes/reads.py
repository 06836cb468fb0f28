"""Operations that read: snapshot, queries, history, schema and branches."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import orjson
from msgspec import Struct

from omnigraph.commit.model import MAIN
from omnigraph.errors import BadRequest, CommitNotFound
from omnigraph.graph.handle import NOW, SchemaOf
from omnigraph.graph.snapshot import Snapshot
from omnigraph.query.limits import limits_from_environment
from omnigraph.query.result import Result
from omnigraph.server import answers, bodies
from omnigraph.server.access import READ, Need
from omnigraph.server.operation import Answer, Call, Operation, Work
from omnigraph.server.routes.sources import Asked, asked_read, named, refuse_both
from omnigraph.wire.arrow import ARROW_STREAM, PARQUET, arrow_bytes, parquet_bytes
from omnigraph.wire.shapes import commit_output, page, read_output, snapshot_output

ROWS = "application/x-ndjson"


def read_main(call: Call) -> Iterable[Need]:
    """The need to read main."""
    return [Need(READ, MAIN)]


def read_nothing(call: Call) -> Iterable[Need]:
    """The need to read data that belongs to no branch."""
    return [Need(READ)]


def read_parameter_branch(call: Call) -> Iterable[Need]:
    """The need to read the branch in the parameters."""
    return [Need(READ, named(call.parameters.branch))]


def read_target(call: Call) -> Iterable[Need]:
    """The need to read the branch, or the branch of the snapshot, of the request."""
    return [Need(READ, target_branch(call))]


def target_branch(call: Call) -> str:
    """The branch, or the branch of the snapshot, of the request."""
    asked = _asked(call)
    refuse_both(asked.branch, asked.snapshot)
    return named(asked.branch) if asked.snapshot is None else snapshot_of(call, asked.snapshot).branch


def names_snapshot(call: Call) -> bool:
    """Whether the request names a snapshot, whose branch has to be looked up."""
    return _asked(call).snapshot is not None


def _asked(call: Call) -> Any:
    """The part of the request that names the state: the body, or the parameters of a request without a body."""
    return call.parameters if call.body is None else call.body


def snapshot_of(call: Call, text: str) -> Snapshot:
    """The snapshot of a reference; an invalid reference raises CommitNotFound, as the contract requires."""
    try:
        return call.graph.snapshot(at=text)
    except BadRequest:
        if call.whole:
            raise
        raise CommitNotFound(f"commit '{text}' not found", commit=text) from None


def _shown(call: Call) -> Snapshot:
    asked: bodies.SnapshotParameters = call.parameters
    refuse_both(asked.branch, asked.snapshot)
    return call.graph.snapshot(named(asked.branch)) if asked.snapshot is None else snapshot_of(call, asked.snapshot)


def _snapshot(call: Call) -> Answer:
    found = _shown(call)
    return call.json(snapshot_output(found), found.to_dict())


def _query(call: Call) -> Answer:
    body: bodies.QueryBody = call.body
    asked = asked_read(call, body.query, body.name, body.params)
    schema = body.schema or NOW
    result = run_query(call, asked, body.branch, body.snapshot, schema=schema, memory=body.memory_limit)
    return answer_query(call, asked, body.branch, body.snapshot, result)


def answer_query(call: Call, asked: Asked, branch: str | None, snapshot: str | None, result: Result) -> Answer:
    """The rows of a query in the form that the client prefers: JSON, Arrow, Parquet, or JSON lines."""
    shown = None if snapshot is not None else named(branch)
    headers = {"Omnigraph-Graph-Commit": result.commit, "Vary": "Accept"}
    form = call.preferred(ARROW_STREAM, PARQUET, ROWS)
    if form == ARROW_STREAM:
        about = {"query_name": asked.name, "target": {"branch": shown, "snapshot": snapshot}}
        return Answer(arrow_bytes(result, about), ARROW_STREAM, headers=headers)
    if form == PARQUET:
        return Answer(parquet_bytes(result), PARQUET, headers=headers)
    if form == ROWS:
        lines = b"".join(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE) for row in result.to_dicts(json=True))
        return Answer(lines, f"{ROWS}; charset=utf-8", headers=headers)
    return call.json(read_output(asked.name, shown, snapshot, result), headers={"Vary": "Accept"})


def run_query(
    call: Call,
    asked: Asked,
    branch: str | None,
    snapshot: str | None,
    *,
    schema: SchemaOf = NOW,
    memory: int | None = None,
) -> Result:
    """The result of a read query, within the timeout of the request; cancelled when the client disconnects."""
    return call.graph.query(
        asked.source,
        asked.name,
        asked.params,
        branch=named(branch) if snapshot is None else None,
        snapshot=snapshot,
        schema=schema,
        memory_limit=allowed_memory(memory),
        timeout=call.timeout,
        cancel=call.cancel,
    )


def allowed_memory(asked: int | None) -> int | None:
    """The requested memory limit of a query in bytes, at most the server's limit; None when it is not requested."""
    return None if asked is None else min(asked, limits_from_environment().memory)


def _read(call: Call) -> Answer:
    body: bodies.ReadBody = call.body
    asked = asked_read(call, body.query_source, body.query_name, body.params)
    result = run_query(call, asked, body.branch, body.snapshot)
    shape = read_output(asked.name, None if body.snapshot is not None else named(body.branch), body.snapshot, result)
    del shape["graph_commit_id"]
    return call.json(shape)


def _schema_needs(call: Call) -> Iterable[Need]:
    asked: bodies.SnapshotParameters = call.parameters
    if asked.branch is None and asked.snapshot is None:
        return read_nothing(call)
    return [Need(READ, _shown(call).branch)]


def _schema(call: Call) -> Answer:
    asked: bodies.SnapshotParameters = call.parameters
    shown = None if asked.snapshot is None else _shown(call)
    return call.json({"schema_source": call.graph.schema(None if shown else named(asked.branch), snapshot=shown)})


def _branches(call: Call) -> Answer:
    asked: bodies.PageParameters = call.parameters
    names, token = page(sorted(call.graph.branches()), asked.limit, asked.page_token, lambda name: name)
    return call.json({"branches": names} | token)


def _commits(call: Call) -> Answer:
    asked: bodies.CommitsParameters = call.parameters
    branch = named(asked.branch)
    wanted = asked.filters
    if asked.limit == 1 and asked.page_token is None and not any(value is not None for value in wanted.values()):
        # Reading only the head does not depend on the length of the history.
        head = call.graph.head(branch)
        commits, token = [head], {} if head.parent is None else {"next_page_token": head.id}
    else:
        commits, token = page(
            call.graph.commits(branch, **wanted), asked.limit, asked.page_token, lambda found: found.id
        )
    library = [found.to_dict() for found in commits] if call.whole else None
    return call.json({"commits": [commit_output(found) for found in commits]} | token, library)


def _commit(call: Call) -> Answer:
    found = call.graph.commit(call.path["commit_id"])
    return call.json(commit_output(found), found.to_dict())


def query_operation(
    name: str, path: str, summary: str, work: Work, body: type[Struct], answer: type[Struct], **more: Any
) -> Operation:
    """An operation on a read query; its body has the text and the state."""
    return Operation(
        name,
        "POST",
        path,
        summary,
        work,
        read_target,
        needs_look_up=names_snapshot,
        body=body,
        answers=answer,
        statuses=(404, 410, 413, 504),
        **more,
    )


OPERATIONS = [
    Operation(
        "snapshot",
        "GET",
        "/snapshot",
        "The tables of a branch and their published versions.",
        _snapshot,
        read_target,
        needs_look_up=names_snapshot,
        parameters=bodies.SnapshotParameters,
        answers=answers.SnapshotAnswer,
        statuses=(404,),
    ),
    query_operation("query", "/query", "Run a read query.", _query, bodies.QueryBody, answers.ReadOutput),
    query_operation(
        "read",
        "/read",
        "Run a read query (older form).",
        _read,
        bodies.ReadBody,
        answers.OlderReadOutput,
        successor="query",
    ),
    Operation(
        "get_schema",
        "GET",
        "/schema",
        "The schema of a branch, or of a snapshot.",
        _schema,
        _schema_needs,
        needs_look_up=names_snapshot,
        parameters=bodies.SnapshotParameters,
        answers=answers.SchemaAnswer,
        statuses=(404, 410),
    ),
    Operation(
        "list_branches",
        "GET",
        "/branches",
        "The names of the branches, sorted.",
        _branches,
        read_nothing,
        parameters=bodies.PageParameters,
        answers=answers.Branches,
    ),
    Operation(
        "list_commits",
        "GET",
        "/commits",
        "The history of a branch, newest first.",
        _commits,
        read_parameter_branch,
        parameters=bodies.CommitsParameters,
        answers=answers.Commits,
        statuses=(404,),
    ),
    Operation(
        "get_commit",
        "GET",
        "/commits/{commit_id}",
        "One commit.",
        _commit,
        read_nothing,
        answers=answers.Commit,
        statuses=(404,),
    ),
]
