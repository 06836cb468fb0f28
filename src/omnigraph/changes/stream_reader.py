"""The classes of Spark's Python data source API; importing this module loads PySpark."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow

from omnigraph.changes.stream import DDL, NAME, Stream

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.streaming.datasource import ReadLimit
    from pyspark.sql.types import StructType


class ChangeSource(DataSource):
    """`spark.readStream.format("omnigraph_changes")`."""

    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> str:
        return DDL

    def streamReader(self, schema: StructType) -> ChangeReader:
        return ChangeReader(Stream.unpacked(self.options))


class ChangeReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Tells Spark the newest offset of the feed, and reads one commit, or a part of a large one, per partition."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        #: The cursor at which a query ends that reads only what exists at its start; None for other queries.
        self._last: str | None = None

    def prepareForTriggerAvailableNow(self) -> None:
        self._last = self._stream.newest()

    def initialOffset(self) -> dict[str, Any]:
        return {"cursor": self._stream.begin}

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        return {"cursor": self._stream.end_of_batch(start["cursor"], self._last or self._stream.newest())}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        return [InputPartition(task) for task in self._stream.tasks(start["cursor"], end["cursor"])]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        task: Any = partition.value
        return self._stream.rows(task)
