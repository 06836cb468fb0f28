"""`cleanup`: removes what no kept commit needs, and nothing that a live branch, a tag, the feed or a running job reads.

It examines the store while others write. Then it briefly takes the locks of all branches: nothing is pending or moving, and
what must stay is computed again; records of the removals are written and the version files removed. The other files are
removed afterwards without locks, because nothing can name them any more.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import Any

from omnigraph.commit.audit import AUDIT_PATH
from omnigraph.commit.branch_refs import MANIFEST_PATH, SCHEMA_APPLY_LOCK
from omnigraph.commit.branches import branch_names
from omnigraph.commit.context import CommitContext
from omnigraph.commit.receipts import expired_receipts
from omnigraph.commit.recovery import heal
from omnigraph.commit.sidecar import list_sidecars
from omnigraph.commit.staging_jobs import BACKUP, list_jobs, ownerless_scratch, remove_job
from omnigraph.errors import (
    BranchNotFound,
    Conflict,
    HistoricalVersionReclaimed,
    ManifestContention,
    OmnigraphError,
    RecoveryRequired,
    StorageError,
)
from omnigraph.maintenance import leftovers
from omnigraph.maintenance.durations import feed_retention, so_long_ago, staging_grace
from omnigraph.maintenance.leftovers import DroppedTable
from omnigraph.maintenance.reachable import (
    Kept,
    KeptLine,
    KeptVersions,
    NamedLines,
    forget_others,
    keep_their_tables,
    kept_lines,
    kept_versions,
)
from omnigraph.maintenance.reclaim import Reclaim, plan_reclaim, still_unneeded, take_files, take_versions, unfinished
from omnigraph.maintenance.retention import KeptBranch, KeptFor, Policy, kept_branches
from omnigraph.shown import Shown
from omnigraph.storage.digests import fold_log
from omnigraph.storage.tables.dataset_files import DatasetFiles, LineFiles, list_dataset
from omnigraph.storage.tables.location import Location

_log = logging.getLogger(__name__)

#: How often the locks are taken again because a branch was made meanwhile.
LOCK_ATTEMPTS = 5

#: How often the store is examined without locks before it is examined under locks.
LOOKS_WITHOUT_LOCKS = 3

_DOING = "cleanup takes something away"


@dataclass(frozen=True, slots=True)
class CleanedDataset:
    """What was removed, or would be, from the datasets of one type. `type_key`: the path for other datasets."""

    type_key: str
    bytes_removed: int
    old_versions_removed: int
    error: str | None = None

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class CleanupReport(Shown):
    """What `cleanup` removed, or with `dry_run` would remove. `kept`: why commits stay although the policy lets them go."""

    keep: int | None
    older_than: timedelta | None
    dry_run: bool
    datasets: tuple[CleanedDataset, ...]
    kept: tuple[KeptFor, ...]

    @property
    def bytes_removed(self) -> int:
        """The total size of all removed files, in bytes."""
        return sum(dataset.bytes_removed for dataset in self.datasets)

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values, ready for JSON."""
        return {
            "keep_versions": self.keep,
            "older_than_secs": None if self.older_than is None else int(self.older_than.total_seconds()),
            "datasets": [dataset.to_dict() for dataset in self.datasets],
            "kept": [kept.to_dict() for kept in self.kept],
        }


def cleanup(context: CommitContext, policy: Policy, *, dry_run: bool = False) -> CleanupReport:
    """Remove everything that neither the policy nor any live part of the graph needs."""
    with all_locks(context, _DOING):
        pass  # settles what a dead writer left; raises if it can not be settled
    run = _Cleanup(context, policy)
    found = _look_while_branches_go(context, run)
    errors: dict[str, str] = {}
    if not dry_run:
        found, errors = run.carry_out(found)
    datasets = tuple(_report(run.type_keys(), found, errors))
    return CleanupReport(policy.keep, policy.older_than, dry_run, datasets, run.reasons())


def _look_while_branches_go(context: CommitContext, run: _Cleanup) -> Survey:
    """Examine the store without locks; repeat if a branch, or a fork of it, is deleted meanwhile.

    The last attempt holds all locks, so that cleanup succeeds even if branches live shorter than an examination; whatever it
    can not read then is really missing.
    """
    for _ in range(LOOKS_WITHOUT_LOCKS):
        try:
            return run.survey()
        except (BranchNotFound, HistoricalVersionReclaimed, StorageError) as gone:
            _log.info("cleanup looks again: %s", gone)
    with all_locks(context, _DOING):
        return run.survey()


@dataclass(frozen=True)
class Survey:
    """What can be removed: versions and files of each dataset, whole lines, whole tables."""

    reclaims: tuple[Reclaim, ...]
    lines: tuple[tuple[Location, int, int], ...]
    tables: tuple[DroppedTable, ...]


class _Cleanup:
    """One call of `cleanup`."""

    def __init__(self, context: CommitContext, policy: Policy) -> None:
        self._context = context
        self._policy = policy
        self._feed = feed_retention()
        self._abandoned_before = so_long_ago(staging_grace())
        self._states = NamedLines(context)
        self.kept: Kept = {}
        self._branches: list[KeptBranch] = []
        self._retired: list[KeptLine] = []
        self._records: dict[str, list[str]] = {}

    def survey(self) -> Survey:
        """Examine every dataset, without a lock."""
        context = self._context
        self._look_at_branches()
        staging = {location.path for location in self._claimed()}
        known: dict[str, set[str]] = {}
        for left in unfinished(context.store):
            known.setdefault(left.dataset, set()).update(left.names)
            self._records.setdefault(left.dataset, []).append(left.record)
        folders = leftovers.table_folders(context)
        tables = leftovers.dropped_tables(
            context, folders, self.kept, self._branches, self._states, self._abandoned_before, staging
        )
        gone = {table.path for table in tables}
        reclaims, lines = [], []
        named = {location.path for location in self.kept}
        for path in [AUDIT_PATH, MANIFEST_PATH, *(path for path in folders if path not in gone)]:
            if path not in named and path != AUDIT_PATH:
                continue
            files = list_dataset(context.store, path)
            if path == AUDIT_PATH:
                self._keep_newest(files)
            orphans = leftovers.orphaned_lines(files, self.kept, self._branches, self._states)
            # A job forks a table before it stages files for it. Its record is older than the fork, so it is read only now.
            claimed = self._claimed() if orphans else set()
            for location in orphans:
                if location in claimed:
                    self.kept[location] = KeptVersions(floor=0)
                    continue
                line = files.lines.get(location.branch, LineFiles())
                lines.append((location, line.size, len(line.versions)))
                files.refs.discard(location.branch or "")
            abandoned_before = None if path in staging else self._abandoned_before
            reclaims.append(
                plan_reclaim(context, files, self.kept, known=known.get(path, ()), abandoned_before=abandoned_before)
            )
        return Survey(tuple(reclaims), tuple(lines), tuple(tables))

    def carry_out(self, found: Survey) -> tuple[Survey, dict[str, str]]:
        """Remove what was found; returns what was removed, and errors by the path of the dataset."""
        context = self._context
        errors: dict[str, str] = {}
        done: list[Reclaim] = []
        with all_locks(context, _DOING):
            self._refuse_backup()
            again = found if self._nothing_new(found) else self.survey()
            forget_others(context, self._retired)
            # Before the files: a file without a digest is no damage, but a digest without its file is.
            fold_log(context.store, without={path for reclaim in again.reclaims for path in reclaim.paths()})
            for reclaim in again.reclaims:
                with _collected(errors, reclaim.path):
                    if reclaim:
                        record = take_versions(context, reclaim)
                        self._records.setdefault(reclaim.path, []).append(record)
                    done.append(reclaim)
            dropped = []
            for location, size, versions in again.lines:
                with _collected(errors, location.path):
                    if leftovers.drop_line(context, location):
                        dropped.append((location, size, versions))
            removed = []
            for table in again.tables:
                with _collected(errors, table.path):
                    leftovers.remove_table(context, table)
                    removed.append(table)
            if dropped or removed:
                # Their digests were cancelled by lines of their own.
                fold_log(context.store)
        for reclaim in done:
            with _collected(errors, reclaim.path):
                take_files(context.store, reclaim, self._records.pop(reclaim.path, []))
        self._drop_dead_records()
        return Survey(tuple(done), tuple(dropped), tuple(removed)), errors

    def _refuse_backup(self) -> None:
        """Raise while a backup is running: the files it has listed must not be removed."""
        for job in list_jobs(self._context.store):
            if job.kind == BACKUP and not job.is_expired():
                raise Conflict(
                    f"a backup is being taken (by {job.process}); nothing was removed, clean up when it has ended"
                )

    def _claimed(self) -> set[Location]:
        """The lines for which a running job is staging files."""
        jobs = list_jobs(self._context.store)
        return {location for job in jobs if not job.is_expired() for location in job.tables}

    def type_keys(self) -> dict[str, str]:
        """The type keys by the paths of their tables."""
        return {entry.path: entry.key for branch in self._branches for entry in branch.head.tables.values()}

    def reasons(self) -> tuple[KeptFor, ...]:
        """Why commits stay although the policy lets them go, branch by branch."""
        return tuple(reason for branch in self._branches for reason in branch.reasons)

    def _look_at_branches(self) -> None:
        self._look_at_what_stays()
        self._records = {}

    def _look_at_what_stays(self) -> None:
        self._branches = kept_branches(self._context, self._policy, self._feed)
        self.kept = kept_versions(self._context, self._branches)
        self._retired = kept_lines(self._context, self._policy, self._feed)
        keep_their_tables(self.kept, self._retired)

    def _nothing_new(self, found: Survey) -> bool:
        """Whether everything found for removal is still unneeded; called under the locks."""
        self._look_at_what_stays()
        needed = {*self.kept, *(self._claimed() if found.lines else ())}
        if any(location in needed for location, _, _ in found.lines):
            return False
        if {table.path for table in found.tables} & {location.path for location in self.kept}:
            return False
        return all(
            reclaim.path == AUDIT_PATH or still_unneeded(self._context, reclaim, self.kept) is not None
            for reclaim in found.reclaims
        )

    def _keep_newest(self, files: DatasetFiles) -> None:
        """Keep only the newest version of the audit log: no other is ever read."""
        versions = files.lines[None].versions if None in files.lines else {}
        self.kept[Location(AUDIT_PATH)] = KeptVersions(floor=max(versions, default=0))

    def _drop_dead_records(self) -> None:
        """Remove records of dead jobs with their scratch, records of finished reclaims, and expired receipts."""
        store = self._context.store
        store.delete_all(path for paths in self._records.values() for path in paths)
        for job in list_jobs(store):
            if job.is_expired():
                remove_job(store, job.job_id)
        for job_id in ownerless_scratch(store, self._abandoned_before):
            remove_job(store, job_id)
        store.delete_all(expired_receipts(store))


@contextmanager
def all_locks(context: CommitContext, doing: str) -> Iterator[None]:
    """Hold the locks of all branches, with all pending writes settled: nobody writes, and nothing is half done."""
    for _ in range(LOCK_ATTEMPTS):
        names = branch_names(context)
        # `SCHEMA_APPLY_LOCK` keeps branches from being made.
        with context.locks.hold_all([*names, SCHEMA_APPLY_LOCK]):
            if branch_names(context) != names:
                continue
            heal(context, holding=names)
            waiting = list_sidecars(context.store)
            if waiting:
                raise RecoveryRequired(
                    f"operation {waiting[0]} waits for recovery, and must be settled before {doing}; "
                    "see `omnigraph recovery list`",
                    operation_id=waiting[0],
                )
            yield
            return
    raise ManifestContention(f"branches are made and deleted all the time, and {doing} while none is; try again")


@contextmanager
def _collected(errors: dict[str, str], path: str) -> Iterator[None]:
    """Collect the error of one dataset, so that the other datasets are still cleaned."""
    try:
        yield
    except OmnigraphError as error:
        _log.warning("cleanup of %s was not finished: %s", path, error)
        errors[path] = error.message


def _report(keys: dict[str, str], found: Survey, errors: dict[str, str]) -> Iterator[CleanedDataset]:
    """What was removed, by type; datasets with nothing removed are left out."""
    keys |= {table.path: table.key for table in found.tables if table.key is not None}
    sizes: dict[str, list[int]] = {path: [0, 0] for path in errors}

    def count(path: str, size: int, versions: int) -> None:
        amounts = sizes.setdefault(path, [0, 0])
        amounts[0] += size
        amounts[1] += versions

    for reclaim in found.reclaims:
        if reclaim:
            count(reclaim.path, reclaim.size, reclaim.version_count)
    for location, size, versions in found.lines:
        count(location.path, size, versions)
    for table in found.tables:
        count(table.path, table.size, table.versions)
    for path, (size, versions) in sorted(sizes.items(), key=lambda item: keys.get(item[0], item[0])):
        yield CleanedDataset(keys.get(path, path), size, versions, errors.get(path))
