"""Splits a CSV file into byte ranges that end with whole records, so that several tasks can read it.

A quoted field may hold line ends, so whether a line end closes a record depends on all quotes before it. Each range is looked
at independently and answers for both cases, that it begins outside of quotes and inside; the answers together say where the
records end. That works only where quotes enclose whole fields; a file with other quotes is read as a single range.
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
    """A byte range of a CSV file that is to be looked at."""

    file: InputFile
    start: int
    end: int
    delimiter: str


@dataclass(frozen=True)
class Seen:
    """The findings in a range. Of a pair, the first item holds if the range begins outside of quotes, the second inside."""

    #: Whether it has an odd number of quotes: then the next range begins in the other state.
    turns: bool
    #: Whether all quotes enclose whole fields.
    is_plain: tuple[bool, bool]
    #: Where the first record begins within the range; None when no record begins there.
    first: tuple[int | None, int | None]


def record_ranges(file: InputFile, delimiter: str, step: int, runner: Runner) -> list[tuple[int, int]]:
    """Byte ranges of about `step` bytes that hold whole records; the first includes the line of column names."""
    starts = range(0, max(file.size, 1), step)
    looks = [RangeLook(file, start, min(start + step, file.size), delimiter) for start in starts]
    cuts = _cuts(runner.run(look_over, looks, stage="find records")) if len(looks) > 1 else []
    bounds = [0, *cuts, file.size]
    return list(pairwise(bounds))


def _cuts(seen: Sequence[Seen]) -> list[int]:
    """Byte offsets where records begin, about one in each range; empty when the quotes do not enclose whole fields."""
    cuts: list[int] = []
    inside = False
    for number, one in enumerate(seen):
        if not one.is_plain[inside]:
            return []
        first = one.first[inside]
        if number and first is not None:
            cuts.append(first)
        inside ^= one.turns
    # A quote is never closed: read the file as one range, and the reader of it reports the place.
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
    """Look at the quotes and line ends of a range, with one byte before it and one behind it."""
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
    """Where the first record begins after the first of these line ends; None when that is in the next range."""
    place = look.start + int(ends[0]) + 1 if len(ends) else look.end
    return place if place < look.end else None


def _around_fields(data: Bytes, quotes: npt.NDArray[np.intp], inside: int, delimiter: str) -> bool:
    """Whether every opening quote stands at the start of a field and every closing quote at the end of one.

    A quote within a field is written twice: the first closes, the second opens again.
    """
    apart = np.frombuffer(delimiter.encode() + b'\r\n"', np.uint8)
    opening, closing = quotes[inside::2], quotes[1 - inside :: 2]
    begins = (opening == 0) | np.isin(data[np.maximum(opening - 1, 0)], apart)
    ends = (closing == len(data) - 1) | np.isin(data[np.minimum(closing + 1, len(data) - 1)], apart)
    return bool(begins.all() and ends.all())
