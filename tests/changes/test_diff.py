"""Section 15: the difference of any two read targets."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import omnigraph as og
from omnigraph.changes.model import Change, Endpoints, Op
from omnigraph.errors import BadRequest, BranchNotFound, CommitNotFound, HistoricalVersionReclaimed
from omnigraph.storage.tables.location import Location
from omnigraph.storage.tables.table import Table
from tests.changes.applying import applied, content, told
from tests.mutation.org_graph import call, org_graph


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    return org_graph(tmp_path / "g")


@pytest.mark.row("CHG-02")
def test_an_insert(graph: og.Graph, row: list[str]) -> None:
    before = graph.snapshot()
    call(graph, "put", "eve", 7)
    (change,) = graph.diff(before).changes
    assert (change.op, change.kind, change.type, change.id) == ("insert", "node", "Staff", "eve")
    assert (change.before, change.after, change.endpoints) == (None, {"handle": "eve", "level": 7}, None)


@pytest.mark.row("CHG-04")
def test_a_delete_takes_its_edges_along(graph: og.Graph, row: list[str]) -> None:
    before = graph.head().id
    edges = content(graph)
    call(graph, "drop_staff", "ada")
    changes = list(graph.diff(before).changes)
    gone = sorted((key, id_) for key, id_ in edges if edges[key, id_].get("src") == "ada")
    assert told(changes) == [("delete", "node:Staff", "ada"), *(("delete", key, id_) for key, id_ in gone)]
    assert [change.endpoints for change in changes[1:]] == [
        Endpoints(edges[key]["src"], edges[key]["dst"]) for key in gone
    ]
    assert changes[0].before == {"handle": "ada", "level": 30}


@pytest.mark.row("CHG-05")
def test_an_edge_has_its_endpoints(graph: og.Graph, row: list[str]) -> None:
    before = graph.head()
    call(graph, "link", "ben", "cleo")
    (change,) = graph.diff(before).changes
    assert (change.op, change.type_key) == ("insert", "edge:Mentors")
    assert change.endpoints == ("ben", "cleo")
    assert change.after == {"began": None}
    assert change.to_dict()["after"]["endpoints"] == {"from": "ben", "to": "cleo"}


@pytest.mark.row("CHG-06")
def test_filters(graph: og.Graph, row: list[str]) -> None:
    before = graph.head().id
    call(graph, "put_link", "eve", 1, "ada")
    call(graph, "relevel", "ben", 99)
    call(graph, "drop_staff", "dov")
    every = told(graph.diff(before).changes)
    assert {op for op, _, _ in every} == {"insert", "update", "delete"}
    for kinds in (None, "node", ["edge"], ["node", "edge"], []):
        for types in (None, "Staff", ["Mentors", "Team"], "edge:Mentors", "node:Staff"):
            for ops in (None, "insert", ["update", "delete"]):
                expected = [
                    change
                    for change in every
                    if (not kinds or change[1].partition(":")[0] in kinds)
                    and (
                        types is None
                        or {change[1], change[1].partition(":")[2]} & ({types} if isinstance(types, str) else {*types})
                    )
                    and (ops is None or change[0] in ops)
                ]
                assert told(graph.diff(before, kinds=kinds, types=types, ops=ops).changes) == expected


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"types": "Stafff"}, "unknown type 'Stafff'"),
        ({"kinds": "vertex"}, "'vertex' is no kind"),
        ({"ops": ["insert", "upsert"]}, "'upsert' is no op"),
        ({"ops": [7]}, "7 is no op"),
        ({"types": 7}, "7 is no type of change"),
    ],
)
def test_filters_that_mean_nothing(graph: og.Graph, options: Any, message: str) -> None:
    with pytest.raises(BadRequest, match=message):
        graph.diff("main", "main", **options)


@pytest.mark.parametrize(
    ("target", "error"),
    [
        ("nowhere", BranchNotFound),
        ("", BranchNotFound),
        ("x" * 500, BranchNotFound),
        ("../..", BranchNotFound),
        ("01J00000000000000000000009", CommitNotFound),
        (99999, CommitNotFound),
        ("manifest:gone:v1", BranchNotFound),
    ],
)
def test_targets_that_are_not_there(graph: og.Graph, target: Any, error: type[Exception]) -> None:
    for pair in ((target, "main"), ("main", target)):
        with pytest.raises(error):
            graph.diff(*pair)


@pytest.mark.row("CHG-08")
def test_commits_of_different_branches_from_any_handle(graph: og.Graph, row: list[str]) -> None:
    graph.create_branch("feature")
    one = call(graph, "put", "eve", 1, branch="feature").commit
    two = call(graph, "drop_staff", "dov").commit
    assert one is not None
    assert two is not None
    answers = [
        [told(handle.diff(one.id, two.id, ops=ops).changes) for ops in (None, "insert", "delete")]
        for handle in (graph, graph.at("feature"), og.open(graph.uri, mode="ro"))
    ]
    assert answers[0] == answers[1] == answers[2]
    assert ("delete", "node:Staff", "eve") in answers[0][0]
    assert ("delete", "node:Staff", "dov") in answers[0][0]
    assert answers[0][1] == []
    assert {op for op, _, _ in answers[0][2]} == {"delete"}


@pytest.mark.row("CHG-09")
def test_the_same_value_on_both_branches_is_no_difference(graph: og.Graph, row: list[str]) -> None:
    graph.create_branch("feature")
    for branch in ("main", "feature"):
        call(graph, "relevel", "ben", 99, branch=branch)
    difference = graph.diff("main", "feature")
    assert list(difference.changes) == []
    assert difference.stats.to_dict()["updates"] == 0
    assert not difference.changes


@pytest.mark.row("CHG-10")
def test_null_and_empty_are_different(tmp_path: Path, row: list[str]) -> None:
    graph = og.init(tmp_path / "g", "node Note { key: String @key text: String? tags: [String]? }")
    graph.mutate('query q() { insert Note { key: "a" } insert Note { key: "b", tags: ["a, b"] } }')
    graph.create_branch("feature")
    graph.mutate('query q() { update Note set { text: "" } where key = "a" }', branch="feature")
    graph.mutate('query q() { update Note set { tags: ["a", "b"] } where key = "b" }', branch="feature")
    one, two = graph.diff("main", "feature").changes
    assert one.before is not None
    assert one.after is not None
    assert (one.op, one.before["text"], one.after["text"]) == ("update", None, "")
    assert two.before is not None
    assert two.after is not None
    assert (two.before["tags"], two.after["tags"]) == (["a, b"], ["a", "b"])


def test_every_kind_of_target(graph: og.Graph) -> None:
    start, commit = graph.snapshot(), graph.head()
    graph.tag("v1")
    call(graph, "put", "eve", 1)
    graph.create_branch("b")
    call(graph, "put", "fay", 1, branch="b")
    expected = [("insert", "node:Staff", "eve"), ("insert", "node:Staff", "fay")]
    for target in (start, commit, commit.id, start.id, start.version, str(start.version), "v1"):
        assert told(graph.diff(target, "b").changes) == expected
        assert told(graph.at("b").diff(target).changes) == expected
        assert told(graph.diff(target).changes) == expected[:1]


def test_values_are_rendered_as_in_exports(tmp_path: Path) -> None:
    graph = og.init(tmp_path / "g", "node T { key: String @key d: Date? t: DateTime? b: Blob? v: Vector(2)? f: F64? }")
    before = graph.head()
    graph.mutate(
        'query q($b: Blob) { insert T { key: "a", d: date("2024-01-02"), t: datetime("2024-01-02T03:04:05Z"), '
        "b: $b, v: [1.0, 2.0], f: 0.5 } }",
        params={"b": "base64:AQID"},
    )
    (change,) = graph.diff(before).changes
    assert change.after == {
        "key": "a",
        "d": "2024-01-02",
        "t": "2024-01-02T03:04:05.000Z",
        "b": "base64:AQID",
        "v": [1.0, 2.0],
        "f": 0.5,
    }


def test_indexes_and_equal_rewrites_are_no_difference(graph: og.Graph) -> None:
    before = graph.head()
    graph.ensure_indices()
    call(graph, "relevel", "ben", 25)
    assert graph.head() != before
    assert list(graph.diff(before).changes) == []


def test_identical_tables_are_not_opened(graph: og.Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    before = graph.head()
    call(graph, "hire", "cleo", "core")
    opened = []
    tables = graph._context.tables
    original = tables.open

    def counted(location: Location, version: int) -> Table:
        opened.append(location.path)
        return original(location, version)

    monkeypatch.setattr(tables, "open", counted)
    assert told(graph.diff(before).changes)[0][:2] == ("insert", "edge:MemberOf")
    assert {path.partition("/")[0] for path in opened} == {"edges"}
    assert len(set(opened)) == 1


def test_a_difference_is_read_while_it_is_iterated(graph: og.Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("omnigraph.changes.delta.BATCH_ROWS", 1)
    before = graph.head()
    for number in range(5):
        call(graph, "put", f"x{number}", number)
    difference = graph.diff(before)
    first = next(iter(difference.changes))
    assert first.id == "x0"
    assert difference.changes[-1].id == "x4"
    assert len(difference) == 5
    assert difference.stats.to_dict() == {"inserts": 5, "updates": 0, "deletes": 0, "types": ("node:Staff",)}
    assert difference.to_dict()["changes"][0]["type"]["name"] == "Staff"


def test_a_branch_that_is_gone(graph: og.Graph) -> None:
    graph.create_branch("b")
    call(graph, "put", "eve", 1, branch="b")
    snapshot = graph.snapshot("b")
    graph.delete_branch("b")
    fresh = og.open(graph.uri)
    with pytest.raises(HistoricalVersionReclaimed):
        fresh.diff("main", snapshot)


# --- laws -------------------------------------------------------------------------------------------------------------

NAMES = ["ada", "ben", "cleo", "eve", "zoë"]
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.sampled_from(NAMES), st.integers(0, 3)),
        st.tuples(st.just("relevel"), st.sampled_from(NAMES), st.integers(0, 3)),
        st.tuples(st.just("drop_staff"), st.sampled_from(NAMES)),
        st.tuples(st.just("unlink"), st.sampled_from(NAMES)),
        st.tuples(st.just("link"), st.sampled_from(NAMES), st.sampled_from(NAMES)),
    ),
    max_size=4,
)


def inverse(change: Change) -> Change:
    inverses: dict[Op, Op] = {"insert": "delete", "delete": "insert", "update": "update"}
    op = inverses[change.op]
    ends = (change.endpoints, change.endpoints_before)
    after = {"insert": (None, ends[0]), "delete": (ends[0], None), "update": (ends[1], ends[0])}[change.op]
    endpoints = after[0] if op != "delete" else ends[0]
    return Change(
        op, change.kind, change.type, change.id, change.after, change.before, endpoints, change.type_id, after[1]
    )


@settings(max_examples=25, deadline=None)
@given(on_main=STEPS, on_branch=STEPS)
def test_a_difference_applied_gives_the_other_side(on_main: Any, on_branch: Any) -> None:
    with tempfile.TemporaryDirectory() as folder:
        graph = org_graph(Path(folder) / "g")
        graph.create_branch("b")
        for branch, steps in (("main", on_main), ("b", on_branch)):
            for name, *values in steps:
                try:
                    call(graph, name, *values, branch=branch)
                except og.OmnigraphError:
                    continue
        forward, back = list(graph.diff("main", "b").changes), list(graph.diff("b", "main").changes)
        one, two = content(graph, "main"), content(graph, "b")
        assert applied(one, forward) == two
        assert applied(two, back) == one
        assert [inverse(change) for change in forward] == back
        order = [(change.kind != "node", change.type, change.id.encode()) for change in forward]
        assert order == sorted(order)
