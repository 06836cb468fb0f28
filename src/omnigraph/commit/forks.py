"""Who owns a table's line: a branch shares its parent's tables until it writes them, and forks a table on that first write."""

from __future__ import annotations

from omnigraph.commit.branch_refs import read_ref
from omnigraph.commit.manifest import Manifest, branch_not_found
from omnigraph.commit.model import MAIN, ManifestState, TableEntry
from omnigraph.storage.tables.location import Location

#: What each branch shared with its parent at the fork, by branch name and incarnation. A fork point never changes.
_Inherited = dict[tuple[str, str], frozenset[Location]]


class Forks:
    """Answers, for one open graph, whether a write must fork a table first."""

    def __init__(self, manifest: Manifest) -> None:
        self._manifest = manifest
        self._inherited: _Inherited = {}

    def is_shared(self, state: ManifestState, entry: TableEntry) -> bool:
        """Whether this branch still shares the table with its parent. Main owns whatever it publishes."""
        return state.branch != MAIN and entry.location in self._inherited_by(state)

    def _inherited_by(self, state: ManifestState) -> frozenset[Location]:
        key = (state.branch, state.incarnation)
        known = self._inherited.get(key)
        if known is None:
            ref = read_ref(self._manifest.store, state.branch)
            if ref is None or ref.incarnation != state.incarnation:
                raise branch_not_found(state.branch)
            at_fork = self._manifest.load_at(state.branch, ref.parent_version)
            known = self._inherited[key] = frozenset(entry.location for entry in at_fork.tables.values())
        return known
