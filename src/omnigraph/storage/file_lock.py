"""An exclusive lock on a file, held through a descriptor: the kernel gives it back when the process dies."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from omnigraph.storage.object_errors import from_os

# The descriptors that hold a lock or try to. A forked child shares them, and would keep its parent's locks alive.
_held: set[int] = set()


def try_lock(path: Path) -> int | None:
    """Lock the file at this path, creating it; its descriptor, or None while someone else has it. Raises OSError."""
    while True:
        descriptor = _open(path)
        _held.add(descriptor)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            _close(descriptor)
            return None
        except OSError:
            _close(descriptor)
            raise
        if is_locked_file(descriptor, path):
            return descriptor
        _close(descriptor)  # the file was removed between open and lock: a lock on it excludes nobody


def unlock(descriptor: int) -> None:
    """Give a lock back."""
    # Closing is not enough: a child that was forked meanwhile has the same lock through its own descriptor.
    fcntl.flock(descriptor, fcntl.LOCK_UN)
    _close(descriptor)


def is_locked_file(descriptor: int, path: Path) -> bool:
    """Whether the locked file is still the one at this path."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def _open(path: Path) -> int:
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
    try:
        return os.open(path, flags, 0o666)
    except FileNotFoundError:
        path.parent.mkdir(parents=True, exist_ok=True)
        return os.open(path, flags, 0o666)


def _close(descriptor: int) -> None:
    _held.discard(descriptor)
    os.close(descriptor)


def _forget_in_child() -> None:
    for descriptor in _held:
        os.close(descriptor)
    _held.clear()


os.register_at_fork(after_in_child=_forget_in_child)


class FileLock:
    """The lock between the processes of one machine, with a queue of one in front of it.

    Who waits holds the gate. A busy process that gives the lock back and wants it again has to pass the gate first, so
    it can not starve the one that waits.
    """

    poll_seconds = (0.001, 0.008)
    #: Who has held it meanwhile is not known, and looking is cheap on a local disk.
    uninterrupted = False

    def __init__(self, path: Path) -> None:
        self._path = path
        self._gate_path = path.with_name(path.name + ".gate")
        self._gate: int | None = None
        self._lock: int | None = None

    def attempt(self) -> bool:
        """Pass the gate, then take the lock; the gate stays ours while the lock is not free."""
        try:
            if self._gate is None:
                self._gate = try_lock(self._gate_path)
            if self._gate is None:
                return False
            self._lock = try_lock(self._path)
        except OSError as error:
            raise from_os(error, action="lock", location=str(self._path), writes=False) from error
        if self._lock is None:
            return False
        self.abandon()
        return True

    def abandon(self) -> None:
        """Open the gate for the next."""
        if self._gate is not None:
            unlock(self._gate)
            self._gate = None

    def still_held(self) -> bool:
        """Whether the lock is held, and on the file that others would lock."""
        return self._lock is not None and is_locked_file(self._lock, self._path)

    def release(self) -> None:
        """Give the lock back."""
        if self._lock is not None:
            unlock(self._lock)
            self._lock = None
