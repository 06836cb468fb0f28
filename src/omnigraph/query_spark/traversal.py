"""Traversals on Spark: joins with edge tables; for several hops a frontier is joined repeatedly, with checkpoints."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import pyarrow as pa

from omnigraph.language.query.ir import Direction, EdgePattern, Expand, NodePattern, render_expr
from omnigraph.language.schema.catalog import EdgeType
from omnigraph.query.rows import Rows, column_name, variable_type
from omnigraph.query.run import Run
from omnigraph.query.traverse.targets import is_any
from omnigraph.query_spark.frame import Context, Frame, checkpointed, of
from omnigraph.query_spark.steps import FROM, FROM_TYPE, TO, TO_TYPE, ScanEdges, edge_columns
from omnigraph.query_spark.transport import shares_of, tasks
from omnigraph.values.columns import arrow_type

_SOURCE, _NODE, _TYPE = "#source", "#node", "#type"


@dataclass(frozen=True)
class Traversal:
    """Follows the steps of a query. `scan` makes the frame of a node pattern."""

    context: Context
    scan: Callable[[NodePattern], Frame]

    def expand(self, step: Expand, rows: Frame) -> Frame:
        """Each row with each node to which the step leads; with an edge variable, once for each edge."""
        if step.edge.min_hops == 0:
            return self._with_starts(step, rows)
        rows = rows.made()
        if step.edge.max_hops == 1:
            edges = self._edges(step.edge)
            if step.edge.variable is None and not step.closing:
                edges = edges.with_df(edges.df.distinct())
        else:
            edges = self._reached(step.edge, rows, step.source)
        start = column_name(step.source, "id")
        end = column_name(step.target.variable, "id")
        condition = rows[start] == edges[FROM]
        if step.closing:
            condition = condition & (rows[end] == edges[TO])
            if step.edge.variable is None:
                return rows.with_df(rows.df.join(edges.df, condition, "left_semi"))
            return rows.beside(rows.df.join(edges.df, condition), edges).without(FROM, TO)
        joined = rows.beside(rows.df.join(edges.df, condition), edges)
        found = joined.select({**{name: name for name in joined.columns if name not in (FROM, TO)}, end: TO})
        return found if is_any(step.target, self.context.run) else self._met(found, step.target, "inner")

    def fetch(self, rows: Frame, node: NodePattern) -> Frame:
        """Rows in which the id of a node is known, with the node's columns."""
        if is_any(node, self.context.run):
            return rows
        required = bool(node.predicates) or node.lookup is not None
        return self._met(rows.made(), node, "inner" if required else "left")

    def _met(self, rows: Frame, node: NodePattern, how: str) -> Frame:
        """The rows joined (`how`) with the columns of the node whose id they have."""
        known = column_name(node.variable, "id")
        columns = None if node.columns is None else tuple(dict.fromkeys((*node.columns, "id")))
        # The row addresses of targets are not needed.
        nodes = self.scan(replace(node, columns=columns)).made()
        read = {name: name for name in nodes.columns if name != known and not name.endswith("#address")}
        nodes = nodes.select({"#known": known, **read})
        return rows.beside(rows.df.join(nodes.df, rows[known] == nodes["#known"], how), nodes).without("#known")

    def _with_starts(self, step: Expand, rows: Frame) -> Frame:
        """A step of zero or more hops: the start itself, then the nodes one or more hops away, except the start."""
        start, end = column_name(step.source, "id"), column_name(step.target.variable, "id")
        shared = rows.shared()
        known = shared.with_df(shared.df.filter(shared[start].isNotNull()))
        further = replace(step, edge=replace(step.edge, min_hops=1))
        if step.closing:
            # Neither condition is true where the other end is null.
            staying = known.with_df(known.df.filter(known[start] == known[end]))
            leaving = known.with_df(known.df.filter(known[start] != known[end]))
        else:
            staying = self.fetch(
                known.select({**{name: name for name in known.columns}, end: start}), step.target
            ).made()
            leaving = known
        if step.edge.max_hops == 0:
            return staying
        found = self.expand(further, leaving).made()
        found = found.with_df(found.df.filter(found[start] != found[end]))
        same = found.select({name: name for name in staying.columns})
        return of(self.context, staying.df.union(same.df), staying.columns, staying.names)

    # --- edges ------------------------------------------------------------------------------------------------------

    def _edges(self, edge: EdgePattern) -> Frame:
        """The edges of a single hop with their two ends, between the node types of the step."""
        parts = [self._of_type(edge, name, direction) for name, direction in _alternatives(edge)]
        kept = [name for name in parts[0].columns if name not in (FROM_TYPE, TO_TYPE)]
        if edge.ends is not None:
            first, last = edge.ends
            parts = [
                part.with_df(part.df.filter((part[FROM_TYPE] == first) & (part[TO_TYPE] == last))) for part in parts
            ]
        return _united([part.select({name: name for name in kept}) for part in parts])

    def _of_type(self, edge: EdgePattern, name: str, direction: Direction) -> Frame:
        run = self.context.run
        entities = run.edges(name)
        shares = shares_of(entities)
        pushed = " and ".join(map(render_expr, edge.predicates))
        self.context.notes.append(
            f"scan edge:{name}: {tasks(len(shares))}, {direction.value}" + (f"; pushed: {pushed}" if pushed else "")
        )
        step = ScanEdges(edge, name, direction, shares)
        return self.context.leaf(step, len(shares), _empty_edges(edge, name, run)).made()

    # --- several hops -----------------------------------------------------------------------------------------------

    def _reached(self, edge: EdgePattern, rows: Frame, source: str) -> Frame:
        """For each source the nodes whose shortest distance is within the hop bounds; a self-loop leads back to the source."""
        from pyspark.sql import functions

        first, last = edge.ends or _ends(edge, self.context.run)
        edges = _united([self._of_type(edge, name, direction) for name, direction in _alternatives(edge)])
        edges = edges.with_df(checkpointed(edges.df.distinct(), eager=False))
        start = column_name(source, "id")
        sources = rows.df.select(rows[start].alias(_SOURCE)).filter(functions.col(_SOURCE).isNotNull()).distinct()
        frontier = sources.select(_SOURCE, functions.lit(first).alias(_TYPE), functions.col(_SOURCE).alias(_NODE))
        frontier = checkpointed(frontier, eager=True)
        seen, levels = frontier, []
        least = max(edge.min_hops, 1)
        own = (functions.col(_SOURCE) == functions.col(_NODE)) & (functions.col(_TYPE) == first)
        hop = 0
        while hop < edge.max_hops:
            hop += 1
            there = (functions.col(_TYPE) == edges[FROM_TYPE]) & (functions.col(_NODE) == edges[FROM])
            reached = (
                frontier.join(edges.df, there)
                .select(functions.col(_SOURCE), edges[TO_TYPE].alias(_TYPE), edges[TO].alias(_NODE))
                .distinct()
            )
            if hop == 1:
                reached = checkpointed(reached, eager=True)
                if least == 1:
                    levels.append(reached.filter(own))
                frontier = reached.filter(~own)
            else:
                frontier = checkpointed(reached.join(seen, [_SOURCE, _TYPE, _NODE], "left_anti"), eager=True)
            if hop >= least:
                levels.append(frontier)
            if hop < edge.max_hops and frontier.isEmpty():
                break
            seen = seen.union(frontier)
        found = levels[0] if levels else frontier.limit(0)
        for level in levels[1:]:
            found = found.union(level)
        ends = found.filter(functions.col(_TYPE) == last)
        names = {FROM: pa.string(), TO: pa.string()}
        plain = of(self.context, ends.select(_SOURCE, _NODE), names, (_SOURCE, _NODE))
        return plain.select({FROM: FROM, TO: TO})


def _alternatives(edge: EdgePattern) -> tuple[tuple[str, Direction], ...]:
    return edge.alternatives or ((edge.edge_type, edge.direction),)


def _ends(edge: EdgePattern, run: Run) -> tuple[str, str]:
    """The node types from which and to which a step leads."""
    declared = run.edges(edge.edge_type).entity
    assert isinstance(declared, EdgeType)
    names = (declared.from_type, declared.to_type)
    return names if edge.direction is not Direction.IN else (names[1], names[0])


def _united(parts: list[Frame]) -> Frame:
    """The union of frames without steps that have the same columns."""
    first, df = parts[0], parts[0].df
    for part in parts[1:]:
        df = df.union(part.df)
    return first.with_df(df)


def _empty_edges(edge: EdgePattern, name: str, run: Run) -> Rows:
    entities, columns = run.edges(name), edge_columns(edge, name, run)
    variable = edge.variable or "#edge"
    empty = {part: pa.array([], pa.string()) for part in (FROM, TO, FROM_TYPE, TO_TYPE)}
    for column in columns:
        if column == "@type":
            empty[variable_type(variable)] = pa.array([], pa.string())
        else:
            empty[column_name(variable, column)] = pa.array([], arrow_type(entities.kind(column)))
    return Rows(0, empty)
