"""The far ends of a step: which of them fit the pattern of the target, and what is read of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from omnigraph.language.query.ir import NodePattern
from omnigraph.query.rows import Attributes, Integers, Mask, Rows, Values, column_name
from omnigraph.query.run import Run
from omnigraph.query.scan.columns import NodeColumns, columns_in_memory, without_memory
from omnigraph.query.scan.read import Request, node_columns, read, scan_nodes
from omnigraph.query.traverse.domain import SortedIds
from omnigraph.query.traverse.points import is_passing
from omnigraph.query.traverse.reach import marked

#: Up to so many targets are looked up by id, if that is also but a small part of the table.
_FEW = 2000
_SMALL_PART = 10
#: From this part of the table on, all of its rows are asked.
_LARGE_PART = 4


@dataclass(frozen=True)
class Targets:
    """For each position of a domain where its node is among the rows that were read; -1 when it does not fit."""

    places: Integers | None
    read: Mapping[str, Values] | None
    #: Bytes that were read for this step alone; columns in memory are not.
    nbytes: int = 0

    def fitting(self, positions: Integers) -> Mask | None:
        """Which positions fit; None when all do."""
        return None if self.places is None else self.places[positions] >= 0

    def attach(self, rows: Rows, variable: str, domain: SortedIds, positions: Integers) -> Rows:
        """Rows with their targets: the position, and what was read."""
        known = None if self.places is None or self.read is None else Attributes(self.places, self.read)
        return rows.with_positions(variable, domain, positions, known)


def fitting_targets(target: NodePattern, domain: SortedIds, positions: Integers, run: Run) -> Targets:
    """Read what is asked of the nodes at these positions; nothing when only their existence matters."""
    if is_any(target, run):
        return Targets(None, None)
    columns = tuple(name for name in node_columns(target, run) if name != "id")
    if target.lookup is not None:
        return _placed_by_id(scan_nodes(_reading(target, (*columns, "id")), run), target.variable, domain)
    if not is_passing(domain):
        kept = columns_in_memory(target, columns, run)
        if kept is not None:
            return _in_memory(kept, target, domain, positions, run)
    without_memory(target, columns, run, rows=len(positions))
    return _from_table(target, columns, domain, positions, run)


def _in_memory(kept: NodeColumns, target: NodePattern, domain: SortedIds, positions: Integers, run: Run) -> Targets:
    """The targets among columns in memory: only those at these positions are asked."""
    rows = run.caches.bridge(domain, kept.ids)
    if not target.predicates:
        return Targets(rows, kept.columns)
    places = np.full(len(domain.ids), -1, np.int64)
    if len(positions) * _LARGE_PART > len(rows):
        # Asking all rows is faster than taking out those that are asked.
        fits = kept.satisfying(target.predicates, None, run)
        known = np.flatnonzero(rows >= 0)
        fitting = known[fits[rows[known]]]
    else:
        known = marked(positions, len(rows))
        known = known[rows[known] >= 0]
        fitting = known[kept.satisfying(target.predicates, rows[known], run)]
    places[fitting] = rows[fitting]
    return Targets(places, kept.columns)


def _from_table(
    target: NodePattern, columns: tuple[str, ...], domain: SortedIds, positions: Integers, run: Run
) -> Targets:
    """The targets as their table has them."""
    entities = run.nodes(target.node_type)
    among = _among(domain, positions, entities.rows)
    if among is not None or is_passing(domain):
        rows = read(Request(entities, target.variable, (*columns, "id"), target.predicates, among), run)
        return _placed_by_id(rows, target.variable, domain)
    # A large part of the table: where the rows lie says which nodes they are, without reading any id.
    rows = read(Request(entities, target.variable, columns, target.predicates, located=True), run)
    ids = run.caches.table_ids(entities.table, entities.rows, run.budget)
    addresses = rows.addresses(target.variable)
    assert addresses is not None
    return _placed(rows, domain, run.caches.bridge(ids, domain)[ids.positions_at(addresses)])


def _placed_by_id(rows: Rows, variable: str, domain: SortedIds) -> Targets:
    """Rows that were read with their ids. The ids go: another batch of the same step may be read without them."""
    found = domain.positions(rows.column(variable, "id"))
    return _placed(rows.without([column_name(variable, "id")]), domain, found)


def _placed(rows: Rows, domain: SortedIds, found: Integers) -> Targets:
    """Rows that were read, by the position of each."""
    places = np.full(len(domain.ids), -1, np.int64)
    known = found >= 0
    places[found[known]] = np.flatnonzero(known)
    return Targets(places, rows.columns, places.nbytes + rows.nbytes)


def is_any(target: NodePattern, run: Run) -> bool:
    """Whether every node fits and nothing is read of it."""
    reads = any(name != "id" for name in node_columns(target, run))
    return not reads and not target.predicates and target.lookup is None


def _reading(target: NodePattern, columns: tuple[str, ...]) -> NodePattern:
    return replace(target, columns=columns)


def _among(domain: SortedIds, positions: Integers, table_rows: int) -> tuple[str, pa.Array] | None:
    """The ids to look up, when they are few."""
    distinct = marked(positions, len(domain.ids))
    if len(distinct) > _FEW or len(distinct) * _SMALL_PART > max(table_rows, 500):
        return None
    return ("id", domain.ids.take(pa.array(distinct)))
