"""`backup`: one point of a graph, with all branches, history and tags, as an openable graph at another place.

1. Under the locks of all branches, with everything settled, the files are listed, and files that may be replaced are read.
   After that all writers go on: listed files are never changed, and a record in `__staging` keeps cleanup from removing them.
2. Files whose names are never reused go to their place in the backup, all others below `__backup/next`. An earlier backup at
   that place is unchanged and readable.
3. `__backup/next.json` lists the whole new backup. It is the turning point: before it the earlier backup counts, after it the
   new one. The remaining work needs only the backup: files get their names, and files that the graph no longer has are removed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from operator import attrgetter
from typing import Any

import orjson

from omnigraph import failpoints
from omnigraph.commit.branches import branch_names
from omnigraph.commit.context import CommitContext
from omnigraph.commit.model import MAIN
from omnigraph.commit.place import ROOT_RECORD, PlaceRecord, read_record
from omnigraph.commit.staging_jobs import BACKUP, staging_job
from omnigraph.errors import AlreadyExists, BadRequest, ManifestContention
from omnigraph.ids import new_ulid, now_micros
from omnigraph.maintenance.backup_files import (
    INVENTORY,
    NEXT,
    PLAN,
    KnownFile,
    copy_files,
    copy_specs,
    decoded,
    encoded,
    is_copied,
    is_named_once,
    is_unchanged,
    mark_of,
    read_inventory,
)
from omnigraph.maintenance.cleanup import all_locks
from omnigraph.maintenance.verify_files import chunks_of
from omnigraph.maintenance.workplace import Workplace
from omnigraph.shown import Shown
from omnigraph.spark.runner import Display
from omnigraph.storage.digests import LOG, Digest, digest_chunks, digest_of, fold_log, read_log
from omnigraph.storage.locks import BranchLocks
from omnigraph.storage.object_store import ObjectInfo, ObjectStore
from omnigraph.storage.objects import open_store
from omnigraph.storage.outputs import refuse_inside_graph
from omnigraph.storage.root import Root

#: The name of the lock of a place that a backup is written to, or restored to.
LOCK = "__backup__"
#: How often the point is captured again because files vanished while they were copied.
ATTEMPTS = 20
#: The assumed bytes per row, to weigh work on bytes like work on rows.
_BYTES_PER_ROW = 100
_AT_ONCE = 8

failpoints.declare(
    "backup.captured", "backup.copied", "backup.planned", "backup.installed", "backup.removed", "backup.recorded"
)


@dataclass(frozen=True, slots=True)
class BackupReport(Shown):
    """The contents of a backup, and the files this run has copied, or with `dry_run` would copy.

    `heads`: the head commit of each branch. `taken_at`: microseconds since the epoch.
    """

    target: str
    heads: Mapping[str, str]
    taken_at: int
    files: int
    bytes: int
    copied_files: int
    copied_bytes: int
    removed_files: int
    dry_run: bool = False

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values, ready for JSON."""
        return asdict(self)


@dataclass(frozen=True)
class _Point:
    """A graph at one moment: the listed files, and the content of the files that may be replaced at any time."""

    files: dict[str, ObjectInfo]
    contents: dict[str, bytes]
    recorded: Mapping[str, tuple[Digest, ...]]
    heads: dict[str, str]
    record: PlaceRecord
    taken_at: int


def backup(
    context: CommitContext, identities: tuple[str, ...], target: Root, workplace: Workplace, *, dry_run: bool
) -> BackupReport:
    """Bring the backup at a place up to date with the graph, or make it."""
    refuse_overlap(context.root, target, f"a backup of {context.root.uri}")
    store = open_store(target)
    if dry_run:
        known = _known(store, target, identities)
        with all_locks(context, "a backup is taken"):
            point = _captured(context, known)
        return _report(target, point, known, _wanted(point, known), dry_run=True)
    with alone(store, target):
        finish(store)
        known = _known(store, target, identities)
        with staging_job(context.store, new_ulid(), BACKUP, MAIN, ()):
            for _ in range(ATTEMPTS):
                with all_locks(context, "a backup is taken"):
                    point = _captured(context, known)
                failpoints.hit("backup.captured")
                wanted = _wanted(point, known)
                copied = _copy(context, target, store, point, wanted, workplace)
                if copied is not None:
                    break
            else:
                raise ManifestContention(
                    "files of this graph went while they were copied, again and again (branches that are deleted, say); "
                    "the backup is as it was, try again"
                )
        failpoints.hit("backup.copied")
        report = _report(target, point, known, wanted)
        _plan(store, identities, point, known, copied)
        failpoints.hit("backup.planned")
        finish(store)
    return report


def refuse_overlap(source: Root, target: Root, what: str) -> None:
    """Neither of two places may lie in the other, nor the target in a folder of any graph. `what`: the thing made there."""
    here, there = f"{source.uri}/", f"{target.uri}/"
    if here.startswith(there) or there.startswith(here):
        raise BadRequest(f"{what} can not lie at {target.uri}: one is inside the other; choose another place")
    refuse_inside_graph(target)


@contextmanager
def alone(store: ObjectStore, target: Root) -> Iterator[None]:
    """Hold the lock of a place that a backup is written to, or restored to; `AlreadyExists` if another process holds it."""
    with BranchLocks(store, target).try_hold(LOCK) as lock:
        if lock is None:
            raise AlreadyExists(
                f"another process is writing a backup or a restored graph at {target.uri}", name=target.uri
            )
        yield


def _known(store: ObjectStore, target: Root, identities: tuple[str, ...]) -> dict[str, KnownFile]:
    """What the backup of this graph at the target holds; refuses a place where something else lies.

    A file that went there, or has another size, is not held: it is copied again.
    """
    record = read_record(store)
    if record is not None and record.backup is not None:
        if not {record.backup.get("graph"), *record.backup.get("earlier", ())} & set(identities):
            raise BadRequest(f"{target.uri} is a backup of another graph ({record.uri}); choose another place")
        there = {info.path: info.size for info in store.list()}
        return {path: file for path, file in read_inventory(store).items() if there.get(path) == file.digest.size}
    begun = {info.path for info in store.list() if is_copied(info.path)}
    if record is not None or any(not is_named_once(path) for path in begun):
        raise BadRequest(f"{target.uri} holds something that is no backup; choose an empty place")
    return {}


# --- 1: the point -----------------------------------------------------------------------------------------------------


def _captured(context: CommitContext, known: Mapping[str, KnownFile]) -> _Point:
    """Capture the graph under the locks of all branches: the list of its files, and the content of replaceable files."""
    store = context.store
    record = read_record(store) or PlaceRecord(context.root.uri)
    files = {info.path: info for info in store.list() if is_copied(info.path)}
    replaceable = [
        path
        for path, info in files.items()
        if not is_named_once(path) and "/_versions/" not in path and not is_unchanged(info, known.get(path))
    ]
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        contents = dict(zip(replaceable, pool.map(store.get, replaceable), strict=True))
    heads = {branch: context.manifest.load(branch).head for branch in branch_names(context)}
    return _Point(files, contents, read_log(store).digests, heads, record, now_micros())


def _wanted(point: _Point, known: Mapping[str, KnownFile]) -> list[ObjectInfo]:
    return [info for path, info in point.files.items() if not is_unchanged(info, known.get(path))]


# --- 2: the files -----------------------------------------------------------------------------------------------------


def _copy(
    context: CommitContext,
    target: Root,
    store: ObjectStore,
    point: _Point,
    wanted: list[ObjectInfo],
    workplace: Workplace,
) -> dict[str, Digest] | None:
    """Copy the files that the backup lacks; returns their digests, or None when a file vanished or changed its size.

    Files of an interrupted run whose names are never reused are read and checked instead of copied.
    """
    there = {info.path: info.size for info in store.list()}
    copied: dict[str, Digest] = {}
    for path, data in point.contents.items():
        store.put(f"{NEXT}/{path}", data)
        copied[path] = digest_of(data)
    files = []
    for info in wanted:
        if info.path not in copied:
            recorded = point.recorded.get(info.path, ())
            if is_named_once(info.path) and there.get(info.path) == info.size and recorded:
                arrived = digest_chunks(chunks_of(target, info.path, info.size))
                if arrived in recorded:
                    copied[info.path] = arrived
                    continue
            place = info.path if is_named_once(info.path) else f"{NEXT}/{info.path}"
            files.append((info.path, place, info.size, recorded))
    specs = list(copy_specs(context.root, target, files))
    total = sum(file[2] for file in files)
    count = workplace.counter("copy", total)
    runner = workplace.runner(total // _BYTES_PER_ROW, len(specs))
    results = runner.run(copy_files, specs, display=Display(attrgetter("bytes"), count), stage="backup: copy files")
    if any(result.gone for result in results) or _replaced(context.store, wanted, copied):
        return None
    for result in results:
        copied |= result.copied
    return copied


def _replaced(store: ObjectStore, wanted: list[ObjectInfo], copied: Mapping[str, Digest]) -> bool:
    """Whether a version file was replaced while it was copied, because its branch was deleted and created again."""
    read = {info.path: mark_of(info) for info in wanted if not is_named_once(info.path) and info.path not in copied}
    now = {info.path: mark_of(info) for info in store.list()} if read else {}
    return any(now.get(path) != mark for path, mark in read.items())


# --- 3: the turning point ---------------------------------------------------------------------------------------------


def _plan(
    store: ObjectStore,
    identities: tuple[str, ...],
    point: _Point,
    known: Mapping[str, KnownFile],
    copied: Mapping[str, Digest],
) -> None:
    files = {
        path: KnownFile(copied[path], mark_of(info)) if path in copied else known[path]
        for path, info in point.files.items()
    }
    about = {
        "complete": True,
        "format": 1,
        "graph": identities[0],
        "earlier": list(identities[1:]),
        "taken_at": point.taken_at,
        "heads": point.heads,
    }
    record = replace(point.record, backup=about)
    install = sorted(path for path in copied if not is_named_once(path))
    plan = {"record": orjson.loads(record.to_json()), "install": install, "files": encoded(files)}
    store.put(PLAN, orjson.dumps(plan))


def finish(store: ObjectStore) -> None:
    """Complete the backup that `__backup/next.json` lists, if there is one. Repeatable; needs only the backup's files."""
    data = store.get_or_none(PLAN)
    if data is None:
        store.delete_prefix(NEXT)
        return
    plan = orjson.loads(data)
    files, record = decoded(plan["files"]), plan["record"]
    # While files get their names, the backup is marked incomplete and can not be opened.
    store.put(ROOT_RECORD, orjson.dumps(record | {"backup": record["backup"] | {"complete": False}}))

    def install(path: str) -> None:
        content = store.get_or_none(f"{NEXT}/{path}")
        if content is not None:  # else an earlier run has put it there
            store.put(path, content)

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        list(pool.map(install, plan["install"]))
    failpoints.hit("backup.installed")
    folders = {_folder(path) for path in (*files, *read_inventory(store))}
    store.delete_all(info.path for info in store.list() if _is_left_over(info.path, files, folders))
    failpoints.hit("backup.removed")
    store.delete(LOG)
    fold_log(store, added={path: file.digest for path, file in files.items()})
    store.put(INVENTORY, orjson.dumps({"format": 1, "files": plan["files"]}))
    store.put(ROOT_RECORD, orjson.dumps(record))
    failpoints.hit("backup.recorded")
    store.delete_prefix(NEXT)
    store.delete(PLAN)


def _folder(path: str) -> str:
    """The folder right below the backup that a file lies in; its own name where that is none."""
    return path.partition("/")[0]


def _is_left_over(path: str, files: Mapping[str, KnownFile], folders: set[str]) -> bool:
    """Whether a file of a backup belongs to an older point, or is what a killed process left half written.

    What lies beside the folders of the graph is not the backup's: a note, or the backup of another graph.
    """
    kept = path in files or path.startswith(("__backup/", "__locks/")) or path in (ROOT_RECORD, LOG)
    return not kept and _folder(path) in folders


def _report(
    target: Root, point: _Point, known: Mapping[str, KnownFile], wanted: list[ObjectInfo], *, dry_run: bool = False
) -> BackupReport:
    return BackupReport(
        target=target.uri,
        heads=point.heads,
        taken_at=point.taken_at,
        files=len(point.files),
        bytes=sum(info.size for info in point.files.values()),
        copied_files=len(wanted),
        copied_bytes=sum(info.size for info in wanted),
        removed_files=len(known.keys() - point.files.keys()),
        dry_run=dry_run,
    )
