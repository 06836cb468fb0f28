"""Insert, update and delete statements."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import NoReturn

from omnigraph.errors import LanguageError
from omnigraph.language.literals import TypedValue
from omnigraph.language.query import ast, ir
from omnigraph.language.query.check.blocks import check_block, with_blocks
from omnigraph.language.query.check.expressions import condition, resolve
from omnigraph.language.query.check.scope import Place, Scope, implicit_columns, is_several
from omnigraph.language.query.check.tree import AttachedBlock, CheckedMatch, CheckedMutation
from omnigraph.language.query.check.values import declared_parameter, exactly, value_for
from omnigraph.language.query.printer import print_statement
from omnigraph.language.schema.catalog import EdgeType, EntityType, NodeType
from omnigraph.language.source import Span
from omnigraph.language.types import PropType

Plain = ast.Insert | ast.Upsert | ast.Update | ast.Delete

#: The column of the matches with the id of the node or edge to change.
MATCHED_ID = "@id"
#: The names of an edge's ends in a statement, and their columns.
ENDPOINTS = {"from": "src", "to": "dst"}


def check_mutation(scope: Scope, query: ast.Query, mutation: ast.Mutation) -> CheckedMutation:
    """Check every statement, then that the query does not both write and delete."""
    statements = tuple(_statement(scope, statement) for statement in mutation.statements)
    _refuse_mixture(scope, query, mutation)
    return CheckedMutation(statements)


def _statement(scope: Scope, statement: ast.Statement) -> ir.Statement | CheckedMatch:
    if isinstance(statement, ast.MatchInsert | ast.MatchUpdate | ast.MatchDelete):
        return _matched(scope, statement)
    return _plain(scope, statement)


def _plain(scope: Scope, statement: Plain) -> ir.Statement:
    target = _target(scope, statement)
    match statement:
        case ast.Insert():
            return _insert(scope, statement, target)
        case ast.Upsert():
            return _upsert(scope, statement, target)
        case ast.Update():
            return _update(scope, statement, target)
        case ast.Delete():
            predicate = _predicate(scope, statement.condition, target)
            if isinstance(target, NodeType):
                return ir.DeleteNodes(target.name, predicate)
            return ir.DeleteEdges(target.name, predicate)


def _target(scope: Scope, statement: Plain) -> NodeType | EdgeType:
    """The type a statement works on; a node type wins over an edge type of the same name."""
    name = statement.type_name
    target = scope.catalog.nodes.get(name) or scope.catalog.edges.get(name)
    if target is None:
        known = (*scope.catalog.nodes, *scope.catalog.edges)
        scope.error("T10", f"unknown type `{name}`", statement.span, name=name, known=known)
    return target


def _refuse_mixture(scope: Scope, query: ast.Query, mutation: ast.Mutation) -> None:
    """Raise an error when a query both writes and deletes, since it would be unclear what a later statement sees."""
    deletes = [isinstance(statement, ast.Delete | ast.MatchDelete) for statement in mutation.statements]
    if all(deletes) or not any(deletes):
        return
    first_of_other_kind = mutation.statements[deletes.index(not deletes[0])]
    name = f"mutation '{query.name}'" if query.name else "the mutation"
    raise LanguageError(
        f"{name} mixes inserts/updates and deletes; split into separate mutations: (1) inserts and updates, then (2) "
        "deletes; to make both visible at once, run them in one transaction (`g.transaction()`, `mutate` with several `-e`, "
        "`begin` and `commit` in the shell), or on a branch and merge it",
        **scope.source.place(first_of_other_kind.span),
    )


# --- statements on matches --------------------------------------------------------------------------------------------


def _matched(scope: Scope, statement: ast.MatchInsert | ast.MatchUpdate | ast.MatchDelete) -> CheckedMatch:
    """A statement whose values read the rows that a pattern matches."""
    inside = scope.inner()
    block = check_block(inside, statement.clauses)
    _refuse_blobs(inside, statement)
    text = print_statement(statement)
    attached: list[AttachedBlock] = []
    reading = with_blocks(inside.at("matched"), attached)
    match statement:
        case ast.MatchInsert():
            made = _plain(reading, statement.statement)
            assert isinstance(made, ir.InsertNode | ir.InsertEdge | ir.UpsertNode)
            columns, read = _columns_of(made)
            return CheckedMatch(block, columns, text, lambda rows: ir.InsertMatched(rows, read), tuple(attached))
        case ast.MatchUpdate():
            target = _matched_target(inside, statement.variable)
            name = statement.variable.name
            words = {
                known: ir.Column(name, known, declared.type)
                for known, declared in target.properties.items()
                if not declared.type.is_blob
            }
            _refuse_identity(scope, statement, target)
            assigned = tuple(_assignments(reading, statement, target, words).values())
            columns = (_id_column(inside, name), *(ir.OutputColumn(each.property, each.value) for each in assigned))
            values = tuple(replace(each, value=ir.ResultColumn(each.property, each.value.type)) for each in assigned)
            return CheckedMatch(
                block, columns, text, lambda rows: ir.UpdateMatched(rows, target.type_key, values), tuple(attached)
            )
        case ast.MatchDelete():
            target = _matched_target(inside, statement.variable)
            columns = (_id_column(inside, statement.variable.name),)
            return CheckedMatch(block, columns, text, lambda rows: ir.DeleteMatched(rows, target.type_key))


def _refuse_blobs(scope: Scope, statement: ast.MatchInsert | ast.MatchUpdate | ast.MatchDelete) -> None:
    """Raise T35 for a Blob property: a Blob value comes from a parameter only, never from a match."""
    if isinstance(statement, ast.MatchDelete):
        return
    inner = statement.statement if isinstance(statement, ast.MatchInsert) else statement
    target = _matched_target(scope, inner.variable) if isinstance(inner, ast.MatchUpdate) else _target(scope, inner)
    for assignment in inner.assignments:
        declared = target.properties.get(assignment.property)
        if declared is not None and declared.type.is_blob:
            scope.error(
                "T35",
                f"Blob property `{assignment.property}` is set by `update {target.name}` or `insert` alone",
                assignment.span,
            )


def _matched_target(scope: Scope, variable: ast.Variable) -> NodeType | EdgeType:
    """The type of the matched node or edge that a statement changes."""
    target = scope.nodes.get(variable.name) or scope.edges.get(variable.name)
    if target is None:
        scope.unbound("T35", variable.name, variable.span)
    if is_several(target):
        scope.error(
            "T35", f"`${variable.name}` stands for entities of several types; match one type at a time", variable.span
        )
    return target


def _id_column(scope: Scope, variable: str) -> ir.OutputColumn:
    return ir.OutputColumn(MATCHED_ID, ir.Column(variable, "id", scope.nullable(variable, ir.STRING)))


def _columns_of(
    made: ir.InsertNode | ir.InsertEdge | ir.UpsertNode,
) -> tuple[tuple[ir.OutputColumn, ...], ir.InsertNode | ir.InsertEdge | ir.UpsertNode]:
    """The values of an insert as columns of the matches, and the insert that reads these columns."""
    columns = [ir.OutputColumn(assign.property, assign.value) for assign in made.assignments]
    values = tuple(replace(each, value=ir.ResultColumn(each.property, each.value.type)) for each in made.assignments)
    if isinstance(made, ir.InsertEdge):
        ends = {"@src": made.source, "@dst": made.target}
        columns += [ir.OutputColumn(name, expr) for name, expr in ends.items()]
        source, target = (ir.ResultColumn(name, expr.type) for name, expr in ends.items())
        return tuple(columns), replace(made, source=source, target=target, assignments=values)
    return tuple(columns), replace(made, assignments=values)


# --- insert -----------------------------------------------------------------------------------------------------------


def _insert(scope: Scope, statement: ast.Insert, target: NodeType | EdgeType) -> ir.Statement:
    assigned = _assignments(scope, statement, target)
    if isinstance(target, NodeType):
        _require_properties(scope, statement, target, assigned)
        return ir.InsertNode(target.name, tuple(assigned.values()))
    for end in ENDPOINTS:
        if end not in assigned:
            scope.error("T12", f"insert of edge {target.name} misses its endpoint `{end}`", statement.span)
    _require_properties(scope, statement, target, assigned)
    source, target_id = (assigned.pop(end).value for end in ENDPOINTS)
    return ir.InsertEdge(target.name, source, target_id, tuple(assigned.values()))


def _require_properties(
    scope: Scope, statement: ast.Insert, target: EntityType, assigned: Mapping[str, ir.Assign]
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


def _update(scope: Scope, statement: ast.Update, target: NodeType | EdgeType) -> ir.UpdateNodes | ir.UpdateEdges:
    _refuse_identity(scope, statement, target)
    assigned = tuple(_assignments(scope, statement, target, row_words(target)).values())
    predicate = _predicate(scope, statement.condition, target)
    if isinstance(target, EdgeType):
        return ir.UpdateEdges(target.name, assigned, predicate)
    return ir.UpdateNodes(target.name, assigned, predicate)


def _refuse_identity(scope: Scope, statement: ast.Update | ast.MatchUpdate, target: NodeType | EdgeType) -> None:
    """Raise an error for an update of a key property or of an edge's ends, which identify the node or edge."""
    for assignment in statement.assignments:
        if isinstance(target, EdgeType) and assignment.property in (*ENDPOINTS, *ENDPOINTS.values()):
            scope.error(
                "T16",
                f"the ends of edge {target.name} can not change; delete it and insert it anew",
                assignment.span,
            )
        if assignment.property in (target.key or ()):
            what = "edge" if isinstance(target, EdgeType) else "node"
            scope.error(
                None,
                f"cannot update @key property '{assignment.property}' of {target.name}; "
                f"insert the {what} under its new key and delete the old one",
                assignment.span,
            )


def _upsert(scope: Scope, statement: ast.Upsert, target: NodeType | EdgeType) -> ir.UpsertNode:
    if isinstance(target, EdgeType) or target.key is None:
        scope.error(
            "T30", f"upsert finds a node by its key, {target.name} has none; use insert or update", statement.span
        )
    assigned = _assignments(scope, statement, target, None)
    for name in target.key:
        if name not in assigned:
            scope.error("T12", f"upsert of {target.name} misses its key property `{name}`", statement.span)
    return ir.UpsertNode(target.name, tuple(assigned.values()))


# --- assignments and predicates ---------------------------------------------------------------------------------------


def _assignments(
    scope: Scope,
    statement: ast.Insert | ast.Upsert | ast.Update | ast.MatchUpdate,
    target: NodeType | EdgeType,
    words: Mapping[str, ir.Expr] | None = None,
) -> dict[str, ir.Assign]:
    """The assignments by property; in an update, `words` are the columns of the row before the update."""
    if not statement.assignments:
        scope.error("T10", f"nothing is assigned to {target.name}", statement.span)
    assigned: dict[str, ir.Assign] = {}
    for assignment in statement.assignments:
        name = assignment.property
        kind = _assignable(target, name)
        if kind is None:
            _no_property(scope, target, name, assignment.span)
        if name in assigned:
            scope.error("T13", f"property `{name}` is assigned twice", assignment.span)
        place: Place = "matched" if scope.place == "matched" else "mutation"
        inner = scope.at(place, words or {}, _no_value(scope, target))
        if isinstance(target, EdgeType):
            _require_end(scope, target, assignment)
        assigned[name] = ir.Assign(name, assigned_value(inner, assignment, kind, f"`{target.name}.{name}`"), kind)
    return assigned


def _require_end(scope: Scope, edge: EdgeType, assignment: ast.Assignment) -> None:
    """A matched node that an edge begins or ends at is of the type that the edge connects."""
    value, wanted = assignment.value, {"from": edge.from_type, "to": edge.to_type}.get(assignment.property)
    if wanted is None or not isinstance(value, ast.Variable) or scope.place != "matched":
        return
    node = scope.nodes.get(value.name)
    if node is not None and value.name not in scope.params and node.name != wanted:
        message = f"`${value.name}` is a {node.name}, but edge {edge.name} connects {edge.from_type} to {edge.to_type}"
        scope.error("T5", message, value.span)


def _assignable(target: NodeType | EdgeType, name: str) -> PropType | None:
    """The type of an assigned name, a declared property or an endpoint of an edge; None for any other name."""
    declared = target.properties.get(name)
    if declared is not None:
        return declared.type
    return ir.STRING if isinstance(target, EdgeType) and name in ENDPOINTS else None


def _no_property(scope: Scope, target: NodeType | EdgeType, name: str, span: Span) -> NoReturn:
    if name == "id":
        scope.error("T11", f"the id of {target.name} is not assigned; it is made from the key, or generated", span)
    written = {column: end for end, column in ENDPOINTS.items()}
    if isinstance(target, EdgeType) and name in written:
        scope.error("T11", f"no property `{name}` on {target.name}; the endpoint is written `{written[name]}`", span)
    known = (*target.properties, *(ENDPOINTS if isinstance(target, EdgeType) else ()))
    scope.error("T11", f"no property `{name}` on {target.name}", span, name=name, known=known)


def assigned_value(scope: Scope, assignment: ast.Assignment, kind: PropType, owner: str) -> ir.Expr:
    """The value of an assignment, of the type of its property."""
    value = assignment.value
    if kind.is_blob and isinstance(value, ast.Variable) and value.name in scope.params:
        parameter = declared_parameter(scope, value, "T14")
        if parameter.type.is_text:
            # `base64:…` or a URI; a literal would put the bytes into the query text.
            return parameter
    found = value_for(scope, value, kind, owner, resolve)
    if isinstance(found, TypedValue):
        if found.value is None and not kind.nullable:
            scope.error("T3", f"{owner} takes {kind}, not null", value.span)
        return found if found.value is None else exactly(scope, found, kind, owner, value.span)
    return found


# --- conditions -------------------------------------------------------------------------------------------------------


def row_words(target: NodeType | EdgeType) -> dict[str, ir.Expr]:
    """The meaning of bare words in an update or a delete: the columns of the row."""
    words: dict[str, ir.Expr] = {
        name: ir.Column(ir.ROW, name, declared.type)
        for name, declared in target.properties.items()
        if not declared.type.is_blob
    }
    words |= {f"@{name}": ir.Column(ir.ROW, name, ir.STRING) for name in implicit_columns(target)}
    words["@type"] = TypedValue(target.name, ir.STRING)
    if isinstance(target, EdgeType):
        words |= {end: ir.Column(ir.ROW, column, ir.STRING) for end, column in ENDPOINTS.items()}
    words.setdefault("id", ir.Column(ir.ROW, "id", ir.STRING))
    return words


def _no_value(scope: Scope, target: NodeType | EdgeType) -> Callable[[str, Span], NoReturn]:
    """A function that raises the error for an unknown bare word."""

    def refuse(name: str, span: Span) -> NoReturn:
        declared = target.properties.get(name)
        if declared is not None and declared.type.is_blob:
            scope.error("T11", f"blob property `{name}` cannot be used in WHERE predicates", span)
        if declared is not None:
            scope.error(
                "T11", f"a new {target.name} has no `{name}` yet; use a literal or a parameter, or an update", span
            )
        _no_property(scope, target, name, span)

    return refuse


def _predicate(scope: Scope, written: ast.Expr, target: NodeType | EdgeType) -> ir.Expr:
    words = row_words(target)
    predicate = condition(scope.at("mutation", words, _no_value(scope, target)), written)
    if not ir.columns_of(predicate) and not isinstance(written, ast.BoolLit):
        scope.error("T11", f"the condition speaks about no property of {target.name}", written.span)
    return predicate
