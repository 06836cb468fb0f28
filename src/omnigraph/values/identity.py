"""Identities: the id of a keyed entity is the text of its key, derived here for whole columns.

One key property: a String unchanged, integers, Date (days) and DateTime (milliseconds) in decimal, Bool `true`/`false`, floats
with the fewest digits that give back the stored value, in positional notation, −0 as `0`. Several: a compact JSON array of
these texts, in the identity order of the type.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import ValidationError
from omnigraph.language.schema.catalog import EdgeType, NodeType
from omnigraph.language.types import FLOATS, PropType, Scalar
from omnigraph.values.columns import whole

#: Characters that JSON text must escape, besides the quote and the backslash.
_CONTROL = r"[\x00-\x1f]"
_TEXT = PropType(Scalar.STRING)


def derive_ids(entity: NodeType | EdgeType, columns: pa.Table | Mapping[str, pa.Array]) -> pa.Array:
    """The id of every row of a type with a key, from the columns of the key."""
    assert entity.key is not None, "only keyed types derive their ids"
    texts = [_key_text(entity, name, whole(columns[name])) for name in entity.key]
    return texts[0] if len(texts) == 1 else _json_arrays(texts)


def _key_text(entity: NodeType | EdgeType, name: str, column: pa.Array) -> pa.Array:
    declared = entity.properties.get(name)
    kind = declared.type if declared is not None else _TEXT  # an end of an edge, which is no property
    if column.null_count:
        raise ValidationError(
            f"key property '{name}' of {entity.name} is null; give every entity its key",
            kind="required",
            type_key=entity.type_key,
            property=name,
        )
    if kind.scalar in FLOATS:
        return _float_text(entity, name, column)
    match kind.scalar:
        case Scalar.STRING if column.type == pa.string():
            return column
        case Scalar.DATE:
            return column.cast(pa.int32()).cast(pa.string())
        case Scalar.DATETIME:
            return column.cast(pa.int64()).cast(pa.string())
        case _:
            return column.cast(pa.string())


def _float_text(entity: NodeType | EdgeType, name: str, column: pa.Array) -> pa.Array:
    if not pc.all(pc.is_finite(column), min_count=0).as_py():
        raise ValidationError(
            f"key property '{name}' of {entity.name} is not a finite number; a key must be finite",
            kind="key",
            type_key=entity.type_key,
            property=name,
        )
    # Adding zero turns −0 into 0. Numbers keep their stored width, which determines their number of digits.
    numbers = column.to_numpy(zero_copy_only=False) + 0
    distinct, places = np.unique(numbers, return_inverse=True)
    texts = [np.format_float_positional(number, unique=True, trim="-") for number in distinct]
    return pa.array(texts, pa.string()).take(pa.array(places))


def _json_arrays(texts: list[pa.Array]) -> pa.Array:
    """One JSON array of texts per row, such as `["a","b"]`."""
    quoted = [_json_strings(text) for text in texts]
    joined = pc.binary_join_element_wise(*quoted, ",")
    return pc.binary_join_element_wise("[", joined, "]", "")


def _json_strings(text: pa.Array) -> pa.Array:
    escaped = pc.replace_substring(pc.replace_substring(text, "\\", "\\\\"), '"', '\\"')
    quoted = pc.binary_join_element_wise('"', escaped, '"', "")
    rare = pc.match_substring_regex(text, _CONTROL)
    if not pc.any(rare).as_py():
        return quoted
    exact = [orjson.dumps(value).decode() for value in text.filter(rare).to_pylist()]
    return pc.replace_with_mask(quoted, rare, pa.array(exact, pa.string()))
