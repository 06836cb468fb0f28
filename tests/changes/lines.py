"""A table with many versions, on its main line and on forks, and what each version is known to hold."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from omnigraph.changes.delta import Delta, Side, table_delta
from omnigraph.commit.context import CommitContext
from omnigraph.commit.model import TableEntry
from omnigraph.ids import new_ulid
from omnigraph.storage.tables.commit import commit_staged, fork
from omnigraph.storage.tables.location import Location
from omnigraph.storage.tables.staged import (
    Staged,
    stage_append,
    stage_compaction,
    stage_create,
    stage_delete,
    stage_index,
    stage_overwrite,
    stage_replace,
)
from omnigraph.storage.tables.table import ROW_ADDRESS, Table
from omnigraph.values.columns import PROPERTY_ID
from tests.storage.tables.upserts import stage_upsert

PATH = "nodes/under-test"


def _property(name: str, kind: pa.DataType, number: int) -> pa.Field:
    return pa.field(name, kind, metadata={PROPERTY_ID: str(number).encode()})


SCHEMA = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        _property("text", pa.string(), 1),
        _property("words", pa.list_(pa.field("item", pa.string())), 2),
        _property("place", pa.list_(pa.float32(), 2), 3),
        _property("amount", pa.float64(), 4),
    ]
)

#: What a row holds besides its id.
Value = tuple[Any, ...]
Content = dict[str, Value]
Change = tuple[str, str, Value | None, Value | None]


def rows_of(content: Content) -> pa.Table:
    """Rows as they are written."""
    columns = [list(content), *([value[place] for value in content.values()] for place in range(4))]
    return pa.Table.from_arrays([pa.array(c, f.type) for c, f in zip(columns, SCHEMA, strict=True)], schema=SCHEMA)


def value(text: str | None = "x", words: Any = ("a",), place: Any = (0.0, 1.0), amount: float | None = 1.0) -> Value:
    return (text, None if words is None else list(words), None if place is None else list(place), amount)


@dataclass
class Line:
    """One line of the table with the version it is at and what it holds there."""

    context: CommitContext
    location: Location
    version: int
    content: Content
    #: Every version that was reached, with its content.
    seen: list[tuple[Side, Content]] = field(default_factory=list)

    @classmethod
    def create(cls, context: CommitContext, content: Content) -> Line:
        location = Location(PATH)
        staged = stage_create(context.tables, location, SCHEMA, rows_of(content))
        version = commit_staged(context.tables, staged, expected_version=None, transaction_id=new_ulid())
        line = cls(context, location, version, dict(content))
        line._remember()
        return line

    @property
    def table(self) -> Table:
        return self.context.tables.open(self.location, self.version)

    @property
    def side(self) -> Side:
        return Side(TableEntry("node:T", PATH, (1, 0), self.version, self.location.branch, len(self.content)))

    def _remember(self) -> None:
        self.seen.append((self.side, dict(self.content)))

    def _commit(self, staged: Staged) -> None:
        self.version = commit_staged(
            self.context.tables, staged, expected_version=self.version, transaction_id=new_ulid()
        )
        self._remember()

    def append(self, content: Content) -> None:
        self.content |= content
        self._commit(stage_append(self.table, rows_of(content)))

    def upsert(self, content: Content) -> None:
        self.content |= content
        self._commit(stage_upsert(self.table, rows_of(content)))

    def replace(self, content: Content) -> None:
        found = self.table.take_ids(pa.array(list(content), pa.string()), ["id"], with_row_address=True)
        self.content |= content
        self._commit(stage_replace(self.table, rows_of(content), found[ROW_ADDRESS]))

    def delete(self, *ids: str) -> None:
        self.content = {key: kept for key, kept in self.content.items() if key not in ids}
        self._commit(stage_delete(self.table, ids=pa.array(list(ids), pa.string())))

    def overwrite(self, content: Content) -> None:
        self.content = dict(content)
        self._commit(stage_overwrite(self.table, rows_of(content)))

    def compact(self) -> None:
        staged = stage_compaction(self.table)
        if staged is not None:
            self._commit(staged)

    def index(self) -> None:
        self._commit(stage_index(self.table, "id", "BTREE", "id_idx"))

    def restore(self, to: int = 0) -> None:
        """Bring an earlier version of this line back, as an undo does."""
        own = [(side, content) for side, content in self.seen if side.entry.branch == self.location.branch]
        if not own:
            return
        side, content = own[to % len(own)]
        dataset = self.context.tables.open_dataset(self.location, side.entry.version)
        dataset.restore()  # type: ignore[no-untyped-call]  # Lance gives it no types
        self.version = self.context.tables.open_dataset(self.location).version
        self.content = dict(content)
        self._remember()

    def fork(self) -> Line:
        location = fork(self.context.tables, self.location, self.version, new_ulid())
        return Line(self.context, location, self.version, dict(self.content), self.seen)


def expected(before: Content | None, after: Content | None) -> list[Change]:
    """The changes between two contents, by plain comparison."""
    old, new = before or {}, after or {}
    changes: list[Change] = []
    for key in sorted(old.keys() | new.keys(), key=str.encode):
        if key not in new:
            changes.append(("delete", key, old[key], None))
        elif key not in old:
            changes.append(("insert", key, None, new[key]))
        elif old[key] != new[key]:
            changes.append(("update", key, old[key], new[key]))
    return changes


def found(delta: Delta, **options: Any) -> list[Change]:
    """The changes that a delta tells, in the order of their ids."""
    changes: list[Change] = []
    for batch in delta.batches(**options):
        part: list[Change] = [("insert", row["id"], None, _value(row)) for row in batch.inserted.to_pylist()]
        part += [("delete", row["id"], _value(row), None) for row in batch.deleted.to_pylist()]
        pairs = zip(batch.updated_before.to_pylist(), batch.updated_after.to_pylist(), strict=True)
        for old, new in pairs:
            assert old["id"] == new["id"]
            part.append(("update", new["id"], _value(old), _value(new)))
        changes += sorted(part, key=lambda change: change[1].encode())
    return changes


def _value(row: dict[str, Any]) -> Value:
    return tuple(row[name] for name in ("text", "words", "place", "amount"))


def delta_of(line: Line, before: Side | None, after: Side | None) -> Delta:
    return table_delta(line.context, before, after)
