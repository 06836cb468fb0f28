"""Records of running jobs that stage files: `__staging/<job id>.json`, written before the first file.

Staged files that no version references yet look like garbage. While a job runs, its record says for which tables it stages;
cleanup leaves those alone until the record's lease has run out. The folder `__staging/<job id>/` is the job's scratch.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import datetime

import orjson

from omnigraph import failpoints
from omnigraph.commit.record_fields import Fields
from omnigraph.errors import OmnigraphError
from omnigraph.ids import is_ulid, now_micros
from omnigraph.storage.lease import this_process
from omnigraph.storage.objects import ObjectStore
from omnigraph.storage.tables.location import Location

FOLDER = "__staging"
FORMAT = 1
#: The kind of a job that copies the files of the graph to a backup: while it runs, cleanup takes nothing away.
BACKUP = "backup"
#: A record is renewed three times within its lease, so only a dead job's runs out.
LEASE_SECONDS = 900.0

failpoints.declare("staging.job_written", "staging.job_removed")

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class StagingJob:
    """One running job: which tables (and which of their Lance branches) it stages files for, and until when it counts."""

    job_id: str
    kind: str
    branch: str
    process: str
    started_at: int
    expires_at: int
    tables: tuple[Location, ...]

    @property
    def path(self) -> str:
        return _record_path(self.job_id)

    def is_expired(self, now: int | None = None) -> bool:
        """Whether the lease has run out: the job is dead, and what it staged is garbage."""
        return self.expires_at < (now_micros() if now is None else now)

    def to_json(self) -> bytes:
        tables = [{"path": table.path, "branch": table.branch} for table in self.tables]
        return orjson.dumps({"format": FORMAT, **asdict(self), "tables": tables}, option=orjson.OPT_INDENT_2)


def scratch_folder(job_id: str) -> str:
    """Where a job may keep objects of its own, such as the keys its tasks exchange; it goes with the record."""
    return f"{FOLDER}/{job_id}"


def list_jobs(store: ObjectStore) -> list[StagingJob]:
    """Every record, oldest first, expired ones too; one that can not be read is an error, never taken for none."""
    names = (info.path.removeprefix(f"{FOLDER}/") for info in store.list(FOLDER))
    ids = sorted(name.removesuffix(".json") for name in names if name.endswith(".json") and "/" not in name)
    found = (read_job(store, job_id) for job_id in ids if is_ulid(job_id))
    return [job for job in found if job is not None]


def read_job(store: ObjectStore, job_id: str) -> StagingJob | None:
    """The record of a job; None when it has ended."""
    data = store.get_or_none(_record_path(job_id))
    return None if data is None else parse_job(data, job_id)


def parse_job(data: bytes, job_id: str) -> StagingJob:
    """A record from its JSON; what can not be read is refused with the file's name: cleanup must not guess."""
    try:
        fields = Fields(orjson.loads(data), "the record")
        if fields.number("format") > FORMAT:
            raise ValueError("it was written by a newer OmniGraph")
        return StagingJob(
            job_id=job_id,
            kind=fields.text("kind"),
            branch=fields.text("branch"),
            process=fields.text("process"),
            started_at=fields.number("started_at"),
            expires_at=fields.number("expires_at"),
            tables=tuple(_location(Fields(table, "a table")) for table in fields.list("tables")),
        )
    except (ValueError, TypeError) as error:
        raise OmnigraphError(
            f"the staging record {_record_path(job_id)} can not be read ({error}); remove it when no load is running"
        ) from None


def _record_path(job_id: str) -> str:
    return f"{FOLDER}/{job_id}.json"


def _location(fields: Fields) -> Location:
    return Location(fields.text("path"), fields.optional_text("branch"))


def remove_job(store: ObjectStore, job_id: str) -> None:
    """Remove a job's record, then its scratch. In this order, whoever puts something there meanwhile sees that it is over."""
    store.delete(_record_path(job_id))
    store.delete_prefix(scratch_folder(job_id))


def take_back_when_over(store: ObjectStore, job_id: str) -> None:
    """To be called by a task that has put something into a job's scratch: remove it again when the job has ended.

    Spark may run a task twice, and the second one may still work when the job has its results and has ended.
    """
    if not store.exists(_record_path(job_id)):
        store.delete_prefix(scratch_folder(job_id))


def ownerless_scratch(store: ObjectStore, before: datetime) -> list[str]:
    """The ids of jobs that have scratch and no record, and put nothing there since `before`: a process died as it removed it."""
    newest: dict[str, datetime] = {}
    records = set()
    for info in store.list(FOLDER):
        job_id, slash, _ = info.path.removeprefix(f"{FOLDER}/").partition("/")
        if slash:
            newest[job_id] = max(info.modified, newest.get(job_id, info.modified))
        else:
            records.add(job_id.removesuffix(".json"))
    return [job_id for job_id, modified in newest.items() if job_id not in records and modified < before]


class RunningJob:
    """A job that runs here, and its record as it was written last."""

    def __init__(self, store: ObjectStore, job: StagingJob, lease_seconds: float) -> None:
        self._store = store
        self._lease_seconds = lease_seconds
        self._writing = threading.Lock()
        self.job = job

    def add(self, *tables: Location) -> None:
        """Name further tables; to be called before the first file is staged for them."""
        self.write(self.job.tables + tables)

    def write(self, tables: tuple[Location, ...] | None = None) -> None:
        """Put the record, with its lease started anew."""
        with self._writing:
            expires = now_micros() + int(self._lease_seconds * 1e6)
            self.job = replace(self.job, expires_at=expires, tables=self.job.tables if tables is None else tables)
            self._store.put(self.job.path, self.job.to_json())


@contextmanager
def staging_job(
    store: ObjectStore,
    job_id: str,
    kind: str,
    branch: str,
    tables: Sequence[Location],
    *,
    lease_seconds: float = LEASE_SECONDS,
    ends: bool = True,
) -> Iterator[RunningJob]:
    """A job's record for a block: written at its start, renewed while it lasts, removed at its end.

    `ends`: the job is over with the block. Where it is not, as in a task, somebody else removes the record or its lease runs out.
    """
    now = now_micros()
    running = RunningJob(
        store, StagingJob(job_id, kind, branch, this_process(), now, now, tuple(tables)), lease_seconds
    )
    running.write()
    ended = threading.Event()
    keeper = threading.Thread(target=_keep, args=(running, lease_seconds, ended), name=f"staging {job_id}", daemon=True)
    keeper.start()
    try:
        failpoints.hit("staging.job_written")
        yield running
    finally:
        ended.set()
        keeper.join()
        if ends:
            _remove_quietly(store, job_id)


def _keep(running: RunningJob, lease_seconds: float, ended: threading.Event) -> None:
    """Renew a record until its job has ended; a renewal that fails is tried again in time."""
    while not ended.wait(lease_seconds / 3):
        try:
            running.write()
        except OmnigraphError as error:
            _log.warning("staging record %s could not be renewed: %s", running.job.path, error)


def _remove_quietly(store: ObjectStore, job_id: str) -> None:
    """The job is over, well or not; a record that stays runs out by itself."""
    try:
        remove_job(store, job_id)
        failpoints.hit("staging.job_removed")
    except OmnigraphError as error:
        _log.warning("staging record of job %s could not be removed: %s", job_id, error)
