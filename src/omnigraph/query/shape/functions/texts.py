"""Kernels of functions on texts."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.query.shape.functions.arguments import Arguments, Kernel, each
from omnigraph.values.columns import arrow_type

#: The largest place that Arrow takes.
_FARTHEST = 2**63 - 1


def _substring(given: Arguments) -> pa.Array:
    start, length = given.constants.get(0 + 1), given.constants.get(2)
    if isinstance(start, int) and start >= 0 and (len(given) == 2 or (isinstance(length, int) and length >= 0)):
        stop = None if len(given) == 2 or not isinstance(length, int) else min(start + length, _FARTHEST)
        return pc.utf8_slice_codeunits(given[0], start, stop)
    return each(given, _cut)


def _cut(text: str, start: int, length: int | None = None) -> str:
    first = max(len(text) + start, 0) if start < 0 else start
    return text[first:] if length is None else text[first : first + max(length, 0)]


def _replace(given: Arguments) -> pa.Array:
    part, other = given.text(1), given.text(2)
    if part and other is not None:
        return pc.replace_substring(given[0], part, other)
    return each(given, lambda text, part, other: text.replace(part, other) if part else text)


def _split(given: Arguments) -> pa.Array:
    def split(text: str, separator: str) -> list[str]:
        if not separator:
            raise ValueError("the separator of `split` is empty")
        return text.split(separator)

    separator = given.text(1)
    if separator:
        return pc.split_pattern(given[0], separator).cast(arrow_type(given.result))
    return each(given, split)


def _join(given: Arguments) -> pa.Array:
    return each(given, lambda texts, separator: separator.join(text for text in texts if text is not None))


def _matches(given: Arguments) -> pa.Array:
    """Arrow's regular expressions are RE2's, whose time is linear in the length of the text."""
    result = pa.nulls(given.count, pa.bool_())
    patterns = given[1]
    for pattern in pc.unique(patterns.drop_null()).to_pylist():
        try:
            found = pc.match_substring_regex(given[0], pattern)
        except pa.ArrowInvalid as problem:
            raise ValueError(
                f"the regular expression is not valid RE2: {str(problem).removeprefix('Invalid regular expression: ')}"
            ) from None
        if given.text(1) is not None:
            return found
        result = pc.if_else(pc.fill_null(pc.equal(patterns, pattern), False), found, result)
    return result


def _concat(given: Arguments) -> pa.Array:
    # With `null_handling="skip"` Arrow would give null where all texts are null; the result here is an empty text.
    return pc.binary_join_element_wise(*given.columns, "", null_handling="replace", null_replacement="")


TEXTS: dict[str, Kernel] = {
    "lower": lambda given: pc.utf8_lower(given[0]),
    "upper": lambda given: pc.utf8_upper(given[0]),
    "trim": lambda given: pc.utf8_trim_whitespace(given[0]),
    "length": lambda given: pc.utf8_length(given[0]).cast(pa.int64()),
    "substring": _substring,
    "replace": _replace,
    "split": _split,
    "join": _join,
    "reverse_text": lambda given: pc.utf8_reverse(given[0]),
    "matches": _matches,
    "concat": _concat,
}
