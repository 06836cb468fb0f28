"""One opened table at one version: its schema, rows and indexes, and how they are read."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from lance import LanceDataset, LanceFragment
from lance.dataset import LanceScanner

from omnigraph.storage.tables.blobs import blob_columns, carry_blobs, in_time, require_readable
from omnigraph.storage.tables.lance_errors import translated
from omnigraph.storage.tables.lance_private import allow_unsigned_lists, copy_scanner_settings_once
from omnigraph.storage.tables.location import Location

allow_unsigned_lists()
copy_scanner_settings_once()

Filter: TypeAlias = str | pc.Expression
# What a scan returns for a blob column: Lance's descriptors, plain bytes (external values are fetched too), or writable values
# (bytes, or the external reference).
Blobs = Literal["descriptors", "bytes", "values"]

ROW_ADDRESS = "_rowaddr"
BATCH_ROWS = 8192
# An IN list of this size costs about 20 ms through the BTREE; longer lists do not cost less per id.
IDS_PER_LOOKUP = 5000
# A look-up of one value through an index costs about as much as reading this many values of the column.
VALUES_PER_LOOKUP = 40
# How many rows a pass over a column compares at once: the wanted values are hashed once per batch.
ROWS_PER_PASS = 1 << 20

_INDEX_KINDS = {
    "BTree": "BTREE",
    "Bitmap": "BITMAP",
    "LabelList": "LABEL_LIST",
    "Inverted": "INVERTED",
    "NGram": "NGRAM",
    "ZoneMap": "ZONEMAP",
    "BloomFilter": "BLOOMFILTER",
}


@dataclass(frozen=True)
class FragmentGroup:
    """Some fragments of a table, by id, and how many rows they have together."""

    ids: tuple[int, ...]
    rows: int


def grouped_fragments(fragments: Iterable[LanceFragment], rows: int) -> Iterator[FragmentGroup]:
    """Group fragments in order, so that each group has about `rows` rows."""
    ids: list[int] = []
    counted = 0
    for fragment in fragments:
        ids.append(fragment.fragment_id)
        counted += fragment.count_rows()
        if counted >= rows:
            yield FragmentGroup(tuple(ids), counted)
            ids, counted = [], 0
    if ids:
        yield FragmentGroup(tuple(ids), counted)


@dataclass(frozen=True)
class TableIndex:
    """One index of a table. `fragments`: the ids of the fragments it covers."""

    name: str
    kind: str
    columns: tuple[str, ...]
    fragments: frozenset[int]
    segments: int
    rows: int
    #: The ids of the fragments that each of its segments covers.
    segment_fragments: tuple[frozenset[int], ...] = field(default=(), compare=False)
    #: The ids of fragments covered by segments whose files lie with the table this one was forked from.
    inherited_fragments: frozenset[int] = field(default=frozenset(), compare=False)
    #: The settings it was built with, as Lance reports them.
    details: Mapping[str, Any] = field(default_factory=dict, compare=False)


class Table:
    """A table at one fixed version; open it again to read a newer one."""

    def __init__(self, location: Location, dataset: LanceDataset) -> None:
        self.location = location
        self.dataset = dataset
        #: The version that this handle reads.
        self.version: int = dataset.version
        #: What identifies the table physically: path, Lance branch, version.
        self.identity = (location.path, location.branch, self.version)
        #: The type that last read this table, its columns by property (None: the table has none), and the properties that the
        #: table holds in another Arrow type than the schema. They stay valid: neither a version nor a schema changes in place.
        self.columns_of: tuple[object, Mapping[str, str | None], Mapping[str, pa.DataType]] | None = None

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema, with Lance's blob type for blob columns and all metadata."""
        return self.dataset.schema

    @cached_property
    def fragment_ids(self) -> tuple[int, ...]:
        """The ids of the fragments, in scan order."""
        return tuple(fragment.fragment_id for fragment in self.dataset.get_fragments())

    @property
    def fragment_count(self) -> int:
        """How many fragments the table has; reads and upserts slow down with it."""
        return len(self.fragment_ids)

    def fragment_groups(self, rows: int) -> Iterator[FragmentGroup]:
        """The fragments in scan order, in groups of about `rows` rows."""
        return grouped_fragments(self.dataset.get_fragments(), rows)

    def indices(self) -> tuple[TableIndex, ...]:
        """The indexes of this version, by name."""
        with translated(str(self.location), "list the indexes of"):
            found = self.dataset.describe_indices()
        return tuple(
            TableIndex(
                name=index.name,
                kind=_INDEX_KINDS.get(index.index_type, index.index_type),
                columns=tuple(index.field_names),
                fragments=frozenset(id_ for segment in index.segments for id_ in segment.fragment_ids),
                segments=len(index.segments),
                rows=index.num_rows_indexed,
                segment_fragments=tuple(frozenset(segment.fragment_ids) for segment in index.segments),
                inherited_fragments=frozenset(
                    id_ for segment in index.segments if segment.base_id is not None for id_ in segment.fragment_ids
                ),
                details=index.details or {},
            )
            for index in sorted(found, key=lambda index: index.name)
        )

    def dead_indexes(self) -> list[str]:
        """The names of indexes on fields that the table no longer has. With such an index, Lance fails any index use."""
        with translated(str(self.location), "list the indexes of"):
            known = set()
            waiting = list(self.dataset.lance_schema.fields())
            while waiting:
                field = waiting.pop()
                known.add(field.id())
                waiting += field.children()
            return [index.name for index in self.dataset.describe_indices() if not set(index.fields) <= known]

    def count_rows(self, filter: Filter | None = None) -> int:
        """The number of rows, or of rows that pass a filter."""
        with translated(str(self.location), "count rows of"):
            return self.dataset.count_rows(filter)

    def count_rows_in(self, fragment_ids: Collection[int], filter: str) -> int:
        """The number of rows of some fragments that pass a filter."""
        with translated(str(self.location), "count rows of"):
            wanted = [part for part in self.dataset.get_fragments() if part.fragment_id in fragment_ids]
            return sum(fragment.count_rows(filter) for fragment in wanted)

    def scan(
        self,
        columns: Sequence[str] | None = None,
        filter: Filter | None = None,
        *,
        batch_size: int = BATCH_ROWS,
        batch_bytes: int | None = None,
        with_row_id: bool = False,
        with_row_address: bool = False,
        blobs: Blobs = "descriptors",
        fragments: Collection[int] | None = None,
        watched: bool = False,
    ) -> Iterator[pa.RecordBatch]:
        """The rows as a stream of batches, limited in rows and bytes. `fragments`: read only these, by id.

        `watched`: each batch has a deadline, because Lance never returns from some damaged files. This costs one thread per
        batch, which matters only for small batches.
        """
        carried = self._carried(columns, blobs)
        located = with_row_address or bool(carried)
        scanner = self._scanner(columns, filter, batch_size, with_row_id, located, blobs, fragments, batch_bytes)
        with translated(str(self.location), "read"):
            batches = scanner.to_batches()
            for batch in _each_in_time(batches, str(self.location)) if watched else batches:
                if carried:
                    batch = carry_blobs(self.dataset, batch, carried)
                    batch = batch if with_row_address else batch.drop_columns([ROW_ADDRESS])
                yield batch

    def read(
        self,
        columns: Sequence[str] | None = None,
        filter: Filter | None = None,
        *,
        with_row_id: bool = False,
        with_row_address: bool = False,
        blobs: Blobs = "descriptors",
    ) -> pa.Table:
        """The rows as one Arrow table; only for results that are known to be small."""
        if not self._carried(columns, blobs):
            scanner = self._scanner(columns, filter, BATCH_ROWS, with_row_id, with_row_address, blobs)
            with translated(str(self.location), "read"):
                return scanner.to_table()
        scanned = self.scan(columns, filter, blobs=blobs, with_row_id=with_row_id, with_row_address=with_row_address)
        batches = list(scanned)
        if batches:
            return pa.Table.from_batches(batches)
        return self.empty(columns, with_row_id=with_row_id, with_row_address=with_row_address, blobs=blobs)

    def empty(
        self,
        columns: Sequence[str] | None = None,
        *,
        with_row_id: bool = False,
        with_row_address: bool = False,
        blobs: Blobs = "descriptors",
    ) -> pa.Table:
        """The result of `read` without any rows; nothing is read."""
        schema = self._scanner(columns, None, BATCH_ROWS, with_row_id, with_row_address, blobs).projected_schema
        for name in self._carried(columns, blobs):
            schema = schema.set(schema.get_field_index(name), self.schema.field(name))
        return schema.empty_table()

    def take_ids(
        self,
        ids: pa.Array,
        columns: Sequence[str] | None = None,
        *,
        with_row_id: bool = False,
        with_row_address: bool = False,
        blobs: Blobs = "descriptors",
    ) -> pa.Table:
        """The rows with these ids, in no particular order, looked up in batches through the index on `id`."""
        options = {"with_row_id": with_row_id, "with_row_address": with_row_address}
        return self.take_by("id", ids, columns, blobs=blobs, **options)

    def take_row_ids(self, row_ids: npt.NDArray[np.uint64], columns: Sequence[str]) -> pa.Table:
        """Columns of the rows with these row ids, in the same order; all of them must exist."""
        if not columns or not len(row_ids):
            return self.empty(columns) if columns else pa.table({"": pa.nulls(len(row_ids))}).select([])
        with translated(str(self.location), "read"):
            return self.dataset._take_rows(row_ids.tolist(), list(columns))

    def take_by(
        self,
        column: str,
        values: pa.Array | pa.ChunkedArray,
        columns: Sequence[str] | None = None,
        *,
        with_row_id: bool = False,
        with_row_address: bool = False,
        blobs: Blobs = "descriptors",
    ) -> pa.Table:
        """The rows that have one of these values in a column, in no particular order: the keyed look-up of all writers.

        Uses the index of the column in batches, or one pass over the column, whichever costs less. −0 equals 0, and all NaNs
        are equal. A null finds nothing. Lists can not be looked up: for a column of lists all rows are returned.
        """
        options = {"with_row_id": with_row_id, "with_row_address": with_row_address}
        if pa.types.is_nested(values.type):
            return self.read(columns, blobs=blobs, **options)
        # Cast the values to the column's type, never the column: a cast column would not use its index.
        wanted = _distinct(pc.drop_null(pc.unique(values)).cast(self.schema.field(column).type))
        names = self.schema.names if columns is None else list(columns)
        if not len(wanted):
            return self.empty(names, blobs=blobs, **options)
        if self.is_read_through(column, len(wanted), names):
            return self._pass_over(column, _all_forms(wanted), names, blobs, **options)
        found = [
            self.read(names, _among(column, _all_forms(wanted.slice(start, IDS_PER_LOOKUP))), blobs=blobs, **options)
            for start in range(0, len(wanted), IDS_PER_LOOKUP)
        ]
        return pa.concat_tables(found)

    def is_read_through(self, column: str, count: int, names: Sequence[str]) -> bool:
        """Whether one pass over a column costs less than looking up `count` of its values."""
        if count * VALUES_PER_LOOKUP > self.count_rows():
            # Up to one batch of values is a single request, which reads the other columns only of the rows it finds.
            return count > IDS_PER_LOOKUP or all(name == column or self._is_narrow(name) for name in names)
        if count <= IDS_PER_LOOKUP:
            return False
        return not any(index.columns == (column,) and index.kind == "BTREE" for index in self.indices())

    def _is_narrow(self, name: str) -> bool:
        return name in ("id", "src", "dst") or pa.types.is_primitive(self.schema.field(name).type)

    def _pass_over(
        self,
        column: str,
        wanted: pa.Array,
        names: list[str],
        blobs: Blobs,
        *,
        with_row_id: bool,
        with_row_address: bool,
    ) -> pa.Table:
        read = names if column in names else [*names, column]
        scanned = self.scan(
            read, batch_size=ROWS_PER_PASS, blobs=blobs, with_row_id=with_row_id, with_row_address=with_row_address
        )
        found = [
            pa.Table.from_batches([batch]).filter(pc.is_in(batch.column(column), value_set=wanted)) for batch in scanned
        ]
        if not found:
            return self.empty(names, blobs=blobs, with_row_id=with_row_id, with_row_address=with_row_address)
        rows = pa.concat_tables(found)
        return rows if column in names else rows.drop_columns([column])

    def _carried(self, columns: Sequence[str] | None, blobs: Blobs) -> tuple[str, ...]:
        if blobs != "values":
            return ()
        return tuple(name for name in blob_columns(self.schema) if columns is None or name in columns)

    def _scanner(
        self,
        columns: Sequence[str] | None,
        filter: Filter | None,
        batch_size: int,
        with_row_id: bool,
        with_row_address: bool,
        blobs: Blobs,
        fragments: Collection[int] | None = None,
        batch_bytes: int | None = None,
    ) -> LanceScanner:
        with translated(str(self.location), "read"):
            # Listing fragments takes time for each of them, even if an index already tells which few are read.
            parts = None if fragments is None else self._parts(fragments)
            if blobs == "bytes":
                self._require_readable(columns, filter, parts)
            return self.dataset.scanner(
                fragments=parts,
                columns=None if columns is None else list(columns),
                filter=filter,
                batch_size=batch_size,
                batch_size_bytes=batch_bytes,
                with_row_id=with_row_id,
                with_row_address=with_row_address,
                blob_handling="all_binary" if blobs == "bytes" else None,
            )

    def _parts(self, fragments: Collection[int]) -> list[LanceFragment]:
        return [part for part in self.dataset.get_fragments() if part.fragment_id in fragments] if fragments else []

    def _require_readable(
        self, columns: Sequence[str] | None, filter: Filter | None, fragments: Sequence[LanceFragment] | None
    ) -> None:
        """Check the blob descriptors before Lance reads the blobs they name."""
        names = [name for name in blob_columns(self.schema) if columns is None or name in columns]
        if names:
            scanner = self.dataset.scanner(columns=names, filter=filter, fragments=fragments, with_row_address=True)
            for batch in scanner.to_batches():
                for name in names:
                    require_readable(self.dataset, name, batch.column(name), batch.column(ROW_ADDRESS))


def _each_in_time(batches: Iterator[pa.RecordBatch], path: str) -> Iterator[pa.RecordBatch]:
    """The same batches, each within the deadline of a read."""
    while (batch := in_time(lambda: next(batches, None), 0, path)) is not None:
        yield batch


def _among(column: str, values: pa.Array) -> Filter:
    """A filter for the rows that have one of these values in a column of the same type."""
    if pa.types.is_unsigned_integer(values.type) and len(values):
        # Lance reads expressions as Substrait, which has no unsigned integers. In SQL text, digits need no quoting.
        return f"`{column}` in ({', '.join(map(str, values.to_pylist()))})"
    return pc.field(column).isin(values) if len(values) else pc.scalar(False)


def _distinct(values: pa.Array) -> pa.Array:
    """The distinct values, with −0.0 equal to 0.0 and all NaNs equal."""
    if not pa.types.is_floating(values.type):
        return values
    # Adding zero turns −0 into 0.
    plain = pc.add(values, pa.scalar(0, values.type))
    return pc.unique(pc.if_else(pc.is_nan(values), pa.scalar(math.nan, values.type), plain))


def _all_forms(values: pa.Array) -> pa.Array:
    """Distinct values in all forms they may be stored in: indexes and sets distinguish −0 from 0, and −NaN from NaN.

    The forms of one value must be in the same request, because an index may find both zeros for either form.
    """
    if not pa.types.is_floating(values.type):
        return values
    ambiguous = values.filter(pc.or_(pc.equal(values, 0), pc.is_nan(values)))
    return pa.concat_arrays([values, pc.negate(ambiguous)])
