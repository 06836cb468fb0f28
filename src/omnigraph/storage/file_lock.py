"""An exclusive lock on a file, held through a descriptor: the kernel releases it when the process dies."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from omnigraph.storage.object_errors import from_os

# Descriptors that hold a lock or try to get it. A forked child inherits them, and would keep its parent's locks alive.
_held: set[int] = set()


def try_lock(path: Path) -> int | None:
    """Lock the file at this path, creating it; returns its descriptor, or None while it is locked. Raises OSError."""
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
    """Release a lock and close its descriptor."""
    # Closing is not enough: a child forked meanwhile holds the same lock through its own descriptor.
    fcntl.flock(descriptor, fcntl.LOCK_UN)
    _close(descriptor)


def is_locked_file(descriptor: int, path: Path) -> bool:
    """Whether the locked file is still the file at this path."""
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
    """The lock between the processes of one machine, with a gate in front of it that holds one waiter.

    A waiter holds the gate. A busy process that releases the lock and wants it again must pass the gate first, so it can not
    starve the waiter.
    """

    poll_seconds = (0.001, 0.008)
    #: Other holders in between are not detected; checking the state again is cheap on a local disk.
    uninterrupted = False

    def __init__(self, path: Path) -> None:
        self._path = path
        self._gate_path = path.with_name(path.name + ".gate")
        self._gate: int | None = None
        self._lock: int | None = None

    def attempt(self) -> bool:
        """Pass the gate, then try to take the lock; while the lock is not free, the gate is kept."""
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
        """Release the gate for the next waiter."""
        if self._gate is not None:
            unlock(self._gate)
            self._gate = None

    def still_held(self) -> bool:
        """Whether the lock is held, on the file that other processes would lock."""
        return self._lock is not None and is_locked_file(self._lock, self._path)

    def release(self) -> None:
        """Release the lock."""
        if self._lock is not None:
            unlock(self._lock)
            self._lock = None
