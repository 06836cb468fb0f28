"""Plans and expressions as text, for `explain` and for tests: one operator per line, inputs indented below it."""

from __future__ import annotations

import json
from collections.abc import Iterable

from omnigraph.language.literals import TypedValue
from omnigraph.language.query.ir import plan as op
from omnigraph.language.query.ir.expressions import (
    VALUE,
    AggregateCall,
    AllTokens,
    And,
    AnyToken,
    Bm25,
    Call,
    Column,
    Compare,
    Conditional,
    Expr,
    FuzzyToken,
    IsNull,
    Member,
    Nearest,
    Not,
    Now,
    Or,
    Parameter,
    Prefix,
    ResultColumn,
    Rrf,
    Substring,
    Suffix,
    UnknownAlias,
)
from omnigraph.language.query.ir.mutation import (
    Assign,
    DeleteEdges,
    DeleteMatched,
    DeleteNodes,
    InsertEdge,
    InsertMatched,
    InsertNode,
    MutationPlan,
    Statement,
    UpdateEdges,
    UpdateMatched,
    UpdateNodes,
    UpsertNode,
)
from omnigraph.language.query.ir.walk import children
from omnigraph.language.temporal import render_date, render_datetime
from omnigraph.language.types import Scalar


def render_plan(plan: op.Plan | MutationPlan) -> str:
    """The whole plan, the last operator first."""
    if isinstance(plan, MutationPlan):
        return "\n".join(line for statement in plan.statements for line in _statement_lines(statement))
    return "\n".join(_lines(plan, ""))


def _lines(plan: op.Plan, indent: str) -> Iterable[str]:
    yield indent + _operator(plan)
    if isinstance(plan, op.CountPaths):
        for hop in plan.hops:
            yield from _hop_lines(hop, f"{indent}  | ")
    for child in children(plan):
        yield from _lines(child, f"{indent}  ")


def _hop_lines(hop: op.Hop, indent: str) -> Iterable[str]:
    yield f"{indent}{_step(hop.source, hop.edge, hop.target)}"
    for next_hop in hop.then:
        yield from _hop_lines(next_hop, f"{indent}  ")


def _operator(plan: op.Plan) -> str:
    match plan:
        case op.NodeScan():
            return f"NodeScan {_node(plan.node)}"
        case op.RankedScan() | op.FusedScan():
            return f"{type(plan).__name__} {_node(plan.node)} by {render_expr(plan.ranking)} limit {plan.limit}"
        case op.Outer():
            return f"Outer {_variables(plan.variables)}".rstrip()
        case op.Empty():
            return f"Empty {_variables(plan.variables)}".rstrip()
        case op.CrossJoin():
            return "CrossJoin"
        case op.Expand():
            return f"{'Close' if plan.closing else 'Expand'} {_step(plan.source, plan.edge, plan.target)}"
        case op.Filter():
            return f"Filter {' and '.join(map(_operand, plan.predicates))}"
        case op.AntiJoin() | op.SemiJoin() | op.OptionalJoin():
            return f"{type(plan).__name__} on {_variables(plan.on)}".rstrip()
        case op.Attach():
            found = f"{render_expr(plan.column)} = {render_expr(plan.call)}"
            return f"Attach {found} on {_variables(plan.on)}{' weighted' if plan.weighted else ''}".rstrip()
        case op.ShortestPaths():
            kind = "AllShortest" if plan.every else "Shortest"
            weight = "" if plan.weight is None else f" by {plan.weight}"
            step = _step(plan.source, plan.edge, op.NodePattern(plan.target, plan.node_type))
            return f"{kind} ${plan.path} = {step}{weight}"
        case op.Fetch():
            return f"Fetch {_node(plan.node)}"
        case op.With():
            return f"With {_variables(plan.variables)}"
        case op.Tag():
            return f"Tag {', '.join(f'${name}: {kind}' for name, kind in plan.types)}"
        case op.Union():
            return "Union" if plan.columns is None else f"Union reading ({', '.join(map(render_expr, plan.columns))})"
        case op.CountPaths():
            return "CountPaths"
        case op.CountRows():
            return "CountRows"
        case op.Aggregate():
            calls = [f"{column.name} = {render_expr(column.call)}" for column in plan.aggregates]
            groups = f" by {_columns(plan.keys)}" if plan.keys else ""
            return f"Aggregate {', '.join(calls)}{groups}{' weighted' if plan.weighted else ''}"
        case op.Order():
            ties = f" ties {', '.join(map(render_expr, plan.ties))}" if plan.ties else ""
            limit = "" if plan.limit is None else f" limit {plan.limit}"
            return f"Order {', '.join(map(_order_key, plan.keys))}{ties}{limit}"
        case op.Limit():
            count = "" if plan.count is None else f" {_row_count(plan.count)}"
            return f"Limit{count}" + (f" offset {_row_count(plan.offset)}" if plan.offset != 0 else "")
        case op.Project():
            return f"Project {_columns(plan.columns)}"


def _row_count(count: int | Parameter) -> str:
    return str(count) if isinstance(count, int) else render_expr(count)


def _variables(names: Iterable[str]) -> str:
    return ", ".join(f"${name.removeprefix('=')}" for name in names)


def _columns(columns: Iterable[op.OutputColumn]) -> str:
    return ", ".join(f"{column.name} = {render_expr(column.expr)}" for column in columns)


def _order_key(key: op.OrderKey) -> str:
    direction = "desc" if key.descending else "asc"
    return f"{render_expr(key.expr)} {direction} nulls {'first' if key.nulls_first else 'last'}"


def _step(source: str, edge: op.EdgePattern, target: op.NodePattern) -> str:
    name = f"${edge.variable}: " if edge.variable else ""
    most = "" if edge.max_hops == op.OPEN_END else edge.max_hops
    hops = "" if (edge.min_hops, edge.max_hops) == (1, 1) else f" {{{edge.min_hops},{most}}}"
    followed = f"{edge.edge_type} {edge.direction}"
    if edge.alternatives:
        followed = "|".join(f"{kind} {direction}" for kind, direction in edge.alternatives)
    conditions = _conditions(edge.predicates, edge.columns if edge.variable else None)
    return f"${source} -[{name}{followed}{hops}{conditions}]-> {_node(target)}"


def _node(node: op.NodePattern) -> str:
    lookup = ""
    if node.lookup is not None:
        values = ", ".join(map(render_expr, node.lookup))
        lookup = f" {'id' if node.lookup_by_id else 'key'}({values})"
    return f"${node.variable}: {node.node_type}{lookup}{_conditions(node.predicates, node.columns)}"


def _conditions(predicates: Iterable[Expr], columns: tuple[str, ...] | None) -> str:
    conditions = " and ".join(map(_operand, predicates))
    where = f" where {conditions}" if conditions else ""
    return where if columns is None else f"{where} reading ({', '.join(columns)})"


# --- mutations --------------------------------------------------------------------------------------------------------


def _statement_lines(statement: Statement) -> Iterable[str]:
    yield _statement(statement)
    if isinstance(statement, InsertMatched | UpdateMatched | DeleteMatched):
        yield from _lines(statement.matches.rows, "  ")


def _statement(statement: Statement) -> str:
    match statement:
        case InsertMatched():
            return f"{_statement(statement.statement)} for each row"
        case UpdateMatched():
            return f"UpdateMatched {statement.type_key} {_assignments(statement.assignments)}"
        case DeleteMatched():
            return f"DeleteMatched {statement.type_key}"
        case InsertNode():
            return f"InsertNode {statement.node_type} {_assignments(statement.assignments)}"
        case InsertEdge():
            ends = f"{render_expr(statement.source)} -> {render_expr(statement.target)}"
            return f"InsertEdge {statement.edge_type} {ends} {_assignments(statement.assignments)}"
        case UpsertNode():
            return f"UpsertNode {statement.node_type} {_assignments(statement.assignments)}"
        case UpdateNodes():
            where = render_expr(statement.predicate)
            return f"UpdateNodes {statement.node_type} {_assignments(statement.assignments)} where {where}"
        case UpdateEdges():
            where = render_expr(statement.predicate)
            return f"UpdateEdges {statement.edge_type} {_assignments(statement.assignments)} where {where}"
        case DeleteNodes():
            return f"DeleteNodes {statement.node_type} where {render_expr(statement.predicate)}"
        case DeleteEdges():
            return f"DeleteEdges {statement.edge_type} where {render_expr(statement.predicate)}"


def _assignments(assignments: Iterable[Assign]) -> str:
    return f"{{{', '.join(f'{assign.property}: {render_expr(assign.value)}' for assign in assignments)}}}"


# --- expressions ------------------------------------------------------------------------------------------------------


def render_expr(expr: Expr | UnknownAlias) -> str:
    """An expression in the words of the query language."""
    match expr:
        case Column() if expr.property == VALUE:
            return f"${expr.variable.removeprefix('=')}"
        case Column():
            return f"${expr.variable}.{expr.property}"
        case Parameter():
            return f"${expr.name}"
        case TypedValue():
            return _value(expr)
        case Now():
            return "now()"
        case AnyToken():
            return _call("search", expr.field, expr.query)
        case AllTokens():
            return _call("match_text", expr.field, expr.query)
        case FuzzyToken():
            return _call("fuzzy", expr.field, expr.query, expr.max_edits)
        case Bm25():
            return _call("bm25", expr.field, expr.query)
        case Nearest():
            return _call(f"nearest_{expr.metric}", expr.field, expr.query)
        case Rrf():
            return _call("rrf", expr.left, expr.right, expr.k)
        case Compare():
            return f"{_part(expr.left)} {expr.operator} {_part(expr.right)}"
        case Member():
            return f"{_part(expr.items)} has {_part(expr.item)}"
        case Substring():
            return f"{_part(expr.text)} contains {_part(expr.part)}"
        case Prefix():
            return f"{_part(expr.text)} starts_with {_part(expr.prefix)}"
        case Suffix():
            return f"{_part(expr.text)} ends_with {_part(expr.suffix)}"
        case IsNull():
            return f"{_part(expr.operand)} is null"
        case Not(operand=IsNull(operand=operand)):
            return f"{_part(operand)} is not null"
        case Not():
            return f"not {_part(expr.operand)}"
        case And():
            return " and ".join(map(_operand, expr.operands))
        case Or():
            return " or ".join(map(_operand, expr.operands))
        case Call(function="negative"):
            return f"-{_part(expr.arguments[0])}"
        case Call() if expr.function in _SYMBOLS:
            return f" {expr.function} ".join(map(_part, expr.arguments))
        case Call():
            return _call(expr.function, *expr.arguments)
        case Conditional():
            pairs = zip(expr.conditions, expr.values, strict=True)
            branches = (f"when {render_expr(when)} then {render_expr(then)} " for when, then in pairs)
            return f"case {''.join(branches)}else {render_expr(expr.otherwise)} end"
        case AggregateCall():
            if expr.argument is None:
                return f"{expr.function}(*)"
            distinct = "distinct " if expr.distinct else ""
            return f"{expr.function}({distinct}{_list(expr.argument, expr.fraction)})"
        case ResultColumn() | UnknownAlias():
            return expr.name


_SYMBOLS = ("+", "-", "*", "/", "%")
_COMPOUND = (Compare, Member, Substring, Prefix, Suffix, IsNull, Not, And, Or)


def _operand(expr: Expr) -> str:
    """A condition as an operand of `and` or `or`; in parentheses when it is an `and` or `or` itself."""
    return f"({render_expr(expr)})" if isinstance(expr, And | Or) else render_expr(expr)


def _part(expr: Expr) -> str:
    """An operand; in parentheses when it has operands itself."""
    compound = isinstance(expr, _COMPOUND) or (isinstance(expr, Call) and expr.function in (*_SYMBOLS, "negative"))
    return f"({render_expr(expr)})" if compound else render_expr(expr)


def _call(function: str, *arguments: Expr | None) -> str:
    return f"{function}({_list(*arguments)})"


def _list(*arguments: Expr | None) -> str:
    return ", ".join(render_expr(argument) for argument in arguments if argument is not None)


def _value(literal: TypedValue) -> str:
    value = literal.value
    if isinstance(value, tuple):
        element = literal.type.element()
        return f"[{', '.join(_value(TypedValue(item, element)) for item in value)}]"
    if isinstance(value, int) and literal.type.scalar is Scalar.DATE:
        return f'date("{render_date(value)}")'
    if isinstance(value, int) and literal.type.scalar is Scalar.DATETIME:
        return f'datetime("{render_datetime(value)}")'
    return json.dumps(value, ensure_ascii=False)
