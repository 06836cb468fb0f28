"""What Python programs hold, as JSON: parameters and rows reach a server as the values that `omnigraph.open` would read.

JSON writes less than Python holds: a float that is not finite would go as null, and a date is a text among others. So
parameters of such kinds are judged here, by the types that the query declares, and go in the form of their types.
"""

from __future__ import annotations

import math
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from decimal import Decimal
from typing import Any, cast

import orjson

from omnigraph.errors import BadRequest, LanguageError
from omnigraph.language.json_values import BASE64, is_array, items_of, number_of, unwrapped
from omnigraph.language.literals import TypedValue
from omnigraph.language.query.ast import Param
from omnigraph.language.query.params import bind_params
from omnigraph.language.query.parser import find_query, parse_query_file
from omnigraph.language.temporal import render_date, render_datetime
from omnigraph.language.types import Scalar
from omnigraph.values.render import json_number

#: Dates are written by `_plain`, which refuses times of day, and NumPy's values are taken out of their arrays exactly.
_OPTIONS = orjson.OPT_NON_STR_KEYS | orjson.OPT_PASSTHROUGH_DATETIME
_KINDS = frozenset({str, int, float, bool, type(None)})
#: The integers that are written as such.
_WRITTEN = range(-(2**63), 2**64)
_RENDERED: dict[Scalar, Callable[[Any], str]] = {Scalar.DATE: render_date, Scalar.DATETIME: render_datetime}


def encoded(body: Any) -> bytes:
    """A body as JSON."""
    try:
        return orjson.dumps(body, _plain, _OPTIONS)
    except TypeError as error:
        raise BadRequest(f"this can not be sent as JSON: {error}") from None


def line_of(row: object) -> bytes:
    """A row of a load as a line. A float that is not finite is the text that loads read as one."""
    try:
        line = orjson.dumps(row, _plain, _OPTIONS | orjson.OPT_APPEND_NEWLINE)
        if b"null" not in line:
            return line
    except TypeError:
        # It may be a number that is larger than the fast way can write.
        pass
    try:
        return orjson.dumps(_spelled(row), _plain, _OPTIONS | orjson.OPT_APPEND_NEWLINE)
    except (TypeError, ValueError) as error:
        raise BadRequest(f"a row can not be sent as JSON: {error}") from None


def sent_params(source: str | None, name: str | None, params: Mapping[str, object] | None) -> dict[str, Any] | None:
    """Parameters as a request carries them. `source`: None where only the server has the text of the query."""
    if params is None:
        return None
    sent: dict[str, Any] = dict(params)
    special = {key: value for key, value in sent.items() if not _is_json(value)}
    if special:
        declared = {} if source is None else _declared(source, name)
        sent |= {key: _sent(key, value, declared) for key, value in special.items()}
    return sent


def _declared(source: str, name: str | None) -> dict[str, Param] | None:
    """The parameters of a query by name; None of one that can not be read: the server says what is wrong with it."""
    try:
        return {param.name: param for param in find_query(parse_query_file(source), name).params}
    except (BadRequest, LanguageError):
        return None


def _sent(key: str, value: object, declared: Mapping[str, Param] | None) -> Any:
    if declared is not None and key in declared:
        return _told(bind_params((declared[key],), {key: value}, undeclared="ignore")[key])
    try:
        spelled = _spelled(value)
    except ValueError as problem:
        raise BadRequest(f"parameter '{key}': {problem}") from None
    if declared is not None and isinstance(value, float) and not math.isfinite(value):
        # No parameter takes one, whatever its type is.
        raise BadRequest(f"parameter '{key}': expected a finite number, got {value}")
    return spelled


def _told(typed: TypedValue) -> Any:
    """A value in the JSON form of its type."""
    value: Any = typed.value
    render = _RENDERED.get(typed.type.scalar)
    if render is None or value is None:
        return value
    return [render(item) for item in value] if typed.type.is_list else render(value)


def _is_json(value: object) -> bool:
    """Whether JSON writes a value, or a list of values, as what it is."""
    items = cast("Sequence[Any]", value) if type(value) in (list, tuple) else (value,)
    kinds = set(map(type, items))
    return (
        kinds <= _KINDS
        and (float not in kinds or all(math.isfinite(item) for item in items if type(item) is float))
        and (int not in kinds or all(item in _WRITTEN for item in items if type(item) is int))
    )


def _spelled(value: object) -> object:
    """A value with what JSON has no number for as text, and large integers as floats."""
    value = unwrapped(value)
    if isinstance(value, Mapping):
        return {key: _spelled(item) for key, item in value.items()}
    if isinstance(value, list | tuple) or is_array(value):
        return [_spelled(item) for item in items_of(value)]
    if isinstance(value, float) or (isinstance(value, Decimal) and not value.is_finite()):
        return json_number(float(value))
    if isinstance(value, int) and int(value) not in _WRITTEN:
        return number_of(value)
    return value


def _plain(value: object) -> object:
    """A value that Python programs hold, as JSON has it: bytes are a blob's text."""
    if isinstance(value, bytes | bytearray | memoryview):
        return f"{BASE64}{b64encode(value).decode()}"
    try:
        found = unwrapped(value)
        if found is not value:
            return found
        if isinstance(value, date):
            return value.isoformat()
        if isinstance(value, Decimal):
            return int(value) if value == value.to_integral_value() else number_of(value)
        if is_array(value):
            return list(items_of(value))
    except (ValueError, ArithmeticError) as problem:
        raise TypeError(str(problem)) from None
    raise TypeError(f"a {type(value).__name__} has no form in JSON")
