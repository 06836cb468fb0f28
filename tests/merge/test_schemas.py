"""Branches whose schemas differ become one: schema and data in one commit, and conflicts where they do not go together."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph import failpoints
from omnigraph.errors import MergeConflicts
from tests.commit.healthy import assert_open_is_idle
from tests.merge.graphs import everything

BASE = """
node Person { name: String @key age: I32? city: String? }
node Team { slug: String @key }
edge Knows: Person -> Person
edge In: Person -> Team { since: I32? @key(src, dst) }
"""
WIDER = BASE.replace("city: String?", "city: String? nick: String? level: I32? @default(5)")
NO_CITY = BASE.replace("city: String?", "")
NO_TEAM = BASE.replace("node Team { slug: String @key }", "").replace(
    "edge In: Person -> Team { since: I32? @key(src, dst) }", ""
)
HUMAN = BASE.replace("node Person", 'node Human @rename_from("Person")').replace("Person ->", "Human ->")
HUMAN = HUMAN.replace("-> Person", "-> Human")
MORE = BASE + "node Place { slug: String @key name: String? } edge Lives: Person -> Place { since: I32? }"
ROWS = """insert Person { name: "a", age: 1 } insert Person { name: "b", age: 2, city: "x" } insert Person { name: "c" }
insert Team { slug: "t" } insert Knows { from: "a", to: "b" } insert In { from: "a", to: "t", since: 3 }"""


def write(graph: og.Graph, branch: str, statements: str) -> None:
    graph.mutate(f"query w() {{ {statements} }}", branch=branch)


@pytest.fixture
def graph(tmp_path: Path) -> Iterator[og.Graph]:
    """A graph with rows and a branch `feature`; whatever a test did, it is whole and nothing waits to be settled."""
    made = og.init(tmp_path / "graph", BASE)
    write(made, "main", ROWS)
    made.create_branch("feature")
    yield made
    assert og.open(made.uri).verify(deep=True).ok
    assert_open_is_idle(og.open(made.uri)._context)


def people(graph: og.Graph, branch: str = "main", key: str = "node:Person") -> dict[str, dict[str, Any]]:
    rows = everything(graph, branch)[key]
    return {row["id"]: {name: value for name, value in row.items() if name not in ("id", "name")} for row in rows}


def conflicts(graph: og.Graph, **asked: Any) -> list[tuple[str, str]]:
    with pytest.raises(MergeConflicts) as raised:
        graph.merge("feature", **asked)
    return [(found.kind, found.type_key) for found in raised.value.conflicts]


def kinds(result: og.MergeResult) -> list[str]:
    return [step["kind"] for step in result.stats.get("schema", [])]


# --- one side, or both ------------------------------------------------------------------------------------------------


def test_a_wider_schema_comes_with_its_rows(graph: og.Graph) -> None:
    graph.apply_schema(WIDER, branch="feature")
    write(graph, "feature", 'insert Person { name: "d", nick: "dd" } update Person set { nick: "aa" } where name = "a"')
    write(graph, "main", 'update Person set { age: 77 } where name = "b" insert Person { name: "e" }')
    foreseen = graph.merge("feature", dry_run=True)
    assert kinds(foreseen) == ["add_property", "add_property"]
    assert graph.schema() == BASE
    result = graph.merge("feature")
    assert (result.outcome, kinds(result)) == ("merged", ["add_property", "add_property"])
    assert graph.schema() == WIDER
    assert people(graph) == {
        "a": {"age": 1, "city": None, "level": 5, "nick": "aa"},
        "b": {"age": 77, "city": "x", "level": 5, "nick": None},
        "c": {"age": None, "city": None, "level": 5, "nick": None},
        "d": {"age": None, "city": None, "level": 5, "nick": "dd"},
        "e": {"age": None, "city": None, "level": 5, "nick": None},
    }
    assert graph.merge("feature").outcome == "already_up_to_date"
    assert og.open(graph.uri).schema() == WIDER


def test_ours_is_wider(graph: og.Graph) -> None:
    write(graph, "feature", 'insert Person { name: "d" } update Person set { age: 9 } where name = "a"')
    graph.apply_schema(WIDER)
    assert kinds(graph.merge("feature")) == []
    assert people(graph)["d"] == {"age": None, "city": None, "level": 5, "nick": None}
    assert people(graph)["a"]["age"] == 9


def test_a_fast_forward_changes_the_schema(graph: og.Graph) -> None:
    graph.apply_schema(MORE, branch="feature")
    write(graph, "feature", 'insert Place { slug: "p", name: "P" } insert Lives { from: "a", to: "p" }')
    result = graph.merge("feature")
    assert (result.outcome, kinds(result)) == ("fast_forward", ["add_type", "add_type"])
    assert [row["id"] for row in everything(graph)["node:Place"]] == ["p"]
    assert len(everything(graph)["edge:Lives"]) == 1
    # Both go on writing to their own table, and meet again.
    write(graph, "feature", 'insert Place { slug: "q" }')
    write(graph, "main", 'insert Place { slug: "r" } update Place set { name: "R" } where slug = "p"')
    assert graph.merge("feature").outcome == "merged"
    assert [row["id"] for row in everything(graph)["node:Place"]] == ["p", "q", "r"]
    assert graph.merge("main", into="feature").outcome == "fast_forward"
    assert everything(graph, "feature") == everything(graph)


def test_both_added_alike(graph: og.Graph) -> None:
    for branch in ("main", "feature"):
        graph.apply_schema(MORE.replace("city: String?", "city: String? nick: String?"), branch=branch)
    write(graph, "main", 'insert Place { slug: "p", name: "P" } update Person set { nick: "m" } where name = "a"')
    write(graph, "feature", 'insert Place { slug: "p", name: "P" } insert Place { slug: "q" }')
    write(graph, "feature", 'update Person set { nick: "f" } where name = "b" insert Lives { from: "b", to: "q" }')
    assert kinds(graph.merge("feature")) == []
    assert [row["id"] for row in everything(graph)["node:Place"]] == ["p", "q"]
    assert {key: row["nick"] for key, row in people(graph).items()} == {"a": "m", "b": "f", "c": None}
    write(
        graph,
        "feature",
        'update Place set { name: "Q" } where slug = "q" update Person set { nick: "g" } where name = "b"',
    )
    assert graph.merge("feature").stats["updated"] == 2
    assert people(graph)["b"]["nick"] == "g"
    assert graph.merge("main", into="feature").outcome == "fast_forward"
    assert everything(graph, "feature") == everything(graph)
    graph.delete_branch("feature")
    graph.cleanup(keep=1)
    assert [row["id"] for row in everything(graph)["node:Place"]] == ["p", "q"]


def test_rows_that_both_added_differently_conflict(graph: og.Graph) -> None:
    for branch, name in (("main", "M"), ("feature", "F")):
        graph.apply_schema(MORE, branch=branch)
        write(graph, branch, f'insert Place {{ slug: "p", name: "{name}" }}')
    assert conflicts(graph) == [("DivergentInsert", "node:Place")]
    graph.merge("feature", resolutions=[{"type_key": "node:Place", "id": "p", "take": "theirs"}])
    assert everything(graph)["node:Place"] == [{"id": "p", "name": "F", "slug": "p"}]


def test_renames_follow_identity(graph: og.Graph) -> None:
    graph.apply_schema(HUMAN, branch="feature")
    write(graph, "feature", 'insert Human { name: "d" }')
    graph.apply_schema(WIDER.replace("age: I32?", 'years: I32? @rename_from("age")'))
    write(
        graph, "main", 'update Person set { years: 8, nick: "n" } where name = "c" insert Knows { from: "c", to: "a" }'
    )
    assert kinds(graph.merge("feature")) == ["rename_type"]
    found = people(graph, key="node:Human")
    assert found["c"] == {"years": 8, "city": None, "level": 5, "nick": "n"}
    assert found["d"] == {"years": None, "city": None, "level": 5, "nick": None}
    assert len(everything(graph)["edge:Knows"]) == 2


def test_a_drop_is_taken_and_spares_what_nobody_wrote(graph: og.Graph) -> None:
    graph.apply_schema(NO_TEAM.replace("city: String?", ""), branch="feature")
    write(graph, "main", 'update Person set { age: 5 } where name = "a"')
    result = graph.merge("feature")
    assert kinds(result) == ["drop_property", "drop_type", "drop_type"]
    assert people(graph) == {"a": {"age": 5}, "b": {"age": 2}, "c": {"age": None}}
    assert "node:Team" not in everything(graph)


# --- conflicts --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dropper", ["main", "feature"])
@pytest.mark.parametrize(
    ("schema", "statement", "about"),
    [
        (NO_CITY, 'update Person set { city: "y" } where name = "a"', "node:Person"),
        (NO_CITY, 'insert Person { name: "n", city: "y" }', "node:Person"),
        (NO_TEAM, 'insert Team { slug: "u" }', "node:Team"),
    ],
)
def test_a_drop_against_new_data(graph: og.Graph, dropper: str, schema: str, statement: str, about: str) -> None:
    other = "feature" if dropper == "main" else "main"
    graph.apply_schema(schema, branch=dropper)
    write(graph, other, statement)
    dropped, kept = ("ours", "theirs") if dropper == "main" else ("theirs", "ours")
    assert ("SchemaConflict", about) in conflicts(graph)
    foreseen = graph.merge("feature", strategy=dropped, dry_run=True)
    assert not foreseen.conflicts
    result = graph.merge("feature", strategy=kept)
    assert [decision.conflict for decision in result.decided][:1] == ["SchemaConflict"]
    if schema == NO_CITY:
        # Values that nobody touched come back too.
        assert people(graph)["b"]["city"] == "x"
    else:
        assert "u" in [row["id"] for row in everything(graph)["node:Team"]]


def test_values_that_are_deleted_are_no_new_data(graph: og.Graph) -> None:
    graph.apply_schema(NO_CITY)
    write(graph, "feature", 'insert Person { name: "n", age: 3 }')
    graph.mutate('query w() { delete Person where name = "b" }', branch="feature")
    assert graph.merge("feature").outcome == "merged"
    assert sorted(people(graph)) == ["a", "c", "n"]


def test_different_declarations_are_shown_and_decided(graph: og.Graph) -> None:
    graph.apply_schema(BASE.replace("city: String?", "city: String? code: I64?"))
    graph.apply_schema(BASE.replace("city: String?", "city: String? code: String?"), branch="feature")
    write(graph, "main", 'update Person set { code: 1 } where name = "a"')
    write(graph, "feature", 'update Person set { code: "two" } where name = "b"')
    found = graph.merge("feature", dry_run=True)
    assert found.outcome == "conflicts"
    (conflict,) = found.conflicts
    assert (conflict.kind, conflict.type_key) == ("SchemaConflict", "node:Person")
    assert (conflict.ours, conflict.theirs) == ({"declaration": "code: I64?"}, {"declaration": "code: String?"})
    result = graph.merge("feature", strategy="theirs")
    assert {key: row["code"] for key, row in people(graph).items()} == {"a": None, "b": "two", "c": None}
    assert result.decided[0].conflict == "SchemaConflict"


def test_a_text_decides(graph: og.Graph) -> None:
    graph.apply_schema(BASE.replace("city: String?", "code: I64?"))
    graph.apply_schema(BASE.replace("city: String?", "city: String? code: String?"), branch="feature")
    write(graph, "feature", 'update Person set { city: "y" } where name = "a"')
    wanted = BASE.replace("city: String?", "city: String? code: I64? @range(code, 0..9)")
    result = graph.merge("feature", schema=wanted)
    assert graph.schema() == wanted
    assert {key: row["city"] for key, row in people(graph).items()} == {"a": "y", "b": "x", "c": None}
    assert [decision.take for decision in result.decided] == ["value"]


def test_rules_that_a_side_added_hold_for_all_rows(graph: og.Graph) -> None:
    graph.apply_schema(BASE.replace("city: String?", "city: String? @range(age, 0..50)"), branch="feature")
    write(graph, "main", 'update Person set { age: 60 } where name = "b" insert Person { name: "z", age: 70 }')
    assert conflicts(graph) == [("ValueConstraintViolation", "node:Person")] * 2
    write(graph, "main", 'update Person set { age: 6 } where name = "b" update Person set { age: 7 } where name = "z"')
    assert kinds(graph.merge("feature")) == ["add_constraint"]


def test_values_that_the_merge_makes_unique_do_not_clash(graph: og.Graph) -> None:
    write(graph, "main", 'insert Person { name: "d", city: "x" }')
    graph.create_branch("clean")
    write(graph, "clean", 'update Person set { city: "z" } where name = "d"')
    graph.apply_schema(BASE.replace("city: String?", "city: String? @unique"), branch="clean")
    write(graph, "main", 'insert Person { name: "e", city: "w" }')
    assert graph.merge("clean").outcome == "merged"
    write(graph, "feature", 'insert Person { name: "f", city: "w" }')
    assert conflicts(graph) == [("UniqueViolation", "node:Person")]


def test_an_edge_type_to_a_dropped_type(graph: og.Graph) -> None:
    graph.apply_schema(NO_TEAM)
    graph.apply_schema(BASE + "edge Leads: Person -> Team", branch="feature")
    write(graph, "feature", 'insert Leads { from: "a", to: "t" }')
    assert ("SchemaConflict", "edge:Leads") in conflicts(graph)
    graph.merge("feature", strategy="theirs")
    assert [row["id"] for row in everything(graph)["node:Team"]] == ["t"]
    assert len(everything(graph)["edge:Leads"]) == 1


@pytest.mark.parametrize(
    ("ours", "theirs", "declared"),
    [
        (
            BASE.replace("age: I32?", 'years: I32? @rename_from("age")'),
            BASE.replace("city: String?", 'years: String? @rename_from("city")'),
            ('years: I32? @rename_from("age")', 'years: String? @rename_from("city")'),
        ),
        (NO_CITY, BASE.replace("city: String?", "city: String? @unique"), ("node Person", "city: String? @unique")),
        (BASE + "interface Named { a: String }", BASE + "interface Named { b: String }", ("a: String", "b: String")),
    ],
    ids=["one name for two properties", "a rule about what was dropped", "interfaces"],
)
def test_every_conflict_of_schemas_shows_both_declarations(
    graph: og.Graph, ours: str, theirs: str, declared: tuple[str, str]
) -> None:
    graph.apply_schema(ours)
    graph.apply_schema(theirs, branch="feature")
    (found,) = graph.merge("feature", dry_run=True).conflicts
    assert found.kind == "SchemaConflict"
    for side, text in zip((found.ours, found.theirs), declared, strict=True):
        assert side is not None
        assert text in side["declaration"]


def test_a_drop_against_new_data_shows_what_was_dropped(graph: og.Graph) -> None:
    graph.apply_schema(NO_CITY)
    write(graph, "feature", 'update Person set { city: "y" } where name = "a"')
    (found,) = graph.merge("feature", dry_run=True).conflicts
    assert (found.base, found.ours, found.theirs) == (
        {"declaration": "city: String?"},
        None,
        {"declaration": "city: String?"},
    )


def test_nothing_is_written_with_a_conflict(graph: og.Graph) -> None:
    graph.apply_schema(NO_CITY)
    write(graph, "feature", 'update Person set { city: "y" } where name = "a"')
    head = graph.head().id
    conflicts(graph)
    assert graph.head().id == head


def test_a_strategy_takes_nothing_that_the_other_side_does_not_know(graph: og.Graph) -> None:
    graph.apply_schema(WIDER)
    write(graph, "main", 'update Person set { nick: "n", age: 3 } where name = "a"')
    write(graph, "feature", 'update Person set { age: 4, city: "f" } where name = "a"')
    assert conflicts(graph) == [("DivergentUpdate", "node:Person")]
    graph.merge("feature", strategy="theirs")
    assert people(graph)["a"] == {"age": 4, "city": "f", "level": 5, "nick": "n"}


# --- revert and cherry-pick -------------------------------------------------------------------------------------------


def test_taking_back_a_drop_brings_the_data_back(graph: og.Graph) -> None:
    dropped = graph.apply_schema(NO_TEAM.replace("city: String?", "")).commit
    write(graph, "main", 'update Person set { age: 9 } where name = "b" insert Person { name: "d" }')
    assert dropped is not None
    result = graph.revert(dropped.id)
    assert kinds(result) == ["add_type", "add_type", "add_property"]
    assert people(graph)["b"] == {"age": 9, "city": "x"}
    assert people(graph)["d"] == {"age": None, "city": None}
    assert [row["since"] for row in everything(graph)["edge:In"]] == [3]
    write(graph, "main", 'insert Team { slug: "u" } insert In { from: "d", to: "u" }')
    assert len(everything(graph)["edge:In"]) == 2


def test_taking_back_an_addition_minds_what_was_written_since(graph: og.Graph) -> None:
    added = graph.apply_schema(WIDER).commit
    assert added is not None
    write(graph, "main", 'update Person set { nick: "n" } where name = "a"')
    with pytest.raises(MergeConflicts):
        graph.revert(added.id)
    graph.revert(added.id, strategy="theirs")
    assert people(graph)["a"] == {"age": 1, "city": None}


def test_a_schema_commit_is_picked(graph: og.Graph) -> None:
    added = graph.apply_schema(WIDER, branch="feature").commit
    assert added is not None
    write(graph, "feature", 'insert Person { name: "d" }')
    assert kinds(graph.cherry_pick(added.id)) == ["add_property", "add_property"]
    assert sorted(people(graph)) == ["a", "b", "c"]
    assert kinds(graph.merge("feature")) == []
    assert sorted(people(graph)) == ["a", "b", "c", "d"]


# --- rebase -----------------------------------------------------------------------------------------------------------


def test_a_rebase_brings_schema_and_data_up_to_date(graph: og.Graph) -> None:
    graph.apply_schema(WIDER)
    write(graph, "main", 'insert Person { name: "m", nick: "mm" } update Person set { age: 50 } where name = "c"')
    write(graph, "feature", 'insert Person { name: "f" } update Person set { age: 10 } where name = "a"')
    foreseen = graph.rebase("feature", dry_run=True)
    assert (foreseen.outcome, kinds(foreseen)) == ("rebased", ["add_property", "add_property"])
    before = everything(graph)
    result = graph.rebase("feature", idempotency_key="k")
    assert result.commit is not None
    assert (result.outcome, result.commit.kind, result.commit.branch) == ("rebased", "rebase", "feature")
    assert result.commit.merged_parent == graph.head().id
    assert graph.schema("feature") == WIDER
    assert people(graph, "feature")["f"] == {"age": None, "city": None, "level": 5, "nick": None}
    assert people(graph, "feature")["c"]["age"] == 50
    assert everything(graph) == before
    assert graph.rebase("feature", idempotency_key="k").commit == result.commit
    assert graph.rebase("feature").outcome == "already_up_to_date"
    # A merge of the branch now brings its own change and nothing else.
    merged = graph.merge("feature")
    assert merged.outcome == "fast_forward"
    assert (merged.stats["inserted"], merged.stats["updated"]) == (1, 1)
    assert everything(graph) == everything(graph, "feature")


def test_a_rebase_of_a_branch_without_changes(graph: og.Graph) -> None:
    graph.apply_schema(WIDER)
    assert graph.rebase("feature").outcome == "fast_forward"
    assert graph.schema("feature") == WIDER
    assert graph.merge("feature").stats["inserted"] == 0


def test_a_rebase_meets_the_conflicts_of_a_merge(graph: og.Graph) -> None:
    write(graph, "main", 'update Person set { age: 50 } where name = "c"')
    write(graph, "feature", 'update Person set { age: 51 } where name = "c"')
    with pytest.raises(MergeConflicts) as raised:
        graph.rebase("feature")
    (conflict,) = raised.value.conflicts
    assert (*(image and image["age"] for image in (conflict.ours, conflict.theirs, conflict.base)),) == (51, 50, None)
    graph.rebase("feature", strategy="ours")
    assert people(graph, "feature")["c"]["age"] == 51
    assert graph.merge("feature").stats["updated"] == 1


@pytest.mark.parametrize(("branch", "onto"), [("main", "main"), ("feature", "feature"), ("none", "none")])
def test_a_rebase_needs_two_branches(graph: og.Graph, branch: str, onto: str) -> None:
    with pytest.raises(og.errors.BadRequest, match="needs a branch and another one"):
        graph.rebase(branch, onto)
    with pytest.raises(og.errors.BranchNotFound):
        graph.rebase("none", "feature")
    with pytest.raises(og.errors.BranchNotFound):
        graph.rebase("feature", "none")


# --- crashes ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "point",
    [
        "branch_merge.prepared",
        "branch_merge.pre_phase_a",
        "branch_merge.post_phase_a",
        "branch_merge.mid_phase_b",
        "branch_merge.post_confirm",
        "branch_merge.post_phase_b_pre_manifest_commit",
        "branch_merge.post_phase_c",
        "schema_apply.before_promote",
        "schema_apply.mid_promote",
        "schema_apply.after_promote",
        "recovery.sidecar_write",
    ],
)
def test_a_merge_that_fails_is_done_or_undone_as_a_whole(graph: og.Graph, point: str) -> None:
    graph.apply_schema(MORE.replace("city: String?", 'nick: String? @default("k")'), branch="feature")
    write(
        graph,
        "feature",
        'insert Place { slug: "p" } insert Lives { from: "a", to: "p" } update Person set { age: 4 } where name = "a"',
    )
    write(graph, "main", 'insert Person { name: "e" }')
    before = everything(graph)
    with failpoints.armed(point, "error"), suppress(og.errors.OmnigraphError):
        graph.merge("feature")
    opened = og.open(graph.uri)
    if opened.schema() == BASE:
        assert everything(opened) == before
        opened.merge("feature")
    found = everything(opened)
    assert [row["nick"] for row in found["node:Person"]] == ["k"] * 4
    assert [row["id"] for row in found["node:Place"]] == ["p"]
    assert opened.merge("feature").outcome == "already_up_to_date"


# --- types that were widened more than once ---------------------------------------------------------------------------

NUMBERS = "node Item { code: String @key size: TYPE? sizes: [TYPE]? } edge Part: Item -> Item { count: TYPE? }"


@pytest.mark.parametrize("first", ["I32", "U32"])
def test_a_type_that_was_widened_twice(tmp_path: Path, first: str) -> None:
    """Each step is allowed, so both together are: for a merge, an old snapshot, a comparison and the way back."""
    narrow, wide = NUMBERS.replace("TYPE", first), NUMBERS.replace("TYPE", "String")
    graph = og.init(tmp_path / "numbers", narrow)
    write(graph, "main", 'insert Item { code: "a", size: 1, sizes: [1, 2] } insert Item { code: "b" }')
    write(graph, "main", 'insert Part { from: "a", to: "b", count: 3 }')
    before = graph.head().id
    for branch in ("feature", "other"):
        graph.create_branch(branch)
        for schema in (NUMBERS.replace("TYPE", "I64"), wide):
            graph.apply_schema(schema, branch=branch)
    write(graph, "feature", 'insert Item { code: "c", size: "text" }')
    found = graph.diff(before, "feature")
    assert [step.kind for step in found.schema] == ["widen", "widen", "widen"]
    assert [(change.op, change.id) for change in found.changes] == [("insert", "c")]

    assert graph.merge("feature", dry_run=True).outcome == "fast_forward"
    write(graph, "main", 'update Item set { size: 7 } where code = "b"')
    result = graph.merge("feature")
    assert (result.outcome, kinds(result), result.stats["inserted"]) == ("merged", ["widen"] * 3, 1)
    assert [(row["size"], row["sizes"]) for row in everything(graph)["node:Item"]] == [
        ("1", ["1", "2"]),
        ("7", None),
        ("text", None),
    ]
    assert [row["count"] for row in everything(graph)["edge:Part"]] == ["3"]
    seen = graph.query('query q() { match { $i: Item { size: "1" } } return { $i.size } }', snapshot=before)
    assert seen.to_dicts() == [{"i.size": "1"}]
    # A text that is no number stands in the way back; without it the merge is taken back.
    (conflict,) = graph.revert(result.commit.id, dry_run=True).conflicts if result.commit else ()
    assert (conflict.kind, conflict.type_key) == ("SchemaConflict", "node:Item")
    graph.merge("other")
    graph.mutate('query w() { delete Item where code = "c" }')
    assert graph.merge("main", into="other").outcome == "fast_forward"
    assert og.open(graph.uri).verify(deep=True).ok


@pytest.mark.parametrize("first", ["I32", "U32"])
def test_a_merge_that_widened_twice_is_taken_back(tmp_path: Path, first: str) -> None:
    narrow = NUMBERS.replace("TYPE", first)
    graph = og.init(tmp_path / "numbers", narrow)
    write(graph, "main", 'insert Item { code: "a", size: 1, sizes: [1, 2] } insert Item { code: "b" }')
    before = everything(graph)
    graph.create_branch("feature")
    for kind in ("I64", "String"):
        graph.apply_schema(NUMBERS.replace("TYPE", kind), branch="feature")
    merged = graph.merge("feature").commit
    assert merged is not None
    assert kinds(graph.revert(merged.id)) == ["narrow"] * 3
    assert everything(graph) == before
    assert og.open(graph.uri).verify(deep=True).ok


# --- keys -------------------------------------------------------------------------------------------------------------

PLAIN = "node Item { code: String size: I32? } edge Part: Item -> Item"
KEYED = PLAIN.replace("code: String", "code: String @key")


@pytest.fixture
def items(tmp_path: Path) -> Iterator[og.Graph]:
    """A graph with a type without a key, two rows, and a branch `feature`."""
    made = og.init(tmp_path / "items", PLAIN)
    rows = ({"type": "Item", "data": {"id": id_, "code": code}} for id_, code in (("1", "x"), ("2", "y")))
    made.load([*rows, {"edge": "Part", "from": "1", "to": "2"}], mode="append")
    made.create_branch("feature")
    yield made
    assert og.open(made.uri).verify(deep=True).ok


_WRITES = {
    "insert": 'insert Item { code: "new" }',
    "update": 'update Item set { size: 5 } where code = "x"',
    "delete": 'delete Item where code = "x"',
}


@pytest.mark.parametrize("keyed", ["main", "feature"])
@pytest.mark.parametrize("written", _WRITES)
@pytest.mark.parametrize("strategy", [None, "ours", "theirs"])
def test_a_new_key_does_not_go_with_rows_of_the_other_side(
    items: og.Graph, keyed: str, written: str, strategy: str | None
) -> None:
    """Ids are made of the key, so rows that were written without it have other ids than the merged schema asks for."""
    items.apply_schema(KEYED, branch=keyed)
    write(items, "feature" if keyed == "main" else "main", _WRITES[written])
    (found,) = items.merge("feature", strategy=strategy, dry_run=True).conflicts
    assert (found.kind, found.type_key) == ("SchemaConflict", "node:Item")
    assert "apply the same schema to both, then merge" in found.message
    sides = {"main": found.ours, "feature": found.theirs}
    for name, declared in sides.items():
        assert declared is not None
        assert ("@key" in declared["declaration"]) == (name == keyed)


@pytest.mark.parametrize("deleted", ["main", "feature"])
def test_a_row_that_was_deleted_before_both_sides_made_ids_does_not_come_back(items: og.Graph, deleted: str) -> None:
    items.mutate('query w() { delete Part where from = "1" }')
    items.delete_branch("feature")
    items.create_branch("feature")
    write(items, deleted, _WRITES["delete"])
    for branch in ("main", "feature"):
        items.apply_schema(KEYED, branch=branch)
        write(items, branch, f'insert Item {{ code: "{branch}" }}')
    (found,) = items.merge("feature", dry_run=True).conflicts
    assert (found.kind, found.type_key) == ("SchemaConflict", "node:Item")
    assert "'x'" in found.message
    # As the message says.
    write(items, "feature" if deleted == "main" else "main", 'delete Item where code = "x"')
    assert items.merge("feature").outcome == "merged"
    assert [row["id"] for row in everything(items)["node:Item"]] == ["feature", "main", "y"]


@pytest.mark.parametrize("keyed", ["main", "feature"])
def test_a_new_key_goes_with_a_table_that_was_only_compacted(items: og.Graph, keyed: str) -> None:
    for number in range(3):
        write(items, "main", f'insert Item {{ code: "{number}" }}')
    items.delete_branch("feature")
    items.create_branch("feature")
    assert items.optimize().commit is not None
    items.apply_schema(KEYED, branch=keyed)
    write(items, "feature" if keyed == "main" else "main", 'update Item set { size: 5 } where code = "no such"')
    items.merge("feature")
    assert [row["id"] for row in everything(items)["node:Item"]] == ["0", "1", "2", "x", "y"]


@pytest.mark.parametrize("written", [None, "main", "feature"])
def test_a_text_gives_no_key_to_rows_whose_ids_nobody_made(items: og.Graph, written: str | None) -> None:
    write(items, written or "main", _WRITES["insert"])
    for branch in ("main", "feature"):
        items.apply_schema(PLAIN.replace("size: I32?", f"size: I32? {branch}: I32?"), branch=branch)
    wanted = KEYED.replace("size: I32?", "size: I32? main: I32? feature: I32?")
    (found,) = items.merge("feature", schema=wanted, dry_run=True).conflicts
    assert (found.kind, found.type_key) == ("SchemaConflict", "node:Item")


def test_a_commit_of_before_a_key_is_not_taken_back_under_other_ids(items: og.Graph) -> None:
    write(items, "main", _WRITES["insert"])
    inserted = items.head().id
    items.apply_schema(KEYED)
    keyed = items.head().id
    for again in (items.revert, items.cherry_pick):
        (found,) = again(inserted, dry_run=True).conflicts
        assert (found.kind, found.type_key) == ("SchemaConflict", "node:Item")
    write(items, "main", 'insert Item { code: "later" }')
    assert items.revert(keyed, dry_run=True).outcome == "conflicts"
    items.revert(items.head().id)
    # What was written under the key is gone again, so the ids of before are those of all rows.
    assert items.revert(keyed).outcome == "merged"
    assert {row["id"] for row in everything(items)["node:Item"]} >= {"1", "2"}
