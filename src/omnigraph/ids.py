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
    """A ULID that sorts after every ULID that this process made before."""
    # Imported here, because it loads much of the standard library, which reading does not need.
    from ulid import ULID

    global _last
    with _lock:
        fresh = int.from_bytes(bytes(ULID()), "big")
        _last = fresh if fresh > _last else _last + 1
        return str(ULID.from_int(_last))


def derived_ulid(*words: str) -> str:
    """A ULID derived from some words: equal words give equal ULIDs. Its time part has no meaning."""
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
    """A random number from 1 to 2^32: the distance that keeps new stable ids on one branch apart from other branches."""
    return secrets.randbits(32) + 1


def now_micros() -> int:
    """The current time in microseconds since 1970."""
    return time.time_ns() // 1_000
