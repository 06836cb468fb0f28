"""From kept branches to kept versions: which versions of which line of a dataset some kept state names."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from omnigraph.commit.context import CommitContext
from omnigraph.commit.manifest import manifest_location
from omnigraph.commit.model import MAIN, TableEntry
from omnigraph.errors import HistoricalVersionReclaimed
from omnigraph.maintenance.retention import KeptBranch
from omnigraph.storage.tables.location import Location


@dataclass
class KeptVersions:
    """The versions of one line that stay: all from `floor` on (None: of these there are none), and single ones."""

    floor: int | None = None
    singles: set[int] = field(default_factory=set)

    def keep_from(self, version: int) -> None:
        self.floor = version if self.floor is None else min(self.floor, version)

    def __contains__(self, version: int) -> bool:
        return version in self.singles or (self.floor is not None and version >= self.floor)


Kept = dict[Location, KeptVersions]


def kept_versions(context: CommitContext, branches: Iterable[KeptBranch]) -> Kept:
    """The versions of every table and of `__manifest` that the kept commits of all branches need."""
    kept: Kept = {}
    for branch in branches:
        own = kept.setdefault(manifest_location(branch.name), KeptVersions())
        own.keep_from(branch.floor)
        own.singles |= branch.singles
        inherited = frozenset() if branch.name == MAIN else context.manifest.inherited(branch.name)
        first = context.manifest.load_at(branch.name, branch.floor)
        for state in (first, branch.head):
            for identity, entry in state.tables.items():
                line = kept.setdefault(entry.location, KeptVersions())
                if entry.location in inherited:
                    # A branch forks a table before it writes it, so on a shared line it never moves.
                    line.singles.add(entry.version)
                    continue
                then = first.tables.get(identity)
                # A line that came up after the floor is needed from its beginning.
                line.keep_from(then.version if then is not None and then.location == entry.location else 0)
        for version in sorted(branch.singles):
            for entry in _tables(context, branch.name, version):
                kept.setdefault(entry.location, KeptVersions()).singles.add(entry.version)
    return kept


class NamedLines:
    """The lines that states name. A cleanup asks for every table, and again under the locks; each state is read once."""

    def __init__(self, context: CommitContext) -> None:
        self._context = context
        #: By branch, incarnation and manifest version, none of which ever names another state.
        self._read: dict[tuple[str, str, int], frozenset[Location]] = {}

    def by_any_state(self, branches: Iterable[KeptBranch]) -> set[Location]:
        """Every line that any state from the floors on names; asked only when something is about to be taken away."""
        named: set[Location] = set()
        for branch in branches:
            for commit in self._context.manifest.commits(branch.name).values():
                if commit.branch == branch.name and branch.floor <= commit.manifest_version <= branch.head.version:
                    named |= self._of(branch, commit.manifest_version)
        return named

    def _of(self, branch: KeptBranch, version: int) -> frozenset[Location]:
        key = (branch.name, branch.head.incarnation, version)
        if key not in self._read:
            self._read[key] = frozenset(entry.location for entry in _tables(self._context, branch.name, version))
        return self._read[key]


def _tables(context: CommitContext, branch: str, version: int) -> list[TableEntry]:
    """The tables of a state; none when it has been reclaimed before anything asked for it."""
    try:
        return list(context.manifest.load_at(branch, version).tables.values())
    except HistoricalVersionReclaimed:
        return []
