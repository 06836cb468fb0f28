"""What a merge will do to one table, or to a range of its ids; small values, never the rows themselves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from omnigraph.merge.result import Conflict, Decision
from omnigraph.storage.tables.row_places import RowPlaces

NO_IDS = pa.array([], pa.string())


@dataclass(frozen=True)
class Part:
    """The result of judging some changes of theirs."""

    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    #: How many changes of theirs ours has made too.
    identical: int = 0
    #: How many rows of theirs are written unchanged: inserted rows, and updated rows.
    new_rows: int = 0
    changed_rows: int = 0
    #: Ids of rows of theirs that must not be written unchanged.
    skipped: pa.Array = field(default_factory=lambda: NO_IDS)
    #: Ids of rows mixed from both sides; one more column per property tells whether the value of theirs is used.
    combined: pa.Table | None = None
    #: Addresses of the rows of ours that are replaced or deleted.
    marked: RowPlaces = field(default_factory=RowPlaces)
    removed: pa.Array = field(default_factory=lambda: NO_IDS)
    #: The rows that are written, with only the columns that rules need.
    checked: pa.Table | None = None
    conflicts: tuple[Conflict, ...] = ()
    #: Ids of entities with a conflict between the sides.
    undecided: pa.Array = field(default_factory=lambda: NO_IDS)
    #: Ids of entities that theirs deleted but that stay.
    kept: pa.Array = field(default_factory=lambda: NO_IDS)
    #: Ids of entities that ours deleted but that come back, by the version they are taken from: theirs or base.
    restored: Mapping[str, pa.Array] = field(default_factory=dict)
    decided: tuple[Decision, ...] = ()

    @property
    def writes(self) -> int:
        """How many entities of the target are changed."""
        return self.inserted + self.updated + self.deleted

    @property
    def written_rows(self) -> int:
        """How many rows are written: unchanged rows of theirs, and rows mixed from both sides."""
        return self.new_rows + self.changed_rows + (0 if self.combined is None else self.combined.num_rows)


def together(parts: Iterable[Part]) -> Part:
    """Combine several parts of one table."""
    listed = list(parts)
    if len(listed) == 1:
        return listed[0]
    return Part(
        inserted=sum(part.inserted for part in listed),
        updated=sum(part.updated for part in listed),
        deleted=sum(part.deleted for part in listed),
        identical=sum(part.identical for part in listed),
        new_rows=sum(part.new_rows for part in listed),
        changed_rows=sum(part.changed_rows for part in listed),
        skipped=pa.concat_arrays([NO_IDS, *(part.skipped for part in listed)]),
        combined=_stacked(part.combined for part in listed),
        marked=RowPlaces.together(part.marked for part in listed),
        removed=pa.concat_arrays([NO_IDS, *(part.removed for part in listed)]),
        checked=_stacked(part.checked for part in listed),
        conflicts=tuple(conflict for part in listed for conflict in part.conflicts),
        undecided=pa.concat_arrays([NO_IDS, *(part.undecided for part in listed)]),
        kept=pa.concat_arrays([NO_IDS, *(part.kept for part in listed)]),
        restored={
            version: pa.concat_arrays([part.restored.get(version, NO_IDS) for part in listed])
            for version in dict.fromkeys(version for part in listed for version in part.restored)
        },
        decided=tuple(decision for part in listed for decision in part.decided),
    )


def _stacked(tables: Iterable[pa.Table | None]) -> pa.Table | None:
    found = [table for table in tables if table is not None]
    return pa.concat_tables(found) if found else None
