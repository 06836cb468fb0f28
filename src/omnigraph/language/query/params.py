"""Parameters: from JSON or Python values to one typed value for each declared parameter."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence
from datetime import date, datetime
from typing import Any, Literal, cast

from omnigraph.errors import BadRequest
from omnigraph.language.json_values import (
    blob_text_of,
    bool_of,
    day_of,
    elements_of,
    instant_of,
    integer_of,
    items_of,
    number_of,
    shown,
    text_of,
    texts_of,
    unwrapped,
    vector_of,
)
from omnigraph.language.literals import INTEGER_RANGES, PlainValue, TypedValue, round_to_f32
from omnigraph.language.query.ast import Param
from omnigraph.language.query.check import NOW_PARAMETER
from omnigraph.language.query.nameless import WITHOUT_SIGN
from omnigraph.language.source import did_you_mean, nearest_name
from omnigraph.language.temporal import parse_date, parse_datetime
from omnigraph.language.types import INTEGERS, PropType, Scalar

_DECIMAL = re.compile(r"-?[0-9]+")
#: No 64-bit number has more digits; the check matters, since Python refuses to convert thousands of digits.
_MOST_DIGITS = 20


def bind_params(
    params: Iterable[Param], document: object, *, undeclared: Literal["refuse", "ignore"]
) -> dict[str, TypedValue]:
    """The value of every declared parameter. `document` is a parsed JSON object, or None for no parameters.

    `undeclared`: what to do with a name that the query does not declare. Python and the command line refuse it; HTTP ignores
    it,
    except for a JSON object, which is never a value.
    """
    if document is None:
        document = {}
    if not isinstance(document, Mapping):
        raise BadRequest("params must be a JSON object")
    declared = {param.name: param.type for param in params}
    for name, value in document.items():
        if name not in declared:
            _check_undeclared(name, value)
            if undeclared == "refuse":
                raise BadRequest(_not_declared(str(name), declared))
    return {name: _bind(name, kind, document, declared) for name, kind in declared.items()}


def _check_undeclared(name: object, value: object) -> None:
    if name == NOW_PARAMETER:
        raise BadRequest(f"parameter name '{NOW_PARAMETER}' is reserved")
    if _holds_object(value):
        raise BadRequest(f"parameter '{name}': a JSON object is not a value")


def _not_declared(name: str, declared: Collection[str]) -> str:
    close = nearest_name(name, declared)
    if name.removeprefix("$") in declared:
        hint = f"; {WITHOUT_SIGN} `{name.removeprefix('$')}`"
    elif close is not None:
        hint = did_you_mean(close)
    else:
        hint = f"; its parameters are {', '.join(declared)}" if declared else "; it takes none"
    return f"the query declares no parameter '{name}'{hint}"


def _holds_object(value: object) -> bool:
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, Mapping):
            return True
        if isinstance(item, list | tuple):
            waiting.extend(item)
    return False


def _bind(name: str, kind: PropType, document: Mapping[str, object], declared: Container[str]) -> TypedValue:
    value = document.get(name)
    try:
        value = unwrapped(value)
    except ValueError as problem:
        raise BadRequest(f"parameter '{name}' ({kind}): {problem}") from None
    if value is None:
        if kind.nullable:
            return TypedValue(None, kind)
        if name in document:
            raise BadRequest(f"null is not accepted for non-nullable parameter '{name}'")
        other = nearest_name(name, [str(key) for key in document if key not in declared])
        hint = f"; {WITHOUT_SIGN} `{name}`" if other == f"${name}" else f"; is `{other}` meant to be it?"
        raise BadRequest(f"parameter '{name}' not provided" + (hint if other else ""))
    try:
        return TypedValue(_convert(value, kind), kind)
    except ValueError as problem:
        raise BadRequest(f"parameter '{name}' ({kind}): {problem}") from None


# --- values: each function raises ValueError with what is wrong -------------------------------------------------------


def _convert(value: object, kind: PropType) -> PlainValue:
    if kind.is_vector:
        count = len(items_of(value))
        if count != kind.dimension:
            raise ValueError(f"expected {kind.dimension} values, got {count}")
        vector = vector_of(value, kind)
        return vector if all(map(math.isfinite, vector)) else tuple(map(_finite, vector))
    if kind.is_list:
        return _elements(elements_of(value), kind.scalar)
    return _SCALARS[kind.scalar](value, kind.scalar)


def _elements(items: Sequence[object], scalar: Scalar) -> tuple[PlainValue, ...]:
    """The elements of a list. Texts and integers are checked all at once, since a list may have many thousands."""
    if scalar is Scalar.STRING:
        return texts_of(items)
    if scalar in INTEGERS and set(map(type, items)) == {int}:
        numbers = cast("Sequence[int]", items)
        allowed = INTEGER_RANGES[scalar]
        if min(numbers) in allowed and max(numbers) in allowed:
            return tuple(numbers)
    return tuple(_SCALARS[scalar](item, scalar) for item in items)


def _text(value: object, scalar: Scalar) -> str:
    return text_of(value)


def _blob(value: object, scalar: Scalar) -> str:
    return blob_text_of(value)


def _bool(value: object, scalar: Scalar) -> bool:
    return bool_of(value)


def _integer(value: object, scalar: Scalar) -> int:
    """An integer in range. Texts of digits are accepted too, for clients whose numbers are exact only up to 2^53."""
    number = _of_digits(value, scalar) if isinstance(value, str) and _DECIMAL.fullmatch(value) else integer_of(value)
    allowed = INTEGER_RANGES[scalar]
    if number not in allowed:
        raise ValueError(
            f"{shown(value)} is outside the range of {scalar} in queries, {allowed.start} to {allowed.stop - 1}"
        )
    return number


def _of_digits(text: str, scalar: Scalar) -> int:
    digits = text.lstrip("-").lstrip("0") or "0"
    if len(digits) > _MOST_DIGITS:
        raise ValueError(f"a number of {len(digits)} digits is outside the range of {scalar}")
    return -int(digits) if text.startswith("-") else int(digits)


def _float(value: object, scalar: Scalar) -> float:
    number = _finite(number_of(value))
    return round_to_f32([number])[0] if scalar is Scalar.F32 else number


def _finite(number: float) -> float:
    if not math.isfinite(number):
        raise ValueError(f"expected a finite number, got {number}")
    return number


def _date(value: object, scalar: Scalar) -> int:
    return day_of(value) if isinstance(value, date) else parse_date(text_of(value))


def _datetime(value: object, scalar: Scalar) -> int:
    return instant_of(value) if isinstance(value, datetime) else parse_datetime(text_of(value))


_SCALARS: dict[Scalar, Callable[[Any, Scalar], PlainValue]] = {
    Scalar.STRING: _text,
    Scalar.BLOB: _blob,
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
