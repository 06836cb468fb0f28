"""Section 15: changes across schema changes; section 14: names of then and now."""

from __future__ import annotations

from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.errors import ChangeSchemaBoundary, NotFound
from tests.changes.applying import told

PERSON = "node Person { key: String @key age: I32? }"
PUT = "query put($k: String) { insert Person { key: $k, age: 7 } }"


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    graph = og.init(tmp_path / "g", PERSON)
    graph.mutate(PUT, params={"k": "ann"})
    graph.mutate(PUT, params={"k": "bob"})
    return graph


def boundary(graph: og.Graph) -> ChangeSchemaBoundary:
    """The boundary that the newest commit is."""
    with pytest.raises(ChangeSchemaBoundary) as caught:
        graph.commit_changes(graph.head().id)
    assert caught.value.commit == graph.head().id
    return caught.value


@pytest.mark.row("CHG-13")
@pytest.mark.parametrize("hard", [False, True])
def test_a_type_dropped_and_declared_anew(graph: og.Graph, row: list[str], hard: bool) -> None:
    before = graph.snapshot()
    graph.apply_schema("node Other { key: String @key }", allow_data_loss=hard)
    graph.apply_schema(f"{PERSON} node Other {{ key: String @key }}")
    graph.mutate(PUT, params={"k": "ann"})
    if hard:
        with pytest.raises(og.errors.HistoricalVersionReclaimed):
            og.open(graph.uri).diff(before)
        return
    expected = [
        ("delete", "node:Person", "ann"),
        ("delete", "node:Person", "bob"),
        ("insert", "node:Person", "ann"),
    ]
    changes = list(graph.diff(before).changes)
    assert told(changes) == expected
    assert changes[0].type_id != changes[2].type_id
    assert told(graph.diff(graph.head(), before).changes) == [
        ("insert", "node:Person", "ann"),
        ("insert", "node:Person", "bob"),
        ("delete", "node:Person", "ann"),
    ]


@pytest.mark.row("CHG-13")
def test_a_type_of_edges_that_is_on_one_side_only(graph: og.Graph, row: list[str]) -> None:
    before = graph.snapshot()
    graph.apply_schema(f"{PERSON} edge Knows: Person -> Person {{ since: I32? }} edge Trusts: Person -> Person")
    graph.load(
        b'{"edge":"Knows","from":"ann","to":"bob","data":{"id":"k","since":1990}}\n'
        b'{"edge":"Trusts","from":"bob","to":"ann","data":{"id":"t"}}\n',
        mode="append",
    )
    added = list(graph.diff(before).changes)
    assert told(added) == [("insert", "edge:Knows", "k"), ("insert", "edge:Trusts", "t")]
    assert [(change.after, change.endpoints) for change in added] == [
        ({"since": 1990}, ("ann", "bob")),
        ({}, ("bob", "ann")),
    ]
    gone = list(graph.diff(graph.head(), before).changes)
    assert told(gone) == [("delete", "edge:Knows", "k"), ("delete", "edge:Trusts", "t")]
    assert [(change.before, change.endpoints) for change in gone] == [
        ({"since": 1990}, ("ann", "bob")),
        ({}, ("bob", "ann")),
    ]


@pytest.mark.row("CHG-19")
def test_renames_and_compaction_are_empty_blocks(graph: og.Graph, row: list[str]) -> None:
    cursor = graph.changes().cursor
    graph.apply_schema('node Human @rename_from("Person") { key: String @key years: I32? @rename_from("age") }')
    graph.optimize()
    page = graph.changes(cursor=cursor)
    assert page.blocks
    assert [list(block.changes) for block in page.blocks] == [[] for _ in page.blocks]
    for commit in graph.commits()[: len(page.blocks)]:
        assert list(graph.commit_changes(commit.id).changes) == []


@pytest.mark.row("CHG-21")
def test_what_is_a_boundary(graph: og.Graph, row: list[str]) -> None:
    wider = "node Person { key: String @key age: I32? nick: String? }"
    graph.apply_schema(wider)
    assert boundary(graph).type_name == "Person"
    graph.apply_schema(f"{wider} node Empty {{ key: String @key }}")
    assert list(graph.commit_changes(graph.head().id).changes) == []
    graph.apply_schema(wider)
    assert list(graph.commit_changes(graph.head().id).changes) == []
    graph.apply_schema("node Other { key: String @key }")
    assert boundary(graph).type_name == "Person"
    graph.apply_schema("node Other { key: String @key word: String? }")
    assert boundary(graph).type_name == "Other"
    graph.apply_schema("node Other { key: String @key }", allow_data_loss=True)
    assert boundary(graph).type_name == "Other"


def test_a_type_dropped_for_good_is_a_boundary(graph: og.Graph) -> None:
    graph.apply_schema("node Other { key: String @key }", allow_data_loss=True)
    assert boundary(graph).type_name == "Person"


def test_boundaries_of_other_types_do_not_matter(graph: og.Graph) -> None:
    graph.apply_schema(f"{PERSON} node Other {{ key: String @key }}")
    graph.apply_schema(f"{PERSON} node Other {{ key: String @key word: String? }}")
    assert list(graph.commit_changes(graph.head().id, types="Person").changes) == []
    with pytest.raises(ChangeSchemaBoundary):
        graph.commit_changes(graph.head().id, types="Other")


def test_a_feed_stops_at_a_boundary_and_goes_on_behind_it(graph: og.Graph) -> None:
    cursor = graph.changes().cursor
    graph.mutate(PUT, params={"k": "cid"})
    graph.apply_schema("node Person { key: String @key age: I32? nick: String? }")
    crossed = graph.head()
    graph.mutate(PUT, params={"k": "dot"})
    page = graph.changes(cursor=cursor)
    assert [[change.id for change in block.changes] for block in page.blocks] == [["cid"]]
    assert page.caught_up is False
    with pytest.raises(ChangeSchemaBoundary) as caught:
        graph.changes(cursor=page.cursor)
    assert (caught.value.commit, caught.value.type_name) == (crossed.id, "Person")
    page = graph.changes(start=f"after:{crossed.id}")
    assert [[change.id for change in block.changes] for block in page.blocks] == [["dot"]]
    baseline = graph.baseline()
    assert graph.changes(cursor=baseline.cursor).caught_up


def test_a_difference_across_a_new_property(graph: og.Graph) -> None:
    before = graph.snapshot()
    graph.apply_schema("node Person { key: String @key age: I32? nick: String? }")
    assert list(graph.diff(before).changes) == []
    graph.mutate('query q() { update Person set { nick: "b" } where key = "bob" }')
    (change,) = graph.diff(before).changes
    assert change.before == {"key": "bob", "age": 7}
    assert change.after == {"key": "bob", "age": 7, "nick": "b"}
    (back,) = graph.diff(graph.head(), before).changes
    assert (back.before, back.after) == (change.after, change.before)


def test_an_edge_type_that_one_side_does_not_have(graph: og.Graph) -> None:
    graph.create_branch("wider")
    graph.apply_schema(f"{PERSON} edge Knows: Person -> Person {{ since: I32? }}", branch="wider")
    graph.mutate('query q() { insert Knows { from: "ann", to: "bob", since: 3 } }', branch="wider")
    (there,) = graph.diff("main", "wider").changes
    assert (there.op, there.type, there.after) == ("insert", "Knows", {"since": 3})
    assert there.endpoints is not None
    assert (there.endpoints.src, there.endpoints.dst) == ("ann", "bob")
    (gone,) = graph.diff("wider", "main").changes
    assert (gone.op, gone.before, gone.after, gone.endpoints) == ("delete", {"since": 3}, None, there.endpoints)
    assert [len(list(graph.compare(*sides).changes)) for sides in (("main", "wider"), ("wider", "main"))] == [1, 1]
    # The commit of a merge that brings the type tells its rows too.
    start = graph.changes(start="now").cursor
    graph.mutate(PUT, params={"k": "cleo"})
    merged = graph.merge("wider").commit
    assert merged is not None
    assert told(graph.commit_changes(merged.id).changes) == [("insert", "edge:Knows", there.id)]
    blocks = graph.changes(cursor=start).blocks
    assert [told(block.changes) for block in blocks][1:] == [[("insert", "edge:Knows", there.id)]]


@pytest.mark.row("CHG-34")
def test_the_id_of_a_type_survives_a_rename(graph: og.Graph, row: list[str]) -> None:
    old = graph.commit_changes(graph.head().id).changes[0]
    before = graph.snapshot()
    graph.apply_schema('node Human @rename_from("Person") { key: String @key age: I32? }')
    graph.mutate('query q() { insert Human { key: "cid" } }')
    new = graph.commit_changes(graph.head().id).changes[0]
    assert (old.type, new.type) == ("Person", "Human")
    assert old.type_id == new.type_id
    assert told(graph.diff(before).changes) == [("insert", "node:Human", "cid")]
    for name in ("Human", "Person"):
        assert len(graph.diff(before, types=name).changes) == 1


@pytest.mark.row("TT-14")
def test_a_renamed_type_and_its_successor(graph: og.Graph, row: list[str]) -> None:
    before = graph.head().id
    graph.apply_schema('node Human @rename_from("Person") { key: String @key age: I32? }')
    graph.apply_schema("node Human { key: String @key age: I32? } " + PERSON)
    graph.mutate(PUT, params={"k": "new"})
    everyone = "query q() { match { $x: %s } return { $x.key } order { $x.key asc } }"
    assert [row["x.key"] for row in graph.query(everyone % "Human", snapshot=before).rows] == ["ann", "bob"]
    with pytest.raises(NotFound, match="does not exist at this snapshot"):
        graph.query(everyone % "Person", snapshot=before)
    assert [row["x.key"] for row in graph.query(everyone % "Person").rows] == ["new"]


def test_a_filter_knows_a_type_by_the_name_it_has_today(graph: og.Graph) -> None:
    first = graph.head()
    graph.apply_schema('node Human @rename_from("Person") { key: String @key age: I32? }')
    graph.mutate('query q() { insert Human { key: "cid" } }')
    assert [change.id for change in graph.commit_changes(first.id, types="Human")] == ["bob"]
    assert [change.id for change in graph.diff(first.parent, first.id, types="node:Human")] == ["bob"]
    page = graph.changes(start="beginning", types="Human")
    assert [[change.id for change in block.changes] for block in page.blocks] == [["ann"], ["bob"], [], ["cid"]]


@pytest.mark.parametrize(
    "schema", ['node Human @rename_from("Person") { key: String @key age: I32? } node Other { k: String @key }', None]
)
def test_a_filter_whose_type_got_another_name_or_went_skips_nothing(tmp_path: Path, schema: str | None) -> None:
    graph = og.init(tmp_path / "g", f"{PERSON} node Other {{ k: String @key }}")
    cursor = graph.changes(types=["Person", "Other"]).cursor
    if schema is not None:
        graph.mutate(PUT, params={"k": "cid"})
    graph.apply_schema(schema or "node Other { k: String @key }")
    changed = graph.head()
    graph.mutate('query q() { insert Other { k: "o" } }')
    later = graph.head()
    page = graph.changes(cursor=cursor, types=["Person", "Other"])
    assert page.blocks[-1].commit == changed, "the change itself is told, with nothing in it"
    assert page.caught_up is False
    for _ in range(2):
        with pytest.raises(ChangeSchemaBoundary, match="no type 'Person' any more") as caught:
            graph.changes(cursor=page.cursor, types=["Person", "Other"])
        assert (caught.value.commit, caught.value.type_name) == (later.id, "Person")
    today = "Human" if schema else "Other"
    page = graph.changes(start=f"after:{changed.id}", types=["Other", today])
    assert [[change.id for change in block.changes] for block in page.blocks] == [["o"]]
