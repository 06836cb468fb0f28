"""Texts for combinations of values: what rows are sent to one task by, and what blocks are joined by.

Equal values give equal texts, whatever Spark's own equality says of nulls, NaN or lists.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.language.query.ir import VALUE, is_value
from omnigraph.query.rows import Rows, variable_type
from omnigraph.values.columns import whole

_NULL = "-"


def key_texts(columns: Sequence[pa.Array], count: int) -> pa.Array:
    """One text for each row. Texts are equal only where all values are; 0 and -0 have the same."""
    if not columns:
        return pa.array([""] * count, pa.string())
    parts = [_part(column) for column in columns]
    return parts[0] if len(parts) == 1 else pc.binary_join_element_wise(*parts, "")


def _part(column: pa.Array) -> pa.Array:
    """The values of one column, each with its length before it, so that two of them never run together."""
    if pa.types.is_floating(column.type):
        column = pc.add(column, pa.scalar(0, column.type))
    if pa.types.is_nested(column.type):
        texts = pa.array([None if value is None else repr(value) for value in column.to_pylist()], pa.string())
    else:
        texts = column.cast(pa.string())
    lengths = pc.utf8_length(texts).cast(pa.string())
    return pc.fill_null(pc.binary_join_element_wise(lengths, texts, ":"), _NULL)


def combination_texts(rows: Rows, variables: Sequence[str]) -> pa.Array:
    """One text for each row: the nodes, edges and values that these variables stand for."""
    columns = []
    for variable in variables:
        columns.append(whole(rows.column(variable, VALUE if is_value(variable) else "id")))
        if variable_type(variable) in rows.columns:
            columns.append(whole(rows.columns[variable_type(variable)]))
    return key_texts(columns, rows.count)
