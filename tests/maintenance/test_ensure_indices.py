"""Section 18: which indexes are built, when, and what they are for."""

from __future__ import annotations

from pathlib import Path

import pytest

import omnigraph as og
from tests.query.fixtures import ORG, ORG_QUERIES, ORG_ROWS
from tests.query.loading import graph_with

SCHEMA = """
node I {
  slug: String @key
  st: enum(a, b) @index
  at: DateTime @index
  rank: I32 @index
  title: String @index
  note: String?
}
"""
ROWS = '{"type":"I","data":{"slug":"i1","st":"a","at":"2024-01-01T00:00:00Z","rank":1,"title":"one"}}'


def kinds(graph: og.Graph, type_key: str, branch: str | None = None) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for index in graph.snapshot(branch).open(type_key).indices():
        found.setdefault(index.columns[0], set()).add(index.kind)
    return found


@pytest.mark.row("IDX-01")
def test_the_type_decides_the_kind(tmp_path: Path) -> None:
    graph = graph_with(tmp_path / "g", SCHEMA, ROWS)
    report = graph.ensure_indices()
    assert report.commit == graph.head().id
    assert graph.head().kind == "maintenance"
    assert kinds(graph, "node:I") == {
        "id": {"BTREE"},
        "slug": {"BTREE", "INVERTED"},
        "st": {"BTREE"},
        "at": {"BTREE"},
        "rank": {"BTREE"},
        "title": {"INVERTED"},
    }


@pytest.mark.row("IDX-03")
def test_writes_build_no_index(tmp_path: Path) -> None:
    graph = graph_with(tmp_path / "g", ORG, ORG_ROWS)
    assert kinds(graph, "node:Staff") == {}
    graph.ensure_indices()
    before = kinds(graph, "node:Staff")
    graph.mutate('query q() { insert Staff { handle: "fay" } }')
    assert kinds(graph, "node:Staff") == before
    assert graph.query(ORG_QUERIES, "one", {"h": "fay"}).rows == [{"s.handle": "fay", "s.level": None}]


@pytest.mark.row("IDX-04")
@pytest.mark.parametrize("rows", [ORG_ROWS, ""], ids=["filled", "empty"])
def test_a_second_run_changes_nothing(tmp_path: Path, rows: str) -> None:
    graph = graph_with(tmp_path / "g", ORG, rows) if rows else og.init(tmp_path / "g", ORG)
    graph.ensure_indices()
    before = graph.snapshot()
    report = graph.ensure_indices()
    assert (report.built, report.commit) == ((), None)
    assert bool(report.pending) == (not rows)
    after = graph.snapshot()
    assert (after.version, after.entries()) == (before.version, before.entries())


@pytest.mark.row("IDX-06")
def test_a_vector_index_waits_for_vectors(tmp_path: Path) -> None:
    schema = "node D { s: String @key emb: Vector(2)? @index }"
    graph = graph_with(tmp_path / "g", schema, '{"type":"D","data":{"s":"a"}}')
    report = graph.ensure_indices()
    assert [(status.column, status.reason) for status in report.pending] == [("emb", "there are no vectors yet")]
    graph.mutate('query q($v: Vector(2)) { insert D { s: "b", emb: $v } }', params={"v": [1.0, 2.0]})
    assert [status.column for status in graph.ensure_indices().built] == ["emb"]
    assert kinds(graph, "node:D")["emb"] == {"IVF_FLAT"}


def test_lists_have_label_lists(tmp_path: Path) -> None:
    schema = "node D { s: String @key tags: [String]? @index(tags) }"
    graph = graph_with(tmp_path / "g", schema, '{"type":"D","data":{"s":"a","tags":["x","y"]}}')
    graph.ensure_indices()
    assert kinds(graph, "node:D")["tags"] == {"LABEL_LIST"}
    assert len(graph.query('query q() { match { $d: D { tags: "x" } } return { $d.s } }')) == 1


def test_a_branch_has_its_own_indexes(tmp_path: Path) -> None:
    graph = graph_with(tmp_path / "g", ORG, ORG_ROWS)
    graph.create_branch("work")
    graph.ensure_indices("work")
    assert kinds(graph, "edge:Mentors", "work") == {"id": {"BTREE"}, "src": {"BTREE"}, "dst": {"BTREE"}}
    assert kinds(graph, "edge:Mentors") == {}
    assert len(graph.query(ORG_QUERIES, "mentees", {"h": "ada"}, branch="work")) == 2


def test_a_reader_builds_nothing(tmp_path: Path) -> None:
    graph_with(tmp_path / "g", ORG, ORG_ROWS)
    with pytest.raises(og.errors.BadRequest, match="read-only"):
        og.open(tmp_path / "g", "ro").ensure_indices()
