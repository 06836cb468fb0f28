"""What can be removed from one dataset: versions that nothing keeps, and files that only these versions named.

Also files that no version ever named, left by dead writers, once they are old enough. A record of the file names to remove lets
a later cleanup finish what a dead one has begun; it checks again whether the files are needed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime

import orjson

from omnigraph import failpoints
from omnigraph.commit.context import CommitContext
from omnigraph.errors import StorageError
from omnigraph.ids import new_ulid
from omnigraph.maintenance.reachable import Kept, KeptVersions
from omnigraph.storage.objects import ObjectInfo, ObjectStore
from omnigraph.storage.tables.dataset_files import DatasetFiles, LineFiles, names_added_by, names_of
from omnigraph.storage.tables.location import Location
from omnigraph.storage.tables.version_files import note_reclaimed

FOLDER = "__reclaim"

failpoints.declare("cleanup.after_record", "cleanup.mid_versions", "cleanup.after_versions", "cleanup.mid_files")


@dataclass(frozen=True)
class Reclaim:
    """What is removed from one dataset. `names`: of the removed files; `seen`: the newest version of each line then."""

    path: str
    versions: dict[Location, dict[int, ObjectInfo]] = field(default_factory=dict)
    names: frozenset[str] = frozenset()
    files: tuple[ObjectInfo, ...] = ()
    seen: dict[Location, int] = field(default_factory=dict)

    @property
    def version_count(self) -> int:
        return sum(map(len, self.versions.values()))

    @property
    def size(self) -> int:
        return sum(info.size for info in self._infos())

    def paths(self) -> Iterator[str]:
        """The paths of all removed files."""
        return (info.path for info in self._infos())

    def _infos(self) -> Iterator[ObjectInfo]:
        yield from (info for line in self.versions.values() for info in line.values())
        yield from self.files

    def __bool__(self) -> bool:
        return bool(self.versions or self.files)


def plan_reclaim(
    context: CommitContext,
    files: DatasetFiles,
    kept: Kept,
    *,
    known: Iterable[str] = (),
    abandoned_before: datetime | None = None,
) -> Reclaim:
    """Decide what is removed from a dataset.

    `known`: names that an unfinished cleanup has found unneeded. `abandoned_before`: files that no version names are removed
    if they are older; None: such files stay, because a job is staging files.
    """
    lines = {Location(files.path, branch): line for branch, line in files.lines.items() if _lives(files, branch)}
    doomed: dict[Location, dict[int, ObjectInfo]] = {}
    names = set(known)
    for location, line in lines.items():
        staying = kept.get(location, KeptVersions())
        newest = max(line.versions, default=0)
        gone = {version: info for version, info in line.versions.items() if version not in staying and version < newest}
        if gone:
            doomed[location] = gone
            names |= _names_of_all(context, location, sorted(gone))
    if abandoned_before is not None:
        names |= _abandoned(lines.values(), abandoned_before)
    staying_names = _needed(context, lines, doomed, names)
    names -= staying_names
    going = [info for line in lines.values() for name, infos in line.named.items() if name in names for info in infos]
    for location, gone in doomed.items():
        # A transaction file is read only by writers that commit on top of its version.
        going += [info for made, infos in lines[location].transactions.items() if made in gone for info in infos]
    seen = {location: max(line.versions) for location, line in lines.items() if line.versions}
    return Reclaim(files.path, doomed, frozenset(names), tuple(going), seen)


def _lives(files: DatasetFiles, branch: str | None) -> bool:
    return branch is None or branch in files.refs


def _abandoned(lines: Iterable[LineFiles], before: datetime) -> set[str]:
    """The names whose files are all older than `before`."""
    found: dict[str, bool] = {}
    for line in lines:
        for name, infos in line.named.items():
            found[name] = found.get(name, True) and all(info.modified < before for info in infos)
    return {name for name, is_old in found.items() if is_old}


def _needed(
    context: CommitContext,
    lines: dict[Location, LineFiles],
    doomed: dict[Location, dict[int, ObjectInfo]],
    names: set[str],
) -> set[str]:
    """The names that a remaining version refers to; reads the newest versions first, and stops when no name is left."""
    asked, needed = set(names), set()
    staying = [
        (version, location)
        for location, line in lines.items()
        for version in line.versions
        if version not in doomed.get(location, {})
    ]
    for version, location in sorted(staying, key=lambda one: -one[0]):
        if not asked:
            break
        found = asked & names_of(context.tables, location, version)
        needed |= found
        asked -= found
    return needed


def _names_of_all(context: CommitContext, location: Location, versions: Sequence[int]) -> set[str]:
    """The names that some versions refer to. For consecutive versions only the added names are read, which saves time.

    An unreadable version adds nothing: its files are removed later, when they are old enough.
    """
    names: set[str] = set()
    before = None
    for version in versions:
        try:
            added = names_added_by(context.tables, location, version) if before == version - 1 else None
            names |= names_of(context.tables, location, version) if added is None else added
            before = version
        except StorageError as error:
            if error.kind not in ("permanent", "not_found"):
                raise
    return names


# --- carrying it out --------------------------------------------------------------------------------------------------


def still_unneeded(context: CommitContext, plan: Reclaim, kept: Kept) -> Reclaim | None:
    """Check the plan again under the locks; None if a version or file in it is needed now."""
    for location, versions in plan.versions.items():
        staying = kept.get(location, KeptVersions())
        if any(version in staying for version in versions):
            return None
    newer: set[str] = set()
    for location, seen in plan.seen.items():
        head = context.tables.head_version(location)
        for version in range(seen + 1, (head or seen) + 1):
            newer |= names_of(context.tables, location, version)
    if newer & plan.names:
        return None
    return plan


def take_versions(context: CommitContext, plan: Reclaim) -> str:
    """Write the record, then remove the version files, so that the versions can not be opened. Returns the record's path."""
    store = context.store
    record = f"{FOLDER}/{new_ulid()}.json"
    store.put(record, orjson.dumps({"format": 1, "dataset": plan.path, "names": sorted(plan.names)}))
    context.make_durable(record)
    failpoints.hit("cleanup.after_record")
    for location, versions in plan.versions.items():
        note_reclaimed(store, context.root, location, max(versions))
        paths = [versions[version].path for version in sorted(versions)]
        half = len(paths) // 2
        store.delete_all(paths[:half])
        failpoints.hit("cleanup.mid_versions")
        store.delete_all(paths[half:])
        context.tables.forget(location)
    failpoints.hit("cleanup.after_versions")
    return record


def take_files(store: ObjectStore, plan: Reclaim, records: Iterable[str]) -> None:
    """Remove the files that only removed versions named, then the records of the removal."""
    paths = [info.path for info in plan.files]
    half = len(paths) // 2
    store.delete_all(paths[:half])
    failpoints.hit("cleanup.mid_files")
    store.delete_all(paths[half:])
    store.delete_all(records)


@dataclass(frozen=True, slots=True)
class Unfinished:
    """What a dead cleanup has left to do."""

    record: str
    dataset: str
    names: frozenset[str]


def unfinished(store: ObjectStore) -> Iterator[Unfinished]:
    """The records of unfinished cleanups; an unreadable record yields no names."""
    for info in store.list(FOLDER):
        data = store.get_or_none(info.path)
        try:
            read = orjson.loads(data or b"{}")
            yield Unfinished(info.path, read["dataset"], frozenset(read["names"]))
        except (orjson.JSONDecodeError, KeyError, TypeError):
            yield Unfinished(info.path, "", frozenset())
