"""What a commit would cost with bare Lance: a dataset like `__manifest`, and the merge-insert that a publish can not avoid."""

from __future__ import annotations

from pathlib import Path

import lance

from omnigraph.commit import rows
from omnigraph.commit.model import Lineage, TableEntry
from omnigraph.commit.publisher import COMPACT_ABOVE_FRAGMENTS
from omnigraph.ids import new_ulid


class BareManifest:
    """A dataset with the rows of a manifest, written without any of our checks."""

    def __init__(self, place: Path, *entries: TableEntry) -> None:
        self._entries = entries
        self._dataset = lance.write_dataset(rows.to_arrow(self._rows()), place, enable_stable_row_ids=True)

    def publish(self) -> None:
        """The rows that one publish of the tables writes."""
        merge = self._dataset.merge_insert("object_id").when_matched_update_all().when_not_matched_insert_all()
        merge.execute(rows.to_arrow(self._rows()))

    def upkeep(self, turn: int) -> None:
        """Ours compacts its manifest by itself; the bare one is not charged for it."""
        if turn % COMPACT_ABOVE_FRAGMENTS == 0:
            self._dataset.optimize.compact_files()

    def _rows(self) -> list[rows.Row]:
        commit = new_ulid()
        return [
            *(rows.version_row(entry) for entry in self._entries),
            rows.commit_row(Lineage(commit, 0, "mutation"), branch="main", parent=None),
            rows.head_row("main", commit),
            rows.fence_row(0, commit),
        ]
