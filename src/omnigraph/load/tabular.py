"""Tables as input: rows of one type as Arrow data, Parquet or CSV files. A column is a property, or what a mapping says.

Whole columns are cast where that changes no value; a block with any other value is read row by row by the exact reader.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from io import BytesIO
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import BadRequest
from omnigraph.language.schema.catalog import Catalog, EdgeType
from omnigraph.language.schema.defaults import default_value
from omnigraph.language.source import did_you_mean, nearest_name
from omnigraph.language.temporal import DATE_DAYS, DATETIME_MILLISECONDS
from omnigraph.language.types import FLOATS, INTEGERS, PropType, Scalar
from omnigraph.load.csv_ranges import ends_in_quotes, record_ranges
from omnigraph.load.exact import ExactReader, Rules
from omnigraph.load.foreign import CheckedBatch, Damaged, arrow_batches, csv_batches, parquet_batches, table_batches
from omnigraph.load.json_columns import Unusual, column_of_json, json_type
from omnigraph.load.parsed import Entity, Problem, Reading, Rows, joined, schema_without_id, tracked_names
from omnigraph.load.text import Piece
from omnigraph.spark.runner import Runner
from omnigraph.storage.files import InputFile
from omnigraph.values.columns import arrow_type, repeated

_ENDS = {"from": "src", "to": "dst"}
_MS_PER_DAY = 86_400_000
#: Units of an Arrow timestamp per millisecond; 0 for seconds, which are coarser.
_PER_MILLISECOND = {"s": 0, "ms": 1, "us": 1000, "ns": 1_000_000}
#: Converts a column of the input to a column of a property; raises `Unusual` where the exact reader must look.
Convert = Callable[[pa.Array, PropType], pa.Array]
_BOOLS = {"true": True, "false": False}


@dataclass(frozen=True)
class Shape:
    """How the rows of a table are read: their type, and the property (or `id`, `src`, `dst`) of each column."""

    type_key: str
    columns: tuple[tuple[str, str], ...]

    def entity(self, rules: Rules) -> Entity:
        kind, _, name = self.type_key.partition(":")
        return rules.catalog.nodes[name] if kind == "node" else rules.catalog.edges[name]


def require_one_type(type_name: str | None, edge: str | None) -> None:
    """Raise unless exactly one of the node type and the edge type of a table's rows is given."""
    if (type_name is None) == (edge is None):
        raise BadRequest(
            "a table needs `type` (its rows are nodes) or `edge` (its rows are edges), and not both; only a Parquet file in "
            "`nodes/Type/` or `edges/Type/`, as an export writes them, needs neither"
        )


def entity_of(catalog: Catalog, type_name: str | None, edge: str | None) -> Entity:
    """The node or edge type that the caller names for the rows of a table."""
    require_one_type(type_name, edge)
    word, known = (type_name, catalog.nodes) if type_name is not None else (edge, catalog.edges)
    found: Entity | None = known.get(word or "") if type_name is not None else catalog.edge(word or "")
    if found is None:
        kind = "node" if type_name is not None else "edge"
        raise BadRequest(f"unknown {kind} type '{word}'{did_you_mean(nearest_name(word or '', known))}")
    return found


@dataclass(frozen=True)
class Columns:
    """The caller's options for the columns of tables: a mapping of names, and whether unknown columns are ignored."""

    mapping: Mapping[str, str] = field(default_factory=dict)
    ignore_extra: bool = False


def shape_of(entity: Entity, names: list[str], columns: Columns, where: str) -> Shape:
    """What each column of a table means. Unknown columns raise an error, unless the caller ignores them."""
    mapping = columns.mapping
    unknown = [name for name in mapping if name not in names]
    if unknown:
        raise BadRequest(f"{where} has no column '{unknown[0]}', which the mapping names")
    fixed = {"id": "id", **({**_ENDS, "src": "src", "dst": "dst"} if isinstance(entity, EdgeType) else {})}
    known: dict[str, str] = {}
    extra: list[str] = []
    for name in names:
        meant = mapping.get(name, name)
        target = fixed.get(meant) or (meant if meant in entity.properties else None)
        if target is None:
            # A column in the mapping must be known, even when extra columns are ignored.
            if not columns.ignore_extra or name in mapping:
                extra.append(name)
            continue
        if target in known.values():
            raise BadRequest(f"two columns of {where} are '{target}' of {entity.name}")
        known[name] = target
    if extra:
        raise BadRequest(_extra_columns(entity, extra, mapping, [*entity.properties, *fixed], where))
    missing = [end for end, column in _ENDS.items() if column in fixed.values() and column not in known.values()]
    if missing:
        raise BadRequest(f"{where} has no column '{missing[0]}', which an edge needs")
    if not known:
        raise BadRequest(f"{where} has no column that is a property of {entity.name}")
    return Shape(entity.type_key, tuple(known.items()))


def _extra_columns(entity: Entity, extra: list[str], mapping: Mapping[str, str], wanted: list[str], where: str) -> str:
    """The message about columns that are no property of the type."""
    if len(extra) == 1:
        meant = mapping.get(extra[0], extra[0])
        hint = did_you_mean(nearest_name(meant, wanted))
        told = f"column '{extra[0]}' of {where} is no property of {entity.name}"
        if meant != extra[0]:
            told += f" under the name '{meant}'"
        way = "leave it out with ignore_extra (--ignore-extra)"
        return f"{told}{hint} Map it, or {way}" if hint else f"{told}; map it to one, or {way}"
    listed = ", ".join(f"'{name}'" for name in extra)
    told = f"the columns {listed} of {where} are no properties of {entity.name}"
    return f"{told}; map them, or leave them out with ignore_extra (--ignore-extra)"


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
        yield from _pieces(table_batches(self.table), self.shape, rules, self.base, _typed)


@dataclass(frozen=True)
class ParquetRows:
    """Some row groups of a Parquet file. `begins`: whether the first row group is among them."""

    file: InputFile
    groups: tuple[int, ...]
    shape: Shape
    base: int
    size: int
    #: How many rows they have, according to the file.
    count: int
    begins: bool = True

    @property
    def name(self) -> str:
        return self.file.name

    def pieces(self, rules: Rules) -> Iterator[Piece]:
        with self.file.opened() as file:
            batches = parquet_batches(file, self.groups, [name for name, _ in self.shape.columns])
            yield from _pieces(batches, self.shape, rules, self.base, _typed, self.count)


@dataclass(frozen=True)
class CsvRows:
    """A CSV file with a line of names, or a byte range of it. An empty field is null, a quoted empty field an empty text."""

    file: InputFile
    shape: Shape
    base: int
    delimiter: str = ","
    #: The names of all columns of the file, in their order.
    names: tuple[str, ...] = ()
    #: The byte range of whole records that is read, start and end; None: the whole file.
    within: tuple[int, int] | None = None

    @property
    def name(self) -> str:
        return self.file.name

    @property
    def size(self) -> int:
        return self.file.size if self.within is None else self.within[1] - self.within[0]

    @property
    def begins(self) -> bool:
        """Whether this part includes the line of column names."""
        return self.within is None or self.within[0] == 0

    def ranges(self, step: int, runner: Runner) -> list[CsvRows]:
        """The same rows as byte ranges of about `step` bytes."""
        if self.size <= step:
            return [self]
        found = record_ranges(self.file, self.delimiter, step, runner)
        return [replace(self, base=self.base + start, within=(start, end)) for start, end in found]

    def pieces(self, rules: Rules) -> Iterator[Piece]:
        if self.within is None:
            with self.file.opened() as file:
                yield from self._pieces(file, rules)
            return
        data = self.file.read(*self.within)
        # Arrow reports a text without any row as a damaged file.
        if self.begins or data.strip():
            yield from self._pieces(BytesIO(data), rules)

    def _pieces(self, opened: Any, rules: Rules) -> Iterator[Piece]:
        wanted = [name for name, _ in self.shape.columns]
        batches = csv_batches(opened, wanted, self.delimiter, None if self.begins else self.names)
        # The line of names counts, so that rows have the numbers of lines.
        place = self.base + 1
        for piece in _pieces(batches, self.shape, rules, place, _of_text):
            place += piece.lines
            yield piece
        # Arrow takes the rest of a file for the text of a quote that is never closed. A range of a file ends with a record.
        if self.within in (None, (0, self.file.size)) and ends_in_quotes(self.file, self.delimiter):
            problem = Problem(place - 1, "a quote of this row is never closed; the file is cut off or damaged")
            yield Piece(Reading(problems=(problem,)), 0, 0)


@dataclass(frozen=True)
class ArrowRows:
    """Some record batches of an Arrow file. `begins`: whether the first batch is among them."""

    file: InputFile
    batches: tuple[int, ...]
    shape: Shape
    base: int
    size: int
    count: int
    begins: bool = True

    @property
    def name(self) -> str:
        return self.file.name

    def pieces(self, rules: Rules) -> Iterator[Piece]:
        with self.file.opened() as file:
            batches = arrow_batches(file, self.batches, [name for name, _ in self.shape.columns])
            yield from _pieces(batches, self.shape, rules, self.base, _typed, self.count)


#: Chunks with rows of one type, in any format.
TableRows = TableInMemory | ParquetRows | CsvRows | ArrowRows


# --- batches ----------------------------------------------------------------------------------------------------------


def _pieces(
    batches: Iterator[CheckedBatch], shape: Shape, rules: Rules, base: int, convert: Convert, count: int | None = None
) -> Iterator[Piece]:
    """The rows of checked batches. `count`: how many rows there should be; rows that a damaged file lacks count as read."""
    entity = shape.entity(rules)
    place = base
    try:
        for batch in batches:
            reading = _reading(entity, shape, batch, place, rules, convert)
            place += batch.rows
            yield Piece(reading, batch.rows, batch.nbytes)
    except Damaged as damage:
        problem = Problem(
            place, f"can not be read from this row on: {damage}; the file is damaged or is not what it seems"
        )
        missing = 1 if count is None else max(count - (place - base), 1)
        yield Piece(Reading(problems=(problem,)), missing, 0)


def _reading(entity: Entity, shape: Shape, batch: CheckedBatch, place: int, rules: Rules, convert: Convert) -> Reading:
    rows: list[Rows] = []
    exact = ExactReader(rules)
    for first, columns in batch.runs:
        named = {target: columns[name] for name, target in shape.columns}
        orders = np.arange(place + first, place + first + len(next(iter(named.values()))))
        try:
            rows.append(_columns(entity, named, orders, rules, convert))
        except Unusual:
            listed = {name: _values(column, _kind(entity, name), convert) for name, column in named.items()}
            for number, order in enumerate(orders.tolist()):
                exact.values(entity, {name: values[number] for name, values in listed.items()}, order)
    targets = dict(shape.columns)
    for row in batch.flawed:
        remains = {targets[name]: column for name, column in row.remains.items()}
        data = {name: _values(column, _kind(entity, name), convert)[0] for name, column in remains.items()}
        messages = [f"{entity.name}.{targets[flaw.column]}: {flaw.message}" for flaw in row.flaws]
        exact.refuse_values(entity, data, messages, place + row.row)
    found = exact.reading()
    rows += found.rows
    return replace(found, rows=(joined(rows),) if rows else ())


# --- columns ----------------------------------------------------------------------------------------------------------


def _kind(entity: Entity, name: str) -> PropType | None:
    declared = entity.properties.get(name)
    return None if declared is None else declared.type


def _columns(entity: Entity, named: dict[str, pa.Array], orders: Any, rules: Rules, convert: Convert) -> Rows:
    finished = []
    for place in schema_without_id(entity):
        declared = entity.properties.get(place.name)
        column = named.get(place.name)
        if declared is None:
            assert column is not None
            finished.append(_texts(column))
        elif column is not None:
            if declared.type.is_blob and column.null_count < len(column):
                raise Unusual
            kind = declared.type
            finished.append(pa.nulls(len(orders), place.type) if kind.is_blob else convert(column, kind))
        elif declared.default is not None:
            finished.append(repeated(default_value(declared.type, declared.default), declared.type, len(orders)))
        else:
            finished.append(pa.nulls(len(orders), place.type))
    if any(finished[place].null_count for place, name in enumerate(("src", "dst")) if name in named):
        raise Unusual
    given = _texts(named["id"]) if "id" in named else None
    left_out = {name: np.full(len(orders), name not in named) for name in tracked_names(entity, updates=rules.updates)}
    table = pa.Table.from_arrays(finished, schema=schema_without_id(entity))
    return Rows(entity, table, given if given is None or given.null_count < len(given) else None, orders, left_out)


def _texts(column: pa.Array) -> pa.Array:
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type) or pa.types.is_null(column.type)):
        raise Unusual
    return _cast(column, pa.string())


def _cast(column: pa.Array, target: pa.DataType) -> pa.Array:
    """A safe cast; raises `Unusual` if a value would change or a column of texts is too large for the target type."""
    try:
        return column.cast(target)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise Unusual from None


def _typed(column: pa.Array, kind: PropType) -> pa.Array:
    """An Arrow column as a column of a property; raises `Unusual` if a value would change."""
    target, found = arrow_type(kind), column.type
    if kind.is_list or kind.is_vector:
        return _nested(column, kind)
    if kind.scalar in (Scalar.DATE, Scalar.DATETIME) and not pa.types.is_null(found):
        return _temporal(column, kind)
    if found == target:
        return column
    alike = (
        (kind.scalar in INTEGERS and pa.types.is_integer(found))
        or (kind.scalar in FLOATS and (pa.types.is_floating(found) or pa.types.is_integer(found)))
        or (kind.scalar is Scalar.STRING and pa.types.is_large_string(found))
        or pa.types.is_null(found)
    )
    if not alike:
        raise Unusual
    if kind.scalar is Scalar.F32 and not pa.types.is_null(found):
        return _narrowed(column)
    return _cast(column, target)


def _temporal(column: pa.Array, kind: PropType) -> pa.Array:
    """Dates and times of the years 0001 to 9999; a time without a zone is UTC. `Unusual` if values are too fine."""
    found = column.type
    if kind.scalar is Scalar.DATE and pa.types.is_date(found):
        return _within(_cast(column, pa.date32()), pa.int32(), DATE_DAYS)
    if not pa.types.is_timestamp(found):
        raise Unusual
    instants = _within(_cast(column, pa.timestamp("ms", tz=found.tz)), pa.int64(), DATETIME_MILLISECONDS)
    if kind.scalar is Scalar.DATETIME:
        return instants.cast(arrow_type(kind))
    # For a date: a whole day by the clock of its time zone.
    try:
        shown = (instants if found.tz is None else pc.local_timestamp(instants)).cast(pa.int64())
    except pa.ArrowInvalid:
        raise Unusual from None
    days = pc.divide(shown, _MS_PER_DAY)
    if not pc.all(pc.equal(pc.multiply(days, _MS_PER_DAY), shown), min_count=0).as_py():
        raise Unusual
    return _within(days.cast(pa.int32()).cast(pa.date32()), pa.int32(), DATE_DAYS)


def _within(column: pa.Array, number: pa.DataType, allowed: range) -> pa.Array:
    bounds = pc.min_max(column.cast(number)).as_py()
    if bounds["min"] is not None and not (bounds["min"] in allowed and bounds["max"] in allowed):
        raise Unusual
    return column


def _nested(column: pa.Array, kind: PropType) -> pa.Array:
    """A column of lists or vectors whose elements have the right type already; else raises `Unusual`."""
    found = column.type
    if pa.types.is_null(found):
        return pa.nulls(len(column), arrow_type(kind))
    if not (pa.types.is_list(found) or pa.types.is_large_list(found) or pa.types.is_fixed_size_list(found)):
        raise Unusual
    element, wanted = found.value_type, json_type(kind).value_type
    numbers = kind.is_vector and (pa.types.is_floating(element) or pa.types.is_integer(element))
    if not numbers and element != wanted:
        raise Unusual
    return column_of_json(_cast(column, json_type(kind)), kind)


def _narrowed(column: pa.Array) -> pa.Array:
    wide = _cast(column, pa.float64())
    narrow = wide.cast(pa.float32(), safe=False)
    if not pc.all(pc.equal(pc.is_finite(wide), pc.is_finite(narrow)), min_count=0).as_py():
        raise Unusual
    return narrow


def _of_text(column: pa.Array, kind: PropType) -> pa.Array:
    """A CSV column of texts as a column of a property; raises `Unusual` where the exact reader must look."""
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


def _values(column: pa.Array, kind: PropType | None, convert: Convert) -> list[object]:
    """The values of a column for the exact reader; texts of a CSV file are parsed as JSON unless the property is textual."""
    if convert is _typed:
        moments = None if kind is None else _moments(column, kind)
        return _python_values(column) if moments is None else moments
    values: list[object] = column.to_pylist()
    if kind is None or (kind.scalar in (Scalar.STRING, Scalar.DATE, Scalar.DATETIME, Scalar.BLOB) and not kind.is_list):
        return values
    return [_json_of(value) for value in values]


def _moments(column: pa.Array, kind: PropType) -> list[object] | None:
    """Dates or times as the integers that the exact reader takes; a value finer than a millisecond as ISO text.

    Python has no dates beyond the year 9999 and no nanoseconds. None when the column does not have the property's type.
    """
    is_list = pa.types.is_list(column.type) or pa.types.is_large_list(column.type)
    element = column.type.value_type if is_list else column.type
    if kind.scalar is Scalar.DATE and pa.types.is_date(element):
        unit: Any
        unit, per_value = ("D", 1) if pa.types.is_date32(element) else ("ms", _MS_PER_DAY)
        number = pa.int32() if pa.types.is_date32(element) else pa.int64()
    elif kind.scalar is Scalar.DATETIME and pa.types.is_timestamp(element):
        unit, per_value, number = element.unit, _PER_MILLISECOND[element.unit], pa.int64()
    else:
        return None

    def moment(value: int | None) -> object:
        if value is None or unit == "s":
            return None if value is None else value * 1000
        return str(np.datetime64(value, unit)) if value % per_value else value // per_value

    numbers = column.cast(pa.list_(number) if is_list else number).to_pylist()
    if not is_list:
        return [moment(value) for value in numbers]
    return [None if listed is None else [moment(value) for value in listed] for listed in numbers]


def _python_values(column: pa.Array) -> list[object]:
    """The values of a column as Python objects; a value that Python can not hold becomes an object that no property takes.

    A time zone that does not exist raises the `LookupError` of the library that pyarrow uses, pytz when it is installed.
    """
    try:
        return list(column.to_pylist())
    except (LookupError, ValueError, OverflowError, pa.ArrowException):
        unreadable = type(str(column.type), (), {})
        return [_python_value(scalar, unreadable) for scalar in column]


def _python_value(scalar: pa.Scalar, unreadable: type) -> object:
    try:
        return scalar.as_py()
    except (LookupError, ValueError, OverflowError, pa.ArrowException):
        return unreadable()


def _json_of(text: object) -> object:
    if not isinstance(text, str):
        return text
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return text
