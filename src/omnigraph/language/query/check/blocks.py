"""The clauses of a `match` block and of the blocks inside it, checked in the order they are written.

The order of clauses does not change their meaning, because negations come last: a `not` block that names a variable of a later
clause is checked after this clause, and refers to this variable. Only an `optional` block separates clauses: the clauses
after it
may refer to variables that are null in some rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import chain

from omnigraph.language.query import ast
from omnigraph.language.query.check.expressions import condition, resolve
from omnigraph.language.query.check.patterns import check_binding, check_path, check_traversal
from omnigraph.language.query.check.scope import ANONYMOUS, Scope, path_columns
from omnigraph.language.query.check.tree import AttachedBlock, Block, NestedBlock, OptionalPart, PathStep, Step
from omnigraph.language.query.ir import BOOL, I64, AggregateCall, Column, Predicate, filters_of, variables_of
from omnigraph.language.query.joining import as_condition, is_condition


def check_block(scope: Scope, clauses: tuple[ast.Clause, ...]) -> Block:
    """Check all clauses; the variables that they bind are in the scope afterwards."""
    named = frozenset(name for clause in clauses for name in _bound_by(clause))
    optional: NestedBlock | None = None
    parts: list[tuple[NestedBlock | None, Block]] = []
    part = _Part(scope, named)
    for clause in clauses:
        if isinstance(clause, ast.Optional):
            parts.append((optional, part.checked()))
            optional = _check_optional(scope, clause)
            part = _Part(scope, named)
        else:
            part.add(clause)
    parts.append((optional, part.checked()))
    behind = tuple(OptionalPart(nested, rest) for nested, rest in parts if nested is not None)
    return replace(parts[0][1], optionals=behind)


@dataclass
class _Part:
    """The clauses between two optional blocks."""

    scope: Scope
    #: The variables that the clauses of the whole block bind.
    named: frozenset[str]
    patterns: dict[str, tuple[Predicate, ...]] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)
    paths: list[PathStep] = field(default_factory=list)
    filters: list[Predicate] = field(default_factory=list)
    negations: list[NestedBlock] = field(default_factory=list)
    existing: list[NestedBlock] = field(default_factory=list)
    attached: list[AttachedBlock] = field(default_factory=list)
    waiting: list[ast.Negation] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.outer = (frozenset(self.scope.nodes), frozenset(self.scope.edges))

    def add(self, clause: ast.Clause) -> None:
        """Check one clause."""
        scope = self.scope
        match clause:
            case ast.Binding():
                variable, predicates = check_binding(scope, clause)
                own = tuple(predicate for predicate in predicates if variables_of(predicate) <= {variable})
                self.patterns[variable] = self.patterns.get(variable, ()) + own
                self.filters += [predicate for predicate in predicates if predicate not in own]
            case ast.Traversal() if not is_condition(clause, scope.catalog):
                self.steps.append(check_traversal(scope, clause))
            case ast.PathMatch():
                self.paths.append(check_path(scope, clause))
            case ast.Negation() if any(name in self.named and not scope.is_bound(name) for name in _named_in(clause)):
                self.waiting.append(clause)
            case ast.Negation():
                self.negations.append(_check_negation(scope, clause))
            case ast.BlockCall(function="exists"):
                self.existing.append(_nested_block(scope, clause.clauses))
            case ast.Not(operand=ast.BlockCall(function="exists") as call):
                self.negations.append(_nested_block(scope, call.clauses))
            case ast.Optional():
                raise AssertionError("an optional block parts the clauses around it")
            case _:
                written = as_condition(clause) if isinstance(clause, ast.Traversal) else clause
                self.filters += filters_of(condition(with_blocks(scope, self.attached), written))

    def checked(self) -> Block:
        """The block of all clauses; the clauses that waited for a variable are checked now."""
        scope = self.scope
        self.negations += [_check_negation(scope, clause) for clause in self.waiting]
        return Block(
            nodes={name: kind for name, kind in scope.nodes.items() if name not in self.outer[0]},
            edges={name: kind for name, kind in scope.edges.items() if name not in self.outer[1]},
            bound=tuple(self.patterns),
            patterns=self.patterns,
            steps=tuple(self.steps),
            filters=tuple(self.filters),
            negations=tuple(self.negations),
            existing=tuple(self.existing),
            attached=tuple(self.attached),
            paths=tuple(self.paths),
        )


# --- blocks inside a block --------------------------------------------------------------------------------------------


def check_inner_block(scope: Scope, clauses: tuple[ast.Clause, ...]) -> tuple[Scope, Block]:
    """The scope inside of a block, whose variables are not visible outside, and the checked block."""
    inner = scope.inner()
    return inner, check_block(inner, clauses)


def _nested_block(scope: Scope, clauses: tuple[ast.Clause, ...]) -> NestedBlock:
    return nested(scope, check_inner_block(scope, clauses)[1])


def nested(scope: Scope, block: Block, read: Iterable[str] = ()) -> NestedBlock:
    """A block with the outer variables that it uses; `read`: further variables that are read from its matches."""
    mentioned = mentioned_in(block).union(read)
    values = (column.variable for column in scope.values.values())
    parts = (column.variable for name in scope.paths for column in path_columns(scope, name))
    known = (*scope.nodes, *scope.edges, *values, *parts)
    return NestedBlock(block, tuple(name for name in known if name in mentioned))


def with_blocks(scope: Scope, attached: list[AttachedBlock]) -> Scope:
    """The same scope, in which expressions may contain blocks; each such block is added to `attached`."""

    def block_value(within: Scope, call: ast.BlockCall) -> Column:
        inner, block = check_inner_block(within, call.clauses)
        if call.argument is None:
            found = AggregateCall(call.function, None, BOOL if call.function == "exists" else I64)
        else:
            resolved = resolve(inner.at("result"), ast.Aggregate(call.function, call.argument, call.span))
            assert isinstance(resolved, AggregateCall)
            found = resolved
        column = within.fresh_value(found.type)
        attached.append(AttachedBlock(nested(within, block, variables_of(found)), column, found))
        return column

    return replace(scope, block_value=block_value)


def _check_negation(scope: Scope, clause: ast.Negation) -> NestedBlock:
    found = _nested_block(scope, clause.clauses)
    if not found.outer:
        scope.error("T9", "a `not` block must speak about a variable of the block around it", clause.span)
    return found


def _check_optional(scope: Scope, clause: ast.Optional) -> NestedBlock:
    """Check an optional block; its variables are bound afterwards and may be null."""
    inner, block = check_inner_block(scope, clause.clauses)
    found = nested(scope, block)
    own = {name for known in (inner.nodes, inner.edges, inner.paths) for name in known if not scope.is_bound(name)}
    for known, learned in ((scope.nodes, inner.nodes), (scope.edges, inner.edges), (scope.paths, inner.paths)):
        known.update(learned)  # type: ignore[arg-type]  # each with its own kind
    scope.maybe |= own
    return found


def mentioned_in(block: Block) -> frozenset[str]:
    """Every variable that a checked block uses, including the variables of nested blocks."""
    found: set[str] = set()
    for part in block.parts:
        steps = (*part.steps, *(path.step for path in part.paths))
        found |= {*part.bound, *(end for step in steps for end in (step.source, step.target))}
        found = found.union(*map(variables_of, part.filters))
    return frozenset(found.union(*(inside.outer for inside in block.nested)))


# --- names as written -------------------------------------------------------------------------------------------------


def _bound_by(clause: ast.Clause) -> frozenset[str]:
    """The variables that a clause binds unless they are bound already."""
    match clause:
        case ast.Binding():
            names = frozenset((clause.variable,))
        case ast.Traversal():
            names = frozenset((clause.source, clause.target, clause.edge_variable or ANONYMOUS))
        case ast.PathMatch():
            names = frozenset((clause.variable, clause.traversal.source, clause.traversal.target))
        case ast.Optional():
            names = frozenset(chain.from_iterable(_bound_by(inner) for inner in clause.clauses))
        case _:
            names = frozenset()
    return names - {ANONYMOUS}


def _named_in(clause: ast.Clause) -> Iterator[str]:
    """The variables that a clause binds or reads, at any depth."""
    yield from _bound_by(clause)
    match clause:
        case ast.Negation() | ast.Optional():
            for inner in clause.clauses:
                yield from _named_in(inner)
        case ast.Binding() | ast.Traversal() | ast.PathMatch():
            pass
        case _:
            yield from _read_in(clause)


def _read_in(expr: ast.Expr) -> Iterator[str]:
    match expr:
        case ast.Access():
            yield expr.variable
        case ast.Variable():
            yield expr.name
        case ast.BlockCall():
            for clause in expr.clauses:
                yield from _named_in(clause)
        case _:
            for part in ast.parts(expr):
                yield from _read_in(part)
