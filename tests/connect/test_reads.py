"""Queries, frames, the data source, streams and algorithms through Spark Connect: the answers of the local engine."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import orjson
import pytest

import omnigraph as og
from omnigraph.errors import BadRequest
from omnigraph.spark.connect import ConnectSession
from tests.algorithms.random_graphs import random_graph
from tests.language2 import test_patterns, test_rows
from tests.language2.graphs import SCHEMA, documents
from tests.query.loading import append
from tests.query_spark.test_generated import check

PEOPLE = "node Person {\n  name: String @key\n  age: I32?\n}"

pytestmark = pytest.mark.usefixtures("session")


@pytest.fixture(scope="module")
def patterns(tmp_path_factory: pytest.TempPathFactory) -> og.Graph:
    graph = og.init(tmp_path_factory.mktemp("patterns") / "graph", SCHEMA)
    append(graph, documents())
    return graph


@pytest.fixture(scope="module")
def expressions(tmp_path_factory: pytest.TempPathFactory) -> og.Graph:
    graph = og.init(tmp_path_factory.mktemp("expressions") / "graph", test_rows.SCHEMA)
    graph.mutate(test_rows.DATA)
    return graph


def few(rows: list[Any], every: int) -> list[Any]:
    """The rows as parameters of a test: one of so many each time, all in the long run."""
    return [
        row if number % every == 0 else pytest.param(*row.values, id=row.id, marks=pytest.mark.long)
        for number, row in enumerate(rows)
    ]


@pytest.mark.parametrize(("query", "params", "expected"), few(test_patterns.ROWS, 48))
def test_patterns_over_connect(
    patterns: og.Graph, query: str, params: dict[str, Any], expected: list[list[Any]]
) -> None:
    found = patterns.query(query, params=params, engine="spark").to_dicts(json=True)
    test_patterns.agree(query, [list(row.values()) for row in found], expected)


@pytest.mark.parametrize(("query", "expected", "fails"), few(list(test_rows.rows("expressions.md")), 48))
def test_expressions_over_connect(expressions: og.Graph, query: str, expected: str, fails: bool) -> None:
    text = f"query q() {{ {query} }}"
    if fails:
        with pytest.raises(BadRequest) as caught:
            expressions.query(text, engine="spark")
        assert expected in str(caught.value)
        return
    found = [list(row.values()) for row in expressions.query(text, engine="spark").to_dicts(json=True)]
    assert sorted(found, key=json.dumps) == sorted(json.loads(expected), key=json.dumps)


@pytest.mark.parametrize(("seed", "count"), [(0, 4), pytest.param(1, 100, marks=pytest.mark.long)])
def test_generated_questions(seed: int, count: int, tmp_path: Path) -> None:
    check(seed, tmp_path, count)


def test_frames_and_the_data_source(session: ConnectSession, tmp_path: Path) -> None:
    graph = og.init(tmp_path / "g", PEOPLE)
    graph.load([{"type": "Person", "data": {"name": f"p{n}", "age": n}} for n in range(20)], engine="local")
    frame = graph.query_frame("match { $p: Person } return { $p.name as name, $p.age as age }")
    assert frame.where("age < 2").count() == 2
    assert graph.spark_table("node:Person", ["name"]).columns == ["name"]
    spark = session.sql
    read = spark.read.format("omnigraph").option("graph", graph.uri).option("type", "Person").load()
    assert sorted(row.name for row in read.where("age > 17").collect()) == ["p18", "p19"]
    more = spark.createDataFrame([("cy", 44)], "name string, age int")
    more.write.format("omnigraph").mode("append").option("graph", graph.uri).option("type", "Person").save()
    assert graph.query("match { $p: Person } return { count($p) as n }").rows == [{"n": 21}]


@pytest.mark.long
def test_views_and_frames_of_a_whole_graph(session: ConnectSession, tmp_path: Path) -> None:
    graph = og.init(tmp_path / "g", PEOPLE)
    graph.load([{"type": "Person", "data": {"name": f"p{n}", "age": n}} for n in range(20)], engine="local")
    assert graph.register_views(session.sql, prefix="c_") == ["c_Person"]
    assert session.sql.sql("select sum(age) as total from c_Person").collect()[0].total == 190
    assert graph.graph_frames()[0].count() == 20


def test_an_explained_query_shows_spark_s_plan(tmp_path: Path) -> None:
    graph = og.init(tmp_path / "g", PEOPLE)
    shown = str(graph.explain("match { $p: Person $p.age > 3 } return { $p.name }", engine="spark"))
    assert "engine: spark" in shown
    assert "MapInArrow" in shown


def test_a_stream_in_and_the_feed_out(session: ConnectSession, tmp_path: Path) -> None:
    graph, copy = og.init(tmp_path / "g", PEOPLE), og.init(tmp_path / "copy", PEOPLE)
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "1.json").write_bytes(orjson.dumps({"name": "p1", "age": 1}))
    stream = session.sql.readStream.schema("name string, age int").json(str(folder))
    for _ in range(2):
        # A restart repeats nothing.
        graph.stream_load(stream, checkpoint=str(tmp_path / "c"), type="Person", available_now=True).awaitTermination()
    assert len(graph.commits()) == 2
    changes = graph.spark_changes(start="beginning")
    rows = changes.selectExpr("get_json_object(after, '$.name') as name", "int(get_json_object(after, '$.age')) as age")
    copy.stream_load(
        rows, "merge", checkpoint=str(tmp_path / "d"), type="Person", available_now=True
    ).awaitTermination()
    people = "match { $p: Person } return { $p.name as name, $p.age as age } order { name }"
    assert copy.query(people).rows == graph.query(people).rows == [{"name": "p1", "age": 1}]


def test_pagerank_is_written_back(tmp_path: Path) -> None:
    graph = random_graph(tmp_path / "graph", 7).graph
    report = graph.algorithms.pagerank(write_to="Person.rank", iterations=2, engine="spark")
    assert report.commit.id == graph.head().id
    here = graph.algorithms.pagerank(iterations=2, engine="local").to_dicts()
    ranks = {row["id"]: row["rank"] for row in here if row["type"] == "Person"}
    stored = graph.query("query q() { match { $p: Person } return { $p.name, $p.rank } }").to_dicts()
    assert ranks
    assert all(math.isclose(row["p.rank"], ranks[row["p.name"]], rel_tol=1e-9) for row in stored)
