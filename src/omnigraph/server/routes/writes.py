"""Operations that write: mutations, branches, merges and schema changes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from omnigraph.errors import BadRequest
from omnigraph.mutation.execute import MutationResult
from omnigraph.server import answers, bodies
from omnigraph.server.access import BRANCH_CREATE, BRANCH_DELETE, BRANCH_MERGE, CHANGE, READ, SCHEMA_APPLY, Need
from omnigraph.server.graphs import declared_schema
from omnigraph.server.operation import Answer, Call, Operation, Work
from omnigraph.server.routes.sources import Asked, asked_mutation, named, one_of, schema_text
from omnigraph.wire.shapes import change_output, merge_output, schema_output

IF_COMMIT = "omnigraph-if-graph-commit"
IF_COMMIT_HEADER = {
    "Omnigraph-If-Graph-Commit": "The id of the commit that must be the head of the branch, for the write to happen."
}
WRITE_STATUSES = (404, 409, 410, 413, 424)


def change_body_branch(call: Call) -> Iterable[Need]:
    """The need to change the branch in the body."""
    return [Need(CHANGE, named(call.body.branch))]


def refuse_condition(call: Call) -> None:
    """Raise BadRequest for the header of a conditional write on a plain route, which would ignore it."""
    if IF_COMMIT in call.headers:
        raise BadRequest(
            "Omnigraph-If-Graph-Commit is for the route that ends in /if-graph-commit; this one ignores no condition"
        )


def required_commit(call: Call) -> str:
    """The commit id of a conditional write; raises BadRequest unless it is given once, without quotes, lists or `*`."""
    given = call.headers.get(IF_COMMIT, [])
    if len(given) != 1:
        raise BadRequest("give Omnigraph-If-Graph-Commit exactly once: the id of the commit that must be the head")
    value = given[0]
    if not value or not value.isalnum():
        raise BadRequest("Omnigraph-If-Graph-Commit is a commit id as it is: no `*`, no quotes, no `W/` and no list")
    return value


def _mutation_of(call: Call) -> Asked:
    body: bodies.MutateBody = call.body
    source = one_of("query", query=body.query, query_source=body.query_source)
    if source is None:
        raise BadRequest("invalid request body: object missing required field `query`")
    return asked_mutation(call, source, one_of("name", name=body.name, query_name=body.query_name), body.params)


def _mutate(call: Call) -> Answer:
    refuse_condition(call)
    return answer_mutation(call, _mutation_of(call), call.body.branch, None, call.body.message)


def _mutate_if(call: Call) -> Answer:
    return answer_mutation(call, _mutation_of(call), call.body.branch, required_commit(call), call.body.message)


def answer_mutation(
    call: Call, asked: Asked, branch: str | None, if_commit: str | None, message: str | None = None
) -> Answer:
    """Run a mutation; the answer has its counts and its commit."""
    result: MutationResult = call.graph.mutate(
        asked.source,
        asked.name,
        asked.params,
        branch=named(branch),
        actor=call.actor,
        if_commit=if_commit,
        idempotency_key=call.idempotency_key,
        message=message,
    )
    call.committed = result.commit is not None
    return call.json(change_output(named(branch), asked.name, call.actor, result), result.to_dict())


def _transact(call: Call) -> Answer:
    """Run mutations in order as one commit; the answer lists the effect of each."""
    body: bodies.TransactionBody = call.body
    refuse_condition(call)
    asked = [asked_mutation(call, given.query, given.name, given.params) for given in body.mutations]
    with call.graph.transaction(
        branch=named(body.branch),
        actor=call.actor,
        message=body.message,
        if_commit=body.if_commit,
        idempotency_key=call.idempotency_key,
    ) as transaction:
        done = [transaction.mutate(one.source, one.name, one.params) for one in asked]
    result = transaction.result
    assert result is not None, "a block that ended without an error is committed"
    call.committed = result.commit is not None
    names = ", ".join(one.name for one in asked if one.name)
    each = [
        {"query_name": one.name, "affected_nodes": did.affected_nodes, "affected_edges": did.affected_edges}
        for one, did in zip(asked, done, strict=True)
    ]
    shape = change_output(named(body.branch), names, call.actor, result)
    return call.json(shape | {"mutations": each}, result.to_dict())


# --- branches ---------------------------------------------------------------------------------------------------------


def _create_needs(call: Call) -> Iterable[Need]:
    return [Need(BRANCH_CREATE, named(call.body.base), call.body.name)]


def _create_branch(call: Call) -> Answer:
    base = named(call.body.base)
    call.graph.create_branch(call.body.name, base, actor=call.actor, idempotency_key=call.idempotency_key)
    return call.json({"uri": call.graph.uri, "from": base, "name": call.body.name, "actor_id": call.actor})


def _delete_needs(call: Call) -> Iterable[Need]:
    return [Need(BRANCH_DELETE, None, call.path["branch"])]


def _delete_branch(call: Call) -> Answer:
    name = call.path["branch"]
    call.graph.delete_branch(name, actor=call.actor, idempotency_key=call.idempotency_key)
    return call.json({"uri": call.graph.uri, "name": name, "actor_id": call.actor})


def _merge_needs(call: Call) -> Iterable[Need]:
    body: bodies.MergeBody = call.body
    if body.options is not None and body.options.dry_run:
        # A dry run writes nothing, so permission to read both branches is enough.
        return [Need(READ, body.source), Need(READ, named(body.target))]
    needs = [Need(BRANCH_MERGE, body.source, named(body.target)), *schema_needs(body.options, named(body.target))]
    return [*needs, Need(BRANCH_DELETE, None, body.source)] if body.delete_branch else needs


def schema_needs(given: bodies.MergeOptions | None, target: str, *, commit_kind: str | None = None) -> list[Need]:
    """The need to change the schema of a branch, if the options contain a schema or the picked commit changes schemas."""
    if given is not None and given.dry_run:
        return []
    is_changing = commit_kind == "schema" or (given is not None and given.schema is not None)
    return [Need(SCHEMA_APPLY, None, target)] if is_changing else []


def merge_options(given: bodies.MergeOptions | None) -> dict[str, Any]:
    """The options of a merge as the library takes them."""
    if given is not None and given.schema is not None:
        schema_text(given.schema)
    return {} if given is None else msgspec.structs.asdict(given)


def _merge(call: Call) -> Answer:
    body: bodies.MergeBody = call.body
    target = named(body.target)
    result = call.graph.merge(
        body.source,
        target,
        delete_branch=bool(body.delete_branch),
        actor=call.actor,
        message=body.message,
        idempotency_key=call.idempotency_key,
        **merge_options(body.options),
    )
    call.committed = result.commit is not None
    return call.json(merge_output(body.source, target, call.actor, result), result.to_dict())


# --- schema -----------------------------------------------------------------------------------------------------------


def _schema_needs(call: Call) -> Iterable[Need]:
    return [Need(SCHEMA_APPLY, None, named(call.parameters.branch))]


def _apply_schema(call: Call) -> Answer:
    body: bodies.SchemaBody = call.body
    assert call.served is not None
    if call.served.is_declared:
        raise declared_schema(call.served.graph_id)
    applied = call.graph.apply_schema(
        schema_text(body.schema_source),
        branch=named(call.parameters.branch),
        allow_data_loss=bool(body.allow_data_loss),
        backfill=body.backfill,
        actor=call.actor,
        message=body.message,
        idempotency_key=call.idempotency_key,
    )
    call.committed = applied.applied
    library = None if applied.commit is None else applied.commit.to_dict()
    return call.json(schema_output(call.graph.uri, applied), {"commit": library})


def _mutation(name: str, path: str, summary: str, work: Work, **more: Any) -> Operation:
    return Operation(
        name,
        "POST",
        path,
        summary,
        work,
        change_body_branch,
        body=bodies.MutateBody,
        answers=answers.ChangeOutput,
        writes=True,
        **more,
    )


OPERATIONS = [
    _mutation("mutate", "/mutate", "Run a mutation.", _mutate, statuses=WRITE_STATUSES),
    _mutation(
        "mutate_if_graph_commit",
        "/mutate/if-graph-commit",
        "Run a mutation while a commit is the head of the branch.",
        _mutate_if,
        statuses=(*WRITE_STATUSES, 412),
        request_headers=IF_COMMIT_HEADER,
        required_headers=frozenset(IF_COMMIT_HEADER),
    ),
    _mutation(
        "change", "/change", "Run a mutation (older name).", _mutate, statuses=WRITE_STATUSES, successor="mutate"
    ),
    Operation(
        "transact",
        "POST",
        "/transactions",
        "Run several mutations as one commit.",
        _transact,
        change_body_branch,
        body=bodies.TransactionBody,
        answers=answers.TransactionOutput,
        statuses=(*WRITE_STATUSES, 412),
        writes=True,
    ),
    Operation(
        "apply_schema",
        "POST",
        "/schema/apply",
        "Make a schema the one of a branch.",
        _apply_schema,
        _schema_needs,
        parameters=bodies.BranchParameters,
        body=bodies.SchemaBody,
        answers=answers.SchemaApplied,
        statuses=WRITE_STATUSES,
        writes=True,
    ),
    Operation(
        "create_branch",
        "POST",
        "/branches",
        "Make a branch at the head of another one.",
        _create_branch,
        _create_needs,
        body=bodies.BranchBody,
        answers=answers.BranchCreated,
        statuses=WRITE_STATUSES,
        writes=True,
    ),
    Operation(
        "delete_branch",
        "DELETE",
        "/branches/{branch}",
        "Delete a branch that no other branch depends on.",
        _delete_branch,
        _delete_needs,
        answers=answers.BranchDeleted,
        statuses=WRITE_STATUSES,
        writes=True,
    ),
    Operation(
        "merge_branches",
        "POST",
        "/branches/merge",
        "Merge a branch into another one.",
        _merge,
        _merge_needs,
        body=bodies.MergeBody,
        answers=answers.Merged,
        statuses=WRITE_STATUSES,
        writes=True,
        can_be_job=True,
    ),
]
