"""What commits say about themselves: messages that are checked, defaults, counts; kept by recovery, groups and merges."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.commit.messages import LONGEST_MESSAGE, checked_message, first_line, load_message
from omnigraph.commit.model import Changed
from omnigraph.errors import BadRequest
from omnigraph.load.inputs import Unnamed, title_of
from tests import warm
from tests.mutation.org_graph import SCHEMA, call, org_graph


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    return org_graph(tmp_path / "g")


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (None, None),
        ("", None),
        (" \n ", None),
        ("  hire eve \n", "hire eve"),
        ("one\r\n\ttwo", "one\n\ttwo"),
        ("größer 図", "größer 図"),
        ("x" * LONGEST_MESSAGE, "x" * LONGEST_MESSAGE),
    ],
)
def test_what_is_kept(given: str | None, kept: str | None) -> None:
    assert checked_message(given) == kept


@pytest.mark.parametrize(
    "given", ["x" * (LONGEST_MESSAGE + 1), "a\x1b[31mb", "a\x00", "a\x9bb", "a\u202eb", "half \ud800", 7, b"bytes"]
)
def test_what_is_refused(graph: og.Graph, given: Any) -> None:
    head = graph.head()
    with pytest.raises(BadRequest, match="message"):
        call(graph, "put", "eve", 1, message=given)
    with pytest.raises(BadRequest, match="message"):
        graph.load([{"type": "Staff", "data": {"handle": "eve"}}], message=given)
    with pytest.raises(BadRequest, match="message"):
        graph.apply_schema(SCHEMA + "\nnode Extra { name: String @key }\n", message=given)
    graph.create_branch("b")
    with pytest.raises(BadRequest, match="message"):
        graph.merge("b", message=given)
    assert graph.head() == head


def test_one_line_of_a_message() -> None:
    assert first_line("hire  eve\n\nat last") == "hire eve"
    assert first_line("x" * 100, 10) == "xxxxxxxxx…"


@pytest.mark.parametrize(
    ("data", "title"),
    [
        ("in/people.jsonl", "people.jsonl"),
        (Path("people.csv"), "people.csv"),
        (["a.jsonl", "b.jsonl"], "2 files"),
        ("-", "standard input"),
        ("s3://bucket/in/*.parquet", "*.parquet"),
        ("in/", "in"),
        ("a\x1b.jsonl", None),
        ([{"type": "Staff"}], None),
        (b"{}", None),
        (Unnamed(Path("spool")), None),
    ],
)
def test_what_an_input_is_called(data: Any, title: str | None) -> None:
    assert title_of(data) == title


def test_default_message_of_a_load() -> None:
    assert load_message("people.jsonl", "merge", Changed(1_000, 3_000)) == (
        "Load people.jsonl (merge): 1,000 nodes, 3,000 edges"
    )
    assert load_message(None, "append", Changed(1, 0)) == "Load (append): 1 node, 0 edges"


def test_every_writer_keeps_its_message_and_counts(graph: og.Graph) -> None:
    rows = [{"type": "Staff", "data": {"handle": "fay"}}]
    call(graph, "put", "eve", 1, message="hire eve")
    assert (graph.head().message, graph.head().changed) == ("hire eve", Changed(1, 0))
    graph.load(rows)
    assert (graph.head().message, graph.head().changed) == ("Load (append): 1 node, 0 edges", Changed(1, 0))
    graph.create_branch("agent/x")
    call(graph, "put", "gus", 1, branch="agent/x", message="on the branch")
    graph.merge("agent/x")
    assert (graph.head().message, graph.head().changed) == ("Merge agent/x into main", Changed(1, 0))
    merged = graph.head()
    graph.revert(merged.id)
    assert graph.head().message == f"Revert commit {merged.id}: Merge agent/x into main"
    graph.revert(graph.head().id, message="and back")
    assert (graph.head().message, graph.head().changed) == ("and back", Changed(1, 0))
    graph.apply_schema(SCHEMA + "\nnode Extra { name: String @key }\n", message="more types")
    assert graph.head().message == "more types"
    graph.optimize(message="smaller")
    assert graph.head().message == "smaller"
    # All of it is read back as it was written; the commit of the branch came with the merge.
    fresh = og.open(graph.uri, mode="ro")
    assert fresh.commits() == graph.commits()
    assert "on the branch" in [commit.message for commit in fresh.commits()]


def test_a_write_that_is_rolled_forward_has_them_too(graph: og.Graph) -> None:
    code = (
        "import sys, omnigraph as og; g = og.open(sys.argv[1]); "
        """g.mutate('query q() { insert Staff { handle: "eve" } }', message="hire eve", actor="me")"""
    )
    killed = {**os.environ, "OMNIGRAPH_FAILPOINTS": "publisher.before_commit=kill"}
    done = warm.run([sys.executable, "-c", code, graph.uri], env=killed, check=False)
    assert done.returncode == -signal.SIGKILL
    healed = og.open(graph.uri).head()
    assert (healed.message, healed.changed, healed.recovery_for_actor) == ("hire eve", Changed(1, 0), "me")
