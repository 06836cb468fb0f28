"""Jobs: requests that are answered before they are done (`Prefer: respond-async`).

A job is one file in the folder that the worker processes of a server share, so that every worker can report its progress. It
exists while the server runs. A job whose process has died is `lost`: the write happened as a whole or not at all, and the same
request with the same idempotency key finds out which.
The result of an export is a second file, which can be fetched repeatedly until the job is deleted, an hour has passed or the
server ends.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import orjson

from omnigraph.errors import Cancelled, NotFound, ResourceLimit
from omnigraph.ids import is_ulid, new_ulid, now_micros
from omnigraph.load.model import Progress
from omnigraph.storage.scratch import in_scratch

RUNNING, DONE, FAILED, LOST = "running", "done", "failed", "lost"
#: Seconds between two progress notes of a job.
_NOTE_SECONDS = 0.2
#: Seconds for which the result of an export, and the file of an idle job, are kept.
_KEPT_SECONDS = 3600.0
_REMEMBERED_SECONDS = 7 * 86400.0
_RESULT = ".result"
_PIECE_BYTES = 64 * 1024


@dataclass
class Job:
    """A running job: its file, and the content of the file."""

    path: Path
    told: dict[str, Any]
    #: Bytes that the results of all jobs may take together.
    room: int
    _noted: float = 0.0

    @property
    def id(self) -> str:
        return str(self.told["job_id"])

    def note(self, progress: Progress) -> None:
        """Record the progress of the job, at most every _NOTE_SECONDS.
        Raises `Cancelled` when the job was cancelled; the caller then stops and has written nothing.
        """
        if self._stop.exists():
            raise Cancelled("the job was cancelled; nothing was written")
        now = time.monotonic()
        if now - self._noted < _NOTE_SECONDS:
            return
        self._noted = now
        self.told["progress"] = {
            "stage": progress.stage,
            "done": progress.done,
            "total": progress.total,
            "rows": progress.rows,
        }
        self._write()

    def keep(self, lines: Iterator[bytes]) -> dict[str, Any]:
        """Write lines into the result file and record the progress; returns the number of lines and bytes."""
        total, rows = 0, 0
        target = _result_of(self.path)
        room = self.room - sum(size for _, size in _results(self.path.parent))
        try:
            with in_scratch(target.parent), target.open("wb") as file:
                for piece in lines:
                    total, rows = total + len(piece), rows + piece.count(b"\n")
                    if total > room:
                        raise ResourceLimit(
                            f"the results of jobs may take {self.room} bytes; delete jobs whose results you have, or export less",
                            resource="job_result_bytes",
                            limit=self.room,
                            actual=self.room - room + total,
                        )
                    file.write(piece)
                    self.note(Progress("export", total, 0, rows))
        except BaseException:
            target.unlink(missing_ok=True)
            raise
        return {"lines": rows, "bytes": total}

    @property
    def _stop(self) -> Path:
        """The path of the file whose existence means that the job is cancelled."""
        return _stop_of(self.path)

    def end(self, status: int, body: Any) -> None:
        """Record the end of the job: the status and body that a synchronous request would have got."""
        self._stop.unlink(missing_ok=True)
        self.told |= {"state": DONE if status == 200 else FAILED, "ended_at": now_micros(), "status": status}
        self.told["result" if status == 200 else "error"] = body
        self._write()

    def _write(self) -> None:
        descriptor, name = tempfile.mkstemp(dir=self.path.parent)
        with os.fdopen(descriptor, "wb") as file:
            file.write(orjson.dumps(self.told | {"process": os.getpid()}))
        Path(name).replace(self.path)


@dataclass(frozen=True)
class Jobs:
    """The jobs of one server."""

    folder: Path
    #: Bytes that the results of all jobs may take together.
    room: int

    def begin(self, graph_id: str, operation: str, actor: str | None) -> Job:
        """Create a job; old files of other jobs are removed."""
        for path in self.folder.glob("job-*"):
            kept = _KEPT_SECONDS if path.suffix == _RESULT else _REMEMBERED_SECONDS
            with suppress(FileNotFoundError):
                if time.time() - path.stat().st_mtime > kept:
                    path.unlink()
        job_id = new_ulid()
        told = {
            "job_id": job_id,
            "graph_id": graph_id,
            "operation": operation,
            "actor_id": actor,
            "state": RUNNING,
            "started_at": now_micros(),
        }
        job = Job(self._place(job_id), told, self.room)
        job._write()
        return job

    def find(self, graph_id: str, job_id: str, actor: str | None) -> dict[str, Any]:
        """The record of a job; raises NotFound for a job of another actor or graph."""
        path = self._place(job_id)
        if not is_ulid(job_id) or not path.exists():
            raise NotFound(f"job '{job_id}' not found")
        told: dict[str, Any] = orjson.loads(path.read_bytes())
        if (told["graph_id"], told["actor_id"]) != (graph_id, actor):
            raise NotFound(f"job '{job_id}' not found")
        process = told.pop("process")
        if told["state"] == RUNNING and not _is_alive(process):
            told["state"] = LOST
        return told

    def cancel(self, graph_id: str, job_id: str, actor: str | None) -> dict[str, Any]:
        """Cancel a job at its next progress note, or remove the result of an ended job; returns the record of the job."""
        told = self.find(graph_id, job_id, actor)
        if told["state"] == RUNNING:
            _stop_of(self._place(job_id)).touch()
        else:
            _result_of(self._place(job_id)).unlink(missing_ok=True)
        return told

    def result(self, graph_id: str, job_id: str, actor: str | None) -> Iterator[bytes]:
        """The result of an export, in pieces. Raises NotFound while the job runs, and when the result is gone."""
        told = self.find(graph_id, job_id, actor)
        path = _result_of(self._place(job_id))
        if told["state"] == RUNNING:
            raise NotFound(f"job '{job_id}' has no result yet: it is running")
        try:
            file = path.open("rb")
        except FileNotFoundError:
            raise NotFound(f"job '{job_id}' has no result: only exports have one, and it is kept for an hour") from None
        return _pieces(file)

    def _place(self, job_id: str) -> Path:
        return self.folder / f"job-{job_id}.json"


def _pieces(file: BinaryIO) -> Iterator[bytes]:
    with file:
        while piece := file.read(_PIECE_BYTES):
            yield piece


def _stop_of(path: Path) -> Path:
    return path.with_suffix(".stop")


def _result_of(path: Path) -> Path:
    return path.with_suffix(_RESULT)


def _results(folder: Path) -> list[tuple[Path, int]]:
    """The kept result files with their sizes in bytes."""
    found = []
    for path in folder.glob(f"job-*{_RESULT}"):
        with suppress(FileNotFoundError):
            found.append((path, path.stat().st_size))
    return found


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True
