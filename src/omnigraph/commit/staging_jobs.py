"""Records of running jobs that stage files: `__staging/<job id>.json`, written before the first file.

Staged files that no version names yet look like garbage. While a job runs, its record names the tables it stages files for;
cleanup leaves these tables alone until the lease of the record has run out. The folder `__staging/<job id>/` is its scratch.
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
#: The kind of a job that copies the graph's files to a backup: while it runs, cleanup removes nothing.
BACKUP = "backup"
#: A record is renewed three times per lease, so only the record of a dead job expires.
LEASE_SECONDS = 900.0

failpoints.declare("staging.job_written", "staging.job_removed")

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class StagingJob:
    """One running job: the tables (and Lance branches of them) it stages files for, and when its lease ends."""

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
        """Whether the lease has run out: the job is dead, and its staged files are garbage."""
        return self.expires_at < (now_micros() if now is None else now)

    def to_json(self) -> bytes:
        tables = [{"path": table.path, "branch": table.branch} for table in self.tables]
        return orjson.dumps({"format": FORMAT, **asdict(self), "tables": tables}, option=orjson.OPT_INDENT_2)


def scratch_folder(job_id: str) -> str:
    """The folder for a job's own objects, such as the keys its tasks exchange; it is removed with the record."""
    return f"{FOLDER}/{job_id}"


def list_jobs(store: ObjectStore) -> list[StagingJob]:
    """All records, oldest first, including expired ones; an unreadable record raises, it is never skipped."""
    names = (info.path.removeprefix(f"{FOLDER}/") for info in store.list(FOLDER))
    ids = sorted(name.removesuffix(".json") for name in names if name.endswith(".json") and "/" not in name)
    found = (read_job(store, job_id) for job_id in ids if is_ulid(job_id))
    return [job for job in found if job is not None]


def read_job(store: ObjectStore, job_id: str) -> StagingJob | None:
    """The record of a job; None when the job has ended."""
    data = store.get_or_none(_record_path(job_id))
    return None if data is None else parse_job(data, job_id)


def parse_job(data: bytes, job_id: str) -> StagingJob:
    """A record from its JSON; raises with the path if it can not be read, because cleanup must not guess."""
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
    """Remove a job's record, then its scratch: in this order, a task that writes there can see that the job is over."""
    store.delete(_record_path(job_id))
    store.delete_prefix(scratch_folder(job_id))


def take_back_when_over(store: ObjectStore, job_id: str) -> None:
    """Called by a task that has written to a job's scratch: remove the scratch again if the job has ended.

    Spark may run a task twice, and the second run may still write when the job has its results and has ended.
    """
    if not store.exists(_record_path(job_id)):
        store.delete_prefix(scratch_folder(job_id))


def ownerless_scratch(store: ObjectStore, before: datetime) -> list[str]:
    """The ids of jobs with scratch but no record, unchanged since `before`: a process died while it removed the job."""
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
    """A job that runs in this process, with its record as last written."""

    def __init__(self, store: ObjectStore, job: StagingJob, lease_seconds: float) -> None:
        self._store = store
        self._lease_seconds = lease_seconds
        self._writing = threading.Lock()
        self.job = job

    def add(self, *tables: Location) -> None:
        """Add tables to the record; to be called before the first file is staged for them."""
        self.write(self.job.tables + tables)

    def write(self, tables: tuple[Location, ...] | None = None) -> None:
        """Write the record, which renews its lease."""
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
    """Keep a job's record for a block: written at its start, renewed while it runs, removed at its end.

    `ends`: the job ends with the block. If not, as in a task, another process removes the record, or its lease runs out.
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
    """Renew a record until its job has ended; after a failed renewal there is time for another attempt."""
    while not ended.wait(lease_seconds / 3):
        try:
            running.write()
        except OmnigraphError as error:
            _log.warning("staging record %s could not be renewed: %s", running.job.path, error)


def _remove_quietly(store: ObjectStore, job_id: str) -> None:
    """Remove the record at the end of a job; if that fails, its lease runs out."""
    try:
        remove_job(store, job_id)
        failpoints.hit("staging.job_removed")
    except OmnigraphError as error:
        _log.warning("staging record of job %s could not be removed: %s", job_id, error)
