"""Number literals of `.pg`: digits → value. Digits of any length are safe; numbers that are too large are refused."""

from __future__ import annotations

import math

from omnigraph.language.source import Source, Span
from omnigraph.language.types import MAX_VECTOR_DIMENSION

LARGEST_INTEGER = 2**64 - 1
SMALLEST_INTEGER = -(2**63)
_LONGEST_SHOWN = 24


def to_number(text: str, source: Source, span: Span) -> int | float:
    """An optionally signed number: a float when it is written with a point, else an int."""
    return to_float(text, source, span) if "." in text else to_integer(text, source, span)


def to_integer(text: str, source: Source, span: Span) -> int:
    """An integer of at most 64 bits, signed or unsigned; raises an error for a larger integer."""
    value = _small_integer(text)
    if value is None or not SMALLEST_INTEGER <= value <= LARGEST_INTEGER:
        source.semantic_error(
            f"integer {_shown(text)} does not fit into 64 bits; write a float (`1000.0`) for a larger number", span
        )
    return value


def to_float(text: str, source: Source, span: Span) -> float:
    """A float; raises an error when it overflows to infinity."""
    value = float(text)
    if not math.isfinite(value):
        source.semantic_error(f"number {_shown(text)} is too large for F64", span)
    return value


def to_vector_dimension(text: str, source: Source, span: Span) -> int:
    """The dimension of `Vector(n)`."""
    value = _small_integer(text)
    if value is None or value > MAX_VECTOR_DIMENSION:
        source.semantic_error(f"Vector dimension {_shown(text)} exceeds maximum supported {MAX_VECTOR_DIMENSION}", span)
    if value == 0:
        source.semantic_error("Vector dimension must be greater than zero", span)
    return value


def _small_integer(text: str) -> int | None:
    """The value of digits with an optional `-`, or None when it has more than 20 digits."""
    # Python refuses to convert more than 4300 digits, leading zeros included.
    digits = text.lstrip("-").lstrip("0") or "0"
    if len(digits) > 20:
        return None
    return -int(digits) if text.startswith("-") else int(digits)


def _shown(text: str) -> str:
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}… ({len(text)} characters)"
