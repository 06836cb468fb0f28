"""Indexes that are built per group of fragments on Spark answer as those that were built at once."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

import omnigraph as og
from omnigraph import failpoints
from omnigraph.errors import SparkFailed
from omnigraph.failpoints import FailpointError
from omnigraph.graph.lifecycle import connect
from omnigraph.maintenance import workplace
from omnigraph.maintenance.index_building import Group, groups_of
from omnigraph.maintenance.workplace import Workplace
from omnigraph.spark.options import SparkOptions
from omnigraph.spark.runner import Inline, OnSpark
from omnigraph.spark.session import spark_session
from omnigraph.storage.root import Root
from tests import warm
from tests.commit.healthy import assert_healthy, picture, tree
from tests.maintenance.coverage import published

CHILD = Path(__file__).with_name("index_child.py")
SCHEMA = """
node Paper {
  code: String @key
  year: I32? @index
  title: String? @index
  topic: Vector(4)? @index
  labels: [String]?
  @index(labels)
}
edge Cites: Paper -> Paper
"""
ASK = """
query code($c: String) { match { $p: Paper { code: $c } } return { $p.year } }
query year($y: I32) { match { $p: Paper $p.year = $y } return { $p.code } order { $p.code } }
query since($y: I32) { match { $p: Paper $p.year >= $y } return { $p.code } order { $p.code } }
query about($w: String) { match { $p: Paper search($p.title, $w) } return { $p.code } order { $p.code } }
query best($w: String) {
  match { $p: Paper } return { $p.code, bm25($p.title, $w) as score } order { bm25($p.title, $w), $p.code } limit 9
}
query near($v: Vector(4)) { match { $p: Paper } return { $p.code } order { nearest($p.topic, $v) } limit 7 }
query labelled($l: String) { match { $p: Paper $p.labels contains $l } return { $p.code } order { $p.code } }
query cited($c: String) { match { $p: Paper { code: $c } $q cites $p } return { $q.code } order { $q.code } }
"""
QUESTIONS: list[tuple[str, dict[str, Any]]] = [
    ("code", {"c": "p017"}),
    ("code", {"c": "none"}),
    ("year", {"y": 2003}),
    ("since", {"y": 2005}),
    ("about", {"w": "river"}),
    ("about", {"w": "parted"}),
    ("best", {"w": "rivers delta"}),
    ("near", {"v": [1.0, 0.5, 0.0, 0.2]}),
    ("labelled", {"l": "b"}),
    ("cited", {"c": "p001"}),
]


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Papers in many fragments: some have lost rows, in some a property is null everywhere."""
    graph = og.init(tmp_path_factory.mktemp("shelf") / "papers", SCHEMA)
    for part in range(6):
        rows: list[dict[str, Any]] = []
        for number in range(part * 10, part * 10 + 10):
            data: dict[str, Any] = {"code": f"p{number:03}"}
            if part != 2:
                data |= {"year": 2000 + number % 7, "title": f"Of rivers and the delta, part {number % 4}"}
            if part != 3:
                data |= {"topic": [number % 5, number % 3, 1, number / 60], "labels": ["abc"[number % 3], "z"]}
            rows.append({"type": "Paper", "data": data})
        graph.load(rows, "append")
    edges = [{"edge": "Cites", "from": f"p{number:03}", "to": f"p{number % 3:03}"} for number in range(3, 60)]
    graph.load(edges[:30], "append")
    graph.load(edges[30:], "append")
    for code in ("p011", "p012", "p044"):
        graph.mutate("query drop($c: String) { delete Paper where code = $c }", "drop", {"c": code})
    return Path(graph.uri)


@pytest.fixture
def papers(shelf: Path, tmp_path: Path) -> og.Graph:
    return og.open(shutil.copytree(shelf, tmp_path / "papers"))


def answers(graph: og.Graph) -> list[list[list[object]]]:
    """What the graph answers; an index counts scores in single precision."""
    found = [graph.query(ASK, name, params).rows for name, params in QUESTIONS]
    return [
        [[round(value, 6) if isinstance(value, float) else value for value in row.values()] for row in rows]
        for rows in found
    ]


def shape(graph: og.Graph) -> dict[str, list[tuple[str, str, int, list[int], int]]]:
    """The indexes of every table: kinds, coverage, and that each is one segment."""
    found = {}
    for entry in graph.snapshot().entries():
        indexes = graph.snapshot().open(entry.key).indices()
        found[entry.key] = sorted(
            (one.name, one.kind, one.rows, sorted(one.fragments), len(one.segment_fragments)) for one in indexes
        )
    return found


@pytest.mark.parametrize("verb", ["ensure_indices", "optimize"])
def test_spark_and_this_process_give_the_same(shelf: Path, tmp_path: Path, verb: str) -> None:
    here, there = (og.open(shutil.copytree(shelf, tmp_path / name)) for name in ("here", "there"))
    plain = answers(here)
    getattr(here, verb)(engine="local")
    getattr(there, verb)(engine="spark")
    assert shape(there) == shape(here)
    assert answers(there) == answers(here) == plain
    assert getattr(there, verb)().commit is None
    assert_healthy(connect(there.uri))


def test_what_spark_built_is_folded_and_compacted(papers: og.Graph) -> None:
    papers.ensure_indices(engine="spark")
    new = {"code": "new", "year": 1900, "title": "A river", "topic": [0, 0, 0, 1]}
    papers.load([{"type": "Paper", "data": new}], "append")
    papers.optimize(engine="spark")
    assert published(papers, "node:Paper").fragment_count == 1
    assert papers.query(ASK, "year", {"y": 1900}).rows == [{"p.code": "new"}]
    assert {"p.code": "new"} in papers.query(ASK, "about", {"w": "rivers"}).rows


def test_a_branch_builds_its_own(papers: og.Graph) -> None:
    papers.create_branch("work")
    before = tree(connect(papers.uri))
    papers.ensure_indices("work", engine="spark")
    assert not papers.snapshot().open("node:Paper").indices()
    assert papers.at("work").snapshot().open("node:Paper").indices()
    assert set(before) <= set(tree(connect(papers.uri)))


def test_an_error_of_a_task_leaves_everything_as_it_was(papers: og.Graph) -> None:
    before, head = picture(connect(papers.uri)), papers.head()
    table = published(papers, "node:Paper")
    data = next(Path(papers.uri).glob(f"{table.location.path}/data/*.lance"))
    kept = data.read_bytes()
    data.write_bytes(b"")
    with pytest.raises((SparkFailed, og.errors.StorageError)):
        papers.ensure_indices(engine="spark")
    data.write_bytes(kept)
    assert (papers.head(), picture(connect(papers.uri))) == (head, before)
    assert papers.ensure_indices(engine="spark").commit is not None


def test_an_error_before_the_segments_are_merged(papers: og.Graph) -> None:
    head = papers.head()
    with failpoints.armed("index_build.segments_built"), pytest.raises(FailpointError):
        papers.ensure_indices(engine="spark")
    assert papers.head() == head
    assert not published(papers, "node:Paper").indices()
    assert papers.ensure_indices().commit is not None
    assert_healthy(connect(papers.uri))


def test_death_before_the_segments_are_merged(papers: og.Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    files = tree(connect(papers.uri))
    environment = {**os.environ, "OMNIGRAPH_FAILPOINTS": "index_build.segments_built=kill"}
    child = warm.run(
        [sys.executable, str(CHILD), papers.uri, "main", "spark"], env=environment, capture_output=True, check=False
    )
    assert child.returncode == -signal.SIGKILL, child.stderr.decode()
    assert not published(papers, "node:Paper").indices()
    left = set(tree(connect(papers.uri))) - set(files)
    assert any("_indices" in path for path in left)
    monkeypatch.setenv("OMNIGRAPH_FEED_RETENTION", "0s")
    monkeypatch.setenv("OMNIGRAPH_STAGING_GRACE", "0s")
    for record in connect(papers.uri).store.list("__staging"):
        connect(papers.uri).store.delete(record.path)
    papers.cleanup(older_than=timedelta(days=3650))
    assert set(tree(connect(papers.uri))) <= set(files), "nothing of the dead process is left"
    assert papers.ensure_indices().commit is not None


# --- where it is done ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("engine", "rows", "tasks", "on_spark"),
    [
        ("local", 10**9, 100, False),
        ("spark", 1, 1, True),
        ("auto", workplace.ROWS_FOR_A_JOB - 1, 100, False),
        ("auto", 10**9, 1, False),
        ("auto", workplace.ROWS_FOR_A_JOB, 2, True),
    ],
)
def test_small_tables_stay_here_even_where_spark_runs(engine: str, rows: int, tasks: int, on_spark: bool) -> None:
    spark_session()
    place = Workplace(Root.parse("/nowhere"), engine, SparkOptions())
    assert isinstance(place.runner(rows, tasks), OnSpark if on_spark else Inline)


@given(sizes=st.lists(st.integers(0, 50), min_size=1, max_size=40), at_least=st.integers(1, 8))
def test_groups_cover_every_fragment_once_and_in_order(sizes: list[int], at_least: int) -> None:
    fragments = list(enumerate(sizes))
    groups = groups_of(fragments, at_least)
    assert [id_ for group in groups for id_ in group.fragments] == list(range(len(sizes)))
    assert [group.rows for group in groups] == [sum(sizes[id_] for id_ in group.fragments) for group in groups]
    assert all(group.fragments for group in groups)
    assert len(groups) <= max(at_least, 1)


def test_groups_are_of_about_the_same_size() -> None:
    assert groups_of([(id_, 10) for id_ in range(6)], 3) == [Group((0, 1), 20), Group((2, 3), 20), Group((4, 5), 20)]


# --- progress -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ["local", "spark"])
def test_progress(papers: og.Graph, engine: Literal["local", "spark"]) -> None:
    told: list[tuple[str, int, int]] = []
    papers.optimize(engine=engine, progress=lambda *each: told.append(each))
    assert {stage for stage, _, _ in told} == {"index", "compact"}
    for stage in ("index", "compact"):
        ends = [done for name, done, total in told if name == stage and done == total]
        assert len(ends) >= 2, "both tables"
    assert all(0 <= done <= total for _, done, total in told)
