"""The limits of writes: one frozen value that an open graph hands to everything that writes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """Counts and sizes that a write keeps to. Tests open graphs with other values; nothing patches them."""

    #: How often an attempt whose base moved before its first effect is started over; 0 turns it off.
    restarts: int = 5
    #: How many rows a write may put or remove to be published together with others.
    group_rows: int = 200
