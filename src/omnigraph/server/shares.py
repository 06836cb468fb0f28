"""Data shared by the worker processes of a server: running writes by actor, and exclusive slots.
Each worker writes its part into a file of the shared folder and keeps the file locked while it lives. The kernel releases the
lock of a killed process, so a file that can be locked belongs to a dead worker and is not counted.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import orjson

from omnigraph.ids import new_ulid

_PREFIX = "admission-"
#: The longest wait for another worker's decision in seconds, so that a stopped worker does not stop all others.
_TURN_SECONDS = 0.05
_POLL_SECONDS = 0.001


class Shares:
    """The part of this worker, and read access to the parts of the others. Used from the event loop only."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        starting = folder / f"starting-{new_ulid()}"
        self._own = os.open(starting, os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(self._own, fcntl.LOCK_EX)
        # Renamed after it is locked, so that nobody takes it for the file of a dead worker.
        self._path = starting.rename(folder / f"{_PREFIX}{new_ulid()}")
        self._turn = os.open(folder / "admission.lock", os.O_RDWR | os.O_CREAT, 0o600)

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Hold the lock for a decision; when other workers hold it for too long, go on without it."""
        deadline = time.monotonic() + _TURN_SECONDS
        while not _locked(self._turn, fcntl.LOCK_EX) and time.monotonic() < deadline:
            time.sleep(_POLL_SECONDS)
        try:
            yield
        finally:
            fcntl.flock(self._turn, fcntl.LOCK_UN)

    def tell(self, under_way: Mapping[str, tuple[int, int]]) -> None:
        """Publish the numbers of running requests and bytes of each actor in this worker."""
        told = orjson.dumps({_named(who): counts for who, counts in under_way.items()})
        os.pwrite(self._own, told, 0)
        os.ftruncate(self._own, len(told))

    def of_others(self, who: str) -> tuple[int, int]:
        """The running requests and bytes of an actor in the other workers."""
        requests = size = 0
        for entry in os.scandir(self._folder):
            if not entry.name.startswith(_PREFIX) or entry.path == str(self._path):
                continue
            more_requests, more_bytes = _part(entry.path, _named(who))
            requests, size = requests + more_requests, size + more_bytes
        return requests, size

    @contextmanager
    def slot(self, name: str, count: int) -> Iterator[bool]:
        """Hold one of `count` shared slots of a name during the block; yields False when none is free now."""
        for number in range(count):
            path = self._folder / f"slot-{_named(name)}-{number}"
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
            try:
                if _locked(descriptor, fcntl.LOCK_EX):
                    yield True
                    return
            finally:
                os.close(descriptor)
        yield False

    def close(self) -> None:
        """Remove the part of this worker."""
        with suppress(OSError):
            self._path.unlink(missing_ok=True)
        os.close(self._own)
        os.close(self._turn)


def _named(who: str) -> str:
    """The name of an actor or a graph, hashed for use in a file name."""
    return hashlib.sha256(who.encode()).hexdigest()[:32]


def _part(path: str, who: str) -> tuple[int, int]:
    """The requests and bytes of an actor in a live worker's file; the file of a dead worker is removed."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return 0, 0
    try:
        if _locked(descriptor, fcntl.LOCK_SH):
            with suppress(FileNotFoundError):
                Path(path).unlink()
            return 0, 0
        told = orjson.loads(os.pread(descriptor, os.fstat(descriptor).st_size, 0) or b"{}")
        requests, size = told.get(who, (0, 0))
        return requests, size
    except orjson.JSONDecodeError:
        # The file is being written by a worker that went on without the lock.
        return 0, 0
    finally:
        os.close(descriptor)


def _locked(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
