"""A CSV file as byte ranges that end with records, so that several tasks read it.

A field in quotes may hold line ends, so that whether one ends a record depends on all quotes before it. Each range is looked at
on its own and answers for both ways in which it may begin, outside of quotes and inside; put together, the answers say where
records end. That holds where quotes stand around whole fields only; a file in which one stands elsewhere is read as one range.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from omnigraph.spark.runner import Runner
from omnigraph.storage.files import InputFile

_QUOTE, _LINE_END = b'"'[0], b"\n"[0]
#: Bytes that are looked at together.
_LOOK_BYTES = 8 << 20

Bytes = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class RangeLook:
    """Some bytes of a CSV file, to be looked at."""

    file: InputFile
    start: int
    end: int
    delimiter: str


@dataclass(frozen=True)
class Seen:
    """What was found in a range; of pairs, the first counts when the range begins outside of quotes, the second inside."""

    #: Whether it has an odd number of quotes: then the next range begins the other way.
    turns: bool
    #: Whether all quotes stand around whole fields.
    is_plain: tuple[bool, bool]
    #: Where the first record begins that begins within it; None: no record does.
    first: tuple[int | None, int | None]


def record_ranges(file: InputFile, delimiter: str, step: int, runner: Runner) -> list[tuple[int, int]]:
    """Ranges of about so many bytes, each of whole records; the first has the line of names."""
    starts = range(0, max(file.size, 1), step)
    looks = [RangeLook(file, start, min(start + step, file.size), delimiter) for start in starts]
    cuts = _cuts(runner.run(look_over, looks, stage="find records")) if len(looks) > 1 else []
    bounds = [0, *cuts, file.size]
    return list(pairwise(bounds))


def _cuts(seen: Sequence[Seen]) -> list[int]:
    """Where records begin, about once in each range; none where quotes do not tell."""
    cuts: list[int] = []
    inside = False
    for number, one in enumerate(seen):
        if not one.is_plain[inside]:
            return []
        first = one.first[inside]
        if number and first is not None:
            cuts.append(first)
        inside ^= one.turns
    # A quote that is never closed: whoever reads the whole file says where.
    return [] if inside else cuts


def ends_in_quotes(file: InputFile, delimiter: str) -> bool:
    """Whether a file ends within a quote that was never closed; False where quotes do not tell."""
    inside = False
    for start in range(0, file.size, _LOOK_BYTES):
        seen = look_over(RangeLook(file, start, min(start + _LOOK_BYTES, file.size), delimiter))
        if not seen.is_plain[inside]:
            return False
        inside ^= seen.turns
    return inside


def look_over(look: RangeLook) -> Seen:
    """Look at the quotes and line ends of a range, with one byte on either side of it."""
    before = min(look.start, 1)
    data = np.frombuffer(look.file.read(look.start - before, look.end + 1), np.uint8)
    length = look.end - look.start
    own = data[before : before + length]
    quotes = np.flatnonzero(own == _QUOTE)
    ends = np.flatnonzero(own == _LINE_END)
    odd = (np.searchsorted(quotes, ends) & 1).astype(np.bool_)
    return Seen(
        turns=bool(len(quotes) & 1),
        is_plain=(
            _around_fields(data, quotes + before, 0, look.delimiter),
            _around_fields(data, quotes + before, 1, look.delimiter),
        ),
        first=(_after(ends[~odd], look), _after(ends[odd], look)),
    )


def _after(ends: npt.NDArray[np.intp], look: RangeLook) -> int | None:
    """Where the first record behind a line end begins; one that begins with the next range is of that range."""
    place = look.start + int(ends[0]) + 1 if len(ends) else look.end
    return place if place < look.end else None


def _around_fields(data: Bytes, quotes: npt.NDArray[np.intp], inside: int, delimiter: str) -> bool:
    """Whether every quote that opens stands where a field begins, and every quote that closes where one ends.

    A quote within a field is written twice: it closes, and the one behind it opens again.
    """
    apart = np.frombuffer(delimiter.encode() + b'\r\n"', np.uint8)
    opening, closing = quotes[inside::2], quotes[1 - inside :: 2]
    begins = (opening == 0) | np.isin(data[np.maximum(opening - 1, 0)], apart)
    ends = (closing == len(data) - 1) | np.isin(data[np.minimum(closing + 1, len(data) - 1)], apart)
    return bool(begins.all() and ends.all())
