"""Pictures of a graph: the schema, and what stands around some nodes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.errors import BadRequest, EntityNotFound, NotFound
from tests.mutation.org_graph import org_graph


@pytest.fixture(scope="module")
def org(tmp_path_factory: pytest.TempPathFactory) -> og.Graph:
    return org_graph(tmp_path_factory.mktemp("pictures") / "org.omni")


def test_the_schema(org: og.Graph) -> None:
    picture = org.picture()
    assert [(mark.label, mark.detail) for mark in picture.marks] == [
        ("Staff", "handle: String\nlevel: I32?"),
        ("Team", "code: String"),
    ]
    assert {(line.source, line.target, line.label) for line in picture.lines} == {
        ("Staff", "Staff", "Mentors"),
        ("Staff", "Team", "MemberOf"),
    }


@pytest.mark.parametrize(
    ("type_name", "node_id", "depth", "nodes", "edges"),
    [
        ("Staff", "ada", 0, "ada", ""),
        ("Staff", "dov", 1, "dov ben", "ben>dov"),
        ("Staff", "dov", 2, "dov ben ada labs", "ben>dov ada>ben ben>labs"),
        ("Team", "core", 1, "core ada", "ada>core"),
        ("Team", "core", 2, "core ada ben cleo", "ada>core ada>ben ada>cleo"),
        ("Staff", None, 0, "ada ben cleo dov", "ada>ben ada>cleo ben>dov"),
        ("Team", None, 1, "core labs ada ben", "ada>core ben>labs ada>ben"),
    ],
)
def test_what_stands_around(
    org: og.Graph, type_name: str, node_id: str | None, depth: int, nodes: str, edges: str
) -> None:
    picture = org.picture(type_name, node_id, depth=depth)
    assert {mark.label for mark in picture.marks} == set(nodes.split())
    labels = {mark.key: mark.label for mark in picture.marks}
    assert sorted(f"{labels[line.source]}>{labels[line.target]}" for line in picture.lines) == sorted(edges.split())
    assert picture.is_complete


def test_no_more_than_fits(org: og.Graph) -> None:
    picture = org.picture("Staff", limit=2)
    assert len(picture.marks) == 2
    assert not picture.is_complete
    around = org.picture("Staff", "ada", limit=2)
    assert len(around.marks) == 2
    assert not around.is_complete


def test_branches_and_snapshots(tmp_path: Path) -> None:
    graph = org_graph(tmp_path / "org.omni")
    before = graph.head().id
    graph.create_branch("b")
    graph.mutate('query q() { insert Team { code: "new" } }', branch="b")
    assert len(graph.picture("Team", branch="b").marks) == len(graph.picture("Team").marks) + 1
    graph.mutate('query q() { delete Team where code = "core" }')
    assert len(graph.picture("Team", snapshot=before, depth=0).marks) == 2
    assert len(graph.picture("Team", depth=0).marks) == 1


def test_nodes_without_a_key_are_labelled_by_a_text(tmp_path: Path) -> None:
    graph = og.init(tmp_path / "g.omni", "node Note { body: String? n: I32? v: Vector(2)? b: Blob? }")
    graph.mutate('query q() { insert Note { body: "hello", v: [1, 2] } insert Note { n: 3 } }')
    marks = graph.picture("Note").marks
    assert sorted(mark.detail for mark in marks) == ["body: hello", "n: 3"]
    assert "hello" in {mark.label for mark in marks}


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"type": "Staf"}, NotFound, "no node type 'Staf'; did you mean `Staff`"),
        ({"type": "Mentors"}, NotFound, "no node type 'Mentors'"),
        ({"type": "Staff", "id": "zoe"}, EntityNotFound, "there is no Staff with the id 'zoe'"),
        ({"id": "ada"}, BadRequest, "give `type` with `id`"),
        ({"type": "Staff", "depth": 7}, BadRequest, "depth is a number of edges from 0 to 6"),
        ({"type": "Staff", "depth": -1}, BadRequest, "depth is a number"),
        ({"type": "Staff", "limit": 0}, BadRequest, "limit is a number of nodes from 1 to 2000"),
    ],
)
def test_refused(org: og.Graph, arguments: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        org.picture(**arguments)


def test_a_node_without_a_key_is_called_by_its_text_and_not_by_its_time(tmp_path: Path) -> None:
    schema = "node Meeting { at: DateTime  subject: String? }\nnode Day { on: Date }"
    with og.init(tmp_path / "meetings.omni", schema) as graph:
        graph.load(
            [
                {"type": "Meeting", "data": {"id": "m1", "at": "2026-10-01T10:00:00Z", "subject": "Weekly"}},
                {"type": "Day", "data": {"id": "d1", "on": "2026-10-01"}},
            ]
        )
        assert graph.neighbours("Meeting", "m1").node.label == "Weekly"
        assert graph.neighbours("Day", "d1").node.label == "2026-10-01"
        assert graph.picture("Meeting", "m1").marks[0].label == "Weekly"
