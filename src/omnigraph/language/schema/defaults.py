"""`@default(literal)`: which literals fit which property type, and their values."""

from __future__ import annotations

from omnigraph.language import temporal
from omnigraph.language.literals import INTEGER_RANGES, round_to_f32
from omnigraph.language.schema.ast import LiteralValue
from omnigraph.language.types import FLOATS, INTEGERS, PropType, Scalar

# A stored U64 has its whole range; the range of a literal in a query is smaller.
_STORED_RANGES = INTEGER_RANGES | {Scalar.U64: range(2**64)}


def fit_default(prop_type: PropType, literal: LiteralValue) -> LiteralValue:
    """The default in canonical form: floats as floats, dates as text. Raises ValueError when the literal does not fit."""
    if not prop_type.is_plain_scalar:
        raise ValueError("lists, vectors and blobs can not have a default")
    if prop_type.scalar in INTEGERS:
        return _integer(prop_type.scalar, literal)
    if prop_type.scalar in FLOATS:
        return _float(prop_type.scalar, literal)
    if prop_type.scalar is Scalar.BOOL:
        if not isinstance(literal, bool):
            raise ValueError("write `true` or `false`")
        return literal
    if prop_type.scalar is Scalar.DATE:
        days = temporal.parse_date(literal) if isinstance(literal, str) else _integer(Scalar.I32, literal)
        return temporal.render_date(days)
    if prop_type.scalar is Scalar.DATETIME:
        instant = temporal.parse_datetime(literal) if isinstance(literal, str) else _integer(Scalar.I64, literal)
        return temporal.render_datetime(instant)
    return _text(prop_type, literal)


def _integer(scalar: Scalar, literal: LiteralValue) -> int:
    if isinstance(literal, bool) or not isinstance(literal, int):
        raise ValueError("write an integer")
    if literal not in _STORED_RANGES[scalar]:
        raise ValueError(f"{literal} is outside the range of {scalar}")
    return literal


def _float(scalar: Scalar, literal: LiteralValue) -> float:
    if isinstance(literal, bool | str):
        raise ValueError("write a number")
    value = float(literal)
    if scalar is Scalar.F32:
        round_to_f32([value])
    return value


def _text(prop_type: PropType, literal: LiteralValue) -> str:
    if not isinstance(literal, str):
        raise ValueError("write a text in double quotes")
    if prop_type.enum is not None and literal not in prop_type.enum:
        raise ValueError(f"'{literal}' is not one of its values")
    return literal


def default_value(prop_type: PropType, default: LiteralValue) -> LiteralValue:
    """The plain value of a fitted default: dates as days, datetimes as milliseconds since 1970."""
    if prop_type.scalar is Scalar.DATE and isinstance(default, str):
        return temporal.parse_date(default)
    if prop_type.scalar is Scalar.DATETIME and isinstance(default, str):
        return temporal.parse_datetime(default)
    return default
