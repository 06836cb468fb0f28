"""Times, sizes and datasets as people write and read them; the graph counts microseconds since 1970."""

from __future__ import annotations

from datetime import UTC, date, datetime, time

from omnigraph.errors import BadRequest


def iso(micros: int) -> str:
    """A point in time for people."""
    moment = datetime.fromtimestamp(micros // 1_000_000, UTC).replace(microsecond=micros % 1_000_000)
    return moment.isoformat(timespec="microseconds").replace("+00:00", "Z")


def first_moment(text: str) -> datetime:
    """The time that is meant, or the start of the day; UTC unless it says otherwise."""
    return _read(text, time.min)


def last_moment(text: str) -> datetime:
    """The time that is meant, or the end of the day; UTC unless it says otherwise."""
    return _read(text, time.max)


def _read(text: str, of_a_day: time) -> datetime:
    try:
        if len(text) == len("2026-04-01"):
            return datetime.combine(date.fromisoformat(text), of_a_day, UTC)
        moment = datetime.fromisoformat(text)
        aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
        # Here, so that a time at the edge of the calendar, which has no place in UTC, is refused too.
        return aware.astimezone(UTC)
    except (ValueError, OverflowError):
        raise BadRequest(f"'{text}' is not a date or time; write 2026-04-01 or 2026-04-01T08:30:00Z") from None


_UNITS = ("B", "kB", "MB", "GB", "TB")


def dataset_name(type_key: str) -> str:
    """`node type 'Person'`; what is no type's is named by its path."""
    kind, colon, name = type_key.partition(":")
    return f"{kind} type '{name}'" if colon else type_key


def size(count: int) -> str:
    """Bytes in the unit that fits."""
    amount = float(count)
    for unit in _UNITS:
        if amount < 1000 or unit == _UNITS[-1]:
            break
        amount /= 1000
    return f"{count} B" if unit == "B" else f"{amount:.1f} {unit}"
