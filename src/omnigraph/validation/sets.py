"""Rules about many rows: unique properties, existing endpoints, cardinality. They judge the final image of a write:

    what is committed − what the write deletes or replaces + what the write brings

Only the keys a write touches are looked up among the committed rows, in batches.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.language.schema.catalog import EdgeType, NodeType
from omnigraph.validation.committed import Committed
from omnigraph.validation.violation import Violation


@dataclass(frozen=True)
class TableChange:
    """What a write does to one type: its final rows, one per id, and the ids it removes."""

    entity: NodeType | EdgeType
    upserts: pa.Table
    deleted: pa.Array = field(default_factory=lambda: pa.array([], pa.string()))

    def touched(self) -> pa.Array:
        """The ids whose committed row is not part of the final image."""
        return pa.concat_arrays([_flat(self.upserts["id"]), self.deleted])


Changes = Mapping[str, TableChange]


def check_sets(changes: Changes, committed: Committed) -> Iterator[Violation]:
    """Every broken set rule of a write, one after the other."""
    for change in changes.values():
        for columns in change.entity.uniques:
            yield from _unique(change, columns, committed)
        if isinstance(change.entity, EdgeType):
            yield from _endpoints(change, change.entity, changes, committed)
            yield from _cardinality(change, change.entity, changes, committed)


# --- unique -----------------------------------------------------------------------------------------------------------


def _unique(change: TableChange, columns: tuple[str, ...], committed: Committed) -> Iterator[Violation]:
    """Two rows of the final image with equal values in these columns; a null is equal to nothing."""
    incoming = _comparable(change.upserts.select(_once(("id", *columns))), columns)
    if not incoming.num_rows:
        return
    schema = change.upserts.schema
    probe = min(columns, key=lambda name: pa.types.is_nested(schema.field(name).type))
    stored = committed.by_value(change.entity.type_key, probe, _flat(change.upserts[probe]), _once(("id", *columns)))
    stored = stored.filter(pc.invert(pc.is_in(stored["id"], value_set=change.touched())))
    image = pa.concat_tables([_comparable(stored, columns), incoming])
    groups = image.group_by(list(columns)).aggregate([("id", "list")])
    clashing = groups.filter(pc.greater(pc.list_value_length(groups["id_list"]), 1))
    name = f"{change.entity.name}.{columns[0]}" if len(columns) == 1 else f"{change.entity.name}({', '.join(columns)})"
    for row in clashing.to_pylist():
        ids = sorted(row["id_list"])
        shown = ", ".join(repr(row[column]) for column in columns)
        yield Violation(
            "unique",
            change.entity.type_key,
            f"@unique violation on {name}: {shown} belongs to {ids[0]!r} and to {ids[1]!r}",
            property=columns[0] if len(columns) == 1 else None,
            entity_id=ids[1],
        )


def _once(columns: tuple[str, ...]) -> list[str]:
    return list(dict.fromkeys(columns))


def _comparable(table: pa.Table, columns: tuple[str, ...]) -> pa.Table:
    """The rows without a null in these columns, in a form that Arrow groups by value."""
    for name in columns:
        table = table.filter(pc.is_valid(table[name]))
        place, kind = table.schema.get_field_index(name), table.schema.field(name).type
        if pa.types.is_nested(kind):
            texts = [orjson.dumps(value).decode() for value in table[name].to_pylist()]
            table = table.set_column(place, name, pa.array(texts, pa.string()))
        elif pa.types.is_floating(kind):
            # Adding zero turns −0 into 0.
            table = table.set_column(place, name, pc.add(table[name], pa.scalar(0, kind)))
    return table.replace_schema_metadata(None).cast(_plain(table.schema))


def _plain(schema: pa.Schema) -> pa.Schema:
    """Fields by name and type alone, so that incoming and committed rows can be laid together."""
    return pa.schema([pa.field(field.name, field.type) for field in schema])


# --- endpoints --------------------------------------------------------------------------------------------------------


def _endpoints(change: TableChange, edge: EdgeType, changes: Changes, committed: Committed) -> Iterator[Violation]:
    """Both ends of every edge that the write brings are nodes of the final image."""
    for end, type_name in (("src", edge.from_type), ("dst", edge.to_type)):
        wanted = _flat(pc.unique(change.upserts[end]))
        absent = _absent(f"node:{type_name}", wanted, changes, committed)
        if not len(absent):
            continue
        broken = change.upserts.filter(pc.is_in(change.upserts[end], value_set=absent))
        for entity_id, missing in zip(broken["id"].to_pylist(), broken[end].to_pylist(), strict=True):
            side = "from" if end == "src" else "to"
            yield Violation(
                "endpoint",
                edge.type_key,
                f"edge {edge.name}: `{side}` node {type_name} {missing!r} not found",
                property=side,
                entity_id=entity_id,
            )


def _absent(node_key: str, ids: pa.Array, changes: Changes, committed: Committed) -> pa.Array:
    """Those of some node ids that are not in the final image."""
    change = changes.get(node_key)
    if change is not None:
        ids = ids.filter(pc.invert(pc.is_in(ids, value_set=_flat(change.upserts["id"]))))
    if not len(ids):
        return ids
    stored = _flat(committed.by_id(node_key, ids, ["id"])["id"])
    gone = pc.invert(pc.is_in(ids, value_set=stored))
    if change is not None:
        gone = pc.or_(gone, pc.is_in(ids, value_set=change.deleted))
    return ids.filter(gone)


# --- cardinality ------------------------------------------------------------------------------------------------------


def _cardinality(change: TableChange, edge: EdgeType, changes: Changes, committed: Committed) -> Iterator[Violation]:
    """How many edges leave each source that the write touches, also one whose edge it moved away or deleted."""
    low, high = edge.cardinality.minimum, edge.cardinality.maximum
    if low == 0 and high is None:
        return
    touched = change.touched()
    before = committed.by_id(edge.type_key, touched, ["id", "src"])
    sources = _flat(pc.unique(pa.chunked_array([*change.upserts["src"].chunks, *before["src"].chunks], pa.string())))
    source_change = changes.get(f"node:{edge.from_type}")
    if source_change is not None:
        sources = sources.filter(pc.invert(pc.is_in(sources, value_set=source_change.deleted)))
    kept = committed.by_value(edge.type_key, "src", sources, ["id", "src"])
    kept = kept.filter(pc.invert(pc.is_in(kept["id"], value_set=touched)))
    final = pa.chunked_array([*kept["src"].chunks, *change.upserts["src"].chunks], pa.string())
    counted = {item["values"]: item["counts"] for item in pc.value_counts(final).to_pylist()}
    for source in sources.to_pylist():
        count = counted.get(source, 0)
        if count < low or (high is not None and count > high):
            bound = f"min {low}" if count < low else f"max {high}"
            yield Violation(
                "cardinality",
                edge.type_key,
                f"@card violation on {edge.name}: {edge.from_type} {source!r} would have {count} edge(s), {bound}",
                property="from",
            )


def _flat(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
