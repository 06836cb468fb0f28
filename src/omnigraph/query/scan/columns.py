"""Columns of node tables kept in memory, for tables that are read again and again.
The columns are in the order of the table's rows, so a node is known by its position in `TableIds`. Conditions on them are
evaluated by the same code as conditions on scanned rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from omnigraph.language.query import ir
from omnigraph.query.cache import LOOKUP, PER_ID, Key
from omnigraph.query.rows import Addresses, Attributes, Integers, Mask, Rows, Values, address_name, column_name
from omnigraph.query.run import Run
from omnigraph.query.scan.entities import Entities
from omnigraph.query.shape.evaluate import is_cheap, satisfied
from omnigraph.query.traverse.domain import TableIds
from omnigraph.values.columns import arrow_type
from omnigraph.values.widening import converted

#: The cost of reading one value of a column in a scan, in units of `query.cache`; measured on short texts.
_PER_VALUE = 0.4
#: The cost of reading one value of a row that is taken by its row id.
_PER_VALUE_TAKEN = 10.0
#: With fewer rows, a scan with conditions costs little more than its start-up, and an index may answer it.
_MANY = 10_000
#: With more rows, the ids alone would take too much memory.
_MOST = 4_000_000
#: Text search conditions and rankings have their own indexes; columns in memory answer all others as fast as any index.
_ON_WORDS = (ir.AnyToken, ir.AllTokens, ir.FuzzyToken, ir.Nearest, ir.Bm25, ir.Rrf)


@dataclass(frozen=True)
class NodeColumns:
    """Some columns of a node table, named `variable.property`."""

    ids: TableIds
    columns: Mapping[str, pa.Array]

    def satisfying(self, predicates: tuple[ir.Predicate, ...], rows: Integers | None, run: Run) -> Mask:
        """For each of `rows` (positions in the table; None: all rows) whether it satisfies all predicates."""
        asked = {column_name(column.variable, column.property) for one in predicates for column in ir.columns_of(one)}
        some = Rows(len(self.ids.ids), {name: self.columns[name] for name in asked})
        if rows is not None:
            some = some.take(rows)
        # What only reads and compares is asked of all rows, which is fast and can not fail; the others of the rows that are left.
        fits: Mask | None = None
        others = []
        for predicate in predicates:
            if not is_cheap(predicate):
                others.append(predicate)
            elif fits is None:
                fits = satisfied(predicate, some, run)
            else:
                fits &= satisfied(predicate, some, run)
        if fits is None:
            fits = np.ones(some.count, np.bool_)
        for predicate in others:
            left = np.flatnonzero(fits)
            fits[left] = satisfied(predicate, some if len(left) == some.count else some.take(left), run)
        return fits


def scan_in_memory(node: ir.NodePattern, columns: tuple[str, ...], run: Run) -> Rows | None:
    """The rows of a scan, as positions in the ids of the table; None when its columns are not in memory."""
    if not columns and not node.predicates:
        return None  # the table knows how many rows it has
    kept = columns_in_memory(node, columns, run)
    if kept is None:
        return None
    if node.predicates:
        positions = np.flatnonzero(kept.satisfying(node.predicates, None, run))
    else:
        positions = np.arange(len(kept.ids.ids))
    attributes = Attributes(None, kept.columns)
    return Rows(len(positions)).with_positions(node.variable, kept.ids, positions, attributes)


def columns_in_memory(node: ir.NodePattern, columns: tuple[str, ...], run: Run) -> NodeColumns | None:
    """The columns that a pattern reads or filters by; None while loading them would cost more than was spent without them."""
    entities = run.nodes(node.node_type)
    asked = {column.property for predicate in node.predicates for column in ir.columns_of(predicate)}
    names = tuple(dict.fromkeys((*(name for name in columns if name != "id"), *sorted(asked))))
    if not _is_keepable(node, names, entities, run):
        return None
    values = _kept(entities, names, run)
    if values is None:
        return None
    if node.predicates and run.explaining:
        run.note(f"pushed: {' and '.join(map(ir.render_expr, node.predicates))}")
    named = dict(zip((column_name(node.variable, name) for name in names), values, strict=True))
    return NodeColumns(run.caches.table_ids(entities.table, entities.rows, run.budget), named)


@dataclass(frozen=True, slots=True)
class Located:
    """Rows of a table that a search found, by row id and address."""

    row_ids: Addresses
    addresses: Addresses

    def read(self, entities: Entities, variable: str, columns: Sequence[str], run: Run) -> Rows:
        """The named columns of these rows; small values come from memory when they are kept there."""
        rows = Rows(len(self.row_ids), numbers={address_name(variable): self.addresses})
        small = [name for name in columns if name != "id" and _is_small(entities, name)]
        values = _kept(entities, small, run) if entities.rows <= _MOST else None
        if values is None:
            taken = _PER_VALUE_TAKEN * len(self.row_ids) * max(len(columns), 1)
            run.caches.spending.add(_spending_key(entities), LOOKUP + taken)
            return rows.with_columns(self._from_table(entities, variable, columns))
        ids = run.caches.table_ids(entities.table, entities.rows, run.budget)
        named = dict(zip((column_name(variable, name) for name in small), values, strict=True))
        rows = rows.with_positions(variable, ids, ids.positions_at(self.addresses), Attributes(None, named))
        others = [name for name in columns if name != "id" and name not in small]
        return rows.with_columns(self._from_table(entities, variable, others)) if others else rows

    def _from_table(self, entities: Entities, variable: str, columns: Sequence[str]) -> Mapping[str, Values]:
        stored = [name for name in map(entities.stored.__getitem__, columns) if name is not None]
        return named_columns(entities.table.take_row_ids(self.row_ids, stored), entities, variable, columns)


def named_columns(
    batch: pa.RecordBatch | pa.Table, entities: Entities, variable: str, columns: Sequence[str]
) -> dict[str, Values]:
    """Columns of a stored table, named `variable.property`; a property that the table does not hold is null."""
    named: dict[str, Values] = {}
    for name in columns:
        stored = entities.stored[name]
        if stored is None:
            values = pa.nulls(batch.num_rows, arrow_type(entities.kind(name)))
        else:
            values = batch[stored]
        if name in entities.retyped:
            values = converted(values, entities.retyped[name])
        named[column_name(variable, name)] = values
    return named


def _kept(entities: Entities, names: Sequence[str], run: Run) -> list[pa.Array] | None:
    """Whole columns, in the order of the table's ids; None when they are not in memory and not worth loading yet."""
    caches, key = run.caches, entities.table.identity
    stored = [_stored(entities, name) for name in names]
    missing = [name for name in dict.fromkeys(stored) if caches.columns.get((*key, name)) is None]
    to_read = len(missing) + (caches.domains.get(key) is None)
    if to_read and caches.spending.of(_spending_key(entities)) < _PER_VALUE * entities.rows * to_read:
        return None
    read = caches.table_columns(entities.table, stored, entities.rows, run.budget)
    values = [column.values for column in read]
    if any(column is None for column in values):
        return None
    run.note("columns in memory")
    return values


def without_memory(node: ir.NodePattern, columns: Sequence[str], run: Run, rows: int | None = None) -> None:
    """Count the cost of a read without columns in memory. `rows`: how many rows are looked up; None: the table is scanned."""
    entities = run.nodes(node.node_type)
    asked = {column.property for predicate in node.predicates for column in ir.columns_of(predicate)}
    if rows is None and asked and asked <= _indexed(entities, run):
        rows = 0
    values = max(len(asked.union(columns)), 1)
    cost = _PER_VALUE * entities.rows * values if rows is None else PER_ID * rows
    run.caches.spending.add(_spending_key(entities), LOOKUP + cost)


def _indexed(entities: Entities, run: Run) -> set[str]:
    """The properties that have a BTREE index, which answers conditions without reading all rows."""
    stored = {
        column for index in run.caches.indices(entities.table) if index.kind == "BTREE" for column in index.columns
    }
    return {name for name in entities.entity.properties if entities.stored[name] in stored}


def _is_keepable(node: ir.NodePattern, names: tuple[str, ...], entities: Entities, run: Run) -> bool:
    """Whether the columns hold small values only, and the pattern has plain conditions only."""
    if node.variable in run.ranked or node.distances or node.lookup is not None:
        return False
    if entities.rows > _MOST or (node.predicates and entities.rows < _MANY):
        return False
    if not all(_is_plain(predicate) and ir.columns_of(predicate) for predicate in node.predicates):
        return False
    return all(name in entities.entity.properties and _is_small(entities, name) for name in names)


def _is_plain(expr: ir.Expr) -> bool:
    return not isinstance(expr, _ON_WORDS) and all(map(_is_plain, ir.operands(expr)))


def _is_small(entities: Entities, name: str) -> bool:
    kind = entities.kind(name)
    return (
        entities.stored[name] is not None
        and name not in entities.retyped
        and not (kind.is_list or kind.is_vector or kind.is_blob)
    )


def _stored(entities: Entities, name: str) -> str:
    stored = entities.stored[name]
    assert stored is not None
    return stored


def _spending_key(entities: Entities) -> Key:
    return ("columns", *entities.table.identity)
