"""Tables as input: rows of one type as Arrow data, Parquet or CSV files. A column is a property, or what a mapping says it is.

Whole columns are cast where that changes no value; a block with anything else is read row by row by the exact reader.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from omnigraph.errors import BadRequest
from omnigraph.language.schema.catalog import Catalog, EdgeType
from omnigraph.language.schema.defaults import default_value
from omnigraph.language.suggest import did_you_mean, nearest_name
from omnigraph.language.types import FLOATS, INTEGERS, PropType, Scalar
from omnigraph.load.exact import ExactReader, Rules
from omnigraph.load.json_columns import Unusual, column_of_json, json_type
from omnigraph.load.parsed import Entity, Reading, Rows, embed_names, schema_without_id
from omnigraph.load.text import Piece
from omnigraph.storage.files import InputFile
from omnigraph.values.build import repeated
from omnigraph.values.columns import arrow_type

_ROWS_AT_ONCE = 64 << 10
_CSV_BLOCK = 8 << 20
_ENDS = {"from": "src", "to": "dst"}
_BOOLS = {"true": True, "false": False}


@dataclass(frozen=True)
class Shape:
    """What the rows of a table are: the type, and the property (or `id`, `src`, `dst`) of each column."""

    type_key: str
    columns: tuple[tuple[str, str], ...]

    def entity(self, rules: Rules) -> Entity:
        kind, _, name = self.type_key.partition(":")
        return rules.catalog.nodes[name] if kind == "node" else rules.catalog.edges[name]


def entity_of(catalog: Catalog, type_name: str | None, edge: str | None) -> Entity:
    """The type that the rows of a table have, by the caller's word."""
    if (type_name is None) == (edge is None):
        raise BadRequest("a table needs `type` (its rows are nodes) or `edge` (its rows are edges), and not both")
    word, known = (type_name, catalog.nodes) if type_name is not None else (edge, catalog.edges)
    found = known.get(word or "")
    if found is None:
        kind = "node" if type_name is not None else "edge"
        raise BadRequest(f"unknown {kind} type '{word}'{did_you_mean(nearest_name(word or '', known))}")
    return found


def shape_of(entity: Entity, names: list[str], mapping: Mapping[str, str], where: str) -> Shape:
    """What each column of a table is; one that is nothing is an error."""
    unknown = [name for name in mapping if name not in names]
    if unknown:
        raise BadRequest(f"{where} has no column '{unknown[0]}', which the mapping names")
    fixed = {"id": "id", **({**_ENDS, "src": "src", "dst": "dst"} if isinstance(entity, EdgeType) else {})}
    columns: dict[str, str] = {}
    for name in names:
        meant = mapping.get(name, name)
        target = fixed.get(meant) or (meant if meant in entity.properties else None)
        if target is None:
            hint = did_you_mean(nearest_name(meant, [*entity.properties, *fixed]))
            raise BadRequest(f"column '{name}' of {where} is no property of {entity.name}{hint}")
        if target in columns.values():
            raise BadRequest(f"two columns of {where} are '{target}' of {entity.name}")
        columns[name] = target
    missing = [end for end, column in _ENDS.items() if column in fixed.values() and column not in columns.values()]
    if missing:
        raise BadRequest(f"{where} has no column '{missing[0]}', which an edge needs")
    return Shape(entity.type_key, tuple(columns.items()))


# --- chunks -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TableInMemory:
    """An Arrow table."""

    name: str
    table: pa.Table
    shape: Shape
    base: int = 0

    @property
    def size(self) -> int:
        return int(self.table.nbytes)

    def pieces(self, rules: Rules) -> Iterator[Piece]:
        yield from _pieces(iter(self.table.to_batches(_ROWS_AT_ONCE)), self.shape, rules, self.base, _typed)


@dataclass(frozen=True)
class ParquetRows:
    """Some row groups of a Parquet file; `begins`: they are the first of it."""

    file: InputFile
    groups: tuple[int, ...]
    shape: Shape
    base: int
    size: int
    begins: bool = True

    @property
    def name(self) -> str:
        return self.file.name

    def pieces(self, rules: Rules) -> Iterator[Piece]:
        with self.file.opened() as file:
            names = [name for name, _ in self.shape.columns]
            batches = pq.ParquetFile(file).iter_batches(_ROWS_AT_ONCE, row_groups=list(self.groups), columns=names)
            yield from _pieces(batches, self.shape, rules, self.base, _typed)


@dataclass(frozen=True)
class CsvRows:
    """A CSV file with a line of column names. An empty field is null, a quoted empty one an empty text."""

    file: InputFile
    shape: Shape
    base: int

    @property
    def name(self) -> str:
        return self.file.name

    @property
    def size(self) -> int:
        return self.file.size

    def pieces(self, rules: Rules) -> Iterator[Piece]:
        with self.file.opened() as file:
            try:
                reader = open_csv(file, [name for name, _ in self.shape.columns])
                # The line of names counts, so that rows have the numbers of lines.
                yield from _pieces(iter(reader), self.shape, rules, self.base + 1, _of_text)
            except pa.ArrowInvalid as error:
                raise BadRequest(f"{self.name} is not readable as CSV: {str(error).partition(chr(10))[0]}") from None


def open_csv(file: Any, names: list[str] | None = None) -> pacsv.CSVStreamingReader:
    """A CSV file as a stream of texts."""
    types = dict.fromkeys(names, pa.string()) if names is not None else None
    return pacsv.open_csv(
        pa.PythonFile(file, "r"),
        pacsv.ReadOptions(block_size=_CSV_BLOCK, use_threads=False),
        pacsv.ParseOptions(newlines_in_values=True),
        pacsv.ConvertOptions(
            column_types=types, null_values=[""], strings_can_be_null=True, quoted_strings_can_be_null=False
        ),
    )


def parquet_groups(file: InputFile) -> tuple[list[str], list[tuple[int, int]]]:
    """The columns of a Parquet file, and the rows and bytes of each of its row groups."""
    with file.opened() as opened:
        try:
            found = pq.ParquetFile(opened)
        except pa.ArrowInvalid as error:
            raise BadRequest(f"{file.name} is no Parquet file: {str(error).partition(chr(10))[0]}") from None
        meta = found.metadata
        groups = [meta.row_group(place) for place in range(meta.num_row_groups)]
        return found.schema_arrow.names, [(group.num_rows, group.total_byte_size) for group in groups]


def csv_names(file: InputFile) -> list[str]:
    """The columns of a CSV file."""
    with file.opened() as opened:
        try:
            return list(open_csv(opened).schema.names)
        except pa.ArrowInvalid as error:
            raise BadRequest(f"{file.name} is not readable as CSV: {str(error).partition(chr(10))[0]}") from None


# --- columns ----------------------------------------------------------------------------------------------------------


def _pieces(batches: Iterator[pa.RecordBatch], shape: Shape, rules: Rules, base: int, convert: Any) -> Iterator[Piece]:
    entity = shape.entity(rules)
    place = base
    for batch in batches:
        if not batch.num_rows:
            continue
        named = {target: batch.column(name) for name, target in shape.columns}
        orders = np.arange(place, place + batch.num_rows)
        place += batch.num_rows
        yield Piece(_reading(entity, named, orders, rules, convert), batch.num_rows, batch.nbytes)


def _reading(entity: Entity, named: dict[str, pa.Array], orders: Any, rules: Rules, convert: Any) -> Reading:
    try:
        return Reading(rows=(_columns(entity, named, orders, convert),))
    except Unusual:
        reader = ExactReader(rules)
        listed = {
            name: _values(column, _kind(entity, name) if convert is _of_text else None)
            for name, column in named.items()
        }
        for place, order in enumerate(orders.tolist()):
            reader.values(entity, {name: values[place] for name, values in listed.items()}, order)
        return reader.reading()


def _kind(entity: Entity, name: str) -> PropType | None:
    declared = entity.properties.get(name)
    return None if declared is None else declared.type


def _columns(entity: Entity, named: dict[str, pa.Array], orders: Any, convert: Any) -> Rows:
    finished = []
    for field in schema_without_id(entity):
        declared = entity.properties.get(field.name)
        column = named.get(field.name)
        if declared is None:
            assert column is not None
            finished.append(_texts(column))
        elif column is not None:
            if declared.type.is_blob and column.null_count < len(column):
                raise Unusual
            kind = declared.type
            finished.append(pa.nulls(len(orders), field.type) if kind.is_blob else convert(column, kind))
        elif declared.default is not None:
            finished.append(repeated(default_value(declared.type, declared.default), declared.type, len(orders)))
        else:
            finished.append(pa.nulls(len(orders), field.type))
    if any(finished[place].null_count for place, name in enumerate(("src", "dst")) if name in named):
        raise Unusual
    given = _texts(named["id"]) if "id" in named else None
    left_out = {name: np.full(len(orders), name not in named) for name in embed_names(entity)}
    table = pa.Table.from_arrays(finished, schema=schema_without_id(entity))
    return Rows(entity, table, given if given is None or given.null_count < len(given) else None, orders, left_out)


def _texts(column: pa.Array) -> pa.Array:
    column = _decoded(column)
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type) or pa.types.is_null(column.type)):
        raise Unusual
    return column.cast(pa.string())


def _decoded(column: pa.Array) -> pa.Array:
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    return column.cast(pa.string()) if pa.types.is_string_view(column.type) else column


def _typed(column: pa.Array, kind: PropType) -> pa.Array:
    """A column of Arrow data as a column of a property, where its values stay what they are."""
    column, target = _decoded(column), arrow_type(kind)
    found = column.type
    if kind.is_list or kind.is_vector:
        return _nested(column, kind)
    if found == target:
        return column
    alike = (
        (kind.scalar in INTEGERS and pa.types.is_integer(found))
        or (kind.scalar in FLOATS and (pa.types.is_floating(found) or pa.types.is_integer(found)))
        or (kind.scalar is Scalar.STRING and pa.types.is_large_string(found))
        or (kind.scalar is Scalar.DATE and pa.types.is_date(found))
        or (kind.scalar is Scalar.DATETIME and pa.types.is_timestamp(found))
        or pa.types.is_null(found)
    )
    if not alike:
        raise Unusual
    if kind.scalar is Scalar.F32 and not pa.types.is_null(found):
        return _narrowed(column)
    try:
        if pa.types.is_timestamp(found):
            # A time without a zone is in UTC; one that is finer than a millisecond is not cast.
            column = column.cast(pa.timestamp("ms", tz=found.tz))
        return column.cast(target)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise Unusual from None


def _nested(column: pa.Array, kind: PropType) -> pa.Array:
    """Lists and vectors, where their elements are of the right kind already."""
    found = column.type
    if pa.types.is_null(found):
        return pa.nulls(len(column), arrow_type(kind))
    if not (pa.types.is_list(found) or pa.types.is_large_list(found) or pa.types.is_fixed_size_list(found)):
        raise Unusual
    element, wanted = found.value_type, json_type(kind).value_type
    numbers = kind.is_vector and (pa.types.is_floating(element) or pa.types.is_integer(element))
    if not numbers and element != wanted:
        raise Unusual
    return column_of_json(column.cast(json_type(kind)), kind)


def _narrowed(column: pa.Array) -> pa.Array:
    wide = column.cast(pa.float64())
    narrow = wide.cast(pa.float32(), safe=False)
    if not pc.all(pc.equal(pc.is_finite(wide), pc.is_finite(narrow)), min_count=0).as_py():
        raise Unusual
    return narrow


def _of_text(column: pa.Array, kind: PropType) -> pa.Array:
    """A column of texts as a column of a property."""
    if kind.is_list or kind.is_vector:
        raise Unusual
    if kind.scalar in (Scalar.STRING, Scalar.DATE, Scalar.DATETIME):
        return column_of_json(column, kind)
    try:
        if kind.scalar is Scalar.BOOL:
            if not pc.all(
                pc.is_in(column, value_set=pa.array(list(_BOOLS))), min_count=0
            ).as_py() and column.null_count < len(column):
                raise Unusual
            return column.cast(pa.bool_())
        if kind.scalar in INTEGERS:
            if not pc.all(pc.match_substring_regex(column, r"^-?[0-9]+$"), min_count=0).as_py():
                raise Unusual
            return column.cast(arrow_type(kind))
        return column_of_json(column.cast(pa.float64()), kind)
    except pa.ArrowInvalid:
        raise Unusual from None


def _values(column: pa.Array, kind: PropType | None) -> list[object]:
    """The values of a column for the exact reader; texts of a CSV file as JSON would have them."""
    values: list[object] = _decoded(column).to_pylist()
    if kind is None or (kind.scalar in (Scalar.STRING, Scalar.DATE, Scalar.DATETIME, Scalar.BLOB) and not kind.is_list):
        return values
    return [_json_of(value) for value in values]


def _json_of(text: object) -> object:
    if not isinstance(text, str):
        return text
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return text
