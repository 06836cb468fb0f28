"""The Spark engine as people use it: frames, `auto`, `explain`, the command line, and what goes wrong in one line."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.errors import BadRequest, EvaluationError, ResourceLimit, SparkFailed
from tests.cli.calling import call
from tests.query.fixtures import ORG, ORG_ROWS
from tests.query.loading import graph_with

ABOVE = "query q($n: I32) { match { $s: Staff $s.level > $n } return { $s.handle, $s.level } order { $s.handle } }"


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> og.Graph:
    """FX-ORG."""
    return graph_with(tmp_path_factory.mktemp("engine") / "graph", ORG, ORG_ROWS)


def test_a_frame_is_not_computed_before_it_is_asked(graph: og.Graph) -> None:
    frame = graph.query_frame(ABOVE, params={"n": 26})
    assert frame.columns == ["s.handle", "s.level"]
    assert [tuple(row) for row in frame.collect()] == [("ada", 30), ("cleo", 35), ("dov", 28)]
    assert frame.limit(1).collect()[0][0] == "ada"


def test_the_result_names_its_commit_and_types(graph: og.Graph) -> None:
    here, there = (graph.query(ABOVE, params={"n": 26}, engine=engine) for engine in ("local", "spark"))
    assert there.commit == here.commit
    assert there.types == here.types
    assert there.table.schema.types == here.table.schema.types
    assert there.rows == here.rows


def test_one_snapshot_from_start_to_end(tmp_path: Path) -> None:
    graph = graph_with(tmp_path / "graph", ORG, ORG_ROWS)
    frame = graph.query_frame("match { $s: Staff } return { count($s) as n }")
    before = graph.head().id
    graph.mutate('query m() { insert Staff { handle: "eve" } }')
    assert frame.collect()[0][0] == 4
    assert graph.query("match { $s: Staff } return { count($s) as n }", snapshot=before, engine="spark").rows == [
        {"n": 4}
    ]
    assert graph.query("match { $s: Staff } return { count($s) as n }", engine="spark").rows == [{"n": 5}]


def test_auto_takes_spark_only_for_what_does_not_fit(graph: og.Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    import omnigraph.query_spark.execute as execute

    whole = execute.answer_on_spark

    def watched(*given: object) -> og.Result:
        asked.append("spark")
        return whole(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(execute, "answer_on_spark", watched)
    expected = graph.query(ABOVE, params={"n": 26}).rows
    assert graph.query(ABOVE, params={"n": 26}, engine="auto").rows == expected
    assert asked == []
    everyone = "match { $a: Staff $b: Staff $c: Staff } return { $a.handle, $b.handle, $c.handle }"
    assert len(graph.query(everyone, engine="auto", memory_limit=4096)) == 64
    assert asked == ["spark"]


def test_what_the_local_engine_refuses_names_spark(graph: og.Graph) -> None:
    everyone = "match { $a: Staff $b: Staff $c: Staff $d: Staff $e: Staff } return { $a.handle, $b.handle, $c.handle }"
    with pytest.raises(ResourceLimit, match='engine="spark"'):
        graph.query(everyone, memory_limit=8192)


def test_explain_shows_what_is_pushed_and_the_plan_of_spark(graph: og.Graph) -> None:
    shown = str(graph.explain(ABOVE, params={"n": 26}, engine="spark"))
    assert "engine: spark" in shown
    assert "scan node:Staff as $s: 1 task; handle, id, level; pushed: $s.level > $n" in shown
    assert "MapInArrow" in shown


def test_an_error_of_a_task_is_the_error_of_the_engine(graph: og.Graph) -> None:
    text = "query q() { match { $s: Staff } return { 1 % ($s.level - 30) as x } }"
    with pytest.raises(EvaluationError) as here:
        graph.query(text)
    with pytest.raises(EvaluationError) as there:
        graph.query(text, engine="spark")
    assert str(there.value) == str(here.value)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"engine": "sparks"}, "there is no engine 'sparks'; the engines are local, spark, auto"),
        ({"engine": "spark", "memory_limit": -1}, "memory_limit is a number of bytes"),
    ],
)
def test_bad_requests(graph: og.Graph, asked: dict[str, object], message: str) -> None:
    with pytest.raises(BadRequest) as caught:
        graph.query(ABOVE, params={"n": 1}, **asked)  # type: ignore[arg-type]
    assert message in str(caught.value)


def test_without_pandas_one_line_says_what_to_install(graph: og.Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(SparkFailed, match=r"pip install 'omnigraph\[pandas\]'"):
        graph.query(ABOVE, params={"n": 1}, engine="spark")


def test_the_command_line(graph: og.Graph, capsys: pytest.CaptureFixture[str]) -> None:
    text = "match { $s: Staff } return { count($s) as n }"
    done = call(capsys, "query", "--store", str(graph.uri), "-e", text, "--engine", "spark", "--json")
    assert done.code == 0, done.err
    assert json.loads(done.out)["rows"] == [{"n": 4}]
