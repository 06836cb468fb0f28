"""What the worker processes of one server know of each other: writes under way by actor, and slots that only one may hold.

Each worker tells its own part in a file of the folder that the workers share, which it keeps locked while it lives. The kernel
frees the lock of a process that is killed, so a file that can be locked belongs to a dead worker and counts for nothing.
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
#: Seconds for which a worker waits until another one has decided. One that is stopped must not stop all others.
_TURN_SECONDS = 0.05
_POLL_SECONDS = 0.001


class Shares:
    """The part of one worker, and a look at those of the others. Used from the event loop only."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        starting = folder / f"starting-{new_ulid()}"
        self._own = os.open(starting, os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(self._own, fcntl.LOCK_EX)
        # Nobody finds it before it is locked, and takes it for one of a dead worker.
        self._path = starting.rename(folder / f"{_PREFIX}{new_ulid()}")
        self._turn = os.open(folder / "admission.lock", os.O_RDWR | os.O_CREAT, 0o600)

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Decide alone, where the other workers let that happen in time; else at the same time as they do."""
        deadline = time.monotonic() + _TURN_SECONDS
        while not _locked(self._turn, fcntl.LOCK_EX) and time.monotonic() < deadline:
            time.sleep(_POLL_SECONDS)
        try:
            yield
        finally:
            fcntl.flock(self._turn, fcntl.LOCK_UN)

    def tell(self, under_way: Mapping[str, tuple[int, int]]) -> None:
        """Let the others know how many requests and bytes of each actor this worker has under way."""
        told = orjson.dumps({_named(who): counts for who, counts in under_way.items()})
        os.pwrite(self._own, told, 0)
        os.ftruncate(self._own, len(told))

    def of_others(self, who: str) -> tuple[int, int]:
        """How many requests and bytes of an actor the other workers have under way."""
        requests = size = 0
        for entry in os.scandir(self._folder):
            if not entry.name.startswith(_PREFIX) or entry.path == str(self._path):
                continue
            more_requests, more_bytes = _part(entry.path, _named(who))
            requests, size = requests + more_requests, size + more_bytes
        return requests, size

    @contextmanager
    def slot(self, name: str, count: int) -> Iterator[bool]:
        """Hold one of the slots with a name that all workers share, if one is free now."""
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
        """Take the part of this worker away."""
        with suppress(OSError):
            self._path.unlink(missing_ok=True)
        os.close(self._own)
        os.close(self._turn)


def _named(who: str) -> str:
    """An actor or a graph in a form that can be part of a file name."""
    return hashlib.sha256(who.encode()).hexdigest()[:32]


def _part(path: str, who: str) -> tuple[int, int]:
    """What a worker that lives tells about an actor; the file of one that is dead is removed."""
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
        # It is being written by a worker that did not wait for its turn.
        return 0, 0
    finally:
        os.close(descriptor)


def _locked(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
