"""A table as a Spark data frame: every type, a pinned version, and filters that mean the same on both sides."""

from __future__ import annotations

import datetime
from decimal import Decimal

import pytest
from pyspark.sql import datasource as spark

import omnigraph as og
from omnigraph.errors import BadRequest
from omnigraph.spark.pushdown import pushed_filter
from omnigraph.spark.source import SourceTable, partitions, read_fragments
from omnigraph.values.columns import table_schema

SCHEMA = """
node All {
  k: String @key
  b: Bool?
  i: I32?
  u: U32?
  w: U64?
  f: F32?
  d: Date?
  t: DateTime?
  l: [String]?
  v: Vector(2)?
  c: Blob?
}
edge To: All -> All
"""
FULL = {
    "k": "full",
    "b": True,
    "i": -7,
    "u": 2**32 - 1,
    "w": 2**64 - 1,
    "f": 0.5,
    "d": "2024-02-29",
    "t": "2024-02-29T12:00:00.123Z",
    "l": ["x", "y"],
    "v": [1.0, 2.5],
}
NULLS = dict.fromkeys(FULL) | {"k": "nulls"}


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> og.Graph:
    made = og.init(tmp_path_factory.mktemp("source") / "g.omni", SCHEMA)
    made.load([{"type": "All", "data": row} for row in (FULL, NULLS)])
    made.mutate('query link() { insert To { from: "full", to: "nulls" } }')
    return made


def test_every_type_arrives_at_the_version_that_was_pinned(graph: og.Graph) -> None:
    frame = graph.spark_table("node:All")
    graph.mutate('query later() { insert All { k: "later" } }')
    full, nulls = sorted((row.asDict() for row in frame.collect()), key=lambda row: str(row["k"]))
    assert full == {
        **FULL,
        "id": "full",
        "w": Decimal(2**64 - 1),
        "d": datetime.date(2024, 2, 29),
        "t": full["t"],
    }
    assert full["t"].timestamp() == 1709208000.123
    assert nulls == NULLS | {"id": "nulls"}
    edges = graph.spark_table("edge:To", ["src", "dst"])
    assert [tuple(row) for row in edges.collect()] == [("full", "nulls")]
    found = graph.spark_table("node:All", ["k", "i", "d"]).where("i = -7 and k like 'f%' and d >= '2024-01-01'")
    assert [row.k for row in found.collect()] == ["full"]
    assert graph.spark_table("node:All").count() == 3


def test_what_there_is_not(graph: og.Graph) -> None:
    for wrong in ("All", "node:Nope", "thing:All"):
        with pytest.raises(BadRequest, match="there is no type"):
            graph.spark_table(wrong)
    with pytest.raises(BadRequest, match="there is no column 'c' for Spark"):
        graph.spark_table("node:All", ["c"])


def source(graph: og.Graph) -> SourceTable:
    entry = graph.snapshot().entry("node:All")
    schema = table_schema(graph.contract().catalog.nodes["All"])
    columns = {field.name: (field.name, field.type) for field in schema if field.name != "c"}
    return SourceTable(graph._context.root, entry.location, entry.version, columns)


@pytest.mark.parametrize(
    ("filter_", "kept"),
    [
        (spark.EqualTo(("k",), "full"), {"full"}),
        (spark.Not(spark.EqualTo(("k",), "full")), {"nulls"}),
        (spark.In(("k",), ("full", "nope", None)), {"full"}),
        (spark.Not(spark.In(("k",), ("full", None))), None),
        (spark.Not(spark.In(("i",), (3, 4))), {"full"}),
        (spark.Not(spark.EqualTo(("i",), 3)), {"full"}),
        (spark.Not(spark.IsNull(("i",))), {"full"}),
        (spark.LessThan(("t",), datetime.datetime(2024, 2, 29, 12, 0, 0, 123500, datetime.UTC)), None),
        (spark.EqualTo(("i",), 2**40), None),
        (spark.GreaterThan(("i",), -8), {"full"}),
        (spark.GreaterThanOrEqual(("i",), -7), {"full"}),
        (spark.LessThan(("i",), -7), set()),
        (spark.LessThanOrEqual(("d",), datetime.date(2024, 2, 29)), {"full"}),
        (spark.EqualTo(("t",), datetime.datetime(2024, 2, 29, 12, 0, 0, 123000, datetime.UTC)), {"full"}),
        (spark.EqualTo(("b",), True), {"full"}),
        (spark.IsNull(("f",)), {"nulls"}),
        (spark.IsNotNull(("l",)), {"full"}),
        (spark.StringStartsWith(("k",), "fu"), {"full"}),
        (spark.StringEndsWith(("k",), "ull"), None),
        (spark.EqualTo(("f",), 0.5), None),
        (spark.EqualTo(("w",), Decimal(5)), None),
        (spark.EqualTo(("s", "inner"), 1), None),
        (spark.EqualTo(("unknown",), 1), None),
    ],
    ids=str,
)
def test_what_is_pushed_down(graph: og.Graph, filter_: spark.Filter, kept: set[str] | None) -> None:
    table = source(graph)
    expression = pushed_filter([filter_], table.columns)
    assert (expression is None) == (kept is None)
    if kept is not None:
        [fragments] = partitions(table)
        batches = read_fragments(table, ["k"], fragments, expression)
        found = {key for batch in batches for key in batch.column("k").to_pylist()}
        # Another test may have added a row by now.
        assert found - {"later"} == kept


def test_a_column_under_another_name_and_one_that_is_not_stored(graph: og.Graph) -> None:
    table = source(graph)
    renamed = {"key": ("k", table.columns["k"][1]), "new": (None, table.columns["v"][1])}
    table = SourceTable(table.root, table.location, table.version, renamed)
    expression = pushed_filter([spark.EqualTo(("key",), "full"), spark.IsNull(("new",))], table.columns)
    [fragments] = partitions(table)
    [batch] = read_fragments(table, ["key", "new"], fragments, expression)
    assert batch.to_pylist() == [{"key": "full", "new": None}]
    assert sum(batch.num_rows for batch in read_fragments(table, ["new"], fragments, None)) >= 2
