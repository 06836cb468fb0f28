"""What a merge will do to one table, or to a range of its ids: small values, never the rows themselves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from omnigraph.merge.result import Conflict, Decision
from omnigraph.storage.tables.row_places import RowPlaces

NO_IDS = pa.array([], pa.string())


@dataclass(frozen=True)
class Part:
    """The judgement on some changes of theirs."""

    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    #: Changes of theirs that ours has too.
    identical: int = 0
    #: How many rows of theirs are written as they are: of those it inserted, of those it updated.
    new_rows: int = 0
    changed_rows: int = 0
    #: Ids of rows of theirs that are not written as they are.
    skipped: pa.Array = field(default_factory=lambda: NO_IDS)
    #: Ids of rows that are mixed from both sides; a further column for each property says whether theirs counts.
    combined: pa.Table | None = None
    #: Where the rows of ours lie that are replaced or deleted.
    marked: RowPlaces = field(default_factory=RowPlaces)
    removed: pa.Array = field(default_factory=lambda: NO_IDS)
    #: Of the rows that are written, the columns that rules look at.
    checked: pa.Table | None = None
    conflicts: tuple[Conflict, ...] = ()
    #: Ids of entities with a conflict between the sides.
    undecided: pa.Array = field(default_factory=lambda: NO_IDS)
    #: Ids of entities that theirs deleted and that stay all the same.
    kept: pa.Array = field(default_factory=lambda: NO_IDS)
    #: Ids of entities that ours deleted and that come back, by the version they are taken from: theirs or base.
    restored: Mapping[str, pa.Array] = field(default_factory=dict)
    decided: tuple[Decision, ...] = ()

    @property
    def writes(self) -> int:
        """How many entities of the target it touches."""
        return self.inserted + self.updated + self.deleted

    @property
    def written_rows(self) -> int:
        """How many rows it writes: unchanged rows of theirs, and rows that mix both sides."""
        return self.new_rows + self.changed_rows + (0 if self.combined is None else self.combined.num_rows)


def together(parts: Iterable[Part]) -> Part:
    """The parts of one table as one."""
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
