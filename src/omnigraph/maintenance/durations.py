"""Durations as users write them: `7d`, `24h`, `90m`, `30s`, `2w`."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from omnigraph.errors import BadRequest

_TEXT = re.compile(r"(?P<count>[0-9]{1,9})(?P<unit>[smhdw])")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}

FEED_RETENTION = "OMNIGRAPH_FEED_RETENTION"
STAGING_GRACE = "OMNIGRAPH_STAGING_GRACE"
#: The default of both settings: how long the feed needs all commits, and how old unnamed staged files may be.
_DEFAULT = "7d"


def parse_duration(text: str) -> timedelta:
    """Parse a number and a unit: seconds, minutes, hours, days or weeks."""
    found = _TEXT.fullmatch(text.strip())
    if found is None:
        raise BadRequest(f"'{text}' is no length of time; write a number and a unit, such as 30s, 90m, 24h, 7d or 2w")
    try:
        return timedelta(seconds=int(found["count"]) * _SECONDS[found["unit"]])
    except OverflowError:
        raise BadRequest(f"'{text}' is too long a time") from None


def feed_retention(environ: Mapping[str, str] = os.environ) -> timedelta:
    """How long the change feed needs every commit."""
    return _from_environment(environ, FEED_RETENTION)


def staging_grace(environ: Mapping[str, str] = os.environ) -> timedelta:
    """The age from which a file that no version names counts as garbage."""
    return _from_environment(environ, STAGING_GRACE)


def so_long_ago(age: timedelta) -> datetime:
    """The time that long ago; the earliest possible time if the age is beyond all dates."""
    try:
        return datetime.now(UTC) - age
    except OverflowError:
        return datetime.min.replace(tzinfo=UTC)


def _from_environment(environ: Mapping[str, str], name: str) -> timedelta:
    try:
        return parse_duration(environ.get(name) or _DEFAULT)
    except BadRequest as error:
        raise BadRequest(f"{name}: {error}") from None
