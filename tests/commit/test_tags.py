"""Tags: published without a commit, unique, and names for reads of the past."""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph import failpoints
from omnigraph.commit.publisher import COMPACT_ABOVE_FRAGMENTS
from omnigraph.errors import AlreadyExists, BadRequest, CommitNotFound, Conflict, HistoricalVersionReclaimed, NotFound
from tests import warm
from tests.mutation.org_graph import call, ids, org_graph


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    return org_graph(tmp_path / "g")


def test_a_tag_names_a_commit_and_is_none(graph: og.Graph) -> None:
    head, version, history = graph.head(), graph.snapshot().version, graph.commits()
    assert graph.tag("v1", head.id) == head.id
    assert graph.tags() == {"v1": head.id}
    assert (graph.head(), graph.snapshot().version, graph.commits()) == (head, version, history)
    # The same for a handle that reads it all from the store.
    fresh = og.open(graph.uri, mode="ro")
    assert (fresh.tags(), fresh.head(), fresh.snapshot().version) == ({"v1": head.id}, head, version)
    call(graph, "put", "eve", 1)
    assert graph.head().parent == head.id
    assert ids(graph, "node:Staff", at="v1") == ["ada", "ben", "cleo", "dov"]
    assert ids(fresh, "node:Staff", at=graph.head().id) == ["ada", "ben", "cleo", "dov", "eve"]


def test_a_conditional_write_is_not_disturbed_by_a_tag(graph: og.Graph) -> None:
    head = graph.head().id
    graph.tag("v1")
    assert call(graph, "put", "eve", 1, if_commit=head).commit is not None


def test_queries_read_at_a_tag(graph: og.Graph) -> None:
    graph.tag("before")
    call(graph, "drop_staff", "ada")
    source = "query q() { match { $s: Staff } return { count($s) as n } }"
    assert [graph.query(source, snapshot=at).rows for at in ("before", None)] == [[{"n": 4}], [{"n": 3}]]


def test_a_tag_may_name_a_commit_of_any_branch(graph: og.Graph) -> None:
    graph.create_branch("b")
    call(graph, "put", "eve", 1, branch="b")
    tagged = graph.tag("on-b", graph.head("b"))
    assert graph.at("b").tags() == graph.tags() == {"on-b": tagged}
    assert "eve" in ids(graph, "node:Staff", at="on-b")


@pytest.mark.parametrize(
    "name",
    [
        "",
        "a b",
        "../x",
        "a..b",
        "/a",
        "a/",
        "7",
        "-7",
        "main",
        "manifest:main:v1",
        "x" * 201,
        "01J00000000000000000000009",
        "\ud800",
        None,
        5,
    ],
    ids=ascii,
)
def test_odd_names_are_refused(graph: og.Graph, name: str) -> None:
    with pytest.raises(BadRequest, match="can not be a tag"):
        graph.tag(name)
    assert graph.tags() == {}


@pytest.mark.parametrize("name", ["v1", "2024-06-01", "release/1.0", "é", "x" * 200])
def test_other_names_are_fine(graph: og.Graph, name: str) -> None:
    graph.tag(name)
    assert graph.snapshot(at=name).commit == graph.head().id


def test_a_name_is_given_once(graph: og.Graph) -> None:
    graph.tag("v1")
    first = graph.tags()
    call(graph, "put", "eve", 1)
    with pytest.raises(AlreadyExists, match="already exists"):
        graph.tag("v1")
    assert graph.tags() == first
    graph.delete_tag("v1")
    assert graph.tags() == {} == og.open(graph.uri, mode="ro").tags()
    graph.tag("v1")
    assert graph.tags() == {"v1": graph.head().id}


def test_what_is_not_there_can_not_be_tagged_or_deleted(graph: og.Graph) -> None:
    with pytest.raises(CommitNotFound):
        graph.tag("v1", "01J00000000000000000000009")
    with pytest.raises(NotFound, match="tag 'v1' not found"):
        graph.delete_tag("v1")
    with pytest.raises(BadRequest, match="names no snapshot"):
        graph.snapshot(at="v1")
    with pytest.raises(BadRequest, match="read-only"):
        og.open(graph.uri, mode="ro").tag("v1")


def test_a_commit_whose_state_is_gone_can_not_be_tagged(graph: og.Graph) -> None:
    graph.create_branch("b")
    lost = call(graph, "put", "eve", 1, branch="b").commit
    graph.create_branch("c", base="b")
    graph.delete_branch("c")
    graph.delete_branch("b")
    assert lost is not None
    with pytest.raises((HistoricalVersionReclaimed, CommitNotFound)):
        graph.tag("v1", lost)


def test_of_several_who_want_a_name_one_gets_it(graph: og.Graph) -> None:
    outcomes: list[str] = []

    def want(handle: og.Graph) -> None:
        try:
            handle.tag("v1")
            outcomes.append("got it")
        except AlreadyExists:
            outcomes.append("taken")

    threads = [threading.Thread(target=want, args=(og.open(graph.uri),)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["got it", "taken", "taken", "taken"]


@pytest.mark.parametrize("point", ["publisher.before_commit", "publisher.after_commit"])
def test_a_store_that_fails_while_a_tag_is_published(graph: og.Graph, point: str) -> None:
    with failpoints.armed(point):
        if point == "publisher.after_commit":
            graph.tag("v1")
        else:
            with pytest.raises(og.OmnigraphError):
                graph.tag("v1")
    assert set(og.open(graph.uri).tags()) == ({"v1"} if point == "publisher.after_commit" else set())
    call(graph, "put", "eve", 1)
    graph.tag("v2")
    assert "v2" in graph.tags()


def test_many_tags_do_not_slow_the_manifest_down(graph: og.Graph) -> None:
    for number in range(COMPACT_ABOVE_FRAGMENTS + 3):
        graph.tag(f"t{number}")
    assert graph._context.manifest.load().fragment_count <= COMPACT_ABOVE_FRAGMENTS + 1
    assert graph.snapshot().version == graph.head().manifest_version
    assert len(og.open(graph.uri, mode="ro").tags()) == COMPACT_ABOVE_FRAGMENTS + 3


@pytest.mark.parametrize(("point", "there"), [("publisher.before_commit", False), ("publisher.after_commit", True)])
@pytest.mark.parametrize("verb", ["tag", "delete_tag"])
def test_a_process_that_dies_while_it_publishes_a_tag(graph: og.Graph, point: str, there: bool, verb: str) -> None:
    if verb == "delete_tag":
        graph.tag("v1")
    before = graph.commits()
    program = f"import omnigraph; omnigraph.open({graph.uri!r}).{verb}('v1')"
    environment = {**os.environ, "OMNIGRAPH_FAILPOINTS": f"{point}=kill"}
    child = warm.run([sys.executable, "-c", program], env=environment, capture_output=True, check=False)
    assert child.returncode == -signal.SIGKILL, child.stderr.decode()
    assert ("v1" in graph.tags()) is (there if verb == "tag" else not there)
    assert graph.commits() == before
    call(graph, "put", "eve", 1)
    graph.tag("v2")
    assert "v2" in og.open(graph.uri).tags()


def test_a_branch_with_a_tagged_commit_stays(graph: og.Graph) -> None:
    """What is tagged can be read for good, and the states of a branch that no other one reaches go with it."""
    graph.create_branch("feature")
    graph.tag("fork", graph.head("feature").id)
    commit = call(graph, "put", "eve", 1, branch="feature").commit
    assert commit is not None
    graph.tag("mine", commit.id)
    with pytest.raises(Conflict, match="cannot delete branch 'feature': tag 'mine'.*delete the tag first"):
        graph.delete_branch("feature")
    assert ids(graph, "node:Staff", at="mine") == ["ada", "ben", "cleo", "dov", "eve"]
    graph.delete_tag("mine")
    graph.delete_branch("feature")
    assert ids(graph, "node:Staff", at="fork") == ["ada", "ben", "cleo", "dov"]
