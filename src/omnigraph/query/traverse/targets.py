"""The far ends of a step: which nodes match the target pattern, and the columns read of them."""

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

#: Up to so many targets are looked up by id, if they are also at most 1/_SMALL_PART of the table.
_FEW = 2000
_SMALL_PART = 10
#: For more than 1/_LARGE_PART of the domain, predicates are evaluated on all rows of the table.
_LARGE_PART = 4


@dataclass(frozen=True)
class Targets:
    """`places`: for each position of a domain the row of its node in `read`, -1 when it does not match; None: all match."""

    places: Integers | None
    read: Mapping[str, Values] | None
    #: Bytes that were read for this step alone; columns in memory are not.
    nbytes: int = 0

    def fitting(self, positions: Integers) -> Mask | None:
        """A mask of the positions whose nodes match; None when all do."""
        return None if self.places is None else self.places[positions] >= 0

    def attach(self, rows: Rows, variable: str, domain: SortedIds, positions: Integers) -> Rows:
        """The rows with the target variable: its positions, and the columns that were read."""
        known = None if self.places is None or self.read is None else Attributes(self.places, self.read)
        return rows.with_positions(variable, domain, positions, known)


def fitting_targets(target: NodePattern, domain: SortedIds, positions: Integers, run: Run) -> Targets:
    """Read the columns that the pattern needs of the nodes at these positions; none when any node matches."""
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
    """The targets from columns in memory; predicates are evaluated at these positions, or on all rows when that is cheaper."""
    rows = run.caches.bridge(domain, kept.ids)
    if not target.predicates:
        return Targets(rows, kept.columns)
    places = np.full(len(domain.ids), -1, np.int64)
    if len(positions) * _LARGE_PART > len(rows):
        # Evaluating all rows is faster than selecting rows first.
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
    """The targets, read from their table."""
    entities = run.nodes(target.node_type)
    among = _among(domain, positions, entities.rows)
    if among is not None or is_passing(domain):
        rows = read(Request(entities, target.variable, (*columns, "id"), target.predicates, among), run)
        return _placed_by_id(rows, target.variable, domain)
    # A large part of the table: row addresses identify the nodes, without reading ids.
    rows = read(Request(entities, target.variable, columns, target.predicates, located=True), run)
    ids = run.caches.table_ids(entities.table, entities.rows, run.budget)
    addresses = rows.addresses(target.variable)
    assert addresses is not None
    return _placed(rows, domain, run.caches.bridge(ids, domain)[ids.positions_at(addresses)])


def _placed_by_id(rows: Rows, variable: str, domain: SortedIds) -> Targets:
    """The targets of rows read with ids. The ids are dropped: another batch of the same step may be read without them."""
    found = domain.positions(rows.column(variable, "id"))
    return _placed(rows.without([column_name(variable, "id")]), domain, found)


def _placed(rows: Rows, domain: SortedIds, found: Integers) -> Targets:
    """The targets of rows that were read; `found` is the position of each row in the domain, or -1."""
    places = np.full(len(domain.ids), -1, np.int64)
    known = found >= 0
    places[found[known]] = np.flatnonzero(known)
    return Targets(places, rows.columns, places.nbytes + rows.nbytes)


def is_any(target: NodePattern, run: Run) -> bool:
    """Whether every node matches the pattern and no column but the id is read."""
    reads = any(name != "id" for name in node_columns(target, run))
    return not reads and not target.predicates and target.lookup is None


def _reading(target: NodePattern, columns: tuple[str, ...]) -> NodePattern:
    return replace(target, columns=columns)


def _among(domain: SortedIds, positions: Integers, table_rows: int) -> tuple[str, pa.Array] | None:
    """The `among` of a request for the ids at these positions; None when they are too many to look up."""
    distinct = marked(positions, len(domain.ids))
    if len(distinct) > _FEW or len(distinct) * _SMALL_PART > max(table_rows, 500):
        return None
    return ("id", domain.ids.take(pa.array(distinct)))
