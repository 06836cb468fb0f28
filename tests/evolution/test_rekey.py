"""A key for a type that has rows: ids are made from it, edges follow, and both sides of a merge agree."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.errors import MergeConflicts, SchemaChangeRefused, ValidationError

BEFORE = """
node Person { name: String age: I32 }
node Team { code: String @key }
edge Knows: Person -> Person { since: I32? }
edge MemberOf: Person -> Team { @key(src, dst) }
edge Leads: Team -> Person
"""
KEYED = BEFORE.replace("name: String", "name: String @key")
PLACES = ["main", "branch", "shared"]


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    made = og.init(tmp_path / "graph", BEFORE)
    fill(made)
    return made


def fill(graph: og.Graph, branch: str | None = None) -> None:
    people = [
        {"type": "Person", "data": {"id": f"old-{name}", "name": name, "age": 7}} for name in ("ada", "ben", "cy")
    ]
    graph.load([*people, {"type": "Team", "data": {"code": "core"}}], branch=branch)
    ends = [("Knows", "old-ada", "old-ben"), ("Knows", "old-cy", "old-cy"), ("MemberOf", "old-ben", "core")]
    edges: list[dict[str, Any]] = [{"edge": kind, "from": start, "to": end} for kind, start, end in ends]
    graph.load([*edges, {"edge": "Leads", "from": "core", "to": "old-ada"}], branch=branch)
    graph.ensure_indices(branch)


def edges(graph: og.Graph, name: str, branch: str | None = None) -> list[tuple[str, str]]:
    rows = graph.snapshot(branch).open(f"edge:{name}").read(["src", "dst"]).to_pylist()
    return sorted((row["src"], row["dst"]) for row in rows)


def ids(graph: og.Graph, type_key: str, branch: str | None = None) -> list[str]:
    found: list[str] = graph.snapshot(branch).open(type_key).read(["id"])["id"].to_pylist()
    return sorted(found)


def expect_keyed(graph: og.Graph, branch: str | None = None) -> None:
    assert ids(graph, "node:Person", branch) == ["ada", "ben", "cy"]
    assert edges(graph, "Knows", branch) == [("ada", "ben"), ("cy", "cy")]
    assert edges(graph, "MemberOf", branch) == [("ben", "core")]
    assert edges(graph, "Leads", branch) == [("core", "ada")]
    assert ids(graph, "edge:MemberOf", branch) == ['["ben","core"]']


@pytest.mark.parametrize("place", PLACES)
def test_ids_are_made_from_the_new_key_and_edges_follow(tmp_path: Path, place: str) -> None:
    graph = og.init(tmp_path / "graph", BEFORE)
    branch = None if place == "main" else "b"
    if place == "branch":
        graph.create_branch("b")
    fill(graph, "b" if place == "branch" else None)
    if place == "shared":
        graph.create_branch("b")
    knows = ids(graph, "edge:Knows", branch)
    applied = graph.apply_schema(KEYED, branch=branch)
    assert [str(step) for step in applied.plan.steps] == [
        "add constraint on node 'Person': @key(name)",
        "make the ids of node 'Person' from @key(name)",
    ]
    expect_keyed(graph, branch)
    assert ids(graph, "edge:Knows", branch) == knows, "an edge without a key is still the same edge"
    graph.mutate(
        'query w() { insert Person { name: "ben", age: 9 } insert Knows { from: "ada", to: "cy" } }', branch=branch
    )
    assert graph.entity("node", "Person", "ben", branch=branch)["age"] == 9  # type: ignore[index]
    assert ids(graph, "node:Person", branch) == ["ada", "ben", "cy"], "an insert replaces the row with its key"
    graph.ensure_indices(branch)
    text = 'query q() { match { $p: Person { name: "ada" } $p knows $q } return { $q.name } order { $q.name } }'
    assert [row["q.name"] for row in graph.query(text, branch=branch).to_dicts()] == ["ben", "cy"]
    graph.optimize(branch)
    if place == "shared":
        assert ids(graph, "node:Person") == ["old-ada", "old-ben", "old-cy"]
    assert graph.verify(deep=True).ok


def test_older_snapshots_keep_their_ids(graph: og.Graph) -> None:
    head = graph.head().id
    graph.apply_schema(KEYED)
    assert graph.entity("node", "Person", "old-ada", snapshot=head)["name"] == "ada"  # type: ignore[index]
    text = "query q() { match { $p: Person $p knows $q } return { $p.name, $q.name } order { $p.name } }"
    assert graph.query(text, snapshot=head).to_dicts() == graph.query(text).to_dicts()


def test_a_key_of_a_backfilled_property(graph: og.Graph) -> None:
    wanted = BEFORE.replace("name: String", "name: String slug: String @key")
    graph.apply_schema(wanted, backfill={"Person.slug": 'concat("p-", name)'})
    assert ids(graph, "node:Person") == ["p-ada", "p-ben", "p-cy"]
    assert edges(graph, "Leads") == [("core", "p-ada")]
    assert graph.verify(deep=True).ok


def test_a_composite_key_of_wider_numbers(graph: og.Graph) -> None:
    wanted = BEFORE.replace("age: I32", "age: F64 @key(name, age)")
    graph.apply_schema(wanted)
    assert ids(graph, "node:Person")[0] == '["7","ada"]'
    assert edges(graph, "MemberOf") == [('["7","ben"]', "core")]


def test_an_edge_gets_a_key(graph: og.Graph) -> None:
    graph.apply_schema(BEFORE.replace("since: I32?", "since: I32? @key(src, dst)"))
    assert ids(graph, "edge:Knows") == ['["old-ada","old-ben"]', '["old-cy","old-cy"]']
    graph.mutate('query w() { insert Knows { from: "old-ada", to: "old-ben", since: 3 } }')
    assert len(ids(graph, "edge:Knows")) == 2


def test_a_float_key_gets_the_digits_of_its_wider_type(tmp_path: Path) -> None:
    before = "node T { x: F32 @key } edge E: T -> T"
    graph = og.init(tmp_path / "graph", before)
    graph.load(
        [{"type": "T", "data": {"x": 0.1}}, {"type": "T", "data": {"x": 2.0}}, {"edge": "E", "from": "0.1", "to": "2"}]
    )
    applied = graph.apply_schema(before.replace("F32", "F64"))
    assert [step.kind for step in applied.plan.steps] == ["widen", "rekey"]
    assert ids(graph, "node:T") == ["0.10000000149011612", "2"]
    assert edges(graph, "E") == [("0.10000000149011612", "2")]
    assert graph.verify(deep=True).ok


@pytest.mark.parametrize(
    ("old", "new"), [("I32", "I64"), ("U32", "U64"), ("U32", "I64"), ("I32", "F64"), ("I64", "String")]
)
def test_other_wider_keys_keep_their_ids(tmp_path: Path, old: str, new: str) -> None:
    before = f"node T {{ x: {old} @key }} edge E: T -> T"
    graph = og.init(tmp_path / "graph", before)
    graph.load([{"type": "T", "data": {"x": 2147483647}}, {"edge": "E", "from": "2147483647", "to": "2147483647"}])
    applied = graph.apply_schema(before.replace(old, new))
    assert [step.kind for step in applied.plan.steps] == ["widen"]
    assert ids(graph, "node:T") == ["2147483647"]
    value = '"2147483647"' if new == "String" else "2147483647"
    graph.mutate(f"query w() {{ insert T {{ x: {value} }} }}")
    assert ids(graph, "node:T") == ["2147483647"]
    found = graph.query(f"query q() {{ match {{ $t: T {{ x: {value} }} $t e $u }} return {{ $u.x }} }}").to_dicts()
    assert len(found) == 1
    assert graph.verify(deep=True).ok


# --- refused ----------------------------------------------------------------------------------------------------------


def test_rows_with_one_key_are_refused(graph: og.Graph) -> None:
    graph.mutate('query w() { insert Person { name: "ada", age: 1 } }')
    plan = graph.plan_schema(KEYED)
    assert [step.code for step in plan.refusals] == ["OG-MF-107"]
    head = graph.head()
    with pytest.raises(ValidationError) as broken:
        graph.apply_schema(KEYED)
    assert broken.value.kind == "key"
    assert "@key violation on Person.name: 'ada' belongs to '" in broken.value.message
    assert graph.head() == head
    assert edges(graph, "Leads") == [("core", "old-ada")]


@pytest.mark.parametrize(
    ("before", "after"),
    [("name: String @key", "name: String"), ("name: String @key age: I32", "name: String age: I32 @key")],
)
def test_a_key_is_neither_taken_away_nor_exchanged(tmp_path: Path, before: str, after: str) -> None:
    graph = og.init(tmp_path / "graph", f"node T {{ {before} }}")
    with pytest.raises(SchemaChangeRefused, match="OG-MF-101"):
        graph.apply_schema(f"node T {{ {after} }}")


# --- branches ---------------------------------------------------------------------------------------------------------


def test_a_key_is_merged_when_the_target_has_left_the_type_alone(graph: og.Graph) -> None:
    graph.create_branch("b")
    graph.apply_schema(KEYED, branch="b")
    graph.mutate('query w() { insert Team { code: "new" } }')
    assert graph.merge("b").outcome == "merged"
    expect_keyed(graph)
    assert graph.verify(deep=True).ok


def test_a_target_that_has_written_applies_the_schema_first(graph: og.Graph) -> None:
    graph.create_branch("b")
    graph.apply_schema(KEYED, branch="b")
    graph.mutate('query w() { insert Person { name: "eve", age: 1 } }', branch="b")
    graph.mutate('query w() { insert Person { name: "dov", age: 1 } }')
    with pytest.raises(MergeConflicts, match="apply the same schema to both, then merge"):
        graph.merge("b")
    graph.apply_schema(KEYED)
    assert graph.merge("b").outcome == "merged"
    assert ids(graph, "node:Person") == ["ada", "ben", "cy", "dov", "eve"]
    assert edges(graph, "MemberOf") == [("ben", "core")]
    assert graph.verify(deep=True).ok


def test_reverted(graph: og.Graph) -> None:
    applied = graph.apply_schema(KEYED)
    assert applied.commit is not None
    graph.mutate('query w() { insert Team { code: "new" } }')
    assert graph.revert(applied.commit.id).outcome == "merged"
    assert ids(graph, "node:Person") == ["old-ada", "old-ben", "old-cy"]
    assert edges(graph, "Leads") == [("core", "old-ada")]
    assert graph.verify(deep=True).ok
