"""Columns as JSON text, whole columns at once: the same text as for `render.plain`, without a Python step per value.

A float is the shortest text that gives back the stored number at its own width.
"""

from __future__ import annotations

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.language.types import FLOATS, PropType, Scalar
from omnigraph.values.render import plain

_NULL = "null"
_ESCAPES = (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n"), ("\r", "\\r"), ("\t", "\\t"))
_SPECIAL = r'[\x00-\x1f"\\]'
_CONTROL = r"[\x00-\x1f]"


def json_text(column: pa.Array, kind: PropType) -> pa.Array:
    """A column of a property type as JSON texts; null becomes the text `null`. Blob columns hold values, not descriptors."""
    if kind.is_blob:
        # Bytes of any length: together their texts may exceed 32-bit offsets.
        texts = json_string(pa.array(plain(column, kind), pa.large_string()))
    elif kind.is_vector:
        texts = _vectors(column)
    elif kind.is_list:
        texts = _lists(column, json_text(column.flatten(), kind.element()))
    else:
        texts = _scalars(column, kind)
    return texts.fill_null(_NULL) if texts.null_count else texts


def json_string(column: pa.Array) -> pa.Array:
    """Texts as JSON strings; null stays null."""
    if not pc.any(pc.match_substring_regex(column, _SPECIAL), min_count=0).as_py():
        return _between('"', column, '"')
    escaped = column
    for character, written in _ESCAPES:
        escaped = pc.replace_substring(escaped, character, written)
    escaped = _between('"', escaped, '"')
    # Other control characters are rare; these texts are encoded one by one.
    rare = pc.fill_null(pc.match_substring_regex(escaped, _CONTROL), False)
    if not pc.any(rare, min_count=0).as_py():
        return escaped
    spelled = [orjson.dumps(text).decode() for text in column.filter(rare).to_pylist()]
    return pc.replace_with_mask(escaped, rare, pa.array(spelled, escaped.type))


def _scalars(column: pa.Array, kind: PropType) -> pa.Array:
    if kind.scalar in FLOATS:
        return _floats(column)
    if kind.scalar is Scalar.STRING:
        return json_string(column)
    texts = column.cast(pa.string())
    if kind.scalar is Scalar.DATETIME:
        texts = pc.replace_substring(texts, " ", "T", max_replacements=1)
    if kind.scalar in (Scalar.DATE, Scalar.DATETIME):
        return _between('"', texts, '"')
    return texts


def _floats(column: pa.Array) -> pa.Array:
    if column.null_count == len(column):
        return pa.nulls(len(column), pa.string())
    values = column.fill_null(0).to_numpy(zero_copy_only=False)
    texts = pa.array(_dumped(values)[1:-1].split(","), pa.string(), mask=_mask(column))
    if np.isfinite(values).all():
        return texts
    for special, written in (
        (np.isnan(values), "NaN"),
        (np.isposinf(values), "Infinity"),
        (np.isneginf(values), "-Infinity"),
    ):
        texts = pc.if_else(pa.array(special), f'"{written}"', texts)
    return texts


def _vectors(column: pa.Array) -> pa.Array:
    flat = column.flatten()
    values = flat.to_numpy(zero_copy_only=False)
    if not len(flat) or flat.null_count or not np.isfinite(values).all():
        return _lists(column, _floats(flat).fill_null(_NULL) if len(flat) else flat.cast(pa.string()))
    rows = values.reshape(-1, column.type.list_size)
    texts = pa.array(_dumped(rows)[2:-2].split("],["), pa.string())
    present = _between("[", texts, "]")
    if not column.null_count:
        return present
    return pc.replace_with_mask(pa.nulls(len(column), pa.string()), column.is_valid(), present)


def _lists(column: pa.Array, elements: pa.Array) -> pa.Array:
    """The texts of lists, from the texts of all their elements."""
    lengths = pc.fill_null(pc.list_value_length(column), 0).to_numpy(zero_copy_only=False)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    lists = pa.ListArray.from_arrays(pa.array(offsets), elements.cast(pa.string()))
    texts = _between("[", pc.binary_join(lists, ","), "]")
    return pc.if_else(column.is_valid(), texts, pa.scalar(None, pa.string()))


def _between(before: str, column: pa.Array, after: str) -> pa.Array:
    """The texts with `before` and `after` around them; null stays null."""
    ends = [pa.scalar(text, column.type) for text in (before, after, "")]
    return pc.binary_join_element_wise(ends[0], column, *ends[1:])


def _dumped(values: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> str:
    return orjson.dumps(np.ascontiguousarray(values), option=orjson.OPT_SERIALIZE_NUMPY).decode()


def _mask(column: pa.Array) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]] | None:
    """The null mask of a column as NumPy expects it; None when it has no nulls."""
    if not column.null_count:
        return None
    mask: np.ndarray[tuple[int, ...], np.dtype[np.bool_]] = column.is_null().to_numpy(zero_copy_only=False)
    return mask
