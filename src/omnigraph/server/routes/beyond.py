"""Operations beyond the contract of existing clients, for more verbs of the library: explain, entity, diff, tags, picks."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from msgspec import Struct

from omnigraph.commit.model import MAIN
from omnigraph.errors import BadRequest, NotFound
from omnigraph.graph.handle import NOW
from omnigraph.merge.result import MergeResult
from omnigraph.server import answers, bodies
from omnigraph.server.access import BRANCH_MERGE, CHANGE, READ, Need
from omnigraph.server.exploring_models import CompareBody
from omnigraph.server.operation import Answer, Call, Operation, Work
from omnigraph.server.routes.reads import (
    allowed_memory,
    names_snapshot,
    query_operation,
    read_main,
    read_target,
    snapshot_of,
)
from omnigraph.server.routes.sources import asked_read, named, schema_text
from omnigraph.server.routes.writes import WRITE_STATUSES, merge_options, schema_needs


def _explain(call: Call) -> Answer:
    body: bodies.ExplainBody = call.body
    asked = asked_read(call, body.query, body.name, body.params)
    found = call.graph.explain(
        asked.source,
        asked.name,
        asked.params,
        branch=named(body.branch) if body.snapshot is None else None,
        snapshot=body.snapshot,
        analyze=bool(body.analyze),
        schema=body.schema or NOW,
        memory_limit=allowed_memory(body.memory_limit),
        timeout=call.timeout,
        cancel=call.cancel,
    )
    return call.json(found.to_dict())


def _entity(call: Call) -> Answer:
    asked: bodies.EntityParameters = call.parameters
    branch = named(asked.branch) if asked.snapshot is None else None
    return call.json(
        {"entity": call.graph.entity(asked.entity, asked.type, asked.id, branch=branch, snapshot=asked.snapshot)}
    )


def _compared_needs(call: Call) -> Iterable[Need]:
    """The needs to read both targets of a comparison."""
    body: bodies.DiffBody | CompareBody = call.body
    branches = call.graph.branches()
    return [Need(READ, _branch_of(call, target, branches)) for target in (body.before, body.after or MAIN)]


def _branch_of(call: Call, target: str, branches: list[str]) -> str | None:
    """The branch of a read target; None when it does not exist, which the comparison reports."""
    if target in branches:
        return target
    try:
        return snapshot_of(call, target).branch
    except (BadRequest, NotFound):
        return None


def _diff(call: Call) -> Answer:
    body: bodies.DiffBody = call.body
    found = call.graph.diff(body.before, body.after or MAIN, kinds=body.kinds, types=body.types, ops=body.ops)
    return call.json(found.to_dict())


def _tags(call: Call) -> Answer:
    return call.json({"tags": call.graph.tags()})


def _tag(call: Call) -> Answer:
    body: bodies.TagBody = call.body
    commit = call.graph.tag(body.name, body.commit or MAIN, actor=call.actor, idempotency_key=call.idempotency_key)
    return call.json({"name": body.name, "graph_commit_id": commit, "actor_id": call.actor})


def _delete_tag(call: Call) -> Answer:
    call.graph.delete_tag(call.path["tag"], actor=call.actor, idempotency_key=call.idempotency_key)
    return call.json({"name": call.path["tag"], "actor_id": call.actor})


def _change_main(call: Call) -> Iterable[Need]:
    return [Need(CHANGE, MAIN)]


def _pick_needs(call: Call) -> Iterable[Need]:
    """The needs to change the branch and to read the branch of the commit, whose rows are copied or changes shown.
    A schema change needs `schema_apply` too; the graph checks it where the kind of the commit does not show it.
    """
    body: bodies.PickBody = call.body
    branch = named(body.branch)
    needs = [Need(CHANGE, branch)]
    try:
        commit = call.graph.commit(body.commit)
        return [*needs, *schema_needs(body.options, branch, commit_kind=commit.kind), Need(READ, commit.branch)]
    except (BadRequest, NotFound):
        # The work reports a missing commit, after the change was allowed.
        return needs


def _rebase_needs(call: Call) -> Iterable[Need]:
    body: bodies.RebaseBody = call.body
    return [Need(BRANCH_MERGE, named(body.onto), body.branch), *schema_needs(body.options, body.branch)]


def _rebase(call: Call) -> Answer:
    body: bodies.RebaseBody = call.body
    onto = named(body.onto)
    result = call.graph.rebase(
        body.branch,
        onto,
        actor=call.actor,
        message=body.message,
        idempotency_key=call.idempotency_key,
        **merge_options(body.options),
    )
    call.committed = result.commit is not None
    shape = {
        "branch": body.branch,
        "onto": onto,
        "outcome": result.outcome,
        "level": result.level,
        "actor_id": call.actor,
    }
    return call.json(shape, result.to_dict())


def _revert(call: Call) -> Answer:
    return _picked(call, call.graph.revert)


def _cherry_pick(call: Call) -> Answer:
    return _picked(call, call.graph.cherry_pick)


def _picked(call: Call, verb: Callable[..., MergeResult]) -> Answer:
    body: bodies.PickBody = call.body
    branch = named(body.branch)
    options = merge_options(body.options) | {"message": body.message}
    result = verb(body.commit, branch, actor=call.actor, idempotency_key=call.idempotency_key, **options)
    call.committed = result.commit is not None
    shape = {
        "graph_commit_id": body.commit,
        "target": branch,
        "outcome": result.outcome,
        "level": result.level,
        "actor_id": call.actor,
    }
    return call.json(shape, result.to_dict())


def _plan_needs(call: Call) -> Iterable[Need]:
    return [Need(READ, call.parameters.branch)]


def _plan_schema(call: Call) -> Answer:
    body: bodies.SchemaBody = call.body
    branch = named(call.parameters.branch)
    planned = call.graph.plan_schema(
        schema_text(body.schema_source),
        branch=branch,
        allow_data_loss=bool(body.allow_data_loss),
        backfill=body.backfill,
    )
    return call.json({"uri": call.graph.uri} | planned.to_dict())


def comparison(name: str, path: str, summary: str, work: Work, body: type[Struct], answer: type[Struct]) -> Operation:
    """An operation that compares the two states named in its body."""
    return Operation(
        name,
        "POST",
        path,
        summary,
        work,
        _compared_needs,
        needs_look_up=lambda call: True,
        body=body,
        answers=answer,
        statuses=(404, 409, 410, 413),
    )


def _pick(name: str, path: str, summary: str, work: Work) -> Operation:
    return Operation(
        name,
        "POST",
        path,
        summary,
        work,
        _pick_needs,
        needs_look_up=lambda call: True,
        body=bodies.PickBody,
        answers=answers.Picked,
        statuses=WRITE_STATUSES,
        writes=True,
    )


OPERATIONS = [
    query_operation(
        "explain", "/explain", "How a read query is answered.", _explain, bodies.ExplainBody, answers.Explanation
    ),
    Operation(
        "entity",
        "GET",
        "/entity",
        "One entity by its id.",
        _entity,
        read_target,
        needs_look_up=names_snapshot,
        parameters=bodies.EntityParameters,
        answers=answers.EntityAnswer,
        statuses=(404, 410),
    ),
    comparison("diff", "/diff", "What changed from one state to another.", _diff, bodies.DiffBody, answers.Difference),
    Operation("list_tags", "GET", "/tags", "The tagged commits.", _tags, read_main, answers=answers.Tags),
    Operation(
        "create_tag",
        "POST",
        "/tags",
        "Name a commit.",
        _tag,
        _change_main,
        body=bodies.TagBody,
        answers=answers.Tagged,
        statuses=WRITE_STATUSES,
        writes=True,
    ),
    Operation(
        "delete_tag",
        "DELETE",
        "/tags/{tag}",
        "Forget a tag.",
        _delete_tag,
        _change_main,
        answers=answers.TagDeleted,
        statuses=WRITE_STATUSES,
        writes=True,
    ),
    Operation(
        "rebase_branch",
        "POST",
        "/branches/rebase",
        "Bring a branch up to another one, with its own change on top.",
        _rebase,
        _rebase_needs,
        body=bodies.RebaseBody,
        answers=answers.Rebased,
        statuses=WRITE_STATUSES,
        writes=True,
    ),
    _pick("revert", "/revert", "Take a commit back.", _revert),
    _pick("cherry_pick", "/cherry-pick", "Apply what one commit changed to a branch.", _cherry_pick),
    Operation(
        "plan_schema",
        "POST",
        "/schema/plan",
        "What applying a schema would do.",
        _plan_schema,
        _plan_needs,
        parameters=bodies.BranchParameters,
        body=bodies.SchemaBody,
        answers=answers.SchemaPlanned,
        statuses=(404, 409, 413),
    ),
]
