"""From kept branches to kept versions: which versions of which line of a dataset are named by a kept state."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import islice

from omnigraph import failpoints
from omnigraph.commit.branch_refs import list_refs
from omnigraph.commit.context import CommitContext
from omnigraph.commit.history import newest_first
from omnigraph.commit.manifest import manifest_location
from omnigraph.commit.model import MAIN, Commit, TableEntry
from omnigraph.commit.retired import RetiredLine, remove_line, retired_lines, without, write_line
from omnigraph.commit.staging_jobs import list_jobs
from omnigraph.commit.tags import tagged_commits
from omnigraph.errors import HistoricalVersionReclaimed
from omnigraph.ids import now_micros
from omnigraph.maintenance.retention import KeptBranch, Policy, merge_bases, micros_of
from omnigraph.storage.tables.location import Location


@dataclass
class KeptVersions:
    """The kept versions of one line: all from `floor` on (None: no such range), and single ones below."""

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
                    # A branch forks a table before it writes it, so the table never moves on a shared line.
                    line.singles.add(entry.version)
                    continue
                then = first.tables.get(identity)
                # If the line was made after the floor, all of its versions are kept.
                line.keep_from(then.version if then is not None and then.location == entry.location else 0)
        for version in sorted(branch.singles):
            for entry in _tables(context, branch.name, version):
                kept.setdefault(entry.location, KeptVersions()).singles.add(entry.version)
    return kept


class NamedLines:
    """The lines that states name. Cleanup asks for every table, and again under the locks; each state is read only once."""

    def __init__(self, context: CommitContext) -> None:
        self._context = context
        #: Cache by branch, incarnation and manifest version; such a key always names the same state.
        self._read: dict[tuple[str, str, int], frozenset[Location]] = {}

    def by_any_state(self, branches: Iterable[KeptBranch]) -> set[Location]:
        """Every line that any state from the floors on names; computed only when something would otherwise be removed."""
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
    """The tables of a state; none if the state has already been reclaimed."""
    try:
        return list(context.manifest.load_at(branch, version).tables.values())
    except HistoricalVersionReclaimed:
        return []


failpoints.declare("cleanup.before_retired")


@dataclass(frozen=True)
class KeptLine:
    """The history of a deleted branch as it was found, and the part of it that is kept; None: nothing is kept."""

    found: RetiredLine
    kept: RetiredLine | None


def kept_lines(context: CommitContext, policy: Policy, feed: timedelta) -> list[KeptLine]:
    """The part of every deleted branch's history that is kept.

    A commit is kept while a live branch reaches it, and it is among the newest that the policy keeps of that branch's history,
    or recent enough for the policy, the change feed or a running job. It is also kept while a tag names it or two live branches
    have it as a merge base. Nothing is kept of an incarnation that is still live because its deletion died.
    """
    lines = list(retired_lines(context.store))
    if not lines:
        return []
    live = {ref.incarnation for ref in list_refs(context.store)}
    wanted = _wanted(context, policy, feed)
    return [KeptLine(line, None if line.incarnation in live else _kept(line, wanted)) for line in lines]


def _wanted(context: CommitContext, policy: Policy, feed: timedelta) -> set[str]:
    """The ids of the commits whose states must be kept, wherever they were made."""
    manifest, now = context.manifest, now_micros()
    names = [MAIN, *(ref.name for ref in list_refs(context.store))]
    histories = {name: manifest.commits(name) for name in names}
    states = {name: manifest.load(name) for name in names}
    jobs = [job.started_at for job in list_jobs(context.store) if not job.is_expired()]
    needed_since = min([now - micros_of(feed), *jobs])
    young_since = now if policy.older_than is None else now - micros_of(policy.older_than)
    wanted = {*tagged_commits(context).values(), *(commit.id for commit in merge_bases(histories, states))}
    for name, known in histories.items():
        ordered = newest_first(known, states[name].head)
        wanted |= {commit.id for commit in islice(ordered, policy.keep or 0)}
        wanted |= {commit.id for commit in ordered if commit.created_at >= young_since}
        wanted |= _with_parents(ordered, needed_since)
    return wanted


def _with_parents(commits: Iterable[Commit], since: int) -> set[str]:
    """The ids of the commits since a moment, and of their first parents, with which they are compared."""
    young = [commit for commit in commits if commit.created_at >= since]
    return {id_ for commit in young for id_ in (commit.id, commit.parent) if id_ is not None}


def _kept(line: RetiredLine, wanted: set[str]) -> RetiredLine | None:
    kept = []
    for place, publish in enumerate(line.publishes):
        follows_wanted = place + 1 < len(line.publishes) and _is_between(line, place + 1, wanted)
        if follows_wanted or not wanted.isdisjoint(publish.commits):
            kept.append(publish)
    return without(line, kept) if kept else None


def _is_between(line: RetiredLine, place: int, wanted: set[str]) -> bool:
    """Whether a wanted state lies between two commits of this publish; it is built from the states before and after."""
    return not wanted.isdisjoint(line.publishes[place].commits[:-1])


def keep_their_tables(kept: Kept, lines: Iterable[KeptLine]) -> None:
    """Keep the table versions that the kept states of deleted branches name."""
    for line in lines:
        for publish in () if line.kept is None else line.kept.publishes:
            for entry in publish.state.tables.values():
                kept.setdefault(entry.location, KeptVersions()).singles.add(entry.version)


def forget_others(context: CommitContext, lines: Iterable[KeptLine]) -> None:
    """Remove the histories, or parts of them, that are not kept. Called first: a history must not name removed versions."""
    for line in lines:
        failpoints.hit("cleanup.before_retired")
        if line.kept is None:
            remove_line(context.store, context.root, line.found)
        elif len(line.kept.publishes) != len(line.found.publishes):
            write_line(context.store, context.root, line.kept)
