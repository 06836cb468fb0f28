"""JSON values as plain values: what parameters of queries and properties of rows read alike, and how both refuse.

Each function raises ValueError with what is wrong. Values of Python programs (tuples, NumPy scalars) are taken for what they are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import cast

from omnigraph.language.literals import round_to_f32
from omnigraph.language.types import PropType

_LONGEST_SHOWN = 40


def shown(value: object) -> str:
    """A value in a message: its JSON kind, and a short text of it."""
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case int() if value.bit_length() > 64:
            return f"an integer of {value.bit_length()} bits"
        case int() | float():
            return str(value)
        case str():
            return f"the text '{value if len(value) <= _LONGEST_SHOWN else value[:_LONGEST_SHOWN] + '…'}'"
        case Mapping():
            return "an object"
        case list() | tuple():
            return "an array"
        case _:
            return f"a {type(value).__name__}"


def unwrapped(value: object) -> object:
    """A NumPy scalar or zero-dimensional array as the Python value it holds."""
    item: Callable[[], object] | None = getattr(value, "item", None)
    return item() if item is not None and type(value).__module__ == "numpy" else value


def items_of(value: object) -> Sequence[object]:
    """What stands in an array."""
    to_list: Callable[[], Sequence[object]] | None = getattr(value, "tolist", None)
    value = to_list() if to_list is not None else value
    if not isinstance(value, list | tuple):
        raise ValueError(f"expected an array, got {shown(value)}")
    return value


def elements_of(value: object) -> Sequence[object]:
    """The elements of a list, of which none may be null."""
    found = [unwrapped(item) for item in items_of(value)]
    if any(item is None for item in found):
        raise ValueError("null is not accepted as an element")
    return found


def vector_of(value: object, kind: PropType) -> tuple[float, ...]:
    """A vector of its declared dimension, in the precision it is stored with."""
    items = items_of(value)
    # Vectors are long, and nearly all of them hold nothing but plain floats.
    plain = set(map(type, items)) == {float}
    if not plain:
        items = [unwrapped(item) for item in items]
        if any(isinstance(item, bool) or not isinstance(item, int | float) for item in items):
            raise ValueError("elements must be numeric")
    if len(items) != kind.dimension:
        raise ValueError(f"expects {kind.dimension} dimensions, got {len(items)}")
    return round_to_f32([number_of(item) for item in items] if not plain else cast("Sequence[float]", items))


def text_of(value: object) -> str:
    """A text that can be stored."""
    if not isinstance(value, str):
        raise ValueError(f"expected a text, got {shown(value)}")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ValueError("the text holds half of a surrogate pair") from None
    return value


def bool_of(value: object) -> bool:
    """True or false, and nothing that could be taken for one of them."""
    if not isinstance(value, bool):
        raise ValueError(f"expected true or false, got {shown(value)}")
    return value


def integer_of(value: object) -> int:
    """A whole number; 2.0 and true are none."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f"expected an integer, got {shown(value)}")
    return value


def number_of(value: object) -> float:
    """A number as a float."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"expected a number, got {shown(value)}")
    try:
        return float(value)
    except OverflowError:
        raise ValueError("an integer is outside the range of F64") from None
