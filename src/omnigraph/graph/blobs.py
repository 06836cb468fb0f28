"""Reading one entity by its id, or one blob value: its size, its ETag, and its bytes in ranges."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from omnigraph.commit.branch_refs import read_ref
from omnigraph.commit.model import MAIN
from omnigraph.errors import (
    BadRequest,
    BlobRangeNotSatisfiable,
    EntityNotFound,
    HistoricalVersionReclaimed,
    NotFound,
    ResourceLimit,
)
from omnigraph.graph.snapshot import Snapshot
from omnigraph.graph.sources import id_column
from omnigraph.language.schema.catalog import Catalog, EdgeType, NodeType
from omnigraph.language.source import did_you_mean, nearest_name
from omnigraph.query.scan.entities import retyped_columns, stored_columns
from omnigraph.shown import Shown
from omnigraph.storage.object_store import ObjectStore
from omnigraph.storage.tables.blobs import EXTERNAL, read_blob_range
from omnigraph.storage.tables.table import ROW_ADDRESS, Table
from omnigraph.values.render import plain, stored_kind
from omnigraph.values.widening import converted


def types_of(catalog: Catalog, kind: str) -> Mapping[str, NodeType | EdgeType]:
    """The types of one kind of entity by name; BadRequest when there is no such kind."""
    if kind == "node":
        return catalog.nodes
    if kind == "edge":
        return catalog.edges
    raise BadRequest(f"{kind!r} is no kind of entity; the kinds are node and edge")


def read_entity(
    catalog: Catalog, snapshot: Snapshot, kind: str, type_name: str, entity_id: str
) -> dict[str, Any] | None:
    """An entity with the properties of its type in this schema, or None; a property that the snapshot lacks is null.
    Values have the form of results and exports: dates are ISO texts, a blob is `base64:…` or its URI.
    """
    types = types_of(catalog, kind)
    entity = types.get(type_name)
    if entity is None:
        hint = did_you_mean(nearest_name(str(type_name), types))
        raise NotFound(f"{kind}:{type_name} does not exist at this snapshot ({snapshot.id}){hint}")
    table = snapshot.open(entity.type_key)
    stored = stored_columns(entity, table)
    wanted = [name for name in stored.values() if name is not None]
    found = table.take_ids(id_column([entity_id]), wanted, blobs="values")
    if not found.num_rows:
        return None
    for name, kind in retyped_columns(entity, table, stored).items():
        place = found.column_names.index(stored[name])
        found = found.set_column(place, found.column_names[place], converted(found.column(place), kind))
    values = {name: plain(found[name], stored_kind(found.schema.field(name).type))[0] for name in wanted}
    return {name: None if column is None else values[column] for name, column in stored.items()}


#: The most bytes one range read returns.
LONGEST_RANGE = 4 * 1024 * 1024


def checked_range(length: int | None, uri: str | None, start: int, end: int | None) -> tuple[int, int]:
    """The byte range start to end (exclusive; None: up to the last byte), checked; raises an error for an invalid range.
    `length` is None for an external value, whose bytes are at `uri`.
    """
    if length is None:
        raise BadRequest(f"this blob is external; fetch it from {uri}")
    stop = length if end is None else end
    if start < 0 or stop < start or stop > length:
        raise BlobRangeNotSatisfiable(
            f"bytes {start} to {stop} are not within the {length} bytes of this blob",
            start=start,
            end=stop,
            length=length,
        )
    if stop - start > LONGEST_RANGE:
        raise ResourceLimit(
            f"one range has at most {LONGEST_RANGE} bytes, not {stop - start}; read the blob in parts",
            resource="Blob read range bytes",
            limit=LONGEST_RANGE,
            actual=stop - start,
        )
    return start, stop


@dataclass(frozen=True)
class BlobValue(Shown):
    """One blob cell at one snapshot. Managed bytes are read here; an external value is only a reference."""

    kind: Literal["managed", "external"]
    length: int | None
    etag: str | None
    uri: str | None
    snapshot_id: str
    _table: Table
    _property: str
    _address: int

    def read(self, start: int = 0, end: int | None = None) -> bytes:
        """The bytes from start to end (exclusive); at most 4 MiB at once."""
        start, stop = checked_range(self.length, self.uri, start, end)
        return read_blob_range(self._table.dataset, self._property, self._address, start, stop)

    def __iter__(self) -> Iterator[bytes]:
        """All bytes, in ranges."""
        for start in range(0, self.length or 0, LONGEST_RANGE):
            yield self.read(start, min(start + LONGEST_RANGE, self.length or 0))


def find_blob(
    store: ObjectStore, catalog: Catalog, snapshot: Snapshot, kind: str, type_name: str, entity_id: str, name: str
) -> BlobValue:
    """The blob value of one entity's property."""
    _require_same_incarnation(store, snapshot)
    entity = types_of(catalog, kind).get(type_name)
    declared = None if entity is None else entity.properties.get(name)
    if entity is None or declared is None or not declared.type.is_blob:
        raise BadRequest(f"{type_name}.{name} is not a Blob property of a {kind} type")
    type_key = entity.type_key
    table = snapshot.open(type_key)
    # An older snapshot has the property under an older name, or not at all.
    stored = stored_columns(entity, table)[name]
    wanted = ["id"] if stored is None else ["id", stored]
    found = table.take_ids(id_column([entity_id]), wanted, with_row_address=True)
    cell = found[stored][0].as_py() if found.num_rows and stored is not None else None
    if cell is None:
        what = f"{name} is null" if found.num_rows else "not found"
        raise EntityNotFound(f"{type_key} {entity_id!r}: {what}", type_key=type_key, entity_id=entity_id)
    assert stored is not None, "a cell was read"
    external = cell["kind"] == EXTERNAL
    return BlobValue(
        kind="external" if external else "managed",
        length=None if external else cell["size"],
        etag=None if external else _etag(snapshot, type_key, entity_id, name),
        uri=cell["blob_uri"] if external else None,
        snapshot_id=snapshot.id,
        _table=table,
        _property=stored,
        _address=found[ROW_ADDRESS][0].as_py(),
    )


def _etag(snapshot: Snapshot, type_key: str, entity_id: str, name: str) -> str:
    """The ETag of a blob value; it changes with the version or the line of the type's table."""
    entry = snapshot.entry(type_key)
    named = "\0".join([entry.path, entry.branch or "", str(entry.version), entity_id, name])
    return hashlib.sha256(named.encode()).hexdigest()[:32]


def _require_same_incarnation(store: ObjectStore, snapshot: Snapshot) -> None:
    """Raise an error for a snapshot of a deleted branch: its files are gone, or belong to a new branch of the same name."""
    if snapshot.branch == MAIN or snapshot.state.retired:
        return
    ref = read_ref(store, snapshot.branch)
    if ref is None or ref.incarnation != snapshot.state.incarnation:
        raise HistoricalVersionReclaimed(
            f"snapshot {snapshot.id} belongs to an earlier branch of that name (incarnation witness); take a new one",
            version=snapshot.id,
        )
