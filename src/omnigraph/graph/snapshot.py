"""A snapshot: one manifest version, a fixed set of table versions. Every read uses one from start to end."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from omnigraph.commit.manifest import Manifest
from omnigraph.commit.model import Commit, ManifestState, TableEntry, sorted_entries
from omnigraph.errors import BadRequest, BranchNotFound, HistoricalVersionReclaimed, NotFound
from omnigraph.ids import is_ulid
from omnigraph.storage.tables.handles import Tables
from omnigraph.storage.tables.table import Table

_SNAPSHOT_ID = re.compile(r"manifest:(?P<branch>.+):v(?P<version>[0-9]+)")


@dataclass(frozen=True)
class Snapshot:
    """The graph as of one commit. Later writes do not change what it shows."""

    state: ManifestState
    tables: Tables

    @property
    def id(self) -> str:
        return self.state.snapshot_id

    @property
    def branch(self) -> str:
        return self.state.branch

    @property
    def version(self) -> int:
        """The manifest version on its branch."""
        return self.state.version

    @property
    def commit(self) -> str:
        """The id of the newest commit it shows."""
        return self.state.head

    def entries(self) -> list[TableEntry]:
        """Its tables: nodes before edges, then by name."""
        return sorted_entries(self.state.tables.values())

    def entry(self, type_key: str) -> TableEntry:
        """The table of a type, as `node:Type` or `edge:Type`."""
        entry = self.state.by_key.get(type_key)
        if entry is None:
            raise NotFound(f"{type_key} does not exist at this snapshot ({self.id})")
        return entry

    def open(self, type_key: str) -> Table:
        """The table of a type at its published version."""
        entry = self.entry(type_key)
        return self.tables.open(entry.location, entry.version)

    def to_dict(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "branch": self.branch,
            "version": self.version,
            "commit": self.commit,
            "tables": [
                {"key": entry.key, "version": entry.version, "branch": entry.branch, "rows": entry.row_count}
                for entry in self.entries()
            ],
        }


Reference = Snapshot | str | int | None


def resolve(manifest: Manifest, tables: Tables, branch: str, reference: Reference) -> Snapshot:
    """A snapshot from what a caller names: nothing (the branch now), a snapshot, a commit id, or a manifest version."""
    if isinstance(reference, Snapshot):
        return reference
    if reference is None:
        return Snapshot(manifest.load(branch), tables)
    if isinstance(reference, int) and not isinstance(reference, bool):
        return Snapshot(manifest.load_at(branch, reference), tables)
    text = str(reference)
    if text.isdigit():
        return Snapshot(manifest.load_at(branch, int(text[:20])), tables)
    named = _SNAPSHOT_ID.fullmatch(text)
    if named is not None:
        return Snapshot(manifest.load_at(named["branch"], int(named["version"][:20])), tables)
    if is_ulid(text):
        return Snapshot(_state_of(manifest, branch, manifest.commit_near(text, branch)), tables)
    raise BadRequest(
        f"'{text}' names no snapshot: give a commit id, a manifest version or a snapshot id such as manifest:main:v7"
    )


def _state_of(manifest: Manifest, branch: str, commit: Commit) -> ManifestState:
    """The state a commit led to. The branch it was made on may be gone, or be another branch of the same name now."""
    try:
        state = manifest.load_at(commit.branch, commit.manifest_version)
    except (BranchNotFound, NotFound):
        state = None
    if state is None or state.head != commit.id:
        raise HistoricalVersionReclaimed(
            f"the state of commit {commit.id} is gone with branch '{commit.branch}' it was made on "
            "(incarnation witness: that branch was deleted or created anew)",
            version=commit.id,
        )
    return state
