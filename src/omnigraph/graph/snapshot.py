"""A snapshot: one manifest version, a fixed set of table versions. Every read uses one from start to end."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from omnigraph.commit.history import state_of
from omnigraph.commit.manifest import Manifest
from omnigraph.commit.model import MAIN, Identity, ManifestState, TableEntry, sorted_entries
from omnigraph.errors import BadRequest, HistoricalVersionReclaimed, NotFound
from omnigraph.ids import is_ulid
from omnigraph.storage.tables.handles import Tables
from omnigraph.storage.tables.lance_errors import Missing
from omnigraph.storage.tables.table import Table

# More digits than any version has are no version either, and Python refuses to read very many.
_VERSION = re.compile(r"(?P<version>-?[0-9]{1,20})")
_SNAPSHOT_ID = re.compile(r"manifest:(?P<branch>.+):v(?P<version>[0-9]{1,20})")


@dataclass(frozen=True)
class Snapshot:
    """The graph as of one commit. Later writes do not change what it shows."""

    state: ManifestState
    tables: Tables
    #: The tables by what their types are called now: a rename does not hide what an old snapshot holds.
    names: Mapping[str, Identity]
    #: Whether it is read with the schema of its own time.
    then: bool = False

    @property
    def id(self) -> str:
        return self.state.snapshot_id

    @property
    def branch(self) -> str:
        return self.state.branch

    @property
    def version(self) -> int:
        """The manifest version of its newest commit."""
        return self.state.commit_version

    @property
    def commit(self) -> str:
        """The id of the newest commit it shows."""
        return self.state.head

    @property
    def stamp(self) -> int:
        """The version of the on-disk format."""
        return self.state.stamp

    def entries(self) -> list[TableEntry]:
        """Its tables under the names they had then: nodes before edges, then by name."""
        return sorted_entries(self.state.tables.values())

    def entry(self, type_key: str) -> TableEntry:
        """The table of a type, as `node:Type` or `edge:Type`."""
        identity = self.names.get(type_key)
        entry = None if identity is None else self.state.tables.get(identity)
        if entry is None:
            raise NotFound(f"{type_key} does not exist at this snapshot ({self.id})")
        return entry

    def open(self, type_key: str) -> Table:
        """The table of a type at its published version."""
        entry = self.entry(type_key)
        try:
            return self.tables.open(entry.location, entry.version)
        except Missing as error:
            raise HistoricalVersionReclaimed(
                f"the {type_key} of {self.id} ({entry.location}) is gone: its branch was deleted, the version was "
                "cleaned up, or a schema change dropped it for good; take a newer snapshot, or restore it from a backup",
                version=self.id,
            ) from error

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


def resolve(manifest: Manifest, branch: str, reference: str | int | None) -> ManifestState:
    """The state that a caller names: nothing (the branch now), a commit id, a tag, a manifest version or a snapshot id."""
    found = named_state(manifest, branch, reference)
    if found is None:
        raise BadRequest(
            f"'{reference}' names no snapshot: give a commit id, a tag, a manifest version or a snapshot id "
            "such as manifest:main:v7"
        )
    return found


def named_state(manifest: Manifest, branch: str, reference: str | int | None) -> ManifestState | None:
    """The state that a caller names; None for a text that can not name one and is no tag."""
    if reference is None:
        return manifest.load(branch)
    text = str(reference)
    named = _VERSION.fullmatch(text) or _SNAPSHOT_ID.fullmatch(text)
    if named is not None:
        return manifest.load_at(named.groupdict().get("branch", branch), int(named["version"]))
    if is_ulid(text):
        return state_of(manifest, manifest.commit_near(text, branch))
    tagged = manifest.load(MAIN).tags.get(text)
    return None if tagged is None else state_of(manifest, manifest.commit_near(tagged, branch))
