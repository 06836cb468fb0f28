"""Conversion of dates, datetimes and durations between text and numbers.
A Date is a number of days and a DateTime a number of milliseconds since 1970-01-01 (UTC). Both cover the years 0001–9999 of the
proleptic Gregorian calendar. The functions raise a ValueError with a message for users; callers add the property, parameter or
literal.
"""

from __future__ import annotations

import re
from datetime import date

_EPOCH_ORDINAL = date(1970, 1, 1).toordinal()
_MS_PER_MINUTE = 60_000
_MS_PER_DAY = 24 * 60 * _MS_PER_MINUTE

#: Every day and every millisecond that can be stored.
DATE_DAYS = range(date.min.toordinal() - _EPOCH_ORDINAL, date.max.toordinal() - _EPOCH_ORDINAL + 1)
DATETIME_MILLISECONDS = range(DATE_DAYS.start * _MS_PER_DAY, DATE_DAYS.stop * _MS_PER_DAY)

_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_DATETIME = re.compile(
    r"(?P<date>[0-9]{4}-[0-9]{2}-[0-9]{2})[Tt ]"
    r"(?P<hour>[0-9]{2}):(?P<minute>[0-9]{2})(?::(?P<second>[0-9]{2})(?:\.(?P<fraction>[0-9]+))?)?"
    r"(?P<zone>[Zz]|(?P<sign>[+-])(?P<zone_hour>[0-9]{2})(?::?(?P<zone_minute>[0-9]{2}))?)?"
)


def parse_date(text: str) -> int:
    """The days since the epoch of `YYYY-MM-DD`."""
    if not _DATE.fullmatch(text):
        raise ValueError(f"'{text}' is not a date; write YYYY-MM-DD")
    return _days(text, text)


def parse_datetime(text: str) -> int:
    """The milliseconds since 1970 of `YYYY-MM-DDTHH:MM[:SS[.mmm]]` with an optional offset; without an offset it is UTC."""
    match = _DATETIME.fullmatch(text)
    if match is None:
        what = "; seconds, milliseconds and an offset such as Z or +01:00 may follow"
        raise ValueError(f"'{text}' is not a date and time; write YYYY-MM-DDTHH:MM{what}")
    hour, minute, second = int(match["hour"]), int(match["minute"]), int(match["second"] or 0)
    if hour > 23 or minute > 59 or second > 59:
        raise ValueError(f"'{text}' is not a time of day")
    # Trailing zeros do not make the time finer: `.120000` is 120 ms.
    fraction = (match["fraction"] or "").rstrip("0")
    if len(fraction) > 3:
        raise ValueError(f"'{text}' is finer than a millisecond")
    milliseconds = ((hour * 60 + minute) * 60 + second) * 1000 + int(fraction.ljust(3, "0"))
    instant = _days(match["date"], text) * _MS_PER_DAY + milliseconds - _offset(match, text)
    if instant not in DATETIME_MILLISECONDS:
        raise ValueError(f"'{text}' lies outside the years 0001 to 9999 in UTC")
    return instant


_DURATION = re.compile(
    r"(?P<sign>-)?P(?:(?P<weeks>[0-9]+)W)?(?:(?P<days>[0-9]+)D)?"
    r"(?:T(?:(?P<hours>[0-9]+)H)?(?:(?P<minutes>[0-9]+)M)?(?:(?P<seconds>[0-9]+)(?:\.(?P<fraction>[0-9]{1,3}))?S)?)?"
)
_MS_PER_UNIT = {"weeks": 7 * _MS_PER_DAY, "days": _MS_PER_DAY, "hours": 60 * _MS_PER_MINUTE, "minutes": _MS_PER_MINUTE}


def parse_duration(text: str) -> int:
    """The milliseconds of an ISO 8601 duration without years and months, such as `PT1H30M` or `P2D`."""
    match = _DURATION.fullmatch(text)
    if match is None or not any(match[unit] for unit in (*_MS_PER_UNIT, "seconds")):
        raise ValueError(f"'{text}' is not a duration; write PT1H30M, PT0.5S or P2D (months: add_months)")
    if len(text) > 40:
        raise ValueError("a duration of more than 40 characters is too long")
    whole = sum(int(match[unit] or 0) * size for unit, size in _MS_PER_UNIT.items())
    whole += int(match["seconds"] or 0) * 1000 + int((match["fraction"] or "0").ljust(3, "0"))
    if whole >= len(DATETIME_MILLISECONDS):
        raise ValueError(f"'{text}' is longer than all years from 0001 to 9999")
    return -whole if match["sign"] else whole


def _days(text: str, whole: str) -> int:
    try:
        return date.fromisoformat(text).toordinal() - _EPOCH_ORDINAL
    except ValueError:
        raise ValueError(f"'{whole}' is not a day of the calendar (years 0001 to 9999)") from None


def _offset(match: re.Match[str], text: str) -> int:
    """How far the written time is ahead of UTC, in milliseconds."""
    if match["sign"] is None:
        return 0
    hours, minutes = int(match["zone_hour"]), int(match["zone_minute"] or 0)
    if hours > 23 or minutes > 59:
        raise ValueError(f"'{text}' has an offset of a day or more")
    offset = (hours * 60 + minutes) * _MS_PER_MINUTE
    return -offset if match["sign"] == "-" else offset


def render_date(days: int) -> str:
    """`YYYY-MM-DD` of a number of days since the epoch."""
    if days not in DATE_DAYS:
        raise ValueError(f"{days} days since 1970-01-01 lie outside the years 0001 to 9999")
    return date.fromordinal(days + _EPOCH_ORDINAL).isoformat()


def render_datetime(milliseconds: int) -> str:
    """`YYYY-MM-DDTHH:MM:SS.mmmZ` of a number of milliseconds since the epoch."""
    if milliseconds not in DATETIME_MILLISECONDS:
        raise ValueError(f"{milliseconds} ms since 1970-01-01 lie outside the years 0001 to 9999")
    days, rest = divmod(milliseconds, _MS_PER_DAY)
    seconds, fraction = divmod(rest, 1000)
    minutes, second = divmod(seconds, 60)
    hour, minute = divmod(minutes, 60)
    return f"{render_date(days)}T{hour:02d}:{minute:02d}:{second:02d}.{fraction:03d}Z"
