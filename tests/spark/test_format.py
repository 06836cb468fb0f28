"""`format("omnigraph")`: found without registration, pinned, with filters that Spark need not ask again."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException

import omnigraph as og
from omnigraph.spark import register
from omnigraph.spark.session import spark_session

SCHEMA = """
node Person {
  name: String @key
  age: I32?
  photo: Blob?
}
edge Knows: Person -> Person {
  since: I32?
}
"""
PEOPLE = [{"type": "Person", "data": {"name": f"p{n}", "age": n if n % 3 else None}} for n in range(30)]


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> og.Graph:
    made = og.init(tmp_path_factory.mktemp("format") / "g.omni", SCHEMA)
    made.load([*PEOPLE, {"edge": "Knows", "from": "p1", "to": "p2", "data": {"since": 2001}}])
    made.create_branch("side")
    made.load([{"type": "Person", "data": {"name": "sid"}}], branch="side")
    return made


def reading(graph: og.Graph, **options: str) -> Any:
    return spark_session().sql.read.format("omnigraph").options(graph=graph.uri, **options)


def test_it_has_a_schema_and_shows_one_snapshot(graph: og.Graph) -> None:
    frame = reading(graph, type="Person").load()
    assert frame.columns == ["id", "age", "name"]
    before = graph.head().id
    explicit = reading(graph, type="Person", snapshot=before).schema("name string").load()
    graph.mutate('query later() { insert Person { name: "later" } }')
    assert frame.count() == explicit.count() == 30
    assert reading(graph, type="node:Person").load().count() == 31
    assert reading(graph, type="Person", branch="side").load().where("name = 'sid'").count() == 1
    assert [tuple(row) for row in reading(graph, edge="Knows").load().select("src", "dst", "since").collect()] == [
        ("p1", "p2", 2001)
    ]
    graph.mutate('query gone() { delete Person where name = "later" }')


def test_explain_shows_the_filters_that_the_scan_answers_and_only_the_columns_asked_for(
    graph: og.Graph, capsys: pytest.CaptureFixture[str]
) -> None:
    frame = reading(graph, type="Person", columns="name, age").load().where("age > 5 and name like 'p1%'")
    frame.explain("formatted")
    told = capsys.readouterr().out
    assert "PushedFilters: [IsNotNull(age), IsNotNull(name), GreaterThan(age,5), StringStartsWith(name,p1)]" in told
    assert "ReadSchema: struct<name:string,age:int>" in told
    assert "Filter (" not in told
    assert sorted(row.name for row in frame.collect()) == ["p10", "p11", "p13", "p14", "p16", "p17", "p19"]


@pytest.mark.parametrize(
    "condition",
    [
        "age not in (4, 5)",
        "not (age = 4)",
        "age is null",
        "age <=> 4",
        "age = 4 or name = 'p5'",
        "not (age in (4, null))",
    ],
)
def test_pushed_filters_mean_the_same_as_those_of_spark(graph: og.Graph, condition: str) -> None:
    frame = reading(graph, type="Person").load()
    rows = spark_session().sql.createDataFrame(frame.toArrow())
    assert {row.name for row in frame.where(condition).collect()} == {
        row.name for row in rows.where(condition).collect()
    }


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "needs one of .option('type', 'Person') for nodes"),
        ({"type": "Person", "edge": "Knows"}, "needs one of .option('type', 'Person') for nodes"),
        ({"type": "Nope"}, "there is no node type 'Nope'; there are Person"),
        ({"edge": "Person"}, "there is no edge type 'Person'; there are Knows"),
        ({"type": "Person", "branch": "nope"}, "branch 'nope' not found"),
        ({"type": "Person", "branch": "main", "snapshot": "1"}, "branch and snapshot exclude each other"),
        ({"type": "Person", "columns": "name,photo"}, "there is no column 'photo' for Spark"),
    ],
)
def test_wrong_options_are_one_clear_line(graph: og.Graph, options: dict[str, str], said: str) -> None:
    with pytest.raises(AnalysisException) as raised:
        reading(graph, **options).load()
    assert said in str(raised.value)
    assert "Traceback" not in str(raised.value)


def test_a_graph_that_is_not_there_or_not_named(graph: og.Graph, tmp_path: Path) -> None:
    source = spark_session().sql.read.format("omnigraph").option("type", "Person")
    with pytest.raises(AnalysisException, match="needs the graph"):
        source.load()
    with pytest.raises(AnalysisException, match="nowhere"):
        source.option("graph", str(tmp_path / "nowhere")).load()
    assert not (tmp_path / "nowhere").exists()


def test_a_session_of_others_finds_it_by_itself(graph: og.Graph) -> None:
    """Neither registration nor the switch for filters is needed; with `register` filters go down as well."""
    code = f"""
        from omnigraph.spark.session import spark_session
        off = {{"spark.sql.python.filterPushdown.enabled": "false", "spark.driver.memory": "600m"}}
        spark = spark_session(master="local[1]", conf=off).sql
        frame = spark.read.format("omnigraph").option("type", "Person").load({graph.uri!r}).where("age = 4")
        assert [row.name for row in frame.collect()] == ["p4"]
        """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=False, cwd=Path(graph.uri)
    )
    assert (done.returncode, done.stderr) == (0, "")
    ours = spark_session().sql
    register(ours)
    assert ours.conf.get("spark.sql.python.filterPushdown.enabled") == "true"
    assert reading(graph, type="Person").load().where("age = 4").count() == 1
