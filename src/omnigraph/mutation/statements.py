"""Carries out the statements of a mutation on the base and on the pending changes of earlier statements."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.changes.compare import Mask, differing
from omnigraph.errors import BadRequest
from omnigraph.language.literals import PlainValue, TypedValue
from omnigraph.language.query import ir
from omnigraph.language.query.check.mutations import MATCHED_ID
from omnigraph.language.query.rewrite.push_nots import simplified
from omnigraph.language.schema.catalog import Catalog, EdgeType, NodeType
from omnigraph.mutation.base import Base, layered
from omnigraph.mutation.constants import Constants, default_of
from omnigraph.mutation.copies import Copies, Overlay
from omnigraph.mutation.refused import NotHeld
from omnigraph.mutation.staging import Entity, Staging
from omnigraph.query.engine import execute
from omnigraph.query.rows import Rows as RowSet
from omnigraph.query.rows import column_name
from omnigraph.query.run import Run as Reading
from omnigraph.query.scan.entities import View
from omnigraph.query.scan.pushdown import NEVER, push
from omnigraph.query.shape.evaluate import constant_value, evaluate, holds, is_constant, plain_values
from omnigraph.storage.tables.blobs import blob_columns
from omnigraph.storage.tables.table import ROW_ADDRESS
from omnigraph.values.blobs import blob_value
from omnigraph.values.columns import repeated, table_of, table_schema, whole
from omnigraph.values.compare import Comparison, coerce
from omnigraph.values.fitting import Unfit, fitted_column
from omnigraph.values.identity import derive_ids

__all__ = ["MATCHED_ID", "inserts_of", "one_row_each"]

Insert = ir.InsertNode | ir.InsertEdge | ir.UpsertNode


def inserts_of(statement: Insert, found: pa.Table) -> Iterator[Insert]:
    """The statement once per row, with the values of that row."""
    read = [assign.value for assign in statement.assignments]
    if isinstance(statement, ir.InsertEdge):
        read += [statement.source, statement.target]
    columns: dict[str, list[PlainValue]] = {
        expr.name: plain_values(whole(found[expr.name]), expr.type)
        for expr in read
        if isinstance(expr, ir.ResultColumn)
    }
    for row in range(found.num_rows):
        given = tuple(_with_value(assign, columns, row) for assign in statement.assignments)
        if isinstance(statement, ir.InsertEdge):
            source, target = _value(statement.source, columns, row), _value(statement.target, columns, row)
            yield replace(statement, source=source, target=target, assignments=given)
        else:
            yield replace(statement, assignments=given)


def _with_value(assign: ir.Assign, columns: dict[str, list[PlainValue]], row: int) -> ir.Assign:
    return replace(assign, value=_value(assign.value, columns, row))


def _value(expr: ir.Expr, columns: dict[str, list[PlainValue]], row: int) -> ir.Expr:
    return TypedValue(columns[expr.name][row], expr.type) if isinstance(expr, ir.ResultColumn) else expr


def one_row_each(entity: Entity, found: pa.Table) -> pa.Table:
    """One row per matched entity. An entity may be matched several times, but not with different values."""
    ids = whole(found[MATCHED_ID])
    if ids.null_count:
        # The variable of an optional block that matched nothing.
        found, ids = found.filter(ids.is_valid()), ids.drop_null()
    distinct = pc.unique(ids)
    if len(distinct) == len(ids):
        return found
    first = pc.index_in(ids, value_set=ids)
    again = found.take(first)
    names = [name for name in found.column_names if name != MATCHED_ID]
    changed = differing(found, again, names, lambda name, rows: (found[name].take(rows), again[name].take(rows)))
    if changed.any():
        place = int(np.flatnonzero(changed)[0])
        raise BadRequest(
            f"{entity.name} '{ids[place].as_py()}' is matched more than once, with different values for "
            f"{', '.join(names)}; make the pattern match it once, or take one value, as in `max($x.p) {{ … }}`"
        )
    return found.take(pc.unique(first))


@dataclass
class Affected:
    """How many nodes and edges the statements have inserted, updated or deleted; repeated changes count each time."""

    nodes: int = 0
    edges: int = 0
    #: The same by type.
    counts: dict[str, int] = field(default_factory=dict)

    def count(self, entity: Entity, number: int) -> None:
        """Add to the count of a type's nodes or edges."""
        if isinstance(entity, NodeType):
            self.nodes += number
        else:
            self.edges += number
        if number:
            self.counts[entity.name] = self.counts.get(entity.name, 0) + number

    def add(self, other: Affected) -> None:
        """Add the counts of another query."""
        self.nodes += other.nodes
        self.edges += other.edges
        for name, number in other.counts.items():
            self.counts[name] = self.counts.get(name, 0) + number


#: Committed rows by type key, one table for each statement or type that read them.
Rows = list[tuple[str, pa.Table]]


@dataclass(frozen=True)
class Run:
    """One attempt at a mutation: what it reads, its constants, and what it has staged so far."""

    catalog: Catalog
    base: Base
    constants: Constants
    staging: Staging
    affected: Affected
    #: Reads the base and evaluates expressions like a query.
    reading: Reading
    #: Private copies of tables, for queries that must see changes of earlier statements or queries.
    copies: Copies
    external_blobs: tuple[str, ...] = ()
    #: The committed rows that updates matched, by statement, in order.
    matched: Rows = field(default_factory=list)

    def rows(self, *, written: bool) -> Rows:
        """The committed rows that updates matched; with `written` also the rows that the mutation replaces or deletes."""
        if not written:
            return self.matched
        found = list(self.matched)
        for pending in self.staging:
            ids = pa.concat_arrays([whole(pending.image()["id"]), whole(pending.removed()["id"])])
            key = pending.entity.type_key
            found.append((key, self.base.rows(key, ids)))
        return found

    def view(self) -> View:
        """The state before the next statement, including everything done so far, for a query that runs at once."""
        return Overlay(self.base, self.copies, self.base.settled.with_staged(self.staging))

    def carry_out(self, statement: ir.Statement) -> None:
        """Carry out one statement; `NotHeld` if it computes a value that its property can not hold."""
        count = self.affected.count
        match statement:
            case ir.InsertNode(node_type, assignments):
                node = self.catalog.nodes[node_type]
                self._insert(node, assignments, {})
                count(node, 1)
            case ir.InsertEdge(edge_type, source, target, assignments):
                edge = self.catalog.edges[edge_type]
                self._insert(edge, assignments, {"src": self._value(source), "dst": self._value(target)})
                count(edge, 1)
            case ir.UpsertNode(node_type, assignments):
                node = self.catalog.nodes[node_type]
                self._upsert(node, assignments)
                count(node, 1)
            case ir.UpdateNodes(node_type, assignments, predicate):
                node = self.catalog.nodes[node_type]
                count(node, self._update(node, assignments, predicate))
            case ir.UpdateEdges(edge_type, assignments, predicate):
                edge = self.catalog.edges[edge_type]
                count(edge, self._update(edge, assignments, predicate))
            case ir.DeleteNodes(node_type, predicate):
                node = self.catalog.nodes[node_type]
                self._delete_nodes(node, self._committed(node, predicate, ["id"]))
            case ir.DeleteEdges(edge_type, predicate):
                edge = self.catalog.edges[edge_type]
                count(edge, len(self.staging.of(edge).remove(self._committed(edge, predicate, ["id"]))))
            case ir.InsertMatched(matches, inner):
                for one in inserts_of(inner, self._found(matches)):
                    self.carry_out(one)
            case ir.UpdateMatched(matches, type_key, assignments):
                entity = self._entity(type_key)
                count(entity, self._update_matched(entity, assignments, self._found(matches)))
            case ir.DeleteMatched(matches, type_key):
                self._delete_matched(self._entity(type_key), self._found(matches))

    # --- what a pattern matches -------------------------------------------------------------------------------------

    def _found(self, matches: ir.Matches) -> pa.Table:
        """The result rows of a pattern on the state before the statement."""
        return execute(matches.rows, self.reading.on(self.view()))

    def _entity(self, type_key: str) -> Entity:
        kind, name = type_key.split(":", 1)
        return self.catalog.nodes[name] if kind == "node" else self.catalog.edges[name]

    def _update_matched(self, entity: Entity, assignments: tuple[ir.Assign, ...], found: pa.Table) -> int:
        """Set the values of each matched entity; returns how many entities there are."""
        found = one_row_each(entity, found)
        ids = whole(found[MATCHED_ID])
        image = self.staging.of(entity).image()
        staged = image.filter(pc.is_in(image["id"], value_set=ids))
        stored = self.base.rows(entity.type_key, ids.filter(pc.invert(pc.is_in(ids, value_set=whole(staged["id"])))))
        self.matched.append((entity.type_key, stored))

        def values(assign: ir.Assign, before: pa.Table) -> pa.Array:
            given = whole(found[assign.property]).take(pc.index_in(before["id"], value_set=ids))
            return _fitting(entity, assign, given, before["id"])

        self._change(entity, assignments, stored, staged, values)
        return int(stored.num_rows + staged.num_rows)

    def _delete_matched(self, entity: Entity, found: pa.Table) -> None:
        ids = pc.unique(whole(found[MATCHED_ID])).drop_null()
        stored = self.base.rows(entity.type_key, ids).select(["id", ROW_ADDRESS])
        if isinstance(entity, NodeType):
            self._delete_nodes(entity, stored)
        else:
            self.affected.count(entity, len(self.staging.of(entity).remove(stored)))

    # --- insert -----------------------------------------------------------------------------------------------------

    def _insert(self, entity: Entity, assignments: tuple[ir.Assign, ...], ends: Mapping[str, object]) -> None:
        """Insert a full row: values that are not given are the default, or null. A keyed entity replaces an existing one."""
        # A vector that is not given is left out of the row, to distinguish it from a null vector.
        row: dict[str, object] = {
            name: default_of(declared) for name, declared in entity.properties.items() if declared.embed is None
        }
        row.update(ends)
        row.update({assign.property: self._assigned(entity, assign) for assign in assignments})
        # Touch the base even if nothing is looked up, because this write is prepared against it.
        self.base.entry(entity.type_key)
        self.staging.of(entity).put(row)

    def _assigned(self, entity: Entity, assign: ir.Assign) -> object:
        """The value of a constant assignment."""
        if assign.type.is_blob:
            return blob_value(entity, assign.property, self._value(assign.value), self.external_blobs)
        value = TypedValue(self._value(assign.value), assign.value.type)
        try:
            return self.constants.fitted(value, assign.type)
        except Unfit as unfit:
            raise NotHeld(entity, assign, unfit, None) from None

    def _value(self, expr: ir.Expr) -> PlainValue:
        return constant_value(expr, self.reading)

    # --- upsert -----------------------------------------------------------------------------------------------------

    def _upsert(self, entity: NodeType, assignments: tuple[ir.Assign, ...]) -> None:
        """Update the node with the assigned key, pending or committed, and keep its other values; insert it if it is new."""
        given = {assign.property: self._assigned(entity, assign) for assign in assignments}
        assert entity.key is not None, "the checker refuses an upsert without a key"
        kinds = table_schema(entity)
        key = {name: pa.array([given[name]], kinds.field(name).type) for name in entity.key}
        id_ = derive_ids(entity, key)[0]
        image = self.staging.of(entity).image()
        if pc.equal(image["id"], id_).to_pylist().count(True):
            stored = image.schema.empty_table().append_column(ROW_ADDRESS, pa.array([], pa.uint64()))
            staged = image.filter(pc.equal(image["id"], id_))
        else:
            stored = self.base.rows(entity.type_key, pa.array([id_], pa.string()))
            staged = image.schema.empty_table()
        if stored.num_rows or staged.num_rows:
            self._change(entity, assignments, stored, staged)
        else:
            self._insert(entity, assignments, {})

    # --- update -----------------------------------------------------------------------------------------------------

    def _update(self, entity: Entity, assignments: tuple[ir.Assign, ...], predicate: ir.Expr) -> int:
        image = self.staging.of(entity).image()
        stored = self._committed(entity, predicate, None)
        # Rows that an earlier statement changed are matched in their changed form.
        stored = stored.filter(pc.invert(pc.is_in(stored["id"], value_set=image["id"].combine_chunks())))
        self.matched.append((entity.type_key, stored))
        staged = image.filter(pa.array(holds(predicate, _as_rows(image), self.reading)))
        self._change(entity, assignments, stored, staged)
        return int(stored.num_rows + staged.num_rows)

    def _change(
        self,
        entity: Entity,
        assignments: tuple[ir.Assign, ...],
        stored: pa.Table,
        staged: pa.Table,
        values: Callable[[ir.Assign, pa.Table], pa.Array] | None = None,
    ) -> None:
        """Assign to committed rows, given with their addresses, and to pending rows.

        `values`: gives the new values of an assignment; None: they are computed from the rows themselves.
        """
        pending = self.staging.of(entity)
        image = pending.image()
        before = pa.concat_tables([stored.select(image.column_names).cast(image.schema), staged])
        rows = before
        for assign in assignments:
            place = rows.schema.get_field_index(assign.property)
            new = self._new_values(entity, assign, before) if values is None else values(assign, before)
            rows = rows.set_column(place, image.schema.field(place), new)
        differ = _differ(stored, rows.slice(0, stored.num_rows), assignments)
        if not differ.all():
            # Unchanged rows are not written: an update that changes nothing makes no commit.
            kept = np.concatenate([differ, np.ones(staged.num_rows, np.bool_)])
            rows, stored = rows.filter(pa.array(kept)), stored.filter(pa.array(differ))
        if rows.num_rows:
            pending.put_changed(rows, stored)

    def _new_values(self, entity: Entity, assign: ir.Assign, before: pa.Table) -> pa.Array:
        """The new values of an assignment for these rows."""
        if is_constant(assign.value):
            return self._repeated(entity, assign, before.num_rows)
        return _fitting(entity, assign, evaluate(assign.value, _as_rows(before), self.reading), before["id"])

    def _repeated(self, entity: Entity, assign: ir.Assign, count: int) -> pa.Array:
        value = self._assigned(entity, assign)
        if assign.type.is_blob:
            one = table_of(entity, [{assign.property: value}]).column(assign.property).combine_chunks()
            return one.take(pa.array([0] * count, pa.int64()))
        return repeated(value, assign.type, count)  # type: ignore[arg-type]

    # --- delete -----------------------------------------------------------------------------------------------------

    def _delete_nodes(self, node: NodeType, found: pa.Table) -> None:
        """Delete nodes, given by id and address, and every edge that touches them."""
        ids = self.staging.of(node).remove(found)
        if not len(ids):
            return
        self.affected.count(node, len(ids))
        for edge in self.catalog.edges.values():
            for end, type_name in (("src", edge.from_type), ("dst", edge.to_type)):
                if type_name == node.name:
                    self.affected.count(edge, self._delete_incident(edge, end, ids))

    def _delete_incident(self, edge: EdgeType, end: str, ids: pa.Array) -> int:
        found = self.base.by_value(edge.type_key, end, ids, ["id"], with_row_address=True)
        return len(self.staging.of(edge).remove(found))

    # --- predicates -------------------------------------------------------------------------------------------------

    def _committed(self, entity: Entity, predicate: ir.Expr, columns: list[str] | None) -> pa.Table:
        """The committed rows that satisfy a predicate, with their addresses. `columns` None: all columns."""
        conditions = tuple(ir.conjuncts(simplified(predicate)))
        entities = self.reading.nodes(entity.name) if isinstance(entity, NodeType) else self.reading.edges(entity.name)
        all_conditions = conditions
        id_, conditions = self._by_key(entity, conditions)
        wanted = None if id_ is None else pc.field("id") == id_
        pushed = push(conditions, entities, self.reading, texts=wanted is None)
        if pushed.never:
            wanted = NEVER
        elif pushed.filter is not None:
            wanted = pushed.filter if wanted is None else wanted & pushed.filter
        asked = {column.property for condition in pushed.rest for column in ir.columns_of(condition)}
        read = columns if columns is None else [*columns, *sorted(asked - set(columns))]
        found = self.base.table(entity.type_key).read(read, wanted, with_row_address=True, blobs="values")
        found = self._satisfying(pushed.rest, found)
        earlier = self.base.settled.of(entity.type_key)
        if earlier is None:
            return found
        put = earlier.image() if id_ is None else earlier.with_ids(pa.array([id_], pa.string()))
        return layered(earlier, found, self._satisfying(all_conditions, put))

    def _satisfying(self, conditions: tuple[ir.Expr, ...], rows: pa.Table) -> pa.Table:
        for condition in conditions:
            rows = rows.filter(pa.array(holds(condition, _as_rows(rows), self.reading)))
        return rows

    def _by_key(self, entity: Entity, conditions: tuple[ir.Expr, ...]) -> tuple[str | None, tuple[ir.Expr, ...]]:
        """The id that a condition on the whole key asks for, for an index look-up, else None; and the other conditions."""
        for condition in conditions:
            match condition:
                case ir.Compare(left=ir.Column(property=name) as column, operator="=", right=value) if entity.key == (
                    name,
                ) and is_constant(value):
                    given = self._value(value)
                    assert not isinstance(given, tuple), "the checker refuses to compare with a list"
                    asked = coerce(column.type, "=", given)
                    # Some floats in conditions, such as infinity, are no valid keys.
                    if isinstance(asked, Comparison) and not pa.types.is_floating(asked.value.type):
                        key = pa.table({name: pa.repeat(asked.value, 1)})
                        rest = tuple(other for other in conditions if other is not condition)
                        return str(derive_ids(entity, key)[0].as_py()), rest
        return None, conditions


def _fitting(entity: Entity, assign: ir.Assign, values: pa.Array, ids: pa.ChunkedArray) -> pa.Array:
    try:
        return fitted_column(values, assign.value.type, assign.type)
    except Unfit as unfit:
        raise NotHeld(entity, assign, unfit, None if unfit.row is None else ids[unfit.row].as_py()) from None


def _as_rows(table: pa.Table) -> RowSet:
    """The rows of a table in the form that expressions of a statement read."""
    return RowSet(table.num_rows, {column_name(ir.ROW, name): table[name] for name in table.column_names})


def first_difference(before: Rows, after: Rows) -> str | None:
    """The key of the first type whose rows differ between two attempts at one mutation; None when all are equal."""
    if [type_key for type_key, _ in before] != [type_key for type_key, _ in after]:
        return next((type_key for type_key, _ in (*before, *after)), "")
    for (type_key, one), (_, other) in zip(before, after, strict=True):
        if one is not other and not _same_rows(one, other):
            return type_key
    return None


def _same_rows(one: pa.Table, other: pa.Table) -> bool:
    """Whether two reads found the same entities with the same values, at any addresses."""
    one, other = one.sort_by("id"), other.sort_by("id")
    if one["id"] != other["id"]:
        return False
    blobs = blob_columns(one.schema)
    if any(whole(one[name]) != whole(other[name]) for name in blobs):
        return False
    names = [name for name in one.column_names if name != ROW_ADDRESS and name not in blobs]
    return not differing(one, other, names, lambda name, _: (one[name], other[name])).any()


def _differ(before: pa.Table, after: pa.Table, assignments: tuple[ir.Assign, ...]) -> Mask:
    """Which of these aligned rows an update changes; an assigned blob always counts as changed."""
    if any(assign.type.is_blob for assign in assignments):
        return np.ones(before.num_rows, np.bool_)
    names = [assign.property for assign in assignments]
    return differing(before, after, names, lambda name, rows: (before[name].take(rows), after[name].take(rows)))
