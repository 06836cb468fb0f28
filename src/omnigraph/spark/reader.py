"""The classes that Spark's Python data sources are made of; importing this module loads PySpark."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceReader, Filter, InputPartition

from omnigraph.spark.pushdown import is_exact, pushed_filter
from omnigraph.spark.pyspark_private import PushFilters
from omnigraph.spark.source import NAME, SourceTable, partitions, read_fragments, unpacked

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType


class TableSource(DataSource):
    """A table that this library has described: what `spark_table` reads."""

    @classmethod
    def name(cls) -> str:
        return NAME

    def reader(self, schema: StructType) -> TableReader:
        return TableReader(unpacked(self.options), tuple(schema.names))


class TableReader(DataSourceReader):
    """Reads some columns of a table; Spark asks it for partitions in one process and for rows in others."""

    def __init__(self, table: SourceTable, names: tuple[str, ...]) -> None:
        self._table = table
        self._names = names
        self._filters: list[Filter] = []
        setattr(self, "pushFilters", PushFilters(self.push))  # noqa: B010 — mypy takes it for a method

    def push(self, filters: list[Filter]) -> Iterable[Filter]:
        """Take filters for the scan; returns the filters that Spark has to apply again."""
        self._filters = list(filters)
        return [filter_ for filter_ in filters if not is_exact(filter_, self._table.columns)]

    def partitions(self) -> Sequence[InputPartition]:
        return [InputPartition(fragments) for fragments in partitions(self._table)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        fragments: Any = partition.value
        return read_fragments(self._table, self._names, fragments, pushed_filter(self._filters, self._table.columns))
