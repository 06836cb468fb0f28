"""`restore`: makes a graph from a backup, as of the backup or of an earlier moment.

For an earlier moment, later versions are left out: of every branch the manifest versions from its first later commit on, of
every table the versions that no branch had published then, and branches that were made later. So a restored graph equals
what was on disk at that moment. The schema files come last; until they exist, the graph can not be opened.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from operator import attrgetter
from typing import Any

import orjson

from omnigraph import failpoints
from omnigraph.commit import schema_files
from omnigraph.commit.branch_refs import MANIFEST_PATH, BranchRef, list_refs
from omnigraph.commit.context import CommitContext
from omnigraph.commit.history import made_on
from omnigraph.commit.model import MAIN, Commit, ManifestState
from omnigraph.commit.place import ROOT_RECORD, PlaceRecord, read_record
from omnigraph.errors import AlreadyInitialized, BadRequest, HistoricalVersionReclaimed
from omnigraph.maintenance.backup import alone, finish, refuse_overlap
from omnigraph.maintenance.backup_files import KnownFile, copy_files, copy_specs, read_inventory
from omnigraph.maintenance.workplace import Workplace
from omnigraph.shown import Shown
from omnigraph.spark.runner import Display
from omnigraph.storage.digests import digest_of, fold_log
from omnigraph.storage.object_store import ObjectStore
from omnigraph.storage.objects import open_store
from omnigraph.storage.root import Root
from omnigraph.storage.tables.location import Location
from omnigraph.storage.tables.recording import ref_file
from omnigraph.storage.tables.version_files import version_of, versions_path

CLAIM = "__init_claim.json"
_BYTES_PER_ROW = 100

failpoints.declare("restore.claimed", "restore.copied", "restore.before_schema", "restore.before_state")

#: The files of main's schema for the new graph, by name.
SchemaFiles = Mapping[str, bytes]


@dataclass(frozen=True, slots=True)
class RestoreReport(Shown):
    """The graph that was made, or with `dry_run` would be. `left_out`: branches of the backup that were made later."""

    uri: str
    source: str
    heads: Mapping[str, str]
    left_out: tuple[str, ...]
    files: int
    bytes: int
    dry_run: bool = False

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Moment:
    """A backup at a moment: by branch its state, and the newest manifest version that is copied (None: all versions)."""

    states: dict[str, ManifestState]
    newest: dict[str, int | None]
    left_out: tuple[str, ...]


# --- the moment -------------------------------------------------------------------------------------------------------


def moment_of(context: CommitContext, at: Commit | int | None) -> Moment:
    """The backup as of a commit, of a time (microseconds since the epoch), or (None) as it is."""
    refs = {ref.name: ref for ref in list_refs(context.store)}
    manifest = context.manifest
    if at is None:
        return Moment({name: manifest.load(name) for name in [MAIN, *refs]}, dict.fromkeys([MAIN, *refs]), ())
    if isinstance(at, Commit) and at.group is not None and at.group.place < at.group.size:
        raise BadRequest(f"commit {at.id} was published together with later ones; name the last of them")
    time = at.created_at if isinstance(at, Commit) else at
    newest: dict[str, int | None] = {}
    states: dict[str, ManifestState] = {}
    waiting = [None, *sorted(refs.values(), key=lambda ref: ref.name)]
    while True:
        ready = [ref for ref in waiting if ref is None or ref.parent in newest]
        if not ready:
            break
        for ref in ready:
            waiting.remove(ref)
            name = MAIN if ref is None else ref.name
            if ref is not None and not _was_made(ref, newest[ref.parent], time):
                continue
            newest[name] = _newest_before(context, name, ref, time)
            version = newest[name]
            states[name] = manifest.load(name) if version is None else manifest.load_at(name, version)
    return Moment(states, newest, tuple(sorted(refs.keys() - newest.keys())))


def _was_made(ref: BranchRef, newest_of_parent: int | None, time: int) -> bool:
    """Whether a branch existed at a moment. Its ref has the second of its creation; its parent's version gives the order."""
    in_time = ref.created_at * 1_000_000 <= time
    return in_time and (newest_of_parent is None or ref.parent_version <= newest_of_parent)


def _newest_before(context: CommitContext, name: str, ref: BranchRef | None, time: int) -> int | None:
    """The newest manifest version of a branch before its first commit after the time; None when there is no later commit."""
    first = 0 if ref is None else ref.parent_version
    own = made_on(context.manifest.commits(name), context.manifest.load(name), ref)
    later = [commit.manifest_version for commit in own if commit.created_at > time and commit.manifest_version > first]
    if not later:
        return None
    folder = versions_path(Location(MANIFEST_PATH, None if name == MAIN else name))
    versions = [version_of(info.path) for info in context.store.list(folder)]
    before = [version for version in versions if version is not None and version < min(later)]
    if not before:
        raise HistoricalVersionReclaimed(
            f"the backup has no state of branch '{name}' at that moment: it is older than the graph, or cleanup took it; "
            "see `omnigraph commit list` on the backup",
            version=f"before {min(later)}",
        )
    return max(before)


def kept_files(files: Mapping[str, KnownFile], moment: Moment) -> dict[str, KnownFile]:
    """The files of a backup except those made after the moment."""
    limits: dict[str, int] = {}
    for name, version in moment.newest.items():
        if version is not None:
            limits[versions_path(Location(MANIFEST_PATH, None if name == MAIN else name))] = version
    if any(version is not None for version in moment.newest.values()) or moment.left_out:
        for state in moment.states.values():
            for entry in state.tables.values():
                folder = versions_path(entry.location)
                limits[folder] = max(limits.get(folder, 0), entry.version)
    gone = [Location(MANIFEST_PATH, name) for name in moment.left_out]
    prefixes = tuple(f"{branch.dataset_path}/" for branch in gone)
    refs = {ref_file(branch) for branch in gone}

    def stays(path: str) -> bool:
        version = version_of(path)
        if version is not None and version > limits.get(path.rpartition("/")[0], version):
            return False
        return path not in refs and not path.startswith(prefixes)

    return {path: file for path, file in files.items() if stays(path)}


# --- the graph --------------------------------------------------------------------------------------------------------


def restore(
    backup: CommitContext,
    target: Root,
    moment: Moment,
    schema: SchemaFiles,
    workplace: Workplace,
    *,
    dry_run: bool,
) -> RestoreReport:
    """Make a graph at an empty place. `schema`: the three files of main's schema at the moment."""
    refuse_overlap(backup.root, target, f"a graph restored from {backup.root.uri}")
    record = backup_record(backup)
    files = kept_files(read_inventory(backup.store), moment)
    report = RestoreReport(
        uri=target.uri,
        source=backup.root.uri,
        heads={name: state.head for name, state in moment.states.items()},
        left_out=moment.left_out,
        files=len(files),
        bytes=sum(file.digest.size for file in files.values()),
        dry_run=dry_run,
    )
    store = open_store(target)
    if dry_run:
        _refuse_occupied(store, target)
        return report
    with alone(store, target):
        _refuse_occupied(store, target)
        store.put(CLAIM, orjson.dumps({"restore": backup.root.uri}))
        failpoints.hit("restore.claimed")
        copied = {path: file for path, file in files.items() if path not in schema}
        _copy(backup.root, target, store, copied, workplace)
        failpoints.hit("restore.copied")
        store.put(ROOT_RECORD, PlaceRecord(record.uri, record.identity, record.earlier).to_json())
        digests = {path: file.digest for path, file in copied.items()}
        fold_log(store, added=digests | {path: digest_of(data) for path, data in schema.items()})
        for name in (schema_files.SOURCE, schema_files.COMPILED, schema_files.STATE):
            failpoints.hit("restore.before_state" if name == schema_files.STATE else "restore.before_schema")
            store.put(name, schema[name])
        store.delete(CLAIM)
    return report


def backup_record(context: CommitContext) -> PlaceRecord:
    """The place record of a backup; the rest of an interrupted `backup` is finished first."""
    record = read_record(context.store)
    if record is not None and record.backup is not None and not record.backup.get("complete"):
        with alone(context.store, context.root):
            finish(context.store)
        record = read_record(context.store)
    if record is None or record.backup is None:
        raise BadRequest(f"{context.root.uri} is no complete backup; make one with `omnigraph backup`")
    return record


def _refuse_occupied(store: ObjectStore, target: Root) -> None:
    """Raise unless the place is empty, or holds the rest of a dead `restore`."""
    claim = store.get_or_none(CLAIM)
    if claim is not None and b'"restore"' in claim:
        return
    found = next((info.path for info in store.list() if not info.path.startswith("__locks/")), None)
    if found is not None:
        raise AlreadyInitialized(
            f"{target.uri} is not empty (it holds {found}); restore to an empty place", name=target.uri
        )


def _copy(source: Root, target: Root, store: ObjectStore, files: Mapping[str, KnownFile], workplace: Workplace) -> None:
    """Copy all files; leftovers of a dead `restore` that do not belong here are removed first."""
    there = {
        info.path: info.size for info in store.list() if info.path != CLAIM and not info.path.startswith("__locks/")
    }
    store.delete_all(path for path in there if path not in files)
    wanted = [(path, path, file.digest.size, (file.digest,)) for path, file in files.items()]
    specs = list(copy_specs(source, target, wanted))
    total = sum(file[2] for file in wanted)
    runner = workplace.runner(total // _BYTES_PER_ROW, len(specs))
    display = Display(attrgetter("bytes"), workplace.counter("copy", total))
    results = runner.run(copy_files, specs, display=display, stage="restore: copy files")
    gone = [path for result in results for path in result.gone]
    if gone:
        raise BadRequest(
            f"the backup {source.uri} lacks {gone[0]}, or it has another size; run `omnigraph backup` again, which copies "
            "such files anew, or restore another backup"
        )
