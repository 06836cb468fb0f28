"""New ids for a type that gets a key: of its rows, of the ends of edges, and of keyed edges that name an end.

The id of a keyed entity is the text of its key; look-ups, replacing inserts and edges rely on that. So when a type with rows
gets a key, the ids of its rows are made from it, and the edges that start or end there are changed in the same commit. The
same is needed when an F32 in a key becomes an F64, which is written with other digits; all other widened types keep their
text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.commit.context import CommitContext
from omnigraph.commit.model import ManifestState
from omnigraph.errors import Conflict
from omnigraph.evolution.compare import entities, needs_other_ids
from omnigraph.evolution.image import wanted_columns
from omnigraph.evolution.look import Backfilled, Entity
from omnigraph.language.schema.catalog import EdgeType, NodeType
from omnigraph.language.schema.ir import SchemaIR
from omnigraph.storage.root import Root
from omnigraph.storage.tables.columns import Column, Values, ahead, reads_of, values_of
from omnigraph.storage.tables.handles import Tables
from omnigraph.storage.tables.location import Location
from omnigraph.storage.tables.table import Table
from omnigraph.values.identity import derive_ids

ENDS = ("src", "dst")
#: How many nodes are looked up at once.
NODES_PER_LOOK_UP = 65_536


@dataclass(frozen=True)
class KeyIds:
    """Computes the ids of rows from the new columns of their key."""

    entity: Entity
    columns: tuple[Column, ...]

    @cached_property
    def reads(self) -> tuple[str, ...]:
        return tuple(reads_of(self.columns))

    def __call__(self, batch: pa.RecordBatch) -> pa.Array:
        return derive_ids(self.entity, {column.field.name: values_of(column, batch) for column in self.columns})

    def ahead(self, table: Table, fragment: int) -> Values:
        return replace(self, columns=tuple(ahead(column, table, fragment) for column in self.columns))


@dataclass(frozen=True)
class EndIds:
    """Computes the new ids of the nodes at one end of edges; the nodes are looked up by their old ids, in batches."""

    end: str
    ids: KeyIds
    root: Root
    location: Location
    version: int

    @property
    def reads(self) -> tuple[str, ...]:
        return (self.end,)

    def __call__(self, batch: pa.RecordBatch) -> pa.Array:
        return self._of([pc.unique(batch.column(self.end))])(batch)

    def ahead(self, table: Table, fragment: int) -> Values:
        scanned = table.scan([self.end], fragments=[fragment], batch_size=NODES_PER_LOOK_UP)
        return self._of([pc.unique(batch.column(self.end)) for batch in scanned])

    def _of(self, ends: Sequence[pa.Array]) -> Renamed:
        """The new ids of these nodes."""
        old = pc.unique(pa.chunked_array(ends, pa.string()))
        wanted = list(dict.fromkeys(("id", *self.ids.reads)))
        nodes, found = _opened(self.root, self.location, self.version), [pa.array([], pa.string())]
        known = [pa.array([], pa.string())]
        for start in range(0, len(old), NODES_PER_LOOK_UP):
            rows = nodes.take_ids(old.slice(start, NODES_PER_LOOK_UP), wanted)
            for batch in rows.to_batches():
                known.append(batch.column("id"))
                found.append(self.ids(batch))
        return Renamed(self.end, pa.concat_arrays(known), pa.concat_arrays(found))


@dataclass(frozen=True)
class Renamed:
    """Replaces old ids in a column by new ones."""

    column: str
    old: pa.Array
    new: pa.Array

    @property
    def reads(self) -> tuple[str, ...]:
        return (self.column,)

    def __call__(self, batch: pa.RecordBatch) -> pa.Array:
        ids = batch.column(self.column)
        found = self.new.take(pc.index_in(ids, value_set=self.old))
        if found.null_count:
            lost = ids.filter(pc.is_null(found))[0].as_py()
            raise Conflict(f"an edge ends at '{lost}', which is no node; run `omnigraph verify --deep` first")
        return found

    def ahead(self, table: Table, fragment: int) -> Values:
        return self


@lru_cache(maxsize=16)
def _opened(root: Root, location: Location, version: int) -> Table:
    return Tables(root).open(location, version)


def other_ids(
    context: CommitContext, state: ManifestState, before: SchemaIR, after: SchemaIR, backfilled: Backfilled
) -> Mapping[int, Mapping[str, Values]]:
    """The computed ids and ends that a schema change needs, by type and column; empty if no key is new or changed."""
    old, new = entities(before.catalog), entities(after.catalog)
    nodes: dict[str, EndIds] = {}
    made: dict[int, dict[str, Values]] = {}
    for id_, entity in new.items():
        if isinstance(entity, NodeType) and id_ in old and needs_other_ids(old[id_], entity):
            ids = _key_ids(old[id_], entity, backfilled.values(entity))
            made.setdefault(id_, {})["id"] = ids
            entry = state.tables[entity.id, entity.incarnation]
            nodes[entity.name] = EndIds("", ids, context.root, entry.location, entry.version)
    for id_, entity in new.items():
        if not isinstance(entity, EdgeType) or id_ not in old:
            continue
        ends = {end: EndIds(end, at.ids, at.root, at.location, at.version) for end, at in _ends(entity, nodes)}
        if ends:
            made.setdefault(id_, {}).update(ends)
        if needs_other_ids(old[id_], entity) or set(ends) & set(entity.key or ()):
            made.setdefault(id_, {})["id"] = _key_ids(old[id_], entity, {**backfilled.values(entity), **ends})
    return made


def _ends(edge: EdgeType, nodes: Mapping[str, EndIds]) -> Iterator[tuple[str, EndIds]]:
    for end, name in zip(ENDS, (edge.from_type, edge.to_type), strict=True):
        if name in nodes:
            yield end, nodes[name]


def _key_ids(was: Entity, entity: Entity, made: Mapping[str, Values]) -> KeyIds:
    assert entity.key is not None
    columns = {column.field.name: column for column in wanted_columns(was, entity, made)}
    return KeyIds(entity, tuple(columns[name] for name in entity.key))
