"""The limits of writes: one frozen value that an open graph hands to everything that writes."""

from __future__ import annotations

import os
from dataclasses import dataclass

from omnigraph.errors import BadRequest

HELD_BYTES_VARIABLE = "OMNIGRAPH_HELD_LOAD_BYTES"


@dataclass(frozen=True, slots=True)
class Limits:
    """Counts and sizes that a write keeps to. Tests open graphs with other values; nothing patches them."""

    #: How often an attempt whose base moved before its first effect is started over; 0 turns it off.
    restarts: int = 5
    #: How many rows a write may put or remove to be published together with others.
    group_rows: int = 200
    #: Up to this size in bytes the rows of a load are kept in memory until its checks have passed; 0: never.
    held_bytes: int = 4 << 20


def limits_from_environment() -> Limits:
    """The limits of a graph that is opened now; `BadRequest` when a variable is no number."""
    text = os.environ.get(HELD_BYTES_VARIABLE, "").strip()
    if not text:
        return Limits()
    if not text.isdecimal():
        raise BadRequest(f"{HELD_BYTES_VARIABLE} is a number, not '{text}'")
    return Limits(held_bytes=int(text))
