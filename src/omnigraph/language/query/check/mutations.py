"""Insert, update and delete statements."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NoReturn

from omnigraph.errors import LanguageError
from omnigraph.language.literals import TypedValue
from omnigraph.language.query import ast
from omnigraph.language.query.check.filters import require_comparable
from omnigraph.language.query.check.scope import Scope
from omnigraph.language.query.check.tree import CheckedMutation
from omnigraph.language.query.check.values import declared_parameter, exactly, literal_value, value_for
from omnigraph.language.query.ir import (
    ROW,
    STRING,
    Assign,
    Column,
    Compare,
    Constant,
    DeleteEdges,
    DeleteNodes,
    InsertEdge,
    InsertNode,
    Now,
    Statement,
    UpdateNodes,
)
from omnigraph.language.schema.catalog import EdgeType, EntityType, NodeType
from omnigraph.language.source import Span
from omnigraph.language.types import PropType

#: How an edge's ends are named in a statement, and the columns they are.
ENDPOINTS = {"from": "src", "to": "dst"}


def check_mutation(scope: Scope, query: ast.Query, mutation: ast.Mutation) -> CheckedMutation:
    """Check every statement, then that the query does not both write and delete."""
    statements = tuple(_statement(scope, statement) for statement in mutation.statements)
    _refuse_mixture(scope, query, mutation)
    return CheckedMutation(statements)


def _statement(scope: Scope, statement: ast.Statement) -> Statement:
    target = _target(scope, statement)
    match statement:
        case ast.Insert():
            return _insert(scope, statement, target)
        case ast.Update():
            return _update(scope, statement, target)
        case ast.Delete():
            predicate = _predicate(scope, statement.predicate, target)
            if isinstance(target, NodeType):
                return DeleteNodes(target.name, predicate)
            return DeleteEdges(target.name, predicate)


def _target(scope: Scope, statement: ast.Statement) -> NodeType | EdgeType:
    """The type a statement works on; a node type wins over an edge type of the same name."""
    name = statement.type_name
    target = scope.catalog.nodes.get(name) or scope.catalog.edges.get(name)
    if target is None:
        known = (*scope.catalog.nodes, *scope.catalog.edges)
        scope.error("T10", f"unknown type `{name}`", statement.span, name=name, known=known)
    return target


def _refuse_mixture(scope: Scope, query: ast.Query, mutation: ast.Mutation) -> None:
    """One query either writes or deletes, so that what a later statement sees is never in doubt."""
    deletes = [isinstance(statement, ast.Delete) for statement in mutation.statements]
    if all(deletes) or not any(deletes):
        return
    first_of_other_kind = mutation.statements[deletes.index(not deletes[0])]
    raise LanguageError(
        f"mutation '{query.name}' mixes inserts/updates and deletes; split into separate mutations: (1) inserts and "
        "updates, then (2) deletes; to make both visible at once, run them on a branch and merge it",
        **scope.source.place(first_of_other_kind.span),
    )


# --- insert -----------------------------------------------------------------------------------------------------------


def _insert(scope: Scope, statement: ast.Insert, target: NodeType | EdgeType) -> Statement:
    assigned = _assignments(scope, statement, target)
    if isinstance(target, NodeType):
        _require_properties(scope, statement, target, assigned)
        return InsertNode(target.name, tuple(assigned.values()))
    for end in ENDPOINTS:
        if end not in assigned:
            scope.error("T12", f"insert of edge {target.name} misses its endpoint `{end}`", statement.span)
    _require_properties(scope, statement, target, assigned)
    source, target_id = (assigned.pop(end).value for end in ENDPOINTS)
    return InsertEdge(target.name, source, target_id, tuple(assigned.values()))


def _require_properties(
    scope: Scope, statement: ast.Insert, target: EntityType, assigned: Mapping[str, Assign]
) -> None:
    """Every property that can not be null needs a value, a default, or a text to be embedded from."""
    for name, declared in target.properties.items():
        if name in assigned or declared.type.nullable or declared.default is not None:
            continue
        if declared.embed is None:
            scope.error("T12", f"insert of {target.name} misses required property `{name}`", statement.span)
        elif declared.embed.source not in assigned:
            scope.error(
                "T12",
                f"insert of {target.name} misses required property `{name}`; give it, or `{declared.embed.source}` "
                "that it is embedded from",
                statement.span,
            )


# --- update -----------------------------------------------------------------------------------------------------------


def _update(scope: Scope, statement: ast.Update, target: NodeType | EdgeType) -> UpdateNodes:
    if isinstance(target, EdgeType):
        scope.error("T16", f"edge {target.name} can not be updated; delete it and insert it anew", statement.span)
    assigned = _assignments(scope, statement, target)
    for assignment in statement.assignments:
        if assignment.property in (target.key or ()):
            scope.error(
                None,
                f"cannot update @key property '{assignment.property}' of {target.name}; "
                "insert the node under its new key and delete the old one",
                assignment.span,
            )
    return UpdateNodes(target.name, tuple(assigned.values()), _predicate(scope, statement.predicate, target))


# --- assignments and predicates ---------------------------------------------------------------------------------------


def _assignments(scope: Scope, statement: ast.Insert | ast.Update, target: NodeType | EdgeType) -> dict[str, Assign]:
    if not statement.assignments:
        scope.error("T10", f"nothing is assigned to {target.name}", statement.span)
    assigned: dict[str, Assign] = {}
    for assignment in statement.assignments:
        name = assignment.property
        kind = _assignable(target, name)
        if kind is None:
            _no_property(scope, target, name, assignment.span)
        if name in assigned:
            scope.error("T13", f"property `{name}` is assigned twice", assignment.span)
        assigned[name] = Assign(name, _assigned_value(scope, assignment, kind, f"`{target.name}.{name}`"), kind)
    return assigned


def _assignable(target: NodeType | EdgeType, name: str) -> PropType | None:
    """The type of what an assignment may name: a declared property, or an endpoint of an edge."""
    declared = target.properties.get(name)
    if declared is not None:
        return declared.type
    return STRING if isinstance(target, EdgeType) and name in ENDPOINTS else None


def _no_property(scope: Scope, target: NodeType | EdgeType, name: str, span: Span) -> NoReturn:
    if name == "id":
        scope.error("T11", f"the id of {target.name} is not assigned; it is made from the key, or generated", span)
    written = {column: end for end, column in ENDPOINTS.items()}
    if isinstance(target, EdgeType) and name in written:
        scope.error("T11", f"no property `{name}` on {target.name}; the endpoint is written `{written[name]}`", span)
    known = (*target.properties, *(ENDPOINTS if isinstance(target, EdgeType) else ()))
    scope.error("T11", f"no property `{name}` on {target.name}", span, name=name, known=known)


def _assigned_value(scope: Scope, assignment: ast.Assignment, kind: PropType, owner: str) -> Constant:
    value = assignment.value
    if kind.is_blob and isinstance(value, ast.Variable):
        parameter = declared_parameter(scope, value, "T14")
        if parameter.type.is_text:
            # `base64:…` or a URI; a literal would put the bytes into the query text.
            return parameter
    constant = value_for(scope, value, kind, owner, undeclared="T14")
    return exactly(scope, constant, kind, owner, value.span) if isinstance(constant, TypedValue) else constant


def _predicate(scope: Scope, predicate: ast.Predicate, target: NodeType | EdgeType) -> Compare:
    name = predicate.property
    column = ENDPOINTS.get(name, name) if isinstance(target, EdgeType) else name
    kind = STRING if name == "id" else _assignable(target, name)
    if kind is None:
        _no_property(scope, target, name, predicate.span)
    if kind.is_blob:
        scope.error("T11", f"blob property `{name}` cannot be used in WHERE predicates", predicate.span)
    value: Constant
    match predicate.value:
        case ast.Variable() as variable:
            value = declared_parameter(scope, variable, "T14")
        case ast.Now():
            value = Now()
        case literal:
            value = literal_value(scope, literal)
    left = Column(ROW, column, kind)
    require_comparable(scope, left, predicate.operator, value, predicate.span)
    return Compare(left, predicate.operator, value)
