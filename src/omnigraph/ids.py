"""New identifiers. A ULID sorts by the time it was made; ours are strictly increasing within a process."""

from __future__ import annotations

import re
import secrets
import threading
import time

_lock = threading.Lock()
_last = 0
_ULID_TEXT = re.compile(r"[0-7][0-9A-HJKMNP-TV-Z]{25}")


def new_ulid() -> str:
    """A ULID that sorts after every one this process made before."""
    # It brings much of the standard library along, which those who only read should not wait for.
    from ulid import ULID

    global _last
    with _lock:
        fresh = int.from_bytes(bytes(ULID()), "big")
        _last = fresh if fresh > _last else _last + 1
        return str(ULID.from_int(_last))


def derived_ulid(*words: str) -> str:
    """The ULID that belongs to some words: the same for the same ones. It says nothing about time."""
    import hashlib

    from ulid import ULID

    return str(ULID.from_bytes(hashlib.sha256("\0".join(words).encode()).digest()[:16]))


def is_ulid(text: str) -> bool:
    """Whether a text has the shape of a ULID."""
    return _ULID_TEXT.fullmatch(text) is not None


def new_incarnation() -> int:
    """A random 63-bit number that names one lifetime of a table."""
    return secrets.randbits(62) + 1


def new_distance() -> int:
    """A random number from 1 to 2^32: how far the new stable ids of a schema on one branch lie from those of another."""
    return secrets.randbits(32) + 1


def now_micros() -> int:
    """The current time in microseconds since the epoch."""
    return time.time_ns() // 1_000
