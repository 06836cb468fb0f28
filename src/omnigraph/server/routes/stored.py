"""Operations on stored queries: the catalogue, and calling one by name."""

from __future__ import annotations

from collections.abc import Iterable

from omnigraph.errors import BadRequest, Denied, NotFound
from omnigraph.graph.stored import StoredQuery
from omnigraph.server import answers, bodies
from omnigraph.server.access import CHANGE, INVOKE_QUERY, Need
from omnigraph.server.operation import Answer, Call, Operation
from omnigraph.server.routes.reads import answer_query, names_snapshot, read_main, read_target, run_query
from omnigraph.server.routes.sources import Asked, declared, named, refuse_both
from omnigraph.server.routes.writes import (
    IF_COMMIT_HEADER,
    WRITE_STATUSES,
    answer_mutation,
    refuse_condition,
    required_commit,
)
from omnigraph.wire.shapes import stored_query_output


def _list(call: Call) -> Answer:
    assert call.served is not None
    stored = call.served.stored
    return call.json({"queries": [stored_query_output(stored[name].query) for name in sorted(stored)]})


def _found(call: Call) -> StoredQuery:
    """The stored query of the path; a missing query and a forbidden query give the same error."""
    assert call.served is not None
    found = call.served.stored.get(call.path["name"])
    try:
        call.check(Need(INVOKE_QUERY))
    except Denied:
        found = None
    if found is None:
        raise NotFound("stored query not found")
    return found


def _needs(call: Call) -> Iterable[Need]:
    body: bodies.InvokeBody = call.body
    found = _found(call)
    refuse_both(body.branch, body.snapshot)
    if found.query.is_mutation:
        return [Need(CHANGE, named(body.branch))]
    return read_target(call)


def _invoke(call: Call) -> Answer:
    refuse_condition(call)
    return _answered(call, None)


def _invoke_if(call: Call) -> Answer:
    commit = required_commit(call)
    if not _found(call).query.is_mutation:
        raise BadRequest(f"'{call.path['name']}' is a read: a condition is for stored mutations")
    return _answered(call, commit)


def _answered(call: Call, if_commit: str | None) -> Answer:
    body: bodies.InvokeBody = call.body
    stored = _found(call)
    query = stored.query
    if body.expect_mutation is not None and body.expect_mutation != query.is_mutation:
        kind, verb = ("mutation", "mutate") if query.is_mutation else ("read", "query")
        raise BadRequest(f"'{query.name}' is a {kind} — use omnigraph {verb} {query.name}")
    asked = Asked(stored.source, query, declared(call, query, body.params))
    if not query.is_mutation:
        result = run_query(call, asked, body.branch, body.snapshot)
        return answer_query(call, asked, body.branch, body.snapshot, result)
    if body.snapshot is not None:
        raise BadRequest(f"'{query.name}' is a mutation: it writes to a branch, not to a snapshot")
    return answer_mutation(call, asked, body.branch, if_commit, body.message)


OPERATIONS = [
    Operation(
        "list_queries", "GET", "/queries", "The stored queries.", _list, read_main, answers=answers.StoredQueries
    ),
    Operation(
        "invoke_query",
        "POST",
        "/queries/{name}",
        "Call a stored query.",
        _invoke,
        _needs,
        needs_look_up=names_snapshot,
        body=bodies.InvokeBody,
        body_called="stored-query invocation body",
        body_optional=True,
        answers=(answers.ReadOutput, answers.ChangeOutput),
        statuses=(*WRITE_STATUSES, 504),
        writes=True,
        writes_now=lambda call: _found(call).query.is_mutation,
    ),
    Operation(
        "invoke_query_if_graph_commit",
        "POST",
        "/queries/{name}/if-graph-commit",
        "Call a stored mutation while a commit is the head of the branch.",
        _invoke_if,
        _needs,
        needs_look_up=names_snapshot,
        body=bodies.InvokeBody,
        body_called="stored-query invocation body",
        body_optional=True,
        answers=answers.ChangeOutput,
        statuses=(*WRITE_STATUSES, 412, 504),
        writes=True,
        request_headers=IF_COMMIT_HEADER,
        required_headers=frozenset(IF_COMMIT_HEADER),
    ),
]
