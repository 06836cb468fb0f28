"""Carrying out the statements of a mutation on the base and on what earlier statements left pending."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.changes.compare import Mask, differing
from omnigraph.language.query.ir import (
    Assign,
    Column,
    Compare,
    DeleteEdges,
    DeleteNodes,
    InsertEdge,
    InsertNode,
    Statement,
    UpdateNodes,
)
from omnigraph.language.schema.catalog import Catalog, EdgeType, NodeType
from omnigraph.mutation.base import Base
from omnigraph.mutation.constants import Constants, default_of
from omnigraph.mutation.staging import Entity, Staging
from omnigraph.storage.tables.blobs import blob_columns
from omnigraph.storage.tables.table import ROW_ADDRESS, Filter
from omnigraph.values.blobs import blob_value
from omnigraph.values.build import repeated, table_of
from omnigraph.values.columns import whole
from omnigraph.values.compare import Coerced, Comparison, coerce, matches, scan_filter
from omnigraph.values.identity import derive_ids


@dataclass
class Affected:
    """How many nodes and edges the statements have inserted, updated or deleted, each time they did."""

    nodes: int = 0
    edges: int = 0


#: Committed rows of types, one table for each statement or type that read them.
Rows = list[tuple[str, pa.Table]]


@dataclass(frozen=True)
class Run:
    """One attempt at a mutation: where it reads, what its constants are worth, what it has staged so far."""

    catalog: Catalog
    base: Base
    constants: Constants
    staging: Staging
    affected: Affected
    external_blobs: tuple[str, ...] = ()
    #: The committed rows that updates matched, in the order of the statements.
    matched: Rows = field(default_factory=list)

    def rows(self, *, written: bool) -> Rows:
        """The committed rows that updates matched; with `written` also those that the mutation replaces or deletes."""
        if not written:
            return self.matched
        found = list(self.matched)
        for pending in self.staging:
            ids = pa.concat_arrays([whole(pending.image()["id"]), whole(pending.removed()["id"])])
            table = self.base.table(pending.entity.type_key)
            found.append((pending.entity.type_key, table.take_ids(ids, blobs="values")))
        return found

    def carry_out(self, statement: Statement) -> None:
        """Carry out one statement."""
        match statement:
            case InsertNode(node_type, assignments):
                self._insert(self.catalog.nodes[node_type], assignments, {})
                self.affected.nodes += 1
            case InsertEdge(edge_type, source, target, assignments):
                ends = {"src": self.constants.value(source), "dst": self.constants.value(target)}
                self._insert(self.catalog.edges[edge_type], assignments, ends)
                self.affected.edges += 1
            case UpdateNodes(node_type, assignments, predicate):
                self.affected.nodes += self._update(self.catalog.nodes[node_type], assignments, predicate)
            case DeleteNodes(node_type, predicate):
                self._delete_nodes(self.catalog.nodes[node_type], predicate)
            case DeleteEdges(edge_type, predicate):
                edge = self.catalog.edges[edge_type]
                self.affected.edges += len(self.staging.of(edge).remove(self._committed(edge, predicate, ["id"])))

    # --- insert -----------------------------------------------------------------------------------------------------

    def _insert(self, entity: Entity, assignments: tuple[Assign, ...], ends: Mapping[str, object]) -> None:
        """A whole row: what is not given is the default, or null. A keyed entity replaces the one with its key."""
        # A vector that is not given stays out of the row, which tells it from one that is given as null.
        row: dict[str, object] = {
            name: default_of(declared) for name, declared in entity.properties.items() if declared.embed is None
        }
        row.update(ends)
        row.update({assign.property: self._assigned(entity, assign) for assign in assignments})
        # The base is captured even when nothing is looked up: this write is prepared against it.
        self.base.entry(entity.type_key)
        self.staging.of(entity).put(row)

    def _assigned(self, entity: Entity, assign: Assign) -> object:
        if assign.type.is_blob:
            return blob_value(entity, assign.property, self.constants.value(assign.value), self.external_blobs)
        return self.constants.fitted(assign.value, assign.type, f"{entity.name}.{assign.property}")

    # --- update -----------------------------------------------------------------------------------------------------

    def _update(self, entity: NodeType, assignments: tuple[Assign, ...], predicate: Compare) -> int:
        pending = self.staging.of(entity)
        image = pending.image()
        stored = self._committed(entity, predicate, None)
        # A row that an earlier statement changed is judged by what it is now.
        stored = stored.filter(pc.invert(pc.is_in(stored["id"], value_set=image["id"].combine_chunks())))
        self.matched.append((entity.type_key, stored))
        column, asked = self._asked(predicate)
        staged = image.filter(matches(image[column.property], asked))
        rows = pa.concat_tables([stored.select(image.column_names).cast(image.schema), staged])
        matched = int(rows.num_rows)
        for assign in assignments:
            place = rows.schema.get_field_index(assign.property)
            rows = rows.set_column(place, image.schema.field(place), self._repeated(entity, assign, rows.num_rows))
        differ = _differ(stored, rows.slice(0, stored.num_rows), assignments)
        if not differ.all():
            # What stays as it is is not written: an update that changes nothing makes no commit.
            kept = np.concatenate([differ, np.ones(staged.num_rows, np.bool_)])
            rows, stored = rows.filter(pa.array(kept)), stored.filter(pa.array(differ))
        if rows.num_rows:
            pending.put_changed(rows, stored)
        return matched

    def _repeated(self, entity: NodeType, assign: Assign, count: int) -> pa.Array:
        value = self._assigned(entity, assign)
        if assign.type.is_blob:
            one = table_of(entity, [{assign.property: value}]).column(assign.property).combine_chunks()
            return one.take(pa.array([0] * count, pa.int64()))
        return repeated(value, assign.type, count)  # type: ignore[arg-type]

    # --- delete -----------------------------------------------------------------------------------------------------

    def _delete_nodes(self, node: NodeType, predicate: Compare) -> None:
        """Deleting a node deletes every edge that touches it."""
        ids = self.staging.of(node).remove(self._committed(node, predicate, ["id"]))
        if not len(ids):
            return
        self.affected.nodes += len(ids)
        for edge in self.catalog.edges.values():
            for end, type_name in (("src", edge.from_type), ("dst", edge.to_type)):
                if type_name == node.name:
                    self.affected.edges += self._delete_incident(edge, end, ids)

    def _delete_incident(self, edge: EdgeType, end: str, ids: pa.Array) -> int:
        found = self.base.by_value(edge.type_key, end, ids, ["id"], with_row_address=True)
        return len(self.staging.of(edge).remove(found))

    # --- predicates -------------------------------------------------------------------------------------------------

    def _committed(self, entity: Entity, predicate: Compare, columns: list[str] | None) -> pa.Table:
        """The committed rows that satisfy a predicate, with their addresses."""
        column, asked = self._asked(predicate)
        wanted = _by_key(entity, column, asked)
        if wanted is None:
            wanted = scan_filter(column.property, column.type, asked)
        return self.base.table(entity.type_key).read(columns, wanted, with_row_address=True, blobs="values")

    def _asked(self, predicate: Compare) -> tuple[Column, Coerced]:
        """The column a predicate asks about, and what it asks, in the column's own type."""
        column = predicate.left
        assert isinstance(column, Column), "a mutation's predicate has its column on the left"
        value = self.constants.value(predicate.right)  # type: ignore[arg-type]
        assert not isinstance(value, tuple), "the checker refuses to compare with a list"
        return column, coerce(column.type, predicate.operator, value)


def first_difference(before: Rows, after: Rows) -> str | None:
    """The key of the first type whose rows are not the same in two attempts at one mutation; None when all are."""
    if [type_key for type_key, _ in before] != [type_key for type_key, _ in after]:
        return next((type_key for type_key, _ in (*before, *after)), "")
    for (type_key, one), (_, other) in zip(before, after, strict=True):
        if one is not other and not _same_rows(one, other):
            return type_key
    return None


def _same_rows(one: pa.Table, other: pa.Table) -> bool:
    """Whether two reads found the same entities with the same values, wherever they lie."""
    one, other = one.sort_by("id"), other.sort_by("id")
    if one["id"] != other["id"]:
        return False
    blobs = blob_columns(one.schema)
    if any(whole(one[name]) != whole(other[name]) for name in blobs):
        return False
    names = [name for name in one.column_names if name != ROW_ADDRESS and name not in blobs]
    return not differing(one, other, names, lambda name, _: (one[name], other[name])).any()


def _differ(before: pa.Table, after: pa.Table, assignments: tuple[Assign, ...]) -> Mask:
    """Which of some aligned rows an update changes; a blob that is given counts as another one."""
    if any(assign.type.is_blob for assign in assignments):
        return np.ones(before.num_rows, np.bool_)
    names = [assign.property for assign in assignments]
    return differing(before, after, names, lambda name, rows: (before[name].take(rows), after[name].take(rows)))


def _by_key(entity: Entity, column: Column, asked: Coerced) -> Filter | None:
    """A predicate that gives the whole key asks for one id, which an index finds; None for any other."""
    if not isinstance(asked, Comparison) or asked.operator != "=" or entity.key != (column.property,):
        return None
    if pa.types.is_floating(asked.value.type):
        # Some that can be asked for are no key: infinity.
        return None
    key = pa.table({column.property: pa.repeat(asked.value, 1)})
    return pc.field("id") == derive_ids(entity, key)[0]
