"""Rules about many rows: unique properties, existing endpoints, cardinality. They check the final image of a write:

    what is committed − what the write deletes or replaces + what the write brings

Only the keys that a write touches are looked up among the committed rows, in batches.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.language.schema.catalog import EdgeType, NodeType
from omnigraph.language.types import PropType
from omnigraph.validation.rows import Violation
from omnigraph.values.columns import whole
from omnigraph.values.render import plain, stored_kind


class Committed(Protocol):
    """Batched look-ups in the base that a write was prepared against; `type_key` is `node:Type` or `edge:Type`."""

    def by_id(self, type_key: str, ids: pa.Array, columns: Sequence[str]) -> pa.Table:
        """The rows with these ids."""

    def by_value(self, type_key: str, column: str, values: pa.Array, columns: Sequence[str]) -> pa.Table:
        """The rows whose column has one of these values."""


@dataclass(frozen=True)
class TableChange:
    """The change of a write to one type: its final rows, one per id, and the removed ids."""

    entity: NodeType | EdgeType
    upserts: pa.Table
    deleted: pa.Array = field(default_factory=lambda: pa.array([], pa.string()))

    def touched(self) -> pa.Array:
        """The ids whose committed row is replaced or removed."""
        return pa.concat_arrays([whole(self.upserts["id"]), self.deleted])


Changes = Mapping[str, TableChange]


def check_sets(changes: Changes, committed: Committed) -> Iterator[Violation]:
    """All violations of set rules by a write."""
    for change in changes.values():
        for columns in change.entity.uniques:
            yield from _unique(change, columns, committed)
        if isinstance(change.entity, EdgeType):
            yield from _endpoints(change, change.entity, changes, committed)
            yield from _cardinality(change, change.entity, changes, committed)


# --- unique -----------------------------------------------------------------------------------------------------------


def _unique(change: TableChange, columns: tuple[str, ...], committed: Committed) -> Iterator[Violation]:
    """Violations of a unique rule: rows of the final image with equal values in these columns; nulls are never equal."""
    if not comparable(change.upserts.select(_once(("id", *columns))), columns).num_rows:
        return
    probe = probe_of(columns, change.upserts.schema)
    stored = committed.by_value(change.entity.type_key, probe, whole(change.upserts[probe]), _once(("id", *columns)))
    stored = stored.filter(pc.invert(pc.is_in(stored["id"], value_set=change.touched())))
    yield from unique_clashes(change.entity, columns, stored, change.upserts)


def unique_clashes(
    entity: NodeType | EdgeType, columns: tuple[str, ...], stored: pa.Table, upserts: pa.Table
) -> Iterator[Violation]:
    """Violations by different rows with equal values in these columns; `row` is the last such row in `upserts`."""
    names = _once(("id", *columns))
    image = pa.concat_tables(
        [
            comparable(_placed(stored.select(names), stored=True), columns),
            comparable(_placed(upserts.select(names)), columns),
        ]
    )
    groups = image.group_by(list(columns)).aggregate(
        [("id", "count_distinct"), ("id", "min"), ("id", "max"), (_PLACE, "max")]
    )
    clashing = groups.filter(pc.greater(groups["id_count_distinct"], 1))
    name = f"{entity.name}.{columns[0]}" if len(columns) == 1 else f"{entity.name}({', '.join(columns)})"
    values = zip(*(_shown(clashing[column], upserts.schema.field(column).type) for column in columns), strict=True)
    for row, shown in zip(clashing.select(["id_min", "id_max", f"{_PLACE}_max"]).to_pylist(), values, strict=True):
        yield Violation(
            "unique",
            entity.type_key,
            f"@unique violation on {name}: {', '.join(shown)} belongs to {row['id_min']!r} and to {row['id_max']!r}",
            property=columns[0] if len(columns) == 1 else None,
            row=row[f"{_PLACE}_max"],
            entity_id=row["id_max"],
        )


_PLACE = "__place"


def _shown(column: pa.ChunkedArray, kind: pa.DataType) -> list[str]:
    """Values as they are written in JSON, for messages; a list is JSON text already."""
    if pa.types.is_nested(kind):
        return [str(text) for text in column.to_pylist()]
    values = plain(column, stored_kind(kind))
    return [repr(value) if isinstance(value, str) else orjson.dumps(value).decode() for value in values]


def _placed(rows: pa.Table, *, stored: bool = False) -> pa.Table:
    places = pa.array([-1] * rows.num_rows if stored else range(rows.num_rows), pa.int64())
    return rows.append_column(_PLACE, places)


def probe_of(columns: tuple[str, ...], schema: pa.Schema) -> str:
    """The column for looking up rows that may be equal in all of these columns; not a list column if possible."""
    return min(columns, key=lambda name: pa.types.is_nested(schema.field(name).type))


def _once(columns: tuple[str, ...]) -> list[str]:
    return list(dict.fromkeys(columns))


def comparable(table: pa.Table, columns: tuple[str, ...]) -> pa.Table:
    """The rows without nulls in these columns, with values in a form that Arrow can group."""
    for name in columns:
        table = table.filter(pc.is_valid(table[name]))
        place, kind = table.schema.get_field_index(name), table.schema.field(name).type
        if pa.types.is_nested(kind):
            table = table.set_column(place, name, _list_texts(table[name], stored_kind(kind)))
        elif pa.types.is_floating(kind):
            table = table.set_column(place, name, one_form(table[name]))
    return table.replace_schema_metadata(None).cast(_plain(table.schema))


def one_form(floats: pa.ChunkedArray) -> pa.ChunkedArray:
    """Floats in their compared form: −0 becomes 0, and all NaNs the same NaN."""
    kind = floats.type
    # Adding zero turns −0 into 0.
    return pc.if_else(pc.is_nan(floats), pa.scalar(math.nan, kind), pc.add(floats, pa.scalar(0, kind)))


def _list_texts(column: pa.ChunkedArray, kind: PropType) -> pa.Array:
    """Texts for lists, equal when the lists are equal."""
    rows = ([item + 0 if isinstance(item, float) else item for item in row] for row in plain(column, kind))
    return pa.array([orjson.dumps(row).decode() for row in rows], pa.string())


def _plain(schema: pa.Schema) -> pa.Schema:
    """The fields without nullability and metadata, so that incoming and committed rows can be concatenated."""
    return pa.schema([pa.field(field.name, field.type) for field in schema])


# --- endpoints --------------------------------------------------------------------------------------------------------


def _endpoints(change: TableChange, edge: EdgeType, changes: Changes, committed: Committed) -> Iterator[Violation]:
    """Violations of edges whose ends are not nodes of the final image."""
    for end, type_name in (("src", edge.from_type), ("dst", edge.to_type)):
        wanted = whole(pc.unique(change.upserts[end]))
        absent = _absent(f"node:{type_name}", wanted, changes, committed)
        if not len(absent):
            continue
        broken = change.upserts.filter(pc.is_in(change.upserts[end], value_set=absent))
        for entity_id, missing in zip(broken["id"].to_pylist(), broken[end].to_pylist(), strict=True):
            yield missing_end(edge, end, missing, entity_id)


def missing_end(edge: EdgeType, end: str, missing: str | None, entity_id: str | None = None) -> Violation:
    """The violation of an edge whose `src` or `dst` is no node."""
    side, type_name = ("from", edge.from_type) if end == "src" else ("to", edge.to_type)
    message = f"edge {edge.name}: `{side}` node {type_name} {missing!r} not found"
    if missing is None:
        message = f"edge {edge.name}: `{side}` is null; it takes the id of a {type_name}"
    return Violation("endpoint", edge.type_key, message, property=side, entity_id=entity_id)


def _absent(node_key: str, ids: pa.Array, changes: Changes, committed: Committed) -> pa.Array:
    """The node ids that are not in the final image."""
    change = changes.get(node_key)
    if change is not None:
        ids = ids.filter(pc.invert(pc.is_in(ids, value_set=whole(change.upserts["id"]))))
    if not len(ids):
        return ids
    stored = whole(committed.by_id(node_key, ids, ["id"])["id"])
    gone = pc.invert(pc.is_in(ids, value_set=stored))
    if change is not None:
        gone = pc.or_(gone, pc.is_in(ids, value_set=change.deleted))
    return ids.filter(gone)


# --- cardinality ------------------------------------------------------------------------------------------------------


def _cardinality(change: TableChange, edge: EdgeType, changes: Changes, committed: Committed) -> Iterator[Violation]:
    """Violations at sources that the write touches, including sources whose edges it moved away or deleted."""
    low, high = edge.cardinality.minimum, edge.cardinality.maximum
    if low == 0 and high is None:
        return
    touched = change.touched()
    before = committed.by_id(edge.type_key, touched, ["id", "src"])
    sources = whole(pc.unique(pa.chunked_array([*change.upserts["src"].chunks, *before["src"].chunks], pa.string())))
    source_change = changes.get(f"node:{edge.from_type}")
    if source_change is not None:
        sources = sources.filter(pc.invert(pc.is_in(sources, value_set=source_change.deleted)))
    kept = committed.by_value(edge.type_key, "src", sources, ["id", "src"])
    kept = kept.filter(pc.invert(pc.is_in(kept["id"], value_set=touched)))
    final = pa.chunked_array([*kept["src"].chunks, *change.upserts["src"].chunks], pa.string())
    yield from cardinality_breaks(edge, sources, final)


def cardinality_breaks(edge: EdgeType, sources: pa.Array, final: pa.ChunkedArray) -> Iterator[Violation]:
    """Violations at sources (by `row`) with too few or too many edges. `final`: the sources of all remaining edges."""
    low, high = edge.cardinality.minimum, edge.cardinality.maximum
    groups = pc.value_counts(final)
    found = pc.index_in(sources, value_set=groups.field("values"))
    counts = pc.fill_null(groups.field("counts").take(found), 0)
    broken = pc.less(counts, low)
    if high is not None:
        broken = pc.or_(broken, pc.greater(counts, high))
    for row in pc.indices_nonzero(broken).to_pylist():
        source, count = sources[row].as_py(), counts[row].as_py()
        bound = f"min {low}" if count < low else f"max {high}"
        yield Violation(
            "cardinality",
            edge.type_key,
            f"@card violation on {edge.name}: {edge.from_type} {source!r} would have {count} edge(s), {bound}",
            property="from",
            row=row,
        )
