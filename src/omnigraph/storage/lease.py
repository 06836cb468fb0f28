"""A lock as an object with a lease: taken, renewed and given back by conditional writes, on any object store.

The record is JSON: `{"owner", "process", "lease_seconds", "expires_at"}`, the last in microseconds since the epoch. Who
holds the lock rewrites it before it expires; a record that has expired, or that has no owner, is free. It is never
deleted: no store deletes on a condition, and an unconditional delete could remove the lock of a later owner.
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
#: Free records have a random number of always as many digits as this one.
_RANDOM = 10**18


@dataclass(frozen=True)
class LeaseRecord:
    """What the object says: who holds the lock and until when."""

    owner: str | None
    process: str | None
    lease_seconds: float
    expires_at: int

    def encode(self) -> bytes:
        """The record as it is stored."""
        return orjson.dumps(asdict(self))


def decode(data: bytes) -> LeaseRecord | None:
    """A stored record, or None when it can not be read."""
    try:
        record = LeaseRecord(**orjson.loads(data))
    except (orjson.JSONDecodeError, TypeError):
        return None
    readable = isinstance(record.expires_at, int) and isinstance(record.lease_seconds, int | float)
    return record if readable else None


class Lease:
    """One try to hold the lock at a path, and the holding of it."""

    poll_seconds = (0.05, 0.25)

    def __init__(
        self, store: ObjectStore, path: str, *, seconds: float, process: str, freed: dict[str, str] | None = None
    ) -> None:
        """`freed`: the tags of records that this process has freed, by path; a record that has one still is free."""
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
        #: Whether nobody else has held the lock since this process gave it back.
        self.uninterrupted = False

    def attempt(self) -> bool:
        """Take the lock if it is free now."""
        if not self._take_freed() and not self._take_free():
            return False
        threading.Thread(target=self._keep, name=f"lease {self._path}", daemon=True).start()
        return True

    def _take_freed(self) -> bool:
        """Take a lock that nobody has used since this process gave it back, without reading it first."""
        tag = self._freed.pop(self._path, None)
        self.uninterrupted = tag is not None and self._write(tag)
        return self.uninterrupted

    def _take_free(self) -> bool:
        found = self._store.get_tagged_or_none(self._path)
        if found is not None and not self._is_free(*found):
            return False
        return self._write(found[1] if found else None)

    def abandon(self) -> None:
        """Stop trying; a waiter leaves no trace."""

    def still_held(self) -> bool:
        """Whether the lease has not been lost and has not run out on either clock; a suspended machine stops one."""
        return not self._lost and monotonic() < self._deadline and now_micros() < self._expires_at

    def renew(self) -> bool:
        """Start the lease anew; False when there is nothing left to renew."""
        with self._writing:
            if self._lost:
                return False
            deadline, expires_at = self._deadline, self._expires_at
            try:
                kept = self._write(self._tag)
            except StorageError:
                # The store is away: the lease runs until its deadline, and so do the tries to renew it.
                return monotonic() < self._deadline
            # Whoever asked after it had run out was told that it is lost, and so it stays.
            in_time = monotonic() < deadline and now_micros() < expires_at
            self._lost = not (kept and in_time)
            return not self._lost

    def release(self) -> None:
        """Give the lock back if it is still ours."""
        self._given_back.set()
        with self._writing:
            if self._lost:
                return
            self._lost = True
            # Each free record is another one, so that its tag says who freed the lock last: stores derive tags from contents.
            free = LeaseRecord(None, None, self._seconds, expires_at=-_RANDOM - secrets.randbelow(_RANDOM))
            try:
                self._freed[self._path] = self._store.swap(self._path, free.encode(), self._tag)
            except StorageError as error:
                if error.kind != "precondition":  # someone took it after it ran out
                    raise

    def _is_free(self, data: bytes, tag: str) -> bool:
        if not data:
            # A lock file of a local disk, which came here with a graph that was copied. A lease is never empty.
            return True
        record = decode(data)
        if record is not None and (
            record.owner is None or record.expires_at < now_micros() or record.process == self._process
        ):
            # A lock of this process can only be left over: its threads exclude each other before they come here.
            return True
        # The holder's clock may be wrong, or the record unreadable: not renewed for a whole lease is enough.
        if self._watched[0] != tag:
            self._watched = (tag, monotonic())
        return monotonic() - self._watched[1] > (record.lease_seconds if record else self._seconds)

    def _write(self, tag: str | None) -> bool:
        """Write our record in the place of the one with this tag (None: of none); False when someone else was first."""
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
            # The answer may be lost, or that of an earlier renewal was: what is there and ours counts.
            mine = decode(found[0]) if found else None
            if found is None or mine is None or mine.owner != self._owner:
                return False
            new_tag, expires_at = found[1], mine.expires_at
            started -= (record.expires_at - mine.expires_at) / 1_000_000
        self._tag, self._expires_at, self._deadline = new_tag, expires_at, started + self._seconds
        return True

    def _keep(self) -> None:
        """Renew until the lock is given back or lost."""
        while not self._given_back.wait(self._seconds / 3):
            if not self.renew():
                return


_process_id: tuple[int, str] = (0, "")


def this_process() -> str:
    """A name of this process that no other has, also after a fork."""
    global _process_id
    if _process_id[0] != os.getpid():
        _process_id = (os.getpid(), f"{os.uname().nodename}:{os.getpid()}:{new_ulid()}")
    return _process_id[1]
