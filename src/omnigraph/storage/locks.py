"""The lock of a branch's effect window: one writer at a time, across threads, processes and machines.

First the threads of this process take turns, then the process takes `__locks/<branch>`: an flock on local disk, an
object with a lease elsewhere. The lock avoids useless races; the manifest's compare-and-swap stays the only authority, so a
writer that lost its lease can lose a race but can do no harm.
"""

from __future__ import annotations

import hashlib
import logging
import os
import random
import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from types import TracebackType
from typing import Protocol
from weakref import WeakValueDictionary

from omnigraph.errors import BadRequest, ManifestContention, StorageError
from omnigraph.storage.file_lock import FileLock
from omnigraph.storage.lease import LEASE_SECONDS, Lease, this_process
from omnigraph.storage.object_store import ObjectStore
from omnigraph.storage.root import Root


class Turn:
    """A fair lock between threads, first come first served; not reentrant."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._queue: deque[object] = deque()
        self._owner: int | None = None

    @property
    def is_mine(self) -> bool:
        """Whether the calling thread has the turn."""
        return self._owner == threading.get_ident()

    def take(self, seconds: float) -> bool:
        """Wait up to `seconds` for the turn; returns whether it was given."""
        ticket = object()
        with self._changed:
            self._queue.append(ticket)
            try:
                came = self._changed.wait_for(lambda: self._owner is None and self._queue[0] is ticket, seconds)
                if came:
                    self._owner = threading.get_ident()
            finally:
                self._queue.remove(ticket)
                self._changed.notify_all()
            return came

    def give(self) -> None:
        """Pass the turn to the thread that has waited longest."""
        with self._changed:
            self._owner = None
            self._changed.notify_all()


LOCKS = "__locks"
HOLD_SECONDS = 60.0

_log = logging.getLogger(__name__)
_LONGEST_NAME = 200
_PLAIN = frozenset(b"abcdefghijklmnopqrstuvwxyz0123456789_-")


class ProcessLock(Protocol):
    """A lock between processes, which is attempted repeatedly until it is taken or abandoned."""

    poll_seconds: tuple[float, float]

    def attempt(self) -> bool:
        """Take the lock if it is free now; a failed attempt may keep a place in the queue. Returns whether it was taken."""

    def abandon(self) -> None:
        """Stop trying."""

    def still_held(self) -> bool:
        """Whether the taken lock is still held."""

    @property
    def uninterrupted(self) -> bool:
        """Whether it is certain that no other process has held the lock since this process released it."""

    def release(self) -> None:
        """Release the lock."""


def lock_path(branch: str) -> str:
    """The path of a branch's lock: a single file name, unique also on file systems that ignore case, for any branch name."""
    encoded = branch.encode()
    name = "".join(chr(byte) if byte in _PLAIN else f"%{byte:02x}" for byte in encoded)
    if len(name) > _LONGEST_NAME:
        name = f"{name[: _LONGEST_NAME // 2]}~{hashlib.sha256(encoded).hexdigest()}"
    return f"{LOCKS}/{name}"


class HeldLock:
    """A branch's lock while it is held; a context manager that releases it."""

    def __init__(self, branch: str, turn: Turn, lock: ProcessLock, settled: set[str] | None = None) -> None:
        """`settled`: the branches that holders of this graph's locks have left settled; None: nothing is known."""
        self.branch = branch
        self._settled = set() if settled is None else settled
        #: Whether nobody has written to the branch since a holder of this graph's locks left it settled.
        self.finds_settled = branch in self._settled and lock.uninterrupted
        self._settled.discard(branch)
        self._leaves_settled = False
        self._turn = turn
        self._lock = lock
        self._process_id = os.getpid()
        self._released = False

    def still_held(self) -> bool:
        """Whether this process still holds the lock; a writer asks before its first effect."""
        return not self._released and self._process_id == os.getpid() and self._lock.still_held()

    def leave_settled(self) -> None:
        """Declare that the work under the lock is complete: no table and no sidecar is left to settle."""
        self._leaves_settled = True

    def release(self) -> None:
        """Release the lock; does nothing the second time, or in a forked child."""
        if self._released or self._process_id != os.getpid():
            return
        self._released = True
        try:
            self._lock.release()
            if self._leaves_settled:
                self._settled.add(self.branch)
        except StorageError as error:
            # The work under the lock is done. A lease that can not be released expires.
            _log.warning("the lock of branch '%s' was not given back: %s", self.branch, error)
        finally:
            self._turn.give()

    def __enter__(self) -> HeldLock:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


class HeldLocks:
    """The locks of several branches while they are held."""

    def __init__(self, locks: Iterable[HeldLock]) -> None:
        self.locks = tuple(locks)

    def still_held(self) -> bool:
        """Whether this process still holds all of the locks."""
        return all(lock.still_held() for lock in self.locks)


class BranchLocks:
    """The locks of all branches of one graph."""

    def __init__(self, store: ObjectStore, root: Root, *, lease_seconds: float = LEASE_SECONDS) -> None:
        self._store = store
        self._root = root
        self._lease_seconds = lease_seconds
        self._freed: dict[str, str] = {}
        self._settled: set[str] = set()

    @contextmanager
    def hold(self, branch: str, *, timeout: float = HOLD_SECONDS) -> Iterator[HeldLock]:
        """Hold the lock of a branch for a block; `ManifestContention` if it is not free within `timeout` seconds."""
        held = self._take(branch, timeout)
        if held is None:
            raise ManifestContention(
                f"branch '{branch}' was locked by another writer for {timeout:g} s; nothing was written, try again"
            )
        with held:
            yield held

    @contextmanager
    def try_hold(self, branch: str) -> Iterator[HeldLock | None]:
        """Hold the lock of a branch for a block if it is free now; else yields None."""
        held = self._take(branch, 0)
        with held or nullcontext():
            yield held

    @contextmanager
    def hold_all(self, branches: Iterable[str], *, timeout: float = HOLD_SECONDS) -> Iterator[HeldLocks]:
        """Hold the locks of several branches for a block, taken in name order so that callers never deadlock."""
        deadline = time.monotonic() + timeout
        with ExitStack() as stack:
            yield HeldLocks(
                [
                    stack.enter_context(self.hold(branch, timeout=max(0.0, deadline - time.monotonic())))
                    for branch in sorted(set(branches))
                ]
            )

    def _take(self, branch: str, seconds: float) -> HeldLock | None:
        deadline = time.monotonic() + seconds
        turn = _turn(self._root.uri, branch)
        if turn.is_mine:
            raise BadRequest(f"this thread holds the lock of branch '{branch}' already; give it back first")
        if not turn.take(seconds):
            return None
        taken = False
        try:
            lock = self._process_lock(branch)
            taken = _wait_for(lock, deadline)
        finally:
            if not taken:
                turn.give()
        return HeldLock(branch, turn, lock, self._settled) if taken else None

    def _process_lock(self, branch: str) -> ProcessLock:
        path = lock_path(branch)
        if self._root.is_local:
            return FileLock(self._root.local_path(path))
        return Lease(self._store, path, seconds=self._lease_seconds, process=this_process(), freed=self._freed)


def _wait_for(lock: ProcessLock, deadline: float) -> bool:
    """Attempt to take the lock until the deadline; random pauses keep waiters out of step. Returns whether it was taken."""
    try:
        while not lock.attempt():
            if time.monotonic() >= deadline:
                return False
            time.sleep(random.uniform(*lock.poll_seconds))
        return True
    finally:
        lock.abandon()


# Shared by all handles of this process on the same graph; an entry lives while a thread holds it or waits.
_turns: WeakValueDictionary[tuple[str, str], Turn] = WeakValueDictionary()
_registering = threading.Lock()


def _turn(uri: str, branch: str) -> Turn:
    """The turn of a branch in this process."""
    with _registering:
        return _turns.setdefault((uri, branch), Turn())


def _forget_in_child() -> None:
    """Reset the turns in a forked child, which lacks the threads that would pass them on."""
    global _turns, _registering
    _turns = WeakValueDictionary()
    _registering = threading.Lock()


os.register_at_fork(after_in_child=_forget_in_child)
