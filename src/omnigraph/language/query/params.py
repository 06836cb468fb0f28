"""Parameters: a JSON document → one typed value for each declared parameter."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from omnigraph.errors import BadRequest
from omnigraph.language.literals import INTEGER_RANGES, PlainValue, TypedValue, round_to_f32
from omnigraph.language.query.ast import Param
from omnigraph.language.query.check.query import NOW_PARAMETER
from omnigraph.language.temporal import parse_date, parse_datetime
from omnigraph.language.types import PropType, Scalar

_DECIMAL = re.compile(r"-?[0-9]+")
#: Longer than any 64-bit number; Python refuses to convert thousands of digits.
_MOST_DIGITS = 20


def bind_params(params: Iterable[Param], document: object) -> dict[str, TypedValue]:
    """The value of every declared parameter. `document` is a parsed JSON object, or None for no parameters.

    Undeclared keys are ignored, but an object among them is refused: it can not have been meant as a value.
    """
    if document is None:
        document = {}
    if not isinstance(document, Mapping):
        raise BadRequest("params must be a JSON object")
    declared = {param.name: param.type for param in params}
    for name, value in document.items():
        if name not in declared:
            _check_undeclared(name, value)
    return {name: _bind(name, kind, document) for name, kind in declared.items()}


def _check_undeclared(name: object, value: object) -> None:
    if name == NOW_PARAMETER:
        raise BadRequest(f"parameter name '{NOW_PARAMETER}' is reserved")
    if _holds_object(value):
        raise BadRequest(f"parameter '{name}': a JSON object is not a value")


def _holds_object(value: object) -> bool:
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, Mapping):
            return True
        if isinstance(item, list | tuple):
            waiting.extend(item)
    return False


def _bind(name: str, kind: PropType, document: Mapping[str, object]) -> TypedValue:
    value = document.get(name)
    if value is None:
        if kind.nullable:
            return TypedValue(None, kind)
        if name in document:
            raise BadRequest(f"null is not accepted for non-nullable parameter '{name}'")
        raise BadRequest(f"parameter '{name}' not provided")
    try:
        return TypedValue(_convert(value, kind), kind)
    except ValueError as problem:
        raise BadRequest(f"parameter '{name}' ({kind}): {problem}") from None


# --- values: each function raises ValueError with what is wrong -------------------------------------------------------


def _convert(value: object, kind: PropType) -> PlainValue:
    if kind.is_vector:
        return _vector(value, kind)
    if kind.is_list:
        return tuple(_item(item, kind) for item in _array(value))
    return _SCALARS[kind.scalar](value, kind.scalar)


def _array(value: object) -> list[object] | tuple[object, ...]:
    if not isinstance(value, list | tuple):
        raise ValueError(f"expected an array, got {_shown(value)}")
    return value


def _item(value: object, kind: PropType) -> PlainValue:
    if value is None:
        raise ValueError("null is not accepted as an element")
    return _SCALARS[kind.scalar](value, kind.scalar)


def _vector(value: object, kind: PropType) -> tuple[float, ...]:
    items = _array(value)
    if len(items) != kind.dimension:
        raise ValueError(f"expected {kind.dimension} values, got {len(items)}")
    return round_to_f32([_number(item) for item in items])


def _text(value: object, scalar: Scalar) -> str:
    if not isinstance(value, str):
        raise ValueError(f"expected a string, got {_shown(value)}")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ValueError("the string holds half of a surrogate pair") from None
    return value


def _bool(value: object, scalar: Scalar) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"expected true or false, got {_shown(value)}")
    return value


def _integer(value: object, scalar: Scalar) -> int:
    if isinstance(value, str) and _DECIMAL.fullmatch(value):
        digits = value.lstrip("-").lstrip("0") or "0"
        if len(digits) > _MOST_DIGITS:
            raise ValueError(f"a number of {len(digits)} digits is outside the range of {scalar}")
        number = -int(digits) if value.startswith("-") else int(digits)
    elif isinstance(value, int) and not isinstance(value, bool):
        number = value
    else:
        raise ValueError(f"expected an integer, got {_shown(value)}")
    allowed = INTEGER_RANGES[scalar]
    if number not in allowed:
        raise ValueError(
            f"{_shown(value)} is outside the range of {scalar} in queries, {allowed.start} to {allowed.stop - 1}"
        )
    return number


def _float(value: object, scalar: Scalar) -> float:
    number = _number(value)
    return round_to_f32([number])[0] if scalar is Scalar.F32 else number


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"expected a number, got {_shown(value)}")
    try:
        number = float(value)
    except OverflowError:
        raise ValueError("an integer is outside the range of F64") from None
    if not math.isfinite(number):
        raise ValueError(f"expected a finite number, got {number}")
    return number


def _date(value: object, scalar: Scalar) -> int:
    return parse_date(_text(value, scalar))


def _datetime(value: object, scalar: Scalar) -> int:
    return parse_datetime(_text(value, scalar))


_SCALARS: dict[Scalar, Callable[[Any, Scalar], PlainValue]] = {
    Scalar.STRING: _text,
    Scalar.BLOB: _text,
    Scalar.BOOL: _bool,
    Scalar.I32: _integer,
    Scalar.I64: _integer,
    Scalar.U32: _integer,
    Scalar.U64: _integer,
    Scalar.F32: _float,
    Scalar.F64: _float,
    Scalar.DATE: _date,
    Scalar.DATETIME: _datetime,
}

_LONGEST_SHOWN = 40


def _shown(value: object) -> str:
    """A value in a message: its JSON kind, and a short text of it."""
    match value:
        case bool():
            return str(value).lower()
        case int() if value.bit_length() > 64:
            return f"an integer of {value.bit_length()} bits"
        case int() | float():
            return str(value)
        case str():
            return f"the string '{value if len(value) <= _LONGEST_SHOWN else value[:_LONGEST_SHOWN] + '…'}'"
        case list() | tuple():
            return "an array"
        case Mapping():
            return "an object"
        case _:
            return f"a {type(value).__name__}"
