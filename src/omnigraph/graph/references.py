"""Texts that name a state of the past by time or by ancestor: `2026-11-16T13:10:00Z`, `main~3`, `agent/x@{2 days ago}`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from omnigraph.errors import BadRequest

_PARTS = re.compile(r"(?P<name>[^~@{}]*)(?:@\{(?P<when>[^{}]*)\})?(?P<steps>~(?P<back>[0-9]{0,9}))?")
_AGO = re.compile(r"(?P<count>[0-9]{1,9})\s*(?P<unit>second|minute|hour|day|week)s?\s+ago")
_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}([Tt ][0-9:.,]+\s*([Zz]|[+-][0-9:]+)?)?")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_WAYS = "write 2026-11-16T13:10:00Z, or `2 days ago` with seconds, minutes, hours, days or weeks"


@dataclass(frozen=True, slots=True)
class Past:
    """A state of the past: what to start from, as it was at a moment (microseconds since 1970), and how many first parents back.

    `name`: a branch, a tag or a commit; empty for the branch that is being read.
    """

    name: str
    moment: int | None
    back: int


def read_past(text: str, now: datetime | None = None) -> Past | None:
    """What a text says by time or by ancestor; None for one that says neither. A time without a zone is in UTC."""
    if _TIME.fullmatch(text) is not None:
        return Past("", _moment(text, text), 0)
    parts = _PARTS.fullmatch(text)
    if parts is None or (parts["when"] is None and parts["steps"] is None):
        return None
    moment = None if parts["when"] is None else _when(parts["when"].strip(), text, now)
    back = 0 if parts["steps"] is None else int(parts["back"] or 1)
    return Past(parts["name"], moment, back)


def micros_of_datetime(moment: datetime) -> int:
    """A point in time in microseconds since 1970; a datetime without a zone is in UTC."""
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return (aware - _EPOCH) // timedelta(microseconds=1)


def _when(when: str, text: str, now: datetime | None) -> int:
    here = now or datetime.now(UTC)
    if when == "now":
        return micros_of_datetime(here)
    ago = _AGO.fullmatch(when)
    if ago is None:
        return _moment(when, text)
    try:
        return micros_of_datetime(here - timedelta(**{f"{ago['unit']}s": int(ago["count"])}))
    except OverflowError:
        raise BadRequest(f"'{text}' lies before the calendar begins") from None


def _moment(when: str, text: str) -> int:
    try:
        return micros_of_datetime(datetime.fromisoformat(when))
    except (ValueError, OverflowError):
        raise BadRequest(f"'{text}' names no snapshot: '{when}' is not a time; {_WAYS}") from None
