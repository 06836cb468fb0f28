"""Conversion of rows of bindings to Arrow batches that Spark accepts, and back.
Spark has no unsigned integers, no fixed-size vectors and no milliseconds. Such columns are widened for Spark, as in the table
source, and narrowed again before anything is computed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.query.rows import WEIGHT, Rows, Values
from omnigraph.query.scan.entities import Entities
from omnigraph.spark.source import spark_type
from omnigraph.values.columns import whole

#: The filler column of rows without columns, so that Spark knows their number.
NOTHING = "#nothing"
#: The values that `Rows` hold as NumPy numbers; in a frame they are ordinary columns.
_NUMBERS = {WEIGHT: np.int64, "#address": np.uint64}


def is_number(name: str) -> bool:
    """Whether a column holds numbers of the engine (weights or addresses)."""
    return name == WEIGHT or name.endswith(".#address")


def columns_of_rows(rows: Rows) -> dict[str, Values]:
    """All data of rows as columns, including positions and attributes."""
    settled = rows.settled(tuple(rows.domains), tuple(rows.attributes))
    columns: dict[str, Values] = dict(settled.columns)
    for name, values in settled.numbers.items():
        if is_number(name):
            columns[name] = pa.array(np.ascontiguousarray(values).astype(np.int64, copy=False))
    return columns or {NOTHING: pa.array(np.zeros(rows.count, np.int32))}


def schema_of(rows: Rows) -> dict[str, pa.DataType]:
    """The columns of rows with their types."""
    return {name: values.type for name, values in columns_of_rows(rows).items()}


def encoded(rows: Rows, types: Mapping[str, pa.DataType], names: Sequence[str]) -> pa.RecordBatch:
    """Rows as a batch for Spark: the columns of `types`, renamed to `names`."""
    columns = columns_of_rows(rows)
    arrays = [to_spark(whole(columns[name]), kind) for name, kind in types.items()]
    return pa.RecordBatch.from_arrays(arrays, names=list(names))


def decoded(batch: pa.RecordBatch | pa.Table, types: Mapping[str, pa.DataType]) -> Rows:
    """The rows of a batch from Spark, whose columns are in the order of `types`."""
    columns: dict[str, Values] = {}
    numbers = {}
    for place, (name, kind) in enumerate(types.items()):
        values = from_spark(whole(batch.column(place)), kind)
        if is_number(name):
            numbers[name] = values.to_numpy(zero_copy_only=False).astype(_NUMBERS[name.rsplit(".", 1)[-1]])
        elif name != NOTHING:
            columns[name] = values
    return Rows(batch.num_rows, columns, numbers)


def empty_rows(types: Mapping[str, pa.DataType]) -> Rows:
    """No rows, with these columns."""
    arrays = [pa.array([], kind) for kind in types.values()]
    return decoded(pa.Table.from_arrays(arrays, names=[f"c{number}" for number in range(len(arrays))]), types)


def spark_kind(kind: pa.DataType) -> pa.DataType:
    """The Arrow type in which Spark accepts a column of this type."""
    if pa.types.is_null(kind):
        return pa.string()
    if pa.types.is_struct(kind):
        fields = [pa.field(field.name, spark_kind(field.type)) for field in kind]
        # A struct without fields becomes a Bool (true where not null), because Spark has no such struct.
        return pa.struct(fields) if fields else pa.bool_()
    if pa.types.is_list(kind) and pa.types.is_struct(kind.value_type):
        return pa.list_(pa.field("element", spark_kind(kind.value_type)))
    return spark_type(kind)


def to_spark(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """A column converted for Spark; `kind` is its type in the engine, which a column of nulls may lack."""
    if pa.types.is_struct(values.type):
        if not values.type.num_fields:
            return values.is_valid()
        fields = [values.field(place) for place in range(values.type.num_fields)]
        arrays = [to_spark(part, field.type) for part, field in zip(fields, values.type, strict=True)]
        names = [field.name for field in values.type]
        return pa.StructArray.from_arrays(arrays, names=names, mask=values.is_null())
    wanted = spark_kind(kind)
    return values if values.type == wanted else values.cast(wanted)


def from_spark(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """A column converted back from Spark to the type `kind`."""
    if values.type == kind:
        return values
    if pa.types.is_null(kind):
        return pa.nulls(len(values))
    if pa.types.is_struct(kind):
        if not kind.num_fields:
            return pa.array([{}] * len(values), kind)
        arrays = [from_spark(whole(values.field(place)), field.type) for place, field in enumerate(kind)]
        return pa.StructArray.from_arrays(arrays, names=[field.name for field in kind], mask=values.is_null())
    if pa.types.is_fixed_size_list(kind):
        return _vectors(values, kind)
    return values.cast(kind)


def _vectors(values: pa.Array, kind: pa.FixedSizeListType) -> pa.Array:
    """Lists as fixed-size vectors. A null occupies as many items as a vector, which Arrow's cast does not handle."""
    size, known = kind.list_size, values.is_valid()
    numbers = np.zeros((len(values), size), np.float32)
    flat = values.drop_null().flatten().to_numpy(zero_copy_only=False)
    numbers[known.to_numpy(zero_copy_only=False)] = flat.reshape(-1, size)
    items = pa.array(numbers.reshape(-1))
    return pa.FixedSizeListArray.from_arrays(items, type=kind, mask=pc.invert(known))


#: About how many rows each task reads.
_ROWS_PER_TASK = 1_048_576


def shares_of(entities: Entities) -> tuple[tuple[int, ...] | None, ...]:
    """The fragments of a table in groups of about a million rows; None for a task that reads all of it."""
    if entities.rows <= _ROWS_PER_TASK:
        return (None,)
    groups: list[tuple[int, ...]] = []
    group: list[int] = []
    rows = 0
    for fragment in entities.table.dataset.get_fragments():
        group.append(fragment.fragment_id)
        rows += fragment.count_rows()
        if rows >= _ROWS_PER_TASK:
            groups.append(tuple(group))
            group, rows = [], 0
    return tuple([*groups, tuple(group)] if group else groups)


def tasks(count: int) -> str:
    """A number of tasks as text."""
    return "1 task" if count == 1 else f"{count} tasks"
