"""Where files for people may be written: never inside a graph, however the place is named."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.commit.branch_refs import MANIFEST_PATH
from omnigraph.commit.schema_files import STATE
from omnigraph.errors import BadRequest
from omnigraph.graph.lifecycle import CLAIM
from omnigraph.storage.outputs import GRAPH_MARKS, Output
from tests.cli.calling import call
from tests.commit.org import SCHEMA


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.fixture
def graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> og.Graph:
    """A graph at `graph`, with other ways that lead into it: links to it, to a file of it, and past it."""
    monkeypatch.chdir(tmp_path)
    made = og.init("graph", SCHEMA)
    Path("away").mkdir()
    Path("link").symlink_to("graph")
    Path("away/inner").symlink_to(Path("graph/nodes").resolve())
    Path("schema-link.pg").symlink_to("graph/_schema.pg")
    return made


#: Names of places inside the graph.
INSIDE = [
    "graph/_schema.pg",
    "graph/new.svg",
    "graph/__manifest/x.svg",
    "graph/nodes/deep/x.svg",
    "./away/../graph/x.svg",
    "link/x.svg",
    "away/inner/x.svg",
    "schema-link.pg",
    "graph",
    "link",
]


def test_the_marks_of_a_graph_are_what_it_is_made_of() -> None:
    assert GRAPH_MARKS == (MANIFEST_PATH, STATE, CLAIM)


@pytest.mark.parametrize("place", [*INSIDE, "absolute", "file"])
def test_a_place_inside_a_graph_is_refused(graph: og.Graph, place: str) -> None:
    named = {"absolute": f"{graph.uri}/x", "file": f"file://{graph.uri}/x"}.get(place, place)
    with pytest.raises(BadRequest, match=f"lies inside the graph {graph.uri}"):
        Output.parse(named)


@pytest.mark.parametrize("place", ["x", "away/x", "graph.jsonl", "away/../x", "graph-2/x", os.devnull])
def test_places_beside_a_graph_are_fine(graph: og.Graph, place: str) -> None:
    assert Output.parse(place).uri == place


@pytest.mark.parametrize("left", [STATE, CLAIM, f"{MANIFEST_PATH}/x"])
def test_what_is_left_of_a_graph_is_protected_too(tmp_path: Path, left: str) -> None:
    (tmp_path / "torn" / left).parent.mkdir(parents=True)
    (tmp_path / "torn" / left).write_text("{}")
    with pytest.raises(BadRequest, match="lies inside the graph"):
        Output.parse(tmp_path / "torn" / "x")


@pytest.mark.parametrize("place", ["", "a\0b"])
def test_names_that_can_not_be(graph: og.Graph, place: str) -> None:
    with pytest.raises(BadRequest):
        Output.parse(place)


def test_a_pipe_is_written_by_the_name_it_is_reached_by(tmp_path: Path) -> None:
    script = "from omnigraph.storage.outputs import Output; Output.parse('/dev/stdout').write([b'a', b'b'])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
    assert done.stdout == b"ab"


# --- every verb -------------------------------------------------------------------------------------------------------

VERBS: dict[str, Callable[[og.Graph, str], object]] = {
    "export": lambda graph, place: graph.export(place),
    "export parquet": lambda graph, place: graph.export(place, format="parquet"),
    "export many": lambda graph, place: graph.export(place, files="many"),
    "baseline": lambda graph, place: graph.baseline(out=place),
    "baseline path": lambda graph, place: graph.baseline(out=Path(place)),
    "picture": lambda graph, place: graph.picture().save(f"{place}.svg"),
}


@pytest.mark.parametrize("place", ["graph/_schema.pg", "link/x", "away/inner/x"])
@pytest.mark.parametrize("verb", VERBS.values(), ids=VERBS)
def test_no_verb_writes_into_a_graph(graph: og.Graph, verb: Callable[[og.Graph, str], object], place: str) -> None:
    other = og.init("other", SCHEMA)
    before = contents(Path("graph"))
    for source in (graph, other):
        with pytest.raises(BadRequest, match="lies inside the graph"):
            verb(source, place)
    assert contents(Path("graph")) == before
    assert og.open("graph").schema() == SCHEMA


def test_no_command_writes_into_a_graph(graph: og.Graph, capsys: pytest.CaptureFixture[str]) -> None:
    Path("in.jsonl").write_text('{"type": "Staff", "data": {"handle": "x"}}\n')
    spec = '{"dimension": 2, "types": {"Staff": {"target": "v", "fields": ["handle"]}}}'
    before = contents(Path("graph"))
    for words in (
        ["export", "graph", "--out", "graph/_schema.pg"],
        ["changes", "baseline", "--store", "graph", "--out", "link/_schema.pg"],
        ["viz", "graph", "--out", "link/x.svg"],
        ["embed", "--input", "in.jsonl", "--output", "graph/_schema.pg", "--spec", spec, "--clean"],
    ):
        outcome = call(capsys, *words)
        assert outcome.code == 1
        assert "lies inside the graph" in outcome.err
    assert contents(Path("graph")) == before


def test_no_object_inside_a_graph_on_s3(s3_server: Any) -> None:
    root = s3_server.new_root()
    graph = og.init(f"{root.uri}/g.omni", SCHEMA, storage_options=root.storage_options)
    for place in ("g.omni", "g.omni/_schema.pg", "g.omni/nodes/out/x.jsonl"):
        with pytest.raises(BadRequest, match=f"lies inside the graph {graph.uri}"):
            graph.export(f"{root.uri}/{place}")
    assert graph.export(f"{root.uri}/g.omni.jsonl") == 0
    assert og.open(graph.uri, storage_options=root.storage_options).schema() == SCHEMA
