"""The difference of two states of a graph: table by table, in a fixed order; unchanged tables are not opened."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from heapq import merge
from typing import cast

import pyarrow as pa

from omnigraph.changes.delta import Delta, DeltaBatch, Side, table_delta
from omnigraph.changes.filter import Filter
from omnigraph.changes.model import Change, Changes, ChangeSet, Endpoints, Image, Kind, Op, SchemaStep
from omnigraph.changes.spans import EVERYTHING, Span
from omnigraph.commit.context import CommitContext
from omnigraph.commit.model import Identity, ManifestState, TableEntry, identity_text
from omnigraph.values.render import plain, stored_kind

_FIXED = frozenset({"id", "src", "dst"})


@dataclass(frozen=True, slots=True)
class TablePair:
    """One type on both sides of a difference; None: it does not exist on that side."""

    identity: Identity
    before: TableEntry | None
    after: TableEntry | None

    @property
    def names(self) -> list[str]:
        """The names of the type, newest first."""
        return [entry.key.partition(":")[2] for entry in (self.after, self.before) if entry is not None]

    @property
    def kind(self) -> Kind:
        entry = self.after or self.before
        assert entry is not None
        return cast("Kind", entry.key.partition(":")[0])

    def delta(self, context: CommitContext, operation: object | None = None) -> Delta:
        """The changes. `operation`: the operation of the single Lance transaction between both sides, if known."""
        before, after = (None if entry is None else Side(entry) for entry in (self.before, self.after))
        return table_delta(context, before, after, operation)


def moved_tables(before: ManifestState, after: ManifestState, wanted: Filter, today: ManifestState) -> list[TablePair]:
    """The wanted tables that differ between two states: nodes before edges, then by type id.

    A type is wanted by its name on either side, or by its current name.
    """
    pairs = [
        TablePair(identity, before.tables.get(identity), after.tables.get(identity))
        for identity in before.tables.keys() | after.tables.keys()
    ]
    moved = [
        pair
        for pair in pairs
        if not _same(pair.before, pair.after) and wanted.wants_type(pair.kind, [*pair.names, *_named(today, pair)])
    ]
    return sorted(moved, key=lambda pair: (pair.kind != "node", pair.identity))


def _named(state: ManifestState, pair: TablePair) -> list[str]:
    entry = state.tables.get(pair.identity)
    return [] if entry is None else [entry.key.partition(":")[2]]


def by_name(pairs: Iterable[TablePair]) -> list[TablePair]:
    """Nodes before edges, then by type name; of two types with one name, the earlier type first."""
    return sorted(pairs, key=lambda pair: (pair.kind != "node", pair.names[0], pair.identity))


def diff(
    context: CommitContext,
    before: ManifestState,
    after: ManifestState,
    wanted: Filter,
    schema: tuple[SchemaStep, ...] = (),
) -> ChangeSet:
    """The difference between two states, read while it is iterated. `schema`: the differences of their schemas."""
    today = context.manifest.load() if wanted.types else after
    wanted.refuse_unknown_types(before, after, today)
    pairs = by_name(moved_tables(before, after, wanted, today))
    # Opened now, so that unreadable data is reported before any change is returned.
    deltas = [(pair, pair.delta(context)) for pair in pairs]

    def stream() -> Iterator[Change]:
        for pair, delta in deltas:
            yield from table_changes(pair, delta, wanted)

    return ChangeSet(Changes(stream), schema=schema)


def table_changes(
    pair: TablePair, delta: Delta, wanted: Filter, span: Span = EVERYTHING, *, batch_rows: int | None = None
) -> Iterator[Change]:
    """The wanted changes of one table, or of a span of its ids, in id order."""
    for batch in delta.batches(blobs="values", after_id=span.after_id, until_id=span.until_id, batch_rows=batch_rows):
        yield from filter(wanted.wants, _changes_of(pair, batch))


def _changes_of(pair: TablePair, batch: DeltaBatch) -> Iterator[Change]:
    """Merge inserts, updates and deletes by id; each id is in only one of them, and each is in id order."""
    parts = (
        _part("insert", pair, None, batch.inserted),
        _part("update", pair, batch.updated_before, batch.updated_after),
        _part("delete", pair, batch.deleted, None),
    )
    return merge(*parts, key=lambda change: change.id.encode())


def _part(op: Op, pair: TablePair, before: pa.Table | None, after: pa.Table | None) -> Iterator[Change]:
    old, new = (None if table is None else _images(table, pair.kind) for table in (before, after))
    told = new if new is not None else old
    assert told is not None
    type_id = identity_text(pair.identity)
    for place, (entity_id, _, endpoints) in enumerate(told):
        yield Change(
            op=op,
            kind=pair.kind,
            type=pair.names[0],
            id=entity_id,
            before=None if old is None else old[place][1],
            after=None if new is None else new[place][1],
            endpoints=endpoints,
            type_id=type_id,
            endpoints_before=None if old is None else old[place][2],
        )


def _images(table: pa.Table, kind: Kind) -> list[tuple[str, Image, Endpoints | None]]:
    """Rows as ids, plain properties and endpoints. A side that has no such type has no rows, and no columns but the id."""
    if not table.num_rows:
        return []
    names = [name for name in table.column_names if name not in _FIXED]
    columns = [plain(table[name], stored_kind(table.schema.field(name).type)) for name in names]
    rows = zip(*columns, strict=True) if columns else [()] * table.num_rows
    images = [dict(zip(names, row, strict=True)) for row in rows]
    ids = table["id"].to_pylist()
    if kind == "node":
        return [(entity_id, image, None) for entity_id, image in zip(ids, images, strict=True)]
    ends = map(Endpoints, table["src"].to_pylist(), table["dst"].to_pylist())
    return list(zip(ids, images, ends, strict=True))


def _same(one: TableEntry | None, other: TableEntry | None) -> bool:
    if one is None or other is None:
        return one is other
    return one.location == other.location and one.version == other.version
