"""What differs between two schemas: by identity, and by name what two branches have added apart."""

from __future__ import annotations

from pathlib import Path

import pytest

import omnigraph as og

BASE = "node Person { name: String @key  age: I32? }\nedge Knows: Person -> Person\n"
RIVER = BASE + "node River { name: String @key }\n"


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    made = og.init(tmp_path / "g.omni", BASE)
    made.load([{"type": "Person", "data": {"name": "ada", "age": 1}}])
    made.create_branch("b")
    return made


def told(found: object) -> list[str]:
    return [str(step) for step in found.schema]  # type: ignore[attr-defined]


def test_equal_schemas_have_no_steps(graph: og.Graph) -> None:
    graph.mutate('update Person set { age: 2 } where name = "ada"', branch="b")
    for found in (graph.compare("main", "b"), graph.diff("main", "b")):
        assert told(found) == []
        assert "schema" not in found.to_dict()


def test_schema_changes_come_before_data_changes(graph: og.Graph) -> None:
    changed = RIVER.replace("age: I32?", "age: I64?  email: String? @unique")
    graph.apply_schema(changed, branch="b")
    graph.mutate('insert Person { name: "ben", email: "b@x" }', branch="b")
    steps = [
        "add node type 'River'",
        "add property 'Person.email' (String?)",
        "widen property 'Person.age' from I32 to I64",
        "add constraint on node 'Person': @unique(email)",
    ]
    for found in (graph.compare("main", "b"), graph.diff("main", "b")):
        assert told(found) == steps
        told_first = list(found.to_dict())
        assert told_first.index("schema") < told_first.index("changes")
        assert [step["text"] for step in found.to_dict()["schema"]] == steps
        assert found.to_dict()["schema"][0]["kind"] == "add_type"
        assert [change.id for change in found.changes] == ["ben"]
    back = told(graph.compare("b", "main"))
    assert back[0] == "narrow property 'Person.age' from I64 to I32"
    assert back[-1].startswith("drop node type 'River'")
    assert any(text.startswith("drop property 'Person.email'") for text in back)


def test_a_rename_is_told_as_one(graph: og.Graph) -> None:
    renamed = BASE.replace("age: I32?", 'years: I32? @rename_from("age")')
    graph.apply_schema(renamed, branch="b")
    assert told(graph.compare("main", "b")) == ["rename property 'Person.age' -> 'Person.years'"]


def test_what_both_have_added_alike_does_not_differ(graph: og.Graph) -> None:
    graph.apply_schema(RIVER, branch="b")
    graph.apply_schema(RIVER)
    assert told(graph.compare("main", "b")) == []


def test_of_what_both_have_added_the_difference_is_told(graph: og.Graph) -> None:
    graph.apply_schema(RIVER, branch="b")
    graph.apply_schema(RIVER.replace("River { name: String @key", "River { name: String @key  long: F64?"))
    assert told(graph.compare("b", "main")) == ["add property 'River.long' (F64?)"]


def test_commits_and_tags_have_the_schema_of_their_time(graph: og.Graph) -> None:
    graph.tag("old", graph.head().id)
    graph.apply_schema(RIVER)
    assert told(graph.compare("old", "main")) == ["add node type 'River'"]
    assert told(graph.diff(graph.commits()[-1].id, "main")) == ["add node type 'River'"]


def test_filters_hold_for_schema_changes_and_later_pages_do_not_repeat_them(graph: og.Graph) -> None:
    graph.apply_schema(RIVER.replace("age: I32?", "age: I32?  email: String?"), branch="b")
    graph.mutate('insert Person { name: "ben" } insert Person { name: "cleo" }', branch="b")
    assert told(graph.compare("main", "b", types="River")) == ["add node type 'River'"]
    assert told(graph.diff("main", "b", types="node:Person")) == ["add property 'Person.email' (String?)"]
    assert told(graph.compare("main", "b", kinds="edge")) == []
    first = graph.compare("main", "b", limit=1)
    assert len(told(first)) == 2
    assert told(graph.compare("main", "b", limit=1, page_token=first.next_page_token)) == []
