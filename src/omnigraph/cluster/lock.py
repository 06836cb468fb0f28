"""The lock of a cluster: a file created exclusively. It never expires; the lock of a dead process is removed by hand."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import orjson

from omnigraph import failpoints
from omnigraph.cluster.diagnostics import Findings, Stop
from omnigraph.cluster.layout import LOCK, Place
from omnigraph.cluster.state import Read
from omnigraph.errors import StorageError
from omnigraph.ids import new_ulid

failpoints.declare("cluster.locked")


@dataclass(frozen=True)
class Lock:
    """The holder of the lock, from its file."""

    lock_id: str
    operation: str
    created_at: str
    pid: int

    def is_whole(self) -> bool:
        """Whether the fields have the right types; a file can contain anything."""
        texts = (self.lock_id, self.operation, self.created_at)
        return all(isinstance(text, str) for text in texts) and isinstance(self.pid, int)

    def age_seconds(self) -> int | None:
        """The age of the lock in seconds; None when its file has no valid time. A time without a zone is UTC."""
        try:
            created = datetime.fromisoformat(self.created_at)
        except ValueError:
            return None
        if created.tzinfo is None:
            created = created.replace(tzinfo=UTC)
        return max(0, int((datetime.now(UTC) - created).total_seconds()))


@dataclass(frozen=True)
class Unreadable:
    """A lock file that can not be understood; the lock counts as held."""

    code: str
    message: str


def now_text() -> str:
    """The current time in the format of a cluster's files."""
    return datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def read_lock(place: Place) -> Lock | Unreadable | None:
    """The present lock; None when there is none."""
    try:
        content = place.store.get_or_none(LOCK)
    except StorageError as error:
        return Unreadable("state_lock_read_error", error.message)
    if content is None:
        return None
    try:
        told = orjson.loads(content)
        version = told.pop("version")
        lock = Lock(**told)
    except (ValueError, TypeError, KeyError, AttributeError):
        lock, version = None, 1
    if version != 1 or not isinstance(version, int) or isinstance(version, bool):
        return Unreadable("unsupported_state_lock_version", f"version {version!r} of the lock is not supported")
    if lock is None or not lock.is_whole():
        return Unreadable("invalid_state_lock", "the lock file is not valid; look at it, and remove it by hand")
    return lock


@contextmanager
def held_lock(place: Place, operation: str, *, is_locking: bool, findings: Findings) -> Iterator[str | None]:
    """Hold the lock during the block; yields its id, None for a cluster without locking. Raises Stop when it is taken."""
    if not is_locking:
        findings.warn("state_lock_disabled", "state.lock", "the state is not locked; never run two commands at once")
        yield None
        return
    lock = Lock(new_ulid(), operation, now_text(), os.getpid())
    content = orjson.dumps({"version": 1, **lock.__dict__})
    _take(place, content, findings)
    try:
        failpoints.hit("cluster.locked")
        yield lock.lock_id
    finally:
        # The lock may have been removed by force; another command's lock must not be removed.
        with suppress(StorageError):
            if _is_ours(place, content):
                place.store.delete(LOCK)


#: How often the lock is tried: it may be released between the attempt and reading its holder.
_TRIES = 3


def _take(place: Place, content: bytes, findings: Findings) -> None:
    """Create the lock file; raises Stop when the lock is taken or can not be created."""
    for _ in range(_TRIES):
        try:
            place.store.create(LOCK, content)
            return
        except StorageError as error:
            # The answer may have been lost after the lock was made.
            if _is_ours(place, content):
                return
            if error.kind != "precondition":
                findings.error("state_lock_error", LOCK, error.message)
                raise Stop from None
            holder = read_lock(place)
            if holder is not None:
                _refuse(holder, findings)
    findings.error("state_lock_error", LOCK, "something is at the place of the lock that is no lock; remove it by hand")
    raise Stop


def _is_ours(place: Place, content: bytes) -> bool:
    try:
        return place.store.get_or_none(LOCK) == content
    except StorageError:
        return False


def _refuse(holder: Lock | Unreadable, findings: Findings) -> None:
    """Report the holder of the lock, and raise Stop."""
    if isinstance(holder, Unreadable):
        findings.error(holder.code, LOCK, holder.message)
    else:
        findings.error(
            "state_lock_held",
            LOCK,
            f"`{holder.operation}` (process {holder.pid}, since {holder.created_at}) holds the lock; if it is dead, run "
            f"`omnigraph cluster force-unlock {holder.lock_id}`",
        )
    raise Stop from None


def force_unlock(place: Place, lock_id: str, findings: Findings) -> bool:
    """Remove the lock if it has exactly this id; returns whether it was removed."""
    holder = read_lock(place)
    if isinstance(holder, Unreadable):
        findings.error(holder.code, LOCK, holder.message)
    elif holder is None:
        findings.error("state_lock_missing", LOCK, "nobody holds the lock")
    elif holder.lock_id != lock_id:
        findings.error("state_lock_id_mismatch", LOCK, f"the lock that is held is {holder.lock_id}, not {lock_id}")
    else:
        try:
            place.store.delete(LOCK)
        except StorageError as error:
            findings.error("state_lock_error", LOCK, error.message)
        else:
            return True
    return False


def state_observations(place: Place, read: Read, acquired: str | None, findings: Findings) -> dict[str, Any]:
    """The state and lock that a command saw, for its output. `acquired`: the id of the lock that it held itself."""
    state = read.state
    told: dict[str, Any] = {"state_path": place.shown("__cluster/state.json"), "lock_path": place.shown(LOCK)}
    told["state_found"] = read.found
    if state.config_digest is not None:
        told["applied_config_digest"] = state.config_digest
    told["state_revision"] = state.revision
    if read.cas is not None:
        told["state_cas"] = read.cas
    told["resource_count"] = len(state.resources)
    holder = read_lock(place) if acquired is None else None
    told["locked"] = holder is not None
    told["lock_acquired"] = acquired is not None
    if acquired is not None:
        told["acquired_lock_id"] = acquired
    if isinstance(holder, Unreadable):
        findings.warn(holder.code, LOCK, holder.message)
    elif holder is not None:
        told |= {
            "lock_id": holder.lock_id,
            "lock_operation": holder.operation,
            "lock_created_at": holder.created_at,
            "lock_pid": holder.pid,
        }
        age = holder.age_seconds()
        if age is not None:
            told["lock_age_seconds"] = age
    return told
