"""Data frames into a graph: `df.write.format("omnigraph")`, `g.load(df)` and `g.load_frames` leave the same rows, or none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import omnigraph as og
from omnigraph.errors import BadRequest, LoadRejected
from omnigraph.spark.session import spark_session

SCHEMA = """
node Person {
  name: String @key
  age: I32?
}
node City { name: String @key }
edge Knows: Person -> Person { since: I32? }
"""


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    return og.init(tmp_path / "g.omni", SCHEMA)


def people(*names: str, age: int | None = 1) -> Any:
    rows = [(name, age) for name in names]
    return spark_session().sql.createDataFrame(rows, "name string, age int").repartition(3)


def write(graph: og.Graph, frame: Any, mode: str = "append", **options: str) -> None:
    frame.write.format("omnigraph").mode(mode).options(graph=graph.uri, **options).save()


def found(graph: og.Graph, key: str = "node:Person") -> list[dict[str, Any]]:
    rows = graph.snapshot().open(key).read().to_pylist()
    return sorted(rows, key=lambda row: str(sorted(row.items(), key=str)))


def staged(graph: og.Graph) -> list[Path]:
    return [path for path in (Path(graph.uri) / "__staging").rglob("*") if path.is_file()]


def test_each_mode_leaves_what_a_load_of_the_frame_leaves(graph: og.Graph, tmp_path: Path) -> None:
    other = og.init(tmp_path / "other.omni", SCHEMA)
    steps: list[tuple[Any, str, str]] = [
        (people("a", "b", "c"), "append", "append"),
        (people("b", "d", age=None), "append", "merge"),
        (people("c", age=7), "append", "update"),
        (people("x", "y", age=9), "overwrite", "overwrite"),
    ]
    for number, (frame, spark_mode, load_mode) in enumerate(steps, start=2):
        mode: Any = load_mode
        write(graph, frame, spark_mode, type="Person", loadMode=load_mode)
        other.load(frame, mode, type="Person")
        assert found(graph) == found(other)
        assert len(graph.commits()) == len(other.commits()) == number
    ends = spark_session().sql.createDataFrame([("x", "y", 3)], "from string, to string, since int")
    write(graph, ends, edge="Knows")
    assert [(row["src"], row["dst"], row["since"]) for row in found(graph, "edge:Knows")] == [("x", "y", 3)]
    assert staged(graph) == []


def test_what_the_graph_refuses_leaves_nothing(graph: og.Graph) -> None:
    before = graph.head().id
    with pytest.raises(Exception, match="load rejected, nothing was written: 1 problem"):
        write(graph, spark_session().sql.createDataFrame([("a", 1), (None, 2)], "name string, age int"), type="Person")
    with pytest.raises(Exception, match="division by zero|DIVIDE_BY_ZERO"):
        write(graph, people("a").selectExpr("name", "cast(1 / (age - 1) as int) as age"), type="Person")
    assert graph.head().id == before
    assert staged(graph) == []


@pytest.mark.parametrize(
    ("mode", "options", "said"),
    [
        ("append", {}, "needs one of"),
        ("append", {"type": "Nope"}, "unknown node type 'Nope'"),
        ("append", {"type": "City"}, "age"),
        ("append", {"type": "Person", "loadMode": "replace"}, "unknown loadMode 'replace'"),
        ("append", {"type": "Person", "loadMode": "overwrite"}, "do not fit"),
        ("overwrite", {"type": "Person", "loadMode": "merge"}, "do not fit"),
        ("append", {"type": "Person", "branch": "nope"}, "branch 'nope' not found"),
        ("append", {"type": "Person", "snapshot": "1"}, "a snapshot is only read"),
        ("append", {"type": "Person", "mapping": "[1]"}, "mapping is a JSON object"),
    ],
)
def test_wrong_options_are_told_before_a_task_runs(
    graph: og.Graph, mode: str, options: dict[str, str], said: str
) -> None:
    before = graph.head().id
    with pytest.raises(Exception, match="(?s).*") as raised:
        write(graph, people("a"), mode, **options)
    assert said in str(raised.value)
    assert graph.head().id == before
    assert staged(graph) == []


def test_a_repeat_under_the_same_key_writes_nothing(graph: og.Graph) -> None:
    for _ in range(2):
        write(graph, people("a"), type="Person", idempotencyKey="day-1", mapping='{"name": "name"}')
    assert len(graph.commits()) == 2


@pytest.mark.parametrize("kind", ["spark", "pandas", "polars", "arrow", "mixed"])
def test_frames_of_several_types_are_one_commit(graph: og.Graph, kind: str) -> None:
    nodes = pa.table({"name": ["a", "b"], "age": pa.array([1, None], pa.int32())})
    edges = pa.table({"from": ["a"], "to": ["b"], "since": pa.array([5], pa.int32())})
    made: dict[str, Any] = {
        "spark": spark_session().sql.createDataFrame,
        "pandas": lambda table: table.to_pandas(),
        "polars": pl.from_arrow,
        "arrow": lambda table: table,
        "mixed": lambda table: spark_session().sql.createDataFrame(table) if "to" in table.column_names else table,
    }
    loaded = graph.load_frames({"Person": made[kind](nodes), "edge:Knows": made[kind](edges)})
    assert (loaded.nodes_loaded, loaded.edges_loaded) == (2, 1)
    assert len(graph.commits()) == 2
    assert [(row["src"], row["dst"], row["since"]) for row in found(graph, "edge:Knows")] == [("a", "b", 5)]


def test_a_problem_of_one_frame_refuses_all_and_names_it(graph: og.Graph) -> None:
    nodes, edges = pa.table({"name": ["a", "b"]}), pa.table({"from": ["a", "a"], "to": ["b", "nobody"]})
    with pytest.raises(LoadRejected) as raised:
        graph.load_frames({"Person": nodes, "Knows": edges})
    assert [(name, line) for name, line, _ in raised.value.errors] == [("Knows", 2)]
    for wrong, said in (({}, "give the frames by type"), ({"Nope": nodes}, "unknown node type"), ({"City": 3}, "int")):
        with pytest.raises(BadRequest, match=said):
            graph.load_frames(wrong)
    with pytest.raises(BadRequest, match="`type` is for `load`"):
        graph.load_frames({"Person": nodes}, type="Person")
    assert len(graph.commits()) == 1


def test_views_show_one_snapshot(graph: og.Graph) -> None:
    graph.load_frames(
        {"Person": pd.DataFrame({"name": ["a", "b"]}), "Knows": pd.DataFrame({"from": ["a"], "to": ["b"]})}
    )
    spark = spark_session().sql
    assert graph.register_views(spark, prefix="og_") == ["og_City", "og_Person", "og_Knows"]
    graph.load([{"type": "Person", "data": {"name": "later"}}])
    asked = "select p.name, q.name as other from og_Knows k join og_Person p on k.src = p.id join og_Person q on k.dst = q.id"
    assert [tuple(row) for row in spark.sql(asked).collect()] == [("a", "b")]
    assert spark.sql("select count(*) from og_Person").collect()[0][0] == 2
    with pytest.raises(BadRequest, match="a prefix of views"):
        graph.register_views(spark, prefix="a b")


def test_graph_frames_have_the_columns_of_the_library(graph: og.Graph) -> None:
    nodes = pd.DataFrame({"name": ["a", "b"], "age": [1, 2]})
    graph.load_frames({"Person": nodes, "Knows": pd.DataFrame({"from": ["a"], "to": ["b"]})})
    vertices, edges = graph.graph_frames()
    assert vertices.columns[:2] == ["id", "type"]
    assert edges.columns[:4] == ["src", "dst", "relationship", "id"]
    assert sorted((row.id, row.type, row.age) for row in vertices.collect()) == [("a", "Person", 1), ("b", "Person", 2)]
    assert [(row.src, row.dst, row.relationship) for row in edges.collect()] == [("a", "b", "Knows")]
    graph.load([{"type": "City", "data": {"name": "a"}}])
    with pytest.raises(BadRequest, match="nodes of two types have the id 'a'"):
        graph.graph_frames()
    vertices, edges = graph.graph_frames(qualified=True)
    assert sorted(row.id for row in vertices.collect()) == ["City:a", "Person:a", "Person:b"]
    assert [(row.src, row.dst) for row in edges.collect()] == [("Person:a", "Person:b")]
