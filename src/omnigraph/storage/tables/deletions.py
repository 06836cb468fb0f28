"""Deletion marks: which fragments change and which vanish when rows are taken out of a table."""

from __future__ import annotations

from concurrent.futures import Executor
from dataclasses import dataclass

import pyarrow as pa
from lance.fragment import FragmentMetadata

from omnigraph.errors import BadRequest
from omnigraph.storage.round_trips import ONE_BY_ONE
from omnigraph.storage.tables.lance_errors import translated
from omnigraph.storage.tables.row_places import Offsets, RowPlaces
from omnigraph.storage.tables.table import Table


@dataclass(frozen=True)
class Marks:
    """The outcome of marking rows: fragments with new deletion files, ids of fragments left empty, rows marked."""

    changed: tuple[FragmentMetadata, ...]
    vanished: tuple[int, ...]
    rows: int


def mark_deleted(table: Table, rows: RowPlaces | pa.Array | pa.ChunkedArray, requests: Executor = ONE_BY_ONE) -> Marks:
    """Write deletion files for these rows, given by their places or addresses, without committing them."""
    places = rows if isinstance(rows, RowPlaces) else RowPlaces.of(rows)
    touched = list(places.fragments)
    marked = requests.map(lambda id_: _mark(table, id_, places.fragments[id_].offsets()), touched)
    changed: list[FragmentMetadata] = []
    vanished: list[int] = []
    count = 0
    for fragment_id, (before, after) in zip(touched, marked, strict=True):
        if after is None:
            vanished.append(fragment_id)
            count += before.num_rows
        elif after.num_deletions > before.num_deletions:
            changed.append(after)
            count += before.num_rows - after.num_rows
    return Marks(tuple(changed), tuple(vanished), count)


def _mark(table: Table, fragment_id: int, offsets: Offsets) -> tuple[FragmentMetadata, FragmentMetadata | None]:
    """A fragment before and after its rows at these offsets are marked; None when no row is left."""
    fragment = table.dataset.get_fragment(fragment_id)
    if fragment is None:
        raise BadRequest(f"{table.location} has no fragment {fragment_id} at version {table.version}")
    before = fragment.metadata
    with translated(str(table.location), "mark deleted rows in"):
        after = fragment.delete_rows(offsets.tolist())
    return before, after
