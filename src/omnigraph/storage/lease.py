"""A lock as an object with a lease: taken, renewed and released by conditional writes, on any object store.

The record is JSON: `{"owner", "process", "lease_seconds", "expires_at"}`, the last in microseconds since the epoch. The
holder rewrites it before it expires; an expired record, or a record without owner, is free. It is never deleted: no store has
a conditional delete, and an unconditional delete could remove the lock of a later owner.
"""

from __future__ import annotations

import os
import secrets
import threading
from dataclasses import asdict, dataclass
from time import monotonic

import orjson

from omnigraph.errors import StorageError
from omnigraph.ids import new_ulid, now_micros
from omnigraph.storage.object_store import ObjectStore

LEASE_SECONDS = 30.0
#: Free records contain a random number with the same number of digits as this one.
_RANDOM = 10**18


@dataclass(frozen=True)
class LeaseRecord:
    """The contents of the object: who holds the lock and until when."""

    owner: str | None
    process: str | None
    lease_seconds: float
    expires_at: int

    def encode(self) -> bytes:
        """The record as stored bytes."""
        return orjson.dumps(asdict(self))


def decode(data: bytes) -> LeaseRecord | None:
    """A stored record; None when it can not be parsed."""
    try:
        record = LeaseRecord(**orjson.loads(data))
    except (orjson.JSONDecodeError, TypeError):
        return None
    readable = isinstance(record.expires_at, int) and isinstance(record.lease_seconds, int | float)
    return record if readable else None


class Lease:
    """One attempt to get the lock at a path, and the holding of it."""

    poll_seconds = (0.05, 0.25)

    def __init__(
        self, store: ObjectStore, path: str, *, seconds: float, process: str, freed: dict[str, str] | None = None
    ) -> None:
        """`freed`: the tags of the records this process has released, by path. A record with such a tag is still free."""
        self._store = store
        self._path = path
        self._freed = freed if freed is not None else {}
        self._seconds = seconds
        self._process = process
        self._owner = new_ulid()
        self._tag = ""
        self._expires_at = 0
        self._deadline = 0.0
        self._lost = False
        self._watched: tuple[str, float] = ("", 0.0)
        self._writing = threading.Lock()
        self._given_back = threading.Event()
        #: Whether no other process has held the lock since this process released it.
        self.uninterrupted = False

    def attempt(self) -> bool:
        """Take the lock if it is free now; returns whether it was taken."""
        if not self._take_freed() and not self._take_free():
            return False
        threading.Thread(target=self._keep, name=f"lease {self._path}", daemon=True).start()
        return True

    def _take_freed(self) -> bool:
        """Take a lock that nobody has used since this process released it, without reading it first."""
        tag = self._freed.pop(self._path, None)
        self.uninterrupted = tag is not None and self._write(tag)
        return self.uninterrupted

    def _take_free(self) -> bool:
        found = self._store.get_tagged_or_none(self._path)
        if found is not None and not self._is_free(*found):
            return False
        return self._write(found[1] if found else None)

    def abandon(self) -> None:
        """Stop trying; a waiter leaves nothing to clean up."""

    def still_held(self) -> bool:
        """Whether the lease is not lost and not expired on either clock; a suspended machine stops one of them."""
        return not self._lost and monotonic() < self._deadline and now_micros() < self._expires_at

    def renew(self) -> bool:
        """Restart the lease; False when it is lost."""
        with self._writing:
            if self._lost:
                return False
            deadline, expires_at = self._deadline, self._expires_at
            try:
                kept = self._write(self._tag)
            except StorageError:
                # The store is unreachable: the lease runs to its deadline, and renewals are tried until then.
                return monotonic() < self._deadline
            # After its expiry, callers may have been told that the lease is lost, so it stays lost.
            in_time = monotonic() < deadline and now_micros() < expires_at
            self._lost = not (kept and in_time)
            return not self._lost

    def release(self) -> None:
        """Release the lock if it is still held."""
        self._given_back.set()
        with self._writing:
            if self._lost:
                return
            self._lost = True
            # Every free record is different, so that its tag identifies the last release: stores derive tags from contents.
            free = LeaseRecord(None, None, self._seconds, expires_at=-_RANDOM - secrets.randbelow(_RANDOM))
            try:
                self._freed[self._path] = self._store.swap(self._path, free.encode(), self._tag)
            except StorageError as error:
                if error.kind != "precondition":  # another process took it after it expired
                    raise

    def _is_free(self, data: bytes, tag: str) -> bool:
        if not data:
            # An empty lock file from a local disk, copied here with a graph. A lease record is never empty.
            return True
        record = decode(data)
        if record is not None and (
            record.owner is None or record.expires_at < now_micros() or record.process == self._process
        ):
            # A lock of this process can only be a leftover: its threads exclude each other before they get here.
            return True
        # The holder's clock may be wrong, or the record unreadable: it is free if it is not renewed for a whole lease.
        if self._watched[0] != tag:
            self._watched = (tag, monotonic())
        return monotonic() - self._watched[1] > (record.lease_seconds if record else self._seconds)

    def _write(self, tag: str | None) -> bool:
        """Write our record over the record with this tag (None: over no record); False when another process was first."""
        started = monotonic()
        expires_at = now_micros() + int(self._seconds * 1_000_000)
        record = LeaseRecord(self._owner, self._process, self._seconds, expires_at)
        try:
            new_tag = (
                self._store.create(self._path, record.encode())
                if tag is None
                else self._store.swap(self._path, record.encode(), tag)
            )
        except StorageError as error:
            if error.kind not in ("precondition", "unknown"):
                raise
            found = self._store.get_tagged_or_none(self._path)
            # An answer may have been lost, also of an earlier renewal: if the stored record is ours, the lock is held.
            mine = decode(found[0]) if found else None
            if found is None or mine is None or mine.owner != self._owner:
                return False
            new_tag, expires_at = found[1], mine.expires_at
            started -= (record.expires_at - mine.expires_at) / 1_000_000
        self._tag, self._expires_at, self._deadline = new_tag, expires_at, started + self._seconds
        return True

    def _keep(self) -> None:
        """Renew the lease until the lock is released or lost."""
        while not self._given_back.wait(self._seconds / 3):
            if not self.renew():
                return


_process_id: tuple[int, str] = (0, "")


def this_process() -> str:
    """A unique name of this process, also after a fork."""
    global _process_id
    if _process_id[0] != os.getpid():
        _process_id = (os.getpid(), f"{os.uname().nodename}:{os.getpid()}:{new_ulid()}")
    return _process_id[1]
