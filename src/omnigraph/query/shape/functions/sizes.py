"""How much memory the kernels need that make much of little, before they make it.

Other kernels make values about as large as those that they are given, which are counted already.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.language.types import Scalar
from omnigraph.query.shape.functions.arguments import Arguments
from omnigraph.query.shape.functions.lists import range_lengths

#: Results below are not looked at more closely.
_SMALL = 16 << 20
#: Bytes of an item of `range` while it is made.
_BYTES_PER_ITEM = 16


def made_bytes(function: str, given: Arguments) -> int:
    """About how many bytes a call takes while its result is made; 0 when the result is about as large as its arguments."""
    count = _COUNTS.get(function)
    return 0 if count is None else count(given)


def _together(given: Arguments) -> int:
    return sum(int(column.nbytes) for column in given.columns)


def _concatenated(given: Arguments) -> int:
    # The result is as large as the arguments, which stay in memory until it is made.
    return 2 * _together(given)


def _added(given: Arguments) -> int:
    return _concatenated(given) if given.result.scalar is Scalar.STRING else 0


def _listed(given: Arguments) -> int:
    # Once one column behind the other, once in the order of the rows.
    return 2 * _together(given)


def _ranged(given: Arguments) -> int:
    return _BYTES_PER_ITEM * int(range_lengths(given).sum())


def _joined(given: Arguments) -> int:
    longest = _longest(given[1])
    return int(given[0].nbytes) + longest * len(pc.list_flatten(given[0]))


def _replaced(given: Arguments) -> int:
    part, longest = given.text(1), _longest(given[2])
    size = int(given[0].nbytes)
    if size * max(longest, 1) <= _SMALL:
        return size * max(longest, 1)
    if part:
        found = pc.sum(pc.count_substring(given[0], part)).as_py() or 0
        return size + found * max(longest - len(part.encode()), 0)
    rows = zip(given[0].to_pylist(), given[1].to_pylist(), strict=True)
    return size + sum(longest * int(text.count(part)) for text, part in rows if text and part)


def _longest(texts: pa.Array) -> int:
    return int(np.max(pc.fill_null(pc.binary_length(texts), 0), initial=0))


_COUNTS: dict[str, Callable[[Arguments], int]] = {
    "+": _added,
    "concat": _concatenated,
    "list": _listed,
    "range": _ranged,
    "join": _joined,
    "replace": _replaced,
}
