"""A naive interpreter of reads: what a query means, worked out on the tree as it was parsed.

It tries everything in the plainest way and shares nothing with the checker, the plans and the engine. It expects a query that
the checker takes; a value that can not be computed is a `Failure`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from omnigraph.language.query import ast
from omnigraph.language.query.parser import parse_query_file
from omnigraph.language.schema.catalog import EdgeType
from tests.naive.graph import Entity, Path, World, plain
from tests.naive.values import (
    aggregate,
    all_of,
    any_of,
    arithmetic,
    bounded,
    call,
    compare,
    duration,
    negate,
    shown,
    to_date,
    to_datetime,
)

#: What the variables of a row stand for: an entity, a path or a value; None where an optional block has no match.
Row = dict[str, Any]


def answers(text: str, world: World, params: Mapping[str, Any] | None = None) -> list[tuple[Any, ...]]:
    """The rows of the first query of a text, each as a tuple of JSON values."""
    (query, *_) = parse_query_file(text).queries
    assert not isinstance(query.body, ast.Mutation)
    given = dict(params or {})
    typed = {declared.name: plain(given.get(declared.name), declared.type) for declared in query.params}
    reading = Reading(world, given | typed)
    return [tuple(map(shown_value, row)) for row in reading.body(query.body)]


def shown_value(value: Any) -> Any:
    """A value as a result shows it: a node as its id."""
    if isinstance(value, tuple):
        return [shown_value(item) for item in value]
    if isinstance(value, dict):
        return {name: shown_value(item) for name, item in value.items()}
    return value.id if isinstance(value, Entity) else shown(value)


@dataclass
class Scope:
    """What an expression may read: a row, the rows of its group, and columns by their names."""

    row: Row
    group: list[Row] | None = None
    words: Mapping[str, Any] = field(default_factory=dict)


@dataclass
class Reading:
    """One query over one world."""

    world: World
    params: dict[str, Any]
    now: datetime = datetime(2026, 1, 1)
    _names: int = 0
    #: The types that variables may have.
    _types: dict[str, set[str]] = field(default_factory=dict)

    # --- results ------------------------------------------------------------------------------------------------------

    def body(self, body: ast.Read | ast.Union) -> list[tuple[Any, ...]]:
        """The rows of a read or of a union."""
        if isinstance(body, ast.Read):
            return self.read(body)[1]
        left, right = self.body(body.left), self.read(body.right)[1]
        rows = [*left, *right]
        if not body.keeps_repeats:
            rows = list(dict.fromkeys(rows))
        names = _names(body.right)
        scopes = [Scope({}, None, dict(zip(names, row, strict=True))) for row in rows]
        return [rows[place] for place in self.ordered(scopes, body.orderings, body.limit, body.offset)]

    def read(self, read: ast.Read, *, handed_on: bool = False) -> tuple[list[str], list[tuple[Any, ...]]]:
        """The names of the columns, and the rows; in a result a node is what it is shown as, in a `with` it stays one."""
        rows = self.match(read.clauses, self.before(read.before))
        projections = [each for projection in read.projections for each in self.columns(projection)]
        names = [projection.alias or name_of(projection.expr) for projection in projections]
        exprs = [projection.expr for projection in projections]
        asked = [*exprs, *([] if read.having is None else [read.having]), *(key.expr for key in read.orderings)]
        grouped = any(_aggregates(expr) for expr in asked)
        scopes = self.groups(exprs, rows) if grouped else [Scope(row) for row in rows]
        values = [tuple(self.value(expr, scope) for expr in exprs) for scope in scopes]
        for scope, found in zip(scopes, values, strict=True):
            scope.words = dict(zip(names, found, strict=True))
        kept = list(range(len(scopes)))
        if read.having is not None:
            kept = [place for place in kept if self.value(read.having, self.with_words(scopes[place])) is True]
        if read.distinct:
            known_by = tuple if handed_on else _known_by
            kept = list({known_by(values[place]): place for place in reversed(kept)}.values())[::-1]
        chosen = self.ordered([scopes[place] for place in kept], read.orderings, read.limit, read.offset)
        return names, [values[kept[place]] for place in chosen]

    @staticmethod
    def with_words(scope: Scope) -> Scope:
        """The scope of `having` and `where`: a column may also be written as a variable."""
        return replace(scope, row={**scope.words, **scope.row})

    def before(self, before: ast.Read | None) -> list[Row]:
        """The rows that a `with` hands on."""
        if before is None:
            return [{}]
        names, rows = self.read(before, handed_on=True)
        return [dict(zip(names, row, strict=True)) for row in rows]

    def columns(self, projection: ast.Projection | ast.AllProperties) -> list[ast.Projection]:
        """A projection, or one for each property of `$x.*`: those that all types of the variable have."""
        if isinstance(projection, ast.Projection):
            return [projection]
        return [ast.Projection(ast.Access(projection.variable, name)) for name in self.shared(projection.variable)]

    def shared(self, variable: str) -> list[str]:
        """The properties that all types of a variable have."""
        kinds = {**self.world.catalog.nodes, **self.world.catalog.edges}
        first, *others = (kinds[name].properties for name in sorted(self._types[variable]))
        return [name for name in first if all(name in other for other in others)]

    def whole(self, variable: str, entity: Entity | None) -> dict[str, Any] | None:
        """A node or an edge as one value."""
        if entity is None:
            return None
        ends = {} if entity.kind == "node" else {"from": entity.src, "to": entity.dst}
        properties = {name: entity.read(name) for name in self.shared(variable)}
        return {"id": entity.id, "type": entity.type, **ends, "properties": properties}

    def groups(self, exprs: list[ast.Expr], rows: list[Row]) -> list[Scope]:
        """One scope for each group of rows that agree in every column without an aggregate."""
        keys = [expr for expr in exprs if not _aggregates(expr)]
        found: dict[tuple[Any, ...], list[Row]] = {} if keys else {(): []}
        for row in rows:
            # Two nodes of different types are two groups, even when they have the same id.
            found.setdefault(tuple(self.value(key, Scope(row)) for key in keys), []).append(row)
        return [Scope(members[0] if members else {}, members) for members in found.values()]

    def ordered(
        self,
        scopes: list[Scope],
        orderings: Iterable[ast.Ordering],
        limit: int | ast.Variable | None,
        offset: int | ast.Variable | None,
    ) -> list[int]:
        """The places of the rows in their order: nulls first when it ascends, last when it descends."""
        places = list(range(len(scopes)))
        for ordering in reversed(list(orderings)):
            keys = [self.value(ordering.expr, scope) for scope in scopes]
            keys = [key.id if isinstance(key, Entity) else key for key in keys]
            down = bool(ordering.descending)
            nulls_first = not down if ordering.nulls_first is None else ordering.nulls_first
            if isinstance(ordering.expr, ast.Nearest) and ordering.nulls_first is None:
                nulls_first = False
            known = [place for place in places if keys[place] is not None]
            unknown = [place for place in places if keys[place] is None]
            known.sort(key=lambda place: keys[place], reverse=down)
            places = [*unknown, *known] if nulls_first else [*known, *unknown]
        start = self.number(offset) or 0
        most = self.number(limit)
        return places[start:] if most is None else places[start : start + most]

    def number(self, written: int | ast.Variable | None) -> int | None:
        """What `limit` or `offset` says."""
        return self.params[written.name] if isinstance(written, ast.Variable) else written

    # --- blocks -------------------------------------------------------------------------------------------------------

    def match(self, clauses: tuple[ast.Clause, ...], rows: list[Row]) -> list[Row]:
        """The rows that a block makes of each of these rows."""
        part: list[ast.Clause] = []
        types: dict[str, set[str]] = {}
        for clause in clauses:
            if isinstance(clause, ast.Optional):
                rows = self.part(part, rows, types)
                part = []
                rows = [made for row in rows for made in self.optional(clause, row, types)]
            else:
                part.append(clause)
        return self.part(part, rows, types)

    def optional(self, clause: ast.Optional, row: Row, types: dict[str, set[str]]) -> list[Row]:
        """A row with each match of an optional block, or with nulls for its variables."""
        found = self.match(clause.clauses, [row])
        nothing = {name: None for name in bound_by(clause.clauses) if name not in row}
        return found or [{**row, **nothing}]

    def part(self, clauses: list[ast.Clause], rows: list[Row], types: dict[str, set[str]]) -> list[Row]:
        """Clauses between optional blocks: first what they bind, then what they demand."""
        clauses = [self.resolved(clause) for clause in clauses]
        bindings = [clause for clause in clauses if isinstance(clause, ast.Binding)]
        known = self.types(clauses, set(rows[0]) if rows else set())
        self._types |= known
        for binding in bindings:
            own = self.named_types(binding)
            rows = [row for row in rows if binding.variable not in row or _is_of(row[binding.variable], own)]
        self._types |= {name: set.intersection(*map(self.named_types, own)) for name, own in _by_name(bindings).items()}
        seen = set(rows[0]) if rows else set()
        waiting = []
        for step in clauses:
            if isinstance(step, ast.Traversal):
                # A step between nodes of which neither is known before goes along the edges.
                waiting.append((step, not {step.source, step.target} & seen))
            seen |= bound_by([step])
        names = [*(binding.variable for binding in bindings), *known]
        while rows:
            ready = next((each for each in waiting if {each[0].source, each[0].target} & rows[0].keys()), None)
            if ready is not None:
                waiting.remove(ready)
                rows = [made for row in rows for made in self.follow(*ready, row, known)]
                continue
            new = next((name for name in names if name not in rows[0]), None)
            if new is None:
                break
            rows = [{**row, new: node} for row in rows for node in self.world.of_types(sorted(known[new]))]
        for clause in clauses:
            if isinstance(clause, ast.PathMatch):
                rows = [made for row in rows for made in self.shortest(clause, row)]
        return [row for row in rows if all(self.holds(clause, row) for clause in clauses)]

    def resolved(self, clause: ast.Clause) -> ast.Clause:
        """A clause with a name for each `$_`; `$a in $b` is a condition where no edge is called so."""
        if isinstance(clause, ast.Binding) and clause.variable == "_":
            return replace(clause, variable=self.new_name())
        if not isinstance(clause, ast.Traversal):
            return clause
        if clause.edge_word in ("in", "and", "or") and self.world.catalog.edge(clause.edge_word) is None:
            left, right = ast.Variable(clause.source), ast.Variable(clause.target)
            if clause.edge_word == "in":
                return ast.Comparison(left, "in", right)
            return ast.Logical(clause.edge_word, (left, right))
        source = self.new_name() if clause.source == "_" else clause.source
        target = self.new_name() if clause.target == "_" else clause.target
        return replace(clause, source=source, target=target)

    def new_name(self) -> str:
        """A name that no query has."""
        self._names += 1
        return f"#{self._names}"

    # --- what is bound ------------------------------------------------------------------------------------------------

    def named_types(self, binding: ast.Binding) -> set[str]:
        """The node types that a binding names."""
        nodes = self.world.catalog.nodes
        found: set[str] = set()
        for name in (binding.type_name, *binding.others):
            found |= {kind.name for kind in nodes.values() if name in ("*", kind.name, *kind.implements)}
        return found

    def edge_types(self, step: ast.Traversal) -> list[EdgeType]:
        """The edge types that a step names."""
        catalog = self.world.catalog
        if step.edge_word == "*":
            return list(catalog.edges.values())
        found = [catalog.edge(word) for word in (step.edge_word, *step.others)]
        return list({edge.name: edge for edge in found if edge is not None}.values())

    def types(self, clauses: Iterable[ast.Clause], outer: set[str]) -> dict[str, set[str]]:
        """The types that the new variables may have: as they are bound, else what their steps lead to."""
        known: dict[str, set[str]] = {}
        for clause in clauses:
            if isinstance(clause, ast.Binding) and clause.variable not in outer:
                own = self.named_types(clause)
                known[clause.variable] = known.get(clause.variable, own) & own
            elif isinstance(clause, ast.Traversal):
                edges = self.edge_types(clause)
                if clause.edge_variable is not None:
                    self._types[clause.edge_variable] = {edge.name for edge in edges}
                every = {end for edge in edges for end in (edge.from_type, edge.to_type)}
                if {clause.source, clause.target} & (known.keys() | outer):
                    ends = {clause.source: every, clause.target: every}
                elif clause.min_hops == 0:
                    ends = {clause.source: {edge.from_type for edge in edges}, clause.target: every}
                else:
                    ends = {
                        clause.source: {edge.from_type for edge in edges},
                        clause.target: {edge.to_type for edge in edges},
                    }
                for name, types in ends.items():
                    if name not in outer:
                        known.setdefault(name, types)
        return known

    def follow(self, step: ast.Traversal, forward: bool, row: Row, types: Mapping[str, set[str]]) -> list[Row]:
        """A row with each way that a step has in it, which has at least one of the two ends."""
        if step.source in row:
            sources = [row[step.source]]
        else:
            sources = self.world.of_types(sorted(types[step.source]))
        if step.target in row:
            targets = [row[step.target]]
        else:
            targets = self.world.of_types(sorted(types[step.target]))
        made = []
        for source in sources:
            if source is None:
                continue
            for edge, end in self.led_to(step, source, forward):
                bound = {step.source: source, step.target: end}
                if step.edge_variable is not None and step.edge_variable != "_":
                    bound[step.edge_variable] = edge
                if end in targets:
                    made.append({**row, **bound})
        return made

    def led_to(self, step: ast.Traversal, source: Entity, forward: bool) -> list[tuple[Entity | None, Entity]]:
        """The ends of a step, each once; with an edge variable once for each edge."""
        edges = self.edge_types(step)
        if forward and (step.min_hops, step.max_hops) == (1, 1):
            edges = [edge for edge in edges if edge.from_type == source.type]
        if step.edge_variable is not None:
            return list(self.world.step(edges, source, undirected=step.undirected))
        if (step.min_hops, step.max_hops) == (1, 1):
            ends = [end for _, end in self.world.step(edges, source, undirected=step.undirected)]
            return [(None, end) for end in dict.fromkeys(ends)]
        reached = self.world.reached(edges, source, step.min_hops, step.max_hops, undirected=step.undirected)
        if len(edges) == 1 and edges[0].from_type != edges[0].to_type:
            # The ends of such a step are of two types, so that no node is its own end.
            reached = [end for end in reached if end != source]
        return [(None, end) for end in reached]

    def shortest(self, clause: ast.PathMatch, row: Row) -> list[Row]:
        """A row with its shortest path, or with each of them."""
        step = clause.traversal
        (edge,) = self.edge_types(step)
        source, target = row[step.source], row[step.target]
        if source is None or target is None:
            return []
        way = "both" if step.undirected else "out"
        weight = None if clause.weight is None else clause.weight.property
        paths = self.world.paths(edge, (source, target), step.min_hops, step.max_hops, way, weight)
        return [{**row, clause.variable: path} for path in (paths if clause.every else paths[:1])]

    def holds(self, clause: ast.Clause, row: Row) -> bool:
        """Whether a row satisfies a clause; what binds variables is satisfied except for the values in its braces."""
        match clause:
            case ast.Traversal() | ast.PathMatch() | ast.Optional():
                return True
            case ast.Binding():
                return all(self.fits(row[clause.variable], match, row) for match in clause.matches)
            case ast.Negation():
                return not self.match(clause.clauses, [row])
            case _:
                return self.value(clause, Scope(row)) is True

    def fits(self, node: Entity | None, match: ast.PropertyMatch, row: Row) -> bool:
        """`property: value`: equal, or among the items of a list."""
        if node is None:
            return False
        own, wanted = node.read(match.property), self.value(match.value, Scope(row))
        return compare(own, "contains" if isinstance(own, tuple) else "=", wanted) is True

    # --- expressions --------------------------------------------------------------------------------------------------

    def value(self, expr: ast.Expr, scope: Scope) -> Any:
        """The value of an expression."""

        def of(part: ast.Expr) -> Any:
            return self.value(part, scope)

        match expr:
            case ast.StringLit() | ast.IntLit() | ast.FloatLit() | ast.BoolLit():
                return expr.value
            case ast.NullLit():
                return None
            case ast.ListLit():
                return tuple(of(item) for item in expr.items)
            case ast.DateLit():
                return to_date(expr.text)
            case ast.DateTimeLit():
                return to_datetime(expr.text)
            case ast.DurationLit():
                return duration(expr.text)
            case ast.Now():
                return self.now
            case ast.Variable():
                return self.variable(expr.name, scope)
            case ast.Access():
                entity = scope.row[expr.variable]
                return None if entity is None else entity.read(expr.property)
            case ast.Ident():
                return scope.words[expr.name]
            case ast.Comparison():
                return self.comparison(of(expr.left), expr.operator, of(expr.right))
            case ast.IsNull():
                return (of(expr.operand) is None) != expr.negated
            case ast.Not():
                return negate(of(expr.operand))
            case ast.Logical():
                return self.logical(expr, scope)
            case ast.Arithmetic():
                return arithmetic(of(expr.left), expr.operator, of(expr.right))
            case ast.Negative():
                operand = of(expr.operand)
                return None if operand is None else bounded(-operand)
            case ast.Case():
                chosen = next((when.value for when in expr.branches if of(when.condition) is True), expr.otherwise)
                return None if chosen is None else of(chosen)
            case ast.Item():
                return call("item", (of(expr.items), of(expr.index)))
            case ast.Call():
                return self.call(expr, scope)
            case ast.Aggregate():
                return self.aggregated(expr, scope)
            case ast.BlockCall():
                return self.over_block(expr, scope)
            case ast.Search():
                return self.search(of(expr.field), of(expr.query))
            case ast.Nearest():
                vector = of(expr.field)
                return None if vector is None else math.dist(vector, of(expr.query))
        raise NotImplementedError(expr)

    def variable(self, name: str, scope: Scope) -> Any:
        """What a variable of the row stands for, else the value of a parameter."""
        return scope.row[name] if name in scope.row else self.params[name]

    @staticmethod
    def comparison(left: Any, operator: str, right: Any) -> bool | None:
        """A comparison; a node beside a text is its id."""
        if isinstance(left, Entity) != isinstance(right, Entity) and not isinstance(right, tuple):
            left, right = (side.id if isinstance(side, Entity) else side for side in (left, right))
        return compare(left, operator, right)

    def logical(self, expr: ast.Logical, scope: Scope) -> bool | None:
        """And, or: what follows a decision is not computed."""
        decided = expr.operator == "or"
        truths = []
        for operand in expr.operands:
            truths.append(self.value(operand, scope))
            if truths[-1] is decided:
                break
        return any_of(truths) if decided else all_of(truths)

    def call(self, expr: ast.Call, scope: Scope) -> Any:
        if expr.function == "if":
            chosen = expr.arguments[1] if self.value(expr.arguments[0], scope) is True else expr.arguments[2]
            return self.value(chosen, scope)
        if expr.function == "today":
            return self.now.date()
        arguments = [self.value(argument, scope) for argument in expr.arguments]
        first = arguments[0] if arguments else None
        if expr.function == "object":
            assert isinstance(expr.arguments[0], ast.Variable)
            return self.whole(expr.arguments[0].name, first)
        if isinstance(first, Path):
            found = {"length": len(first.edges), "nodes": _ids(first.nodes), "edges": _ids(first.edges)}
            return found[expr.function]
        if expr.function in ("id", "type", "nodes", "edges") or (expr.function == "length" and first is None):
            return None if first is None else first.read(f"@{expr.function}")
        return call(expr.function, arguments)

    def aggregated(self, expr: ast.Aggregate, scope: Scope) -> Any:
        """An aggregate over the rows of the group."""
        assert scope.group is not None
        if expr.argument is None:
            return len(scope.group)
        values = [self.value(expr.argument, Scope(row)) for row in scope.group]
        fraction = None if expr.fraction is None else self.value(expr.fraction, scope)
        return aggregate(expr.function, values, distinct=expr.distinct, fraction=fraction)

    def over_block(self, expr: ast.BlockCall, scope: Scope) -> Any:
        """What the matches of a block give for a row."""
        found = self.match(expr.clauses, [scope.row])
        if expr.function == "exists":
            return bool(found)
        if expr.argument is None:
            return len(found)
        return aggregate(expr.function, [self.value(expr.argument, Scope(row)) for row in found])

    @staticmethod
    def search(text: str | None, query: str) -> bool | None:
        """Whether a text has a word of the query; words are parted by blanks here."""
        return None if text is None else bool({*text.split()} & {*query.split()})


# --- looking at trees -------------------------------------------------------------------------------------------------


def _known_by(values: Iterable[Any]) -> tuple[Any, ...]:
    """What tells rows of a result apart: a node is shown as its id."""
    return tuple(value.id if isinstance(value, Entity) else value for value in values)


def _ids(entities: Iterable[Entity]) -> tuple[str, ...]:
    return tuple(entity.id for entity in entities)


def _is_of(entity: Entity | None, types: set[str]) -> bool:
    return entity is not None and entity.type in types


def _by_name(bindings: Iterable[ast.Binding]) -> dict[str, list[ast.Binding]]:
    found: dict[str, list[ast.Binding]] = {}
    for binding in bindings:
        found.setdefault(binding.variable, []).append(binding)
    return found


def bound_by(clauses: Iterable[ast.Clause]) -> set[str]:
    """The variables that clauses bind, those of optional blocks inside them included."""
    found: set[str] = set()
    for clause in clauses:
        match clause:
            case ast.Binding():
                found.add(clause.variable)
            case ast.Traversal():
                found |= {clause.source, clause.target, clause.edge_variable or "_"}
            case ast.PathMatch():
                found.add(clause.variable)
            case ast.Optional():
                found |= bound_by(clause.clauses)
    return found - {"_"}


def name_of(expr: ast.Expr) -> str:
    """The name of a column without an alias."""
    match expr:
        case ast.Variable():
            return expr.name
        case ast.Access():
            return f"{expr.variable}.{expr.property}"
        case _:
            return repr(expr)


def _names(read: ast.Read) -> list[str]:
    projections = [each for each in read.projections if isinstance(each, ast.Projection)]
    return [projection.alias or name_of(projection.expr) for projection in projections]


def _aggregates(expr: ast.Expr) -> bool:
    """Whether an expression holds an aggregate; those of a block are its own."""
    if isinstance(expr, ast.BlockCall):
        return False
    return isinstance(expr, ast.Aggregate) or any(map(_aggregates, ast.parts(expr)))
