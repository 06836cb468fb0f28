"""Section 15: what one commit did, whole and in pages."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import lance
import pytest

import omnigraph as og
from omnigraph.changes import commits as pages
from omnigraph.changes.commits import CommitChanges
from omnigraph.changes.model import Change
from omnigraph.errors import (
    BadRequest,
    ChangeCursorRejected,
    ChangeFeedGap,
    CommitHasNoParent,
    CommitNotFound,
    ResourceLimit,
)
from tests.changes.applying import applied, content, told
from tests.mutation.org_graph import call, org_graph

THREE = """query three() {
  insert Staff { handle: "C", level: 3 } insert Staff { handle: "A", level: 1 } insert Staff { handle: "B", level: 2 }
}"""


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    return org_graph(tmp_path / "g")


def made(result: og.MutationResult) -> str:
    assert result.commit is not None
    return result.commit.id


def all_pages(graph: og.Graph, commit_id: str, **options: Any) -> list[CommitChanges]:
    found = [graph.commit_changes(commit_id, **options)]
    while found[-1].next_page_token is not None:
        found.append(graph.commit_changes(commit_id, page_token=found[-1].next_page_token, **options))
    return found


@pytest.mark.row("CHG-14")
def test_receipts(graph: og.Graph, row: list[str]) -> None:
    assert call(graph, "put", "eve", 1).commit == graph.head()
    assert call(graph, "relevel", "nobody", 1).commit is None


@pytest.mark.row("CHG-15")
def test_a_commit_in_pages(graph: og.Graph, row: list[str]) -> None:
    before = graph.head()
    commit_id = made(graph.mutate(THREE, actor="act-x"))
    one, two = all_pages(graph, commit_id, limit=2)
    assert told(one.changes) == [("insert", "node:Staff", "A"), ("insert", "node:Staff", "B")]
    assert told(two.changes) == [("insert", "node:Staff", "C")]
    assert all(change.before is None for change in one.changes)
    assert one.changes[0].after == {"handle": "A", "level": 1}
    for page in (one, two):
        assert (page.commit.id, page.commit.parent, page.commit.branch) == (commit_id, before.id, "main")
    shape = one.to_dict()
    assert shape["cause"] == {
        "graph_commit_id": commit_id,
        "authored_branch": None,
        "parent_commit_id": before.id,
        "actor_id": "act-x",
        "authored_at": one.commit.created_at,
    }
    assert shape["changes"][0] == {
        "kind": "node",
        "type": {"id": one.changes[0].type_id, "name": "Staff"},
        "id": "A",
        "op": "insert",
        "after": {"properties": {"handle": "A", "level": 1}},
    }
    assert "next_page_token" in shape
    assert "next_page_token" not in two.to_dict()


@pytest.mark.row("CHG-16")
def test_an_update_has_both_images(graph: og.Graph, row: list[str]) -> None:
    commit_id = made(call(graph, "relevel", "ben", 99))
    (change,) = graph.commit_changes(commit_id).changes
    assert change.op == "update"
    assert change.before is not None
    assert change.after is not None
    assert (change.before["level"], change.after["level"]) == (25, 99)


@pytest.mark.row("CHG-19")
def test_commits_that_changed_nothing(graph: og.Graph, row: list[str]) -> None:
    graph.ensure_indices()
    built = graph.head()
    same = graph.load([{"type": "Staff", "data": {"handle": "ben", "level": 25}}], "merge", engine="local").commit
    assert same is not None
    for commit_id in (built.id, same.id):
        page = graph.commit_changes(commit_id)
        assert (list(page.changes), page.next_page_token, page.commit.id) == ([], None, commit_id)
        assert page.stats.to_dict() == {"inserts": 0, "updates": 0, "deletes": 0, "types": ()}


@pytest.mark.row("CHG-20")
def test_the_first_commit_has_no_parent(graph: og.Graph, row: list[str]) -> None:
    first = graph.commits()[-1]
    with pytest.raises(CommitHasNoParent) as caught:
        graph.commit_changes(first.id)
    assert caught.value.commit == first.id


def test_an_unknown_commit(graph: og.Graph) -> None:
    for commit_id in ("01J00000000000000000000009", "nonsense", ""):
        with pytest.raises(CommitNotFound):
            graph.commit_changes(commit_id)


def flipped(token: str, place: int) -> str:
    return token[:place] + ("A" if token[place] != "A" else "B") + token[place + 1 :]


@pytest.mark.row("CHG-22")
def test_page_tokens_that_do_not_fit(graph: og.Graph, tmp_path: Path, row: list[str]) -> None:
    commit_id = made(graph.mutate(THREE))
    token = graph.commit_changes(commit_id, limit=1, types="Staff").next_page_token
    assert token is not None
    later = made(call(graph, "put", "eve", 1))
    cursor = graph.changes(types="Staff").cursor
    other = org_graph(tmp_path / "other")
    elsewhere = made(other.mutate(THREE))

    def reason(graph: og.Graph, commit: str, token: Any, **options: Any) -> str:
        with pytest.raises(ChangeCursorRejected, match="change cursor rejected") as caught:
            graph.commit_changes(commit, page_token=token, **options)
        return caught.value.reason

    for garbage in ("", "x", "%%%", "é", "A" * 5000, "A" * 100, 7, token[:20], f"{token}="):
        assert reason(graph, commit_id, garbage, types="Staff") == "malformed"
    for place in [*range(12, len(token), 7), len(token) - 1]:
        assert reason(graph, commit_id, flipped(token, place), types="Staff") in (
            "tampered",
            "malformed",
            "other_graph",
        )
    assert reason(graph, later, token, types="Staff") == "other_commit"
    for options in ({}, {"types": "Team"}, {"types": "Staff", "ops": "insert"}, {"types": "Staff", "kinds": "node"}):
        assert reason(graph, commit_id, token, **options) == "other_filter"
    assert reason(other, elsewhere, token, types="Staff") == "other_graph"
    assert reason(graph, commit_id, cursor, types="Staff") == "wrong_kind"
    assert told(graph.commit_changes(commit_id, page_token=token, types="Staff").changes) == [
        ("insert", "node:Staff", "B"),
        ("insert", "node:Staff", "C"),
    ]


@pytest.mark.row("CHG-23")
def test_page_limits(graph: og.Graph, row: list[str]) -> None:
    commit_id = made(graph.mutate(THREE))
    limit: Any
    for limit in (0, -1, True, "2", 1.5):
        with pytest.raises(BadRequest):
            graph.commit_changes(commit_id, limit=limit)
    with pytest.raises(ResourceLimit) as caught:
        graph.commit_changes(commit_id, limit=8193)
    error = caught.value
    assert (error.resource, error.limit, error.actual) == ("commit_changes_page_changes", 8192, 8193)
    assert len(graph.commit_changes(commit_id, limit=8192).changes) == 3


def test_filters_of_a_commit(graph: og.Graph) -> None:
    commit_id = made(call(graph, "drop_staff", "ada"))
    assert {change.kind for change in graph.commit_changes(commit_id, kinds="edge").changes} == {"edge"}
    assert told(graph.commit_changes(commit_id, types="Staff").changes) == [("delete", "node:Staff", "ada")]
    assert list(graph.commit_changes(commit_id, ops="insert").changes) == []
    with pytest.raises(BadRequest, match="unknown type"):
        graph.commit_changes(commit_id, types="Nothing")


SIX = """
node Zebra { key: String @key }
node Apple { key: String @key }
node Mango { key: String @key }
edge Runs: Zebra -> Apple
edge Eats: Apple -> Mango
edge Bites: Mango -> Zebra
"""


@pytest.mark.row("CHG-34")
def test_six_types_in_one_commit(tmp_path: Path, row: list[str]) -> None:
    graph = og.init(tmp_path / "g", SIX)
    commit_id = made(
        graph.mutate("""query q() {
      insert Zebra { key: "1" } insert Apple { key: "1" } insert Mango { key: "1" } insert Mango { key: "2" }
      insert Runs { from: "1", to: "1" } insert Eats { from: "1", to: "1" } insert Bites { from: "1", to: "1" }
    }""")
    )
    whole = list(graph.commit_changes(commit_id).changes)
    order = [(change.kind != "node", change.type_id, change.id) for change in whole]
    assert order == sorted(order)
    assert len({change.type_id for change in whole}) == 6
    names = [change.type for change in whole]
    assert names == ["Apple", "Mango", "Mango", "Zebra", "Bites", "Eats", "Runs"]
    for limit in range(1, 9):
        parts = all_pages(graph, commit_id, limit=limit)
        assert [change for page in parts for change in page.changes] == whole
        assert all(len(page.changes) == limit for page in parts[:-1])


@pytest.mark.row("CHG-35")
def test_long_ids_with_a_shared_prefix(graph: og.Graph, row: list[str]) -> None:
    shared = "𝄞\x01" * 200
    names = [shared, *(shared + end for end in ("a", "b", "b" * 300, "c\x00", "é")), "x" * 256, "x" * 257, "x" * 5000]
    source = "query q() { " + " ".join(f"insert Staff {{ handle: $h{place} }}" for place in range(len(names))) + " }"
    declared = ", ".join(f"$h{place}: String" for place in range(len(names)))
    params = {f"h{place}": name for place, name in enumerate(names)}
    commit_id = made(graph.mutate(source.replace("q()", f"q({declared})"), params=params))
    parts = all_pages(graph, commit_id, limit=1)
    assert [page.changes[0].id for page in parts] == sorted(names, key=str.encode)
    assert max(len(page.next_page_token or "") for page in parts) <= 4096
    # Of an update and a delete too, where one side is looked at more closely.
    removed = made(graph.mutate("query q($a: String) { delete Staff where handle = $a }", params={"a": names[3]}))
    assert [page.changes[0].id for page in all_pages(graph, removed, limit=1)] == [names[3]]


def test_a_page_ends_when_it_is_large(graph: og.Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "PAGE_BYTES", 450)
    names = ["a" * 150, "b" * 10, "c" * 10, "d" * 500]
    declared = ", ".join(f"$h{place}: String" for place in range(4))
    source = f"query q({declared}) {{ " + " ".join(f"insert Staff {{ handle: $h{p} }}" for p in range(4)) + " }"
    commit_id = made(graph.mutate(source, params={f"h{place}": name for place, name in enumerate(names)}))
    parts = all_pages(graph, commit_id, limit=10)
    assert [[change.id[0] for change in page.changes] for page in parts] == [["a"], ["b", "c"], ["d"]]


def test_what_commits_did_is_what_became_of_the_graph(graph: og.Graph) -> None:
    graph.create_branch("b")
    call(graph, "drop_staff", "ada", branch="b")
    call(graph, "put_link", "eve", 1, "ben", branch="b")
    call(graph, "relevel", "ben", 1, branch="b")
    commits = graph.commits("b")[-2::-1]
    state: Any = {}
    for commit in commits:
        page = graph.commit_changes(commit.id)
        assert page.commit == commit
        state = applied(state, page.changes)
    assert state == content(graph, "b")


@pytest.mark.row("CHG-32")
def test_a_commit_whose_parent_was_cleaned_up(graph: og.Graph, row: list[str]) -> None:
    commit_id = made(call(graph, "put", "eve", 1))
    call(graph, "put", "fay", 1)
    reclaim(graph)
    with pytest.raises(ChangeFeedGap) as caught:
        og.open(graph.uri).commit_changes(commit_id)
    assert (caught.value.cursor, caught.value.first_unreadable_commit) == (None, commit_id)


def reclaim(graph: og.Graph) -> None:
    """Remove all older versions of the manifest."""
    lance.dataset(f"{graph.uri}/__manifest").cleanup_old_versions(older_than=timedelta(0))


def test_a_commit_of_a_deleted_branch_can_not_be_told(graph: og.Graph) -> None:
    graph.create_branch("b")
    commit_id = made(call(graph, "put", "eve", 1, branch="b"))
    graph.delete_branch("b")
    with pytest.raises((ChangeFeedGap, CommitNotFound)):
        og.open(graph.uri).commit_changes(commit_id)


def test_changes_are_small_frozen_values(graph: og.Graph) -> None:
    (change,) = graph.commit_changes(made(call(graph, "put", "eve", 1))).changes
    assert isinstance(change, Change)
    with pytest.raises(AttributeError):
        change.op = "delete"  # type: ignore[misc]  # refused: frozen


@pytest.mark.row("CHG-14", "CHG-19")
def test_loads_and_empty_loads(graph: og.Graph, row: list[str]) -> None:
    loaded = graph.load([{"type": "Staff", "data": {"handle": "eve", "level": 1}}]).commit
    assert loaded == graph.head()
    assert told(graph.commit_changes(loaded.id).changes) == [("insert", "node:Staff", "eve")]
    empty = graph.load([]).commit
    assert empty == graph.head()
    assert empty != loaded
    page = graph.commit_changes(empty.id)
    assert (list(page.changes), page.commit) == ([], empty)


def test_an_overwriting_load_tells_what_really_changed(graph: og.Graph) -> None:
    rows = [{"type": "Staff", "data": {"handle": name, "level": level}} for name, level in STAFF_NOW.items()]
    commit = graph.load([*rows, {"type": "Staff", "data": {"handle": "eve", "level": 1}}], mode="overwrite").commit
    assert told(graph.commit_changes(commit.id, types="Staff").changes) == [
        ("update", "node:Staff", "ben"),
        ("insert", "node:Staff", "eve"),
    ]
    merged = graph.load(rows, mode="merge").commit
    assert list(graph.commit_changes(merged.id).changes) == []


#: FX-ORG with one other level.
STAFF_NOW = {"ada": 30, "ben": 26, "cleo": 35, "dov": 28}
