"""Jobs: requests that are answered before they are done (`Prefer: respond-async`).

A job is one file in the folder that the worker processes of a server share, so that every worker can tell how far it is. It is
known while the server runs. A job whose process has died is `lost`: the write happened as a whole or not at all, and the same
request with the same idempotency key finds out which.
"""

from __future__ import annotations

import os
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from omnigraph.errors import Cancelled, NotFound
from omnigraph.ids import is_ulid, new_ulid, now_micros
from omnigraph.load.model import Progress

RUNNING, DONE, FAILED, LOST = "running", "done", "failed", "lost"
#: Seconds between two notes of how far a job is.
_NOTE_SECONDS = 0.2


@dataclass
class Job:
    """One job while it runs: its file, and what the file says."""

    path: Path
    told: dict[str, Any]
    _noted: float = 0.0

    @property
    def id(self) -> str:
        return str(self.told["job_id"])

    def note(self, progress: Progress) -> None:
        """Write down how far the job is, not more often than anybody would look.

        Raises `Cancelled` once the job is to stop; whoever tells of progress gives up then, and has written nothing.
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

    @property
    def _stop(self) -> Path:
        """A file that is there when the job is to stop."""
        return _stop_of(self.path)

    def end(self, status: int, body: Any) -> None:
        """Write down how the job has ended: the status and body that the request would have been answered with."""
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

    folder: Path = field()

    def begin(self, graph_id: str, operation: str, actor: str | None) -> Job:
        """A new job, which others can ask about from now on."""
        job_id = new_ulid()
        told = {
            "job_id": job_id,
            "graph_id": graph_id,
            "operation": operation,
            "actor_id": actor,
            "state": RUNNING,
            "started_at": now_micros(),
        }
        job = Job(self._place(job_id), told)
        job._write()
        return job

    def find(self, graph_id: str, job_id: str, actor: str | None) -> dict[str, Any]:
        """What is known about a job. That of another actor or graph is not found."""
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
        """Let a job stop when it next tells how far it is; returns what is known about it. One that has ended is left alone."""
        told = self.find(graph_id, job_id, actor)
        if told["state"] == RUNNING:
            _stop_of(self._place(job_id)).touch()
        return told

    def _place(self, job_id: str) -> Path:
        return self.folder / f"job-{job_id}.json"


def _stop_of(path: Path) -> Path:
    return path.with_suffix(".stop")


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True
