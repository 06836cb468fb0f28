"""Operations for exploring: the schema as data, checks while typing, neighbours, branches, comparisons, permissions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from omnigraph.commit.model import MAIN
from omnigraph.errors import Denied, LanguageError
from omnigraph.language.query.completion import WORDS
from omnigraph.language.query.functions import AGGREGATES, FUNCTIONS
from omnigraph.language.query.lint import Finding, lint_queries
from omnigraph.language.schema.catalog import EdgeType, NodeType, Property
from omnigraph.server import exploring_models as models
from omnigraph.server.access import (
    ADMIN,
    BRANCH_CREATE,
    BRANCH_DELETE,
    BRANCH_MERGE,
    CHANGE,
    EXPORT,
    INVOKE_QUERY,
    READ,
    SCHEMA_APPLY,
    Need,
    ReadOnly,
)
from omnigraph.server.bodies import BranchParameters
from omnigraph.server.operation import Answer, Call, Operation
from omnigraph.server.routes.beyond import comparison
from omnigraph.server.routes.reads import names_snapshot, read_nothing, read_target
from omnigraph.server.routes.sources import named

#: The name of a branch that does not exist, to check permissions on new branches.
_NEW = "load/new"


def _catalog(call: Call) -> Answer:
    catalog = call.graph.contract(named(call.parameters.branch)).catalog
    types = [*map(_type, catalog.nodes.values()), *map(_type, catalog.edges.values())]
    functions = [
        {"name": function.name, "usage": function.usage(), "help": function.help} for function in FUNCTIONS.values()
    ]
    functions += [
        {"name": function.name, "usage": f"{function.name}(value)", "help": function.help}
        for function in AGGREGATES.values()
    ]
    return call.json({"types": types, "functions": functions, "words": list(WORDS)})


def _type(entity: NodeType | EdgeType) -> dict[str, Any]:
    told: dict[str, Any] = {
        "name": entity.name,
        "kind": "edge" if isinstance(entity, EdgeType) else "node",
        "key": None if entity.key is None else list(entity.key),
        "indexes": [list(index) for index in entity.indexes],
        "description": entity.description,
        "properties": [_property(declared) for declared in entity.properties.values()],
    }
    return told | {"from": entity.from_type, "to": entity.to_type} if isinstance(entity, EdgeType) else told


def _property(declared: Property) -> dict[str, Any]:
    return {
        "name": declared.name,
        "type": str(declared.type),
        "kind": declared.type.scalar.value,
        "nullable": declared.type.nullable,
        "is_list": declared.type.is_list,
        "enum": None if declared.type.enum is None else list(declared.type.enum),
        "description": declared.description,
    }


def _catalog_needs(call: Call) -> Iterable[Need]:
    return [Need(READ, call.parameters.branch)]


def _lint_needs(call: Call) -> Iterable[Need]:
    return [Need(READ, call.body.branch)]


def _lint(call: Call) -> Answer:
    body: models.LintBody = call.body
    report = lint_queries(body.query, call.graph.contract(named(body.branch)).catalog)
    told = report.to_dict()
    found = [_diagnostic(finding) for finding in report.all_findings()]
    return call.json({"status": told["status"], "results": told["results"], "diagnostics": found})


def _diagnostic(finding: Finding) -> dict[str, Any]:
    error = finding.error
    place = error if isinstance(error, LanguageError) else None
    return {"severity": finding.severity, "code": finding.code, "message": finding.message} | {
        name: getattr(place, name, None) for name in ("line", "column", "start", "end")
    }


def _neighbours(call: Call) -> Answer:
    asked: models.NeighbourParameters = call.parameters
    found = call.graph.neighbours(
        asked.type,
        asked.id,
        edge=asked.edge,
        direction=asked.direction,
        limit=25 if asked.limit is None else asked.limit,
        skip=asked.skip or 0,
        branch=named(asked.branch) if asked.snapshot is None else None,
        snapshot=asked.snapshot,
    )
    return call.json(found.to_dict())


def _branch_states(call: Call) -> Answer:
    return call.json({"branches": [state.to_dict() for state in call.graph.branch_states()]})


def _compare(call: Call) -> Answer:
    body: models.CompareBody = call.body
    found = call.graph.compare(
        body.before,
        body.after or MAIN,
        kinds=body.kinds,
        types=body.types,
        ops=body.ops,
        limit=100 if body.limit is None else body.limit,
        page_token=body.page_token,
    )
    return call.json(found.to_dict())


def _permission_needs(call: Call) -> Iterable[Need]:
    """No need for one's own permissions; ADMIN for the permissions of another actor."""
    asked: models.PermissionParameters = call.parameters
    return [] if asked.actor in (None, call.actor) else [Need(ADMIN)]


def _permissions(call: Call) -> Answer:
    asked: models.PermissionParameters = call.parameters
    actor = call.actor if asked.actor is None else asked.actor
    branch = named(asked.branch)
    needs = {
        READ: Need(READ, branch),
        EXPORT: Need(EXPORT, branch),
        CHANGE: Need(CHANGE, branch),
        INVOKE_QUERY: Need(INVOKE_QUERY),
        BRANCH_CREATE: Need(BRANCH_CREATE, branch, _NEW),
        BRANCH_DELETE: Need(BRANCH_DELETE, None, branch),
        SCHEMA_APPLY: Need(SCHEMA_APPLY, None, MAIN),
        ADMIN: Need(ADMIN),
    }
    refused = {action: _refusal(call, actor, need) for action, need in needs.items()}
    # A policy may allow merging of some branches only, so all branches are checked.
    others = [name for name in call.graph.branches() if name != MAIN]
    merges = [_refusal(call, actor, Need(BRANCH_MERGE, name, MAIN)) for name in (*others, _NEW)]
    refused[BRANCH_MERGE] = None if None in merges else merges[0]
    refused["change_new_branch"] = refused[BRANCH_CREATE] or _refusal(call, actor, Need(CHANGE, _NEW))
    shape = {
        "actor_id": actor,
        "read_only": isinstance(call.access, ReadOnly),
        "branch": branch,
        "may": {action: reason is None for action, reason in refused.items()},
        "why_not": {action: reason for action, reason in refused.items() if reason is not None},
    }
    return call.json(shape)


def _refusal(call: Call, actor: str | None, need: Need) -> str | None:
    """Why an actor lacks a permission, in one line; None when the actor has it."""
    try:
        call.access.check(actor, need)
    except Denied as denied:
        return denied.message
    return None


OPERATIONS = [
    Operation(
        "catalog",
        "GET",
        "/catalog",
        "The schema of a branch as data, and the words of the query language.",
        _catalog,
        _catalog_needs,
        parameters=BranchParameters,
        answers=models.CatalogAnswer,
        statuses=(404,),
    ),
    Operation(
        "lint",
        "POST",
        "/lint",
        "Check a text of queries against the schema of a branch.",
        _lint,
        _lint_needs,
        body=models.LintBody,
        answers=models.LintAnswer,
        statuses=(404,),
    ),
    Operation(
        "neighbours",
        "GET",
        "/neighbours",
        "A node with its edges and what is at their other ends.",
        _neighbours,
        read_target,
        needs_look_up=names_snapshot,
        parameters=models.NeighbourParameters,
        answers=models.Neighbourhood,
        statuses=(404, 410),
    ),
    Operation(
        "branch_states",
        "GET",
        "/branches/status",
        "All branches with their newest commits, ahead of main and behind it.",
        _branch_states,
        read_nothing,
        answers=models.BranchStandings,
    ),
    comparison(
        "compare",
        "/compare",
        "What changed from one state to another: counts, then pages.",
        _compare,
        models.CompareBody,
        models.Compared,
    ),
    Operation(
        "permissions",
        "GET",
        "/permissions",
        "What an actor may do on a branch, and why not: who asks, or another one for who administers the graph.",
        _permissions,
        _permission_needs,
        parameters=models.PermissionParameters,
        answers=models.Permissions,
    ),
]
