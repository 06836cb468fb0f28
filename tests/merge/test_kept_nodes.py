"""Keeping a node keeps its edges, whatever decided that it stays; the result lists what was decided."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from tests.merge.graphs import do, everything, named, pairs, write

SCHEMA = """
node Staff { handle: String @key level: I32? }
node Team { code: String @key size: I32? }
edge Mentors: Staff -> Staff { note: String? }
edge MemberOf: Staff -> Team
"""

LOAD = """query load() {
  insert Staff { handle: "ada", level: 30 } insert Staff { handle: "ben", level: 25 } insert Staff { handle: "cleo", level: 40 }
  insert Team { code: "core" }
  insert Mentors { from: "ada", to: "ben", note: "a" } insert Mentors { from: "ben", to: "cleo", note: "b" }
  insert Mentors { from: "cleo", to: "ada", note: "c" }
  insert MemberOf { from: "ada", to: "core" } insert MemberOf { from: "ben", to: "core" }
}"""


@pytest.fixture
def org(tmp_path: Path) -> og.Graph:
    """Three people who mentor each other in a circle and a team with two members, on main and on feature."""
    graph = og.init(tmp_path / "org", SCHEMA)
    graph.mutate(LOAD)
    graph.create_branch("feature")
    return graph


def edges(graph: og.Graph, branch: str = "main") -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    return sorted(pairs(graph, "Mentors", branch)), sorted(pairs(graph, "MemberOf", branch))


def take(which: Any, entity_id: str = "ada", type_key: str = "node:Staff", **more: Any) -> dict[str, Any]:
    return {"type_key": type_key, "id": entity_id, "take": which, **more}


CIRCLE = [("ada", "ben"), ("ben", "cleo"), ("cleo", "ada")]
MEMBERS = [("ada", "core"), ("ben", "core")]

KEEPING = [
    pytest.param({"strategy": "KEEPS"}, id="strategy"),
    pytest.param({"resolutions": [take("KEEPS")]}, id="resolution"),
    pytest.param({"resolutions": [take("base")]}, id="base"),
    pytest.param({"resolutions": [take("value", value={"level": 1})]}, id="value"),
    pytest.param({"resolutions": [take("KEEPS")], "strategy": "GOES"}, id="against the strategy"),
]


def asked(options: dict[str, Any], keeps: str, goes: str) -> dict[str, Any]:
    """Options with the side that has the node in the place of KEEPS, and the other in that of GOES."""
    names = {"KEEPS": keeps, "GOES": goes}
    found = dict(options)
    if "strategy" in found:
        found["strategy"] = names[found["strategy"]]
    if "resolutions" in found:
        found["resolutions"] = [{**one, "take": names.get(one["take"], one["take"])} for one in found["resolutions"]]
    return found


@pytest.mark.parametrize("options", KEEPING)
@pytest.mark.parametrize("deleted_by", ["theirs", "ours"])
def test_a_kept_node_keeps_its_edges(org: og.Graph, deleted_by: str, options: dict[str, Any]) -> None:
    keeps, goes = ("ours", "theirs") if deleted_by == "theirs" else ("theirs", "ours")
    do(org, "feature" if deleted_by == "theirs" else "main", "drop", "ada")
    do(org, "main" if deleted_by == "theirs" else "feature", "relevel", "ada", 31)
    before = everything(org, "main" if deleted_by == "theirs" else "feature")
    assert named(org.merge("feature", dry_run=True).conflicts) == [("DeleteVsUpdate", "node:Staff", "ada")]
    result = org.merge("feature", **asked(options, keeps, goes))
    assert edges(org) == (CIRCLE, MEMBERS)
    # The very edges, with their ids and properties.
    assert {key: everything(org)[key] for key in ("edge:Mentors", "edge:MemberOf")} == {
        key: before[key] for key in ("edge:Mentors", "edge:MemberOf")
    }
    kept = [decision for decision in result.decided if decision.by == "kept node"]
    assert sorted({decision.type_key for decision in kept}) == ["edge:MemberOf", "edge:Mentors"]
    assert len(kept) == 3
    assert org.merge("feature").outcome == "already_up_to_date"


@pytest.mark.parametrize("deleted_by", ["theirs", "ours"])
@pytest.mark.parametrize("strategy", ["ours", "theirs"])
def test_an_edge_goes_with_its_other_end(org: og.Graph, deleted_by: str, strategy: str) -> None:
    """Of a kept node, the edge to a node that both sides agree to delete is not kept."""
    deletes, updates = ("feature", "main") if deleted_by == "theirs" else ("main", "feature")
    do(org, deletes, "drop", "ada")
    do(org, deletes, "drop", "ben")
    do(org, updates, "relevel", "ada", 31)
    org.merge("feature", strategy=strategy)
    if strategy == deleted_by:
        assert edges(org) == ([], [])
    else:
        assert edges(org) == ([("cleo", "ada")], [("ada", "core")])


def test_an_edge_that_was_decided_otherwise_goes(org: og.Graph) -> None:
    do(org, "feature", "drop", "ada")
    do(org, "main", "relevel", "ada", 31)
    (gone,) = [row["id"] for row in everything(org)["edge:Mentors"] if row["dst"] == "ada"]
    org.merge("feature", strategy="ours", resolutions=[take("theirs", gone, "edge:Mentors")])
    assert edges(org)[0] == [("ada", "ben"), ("ben", "cleo")]


def test_a_node_that_both_sides_deleted_comes_back_with_its_edges(org: og.Graph) -> None:
    """From the base, because a resolution says so."""
    do(org, "feature", "drop", "ada")
    do(org, "feature", "put", "eli", 1)
    do(org, "main", "drop", "ada")
    org.merge("feature", resolutions=[take("base")])
    assert edges(org) == (CIRCLE, MEMBERS)


def test_a_node_without_a_conflict_that_is_kept_keeps_its_edges(org: og.Graph) -> None:
    """Theirs deleted it, ours left it alone; a resolution keeps it."""
    do(org, "feature", "drop", "ada")
    org.merge("feature", resolutions=[take("ours")])
    assert edges(org) == (CIRCLE, MEMBERS)


def test_both_ends_come_back(org: og.Graph) -> None:
    """Ours deleted two nodes that an edge connects, theirs updated both."""
    for name in ("ada", "ben"):
        do(org, "main", "drop", name)
        do(org, "feature", "relevel", name, 1)
    org.merge("feature", strategy="theirs")
    assert edges(org) == (CIRCLE, MEMBERS)


def test_a_kept_edge_that_breaks_a_rule_is_a_conflict(tmp_path: Path) -> None:
    graph = og.init(tmp_path / "g", "node N { k: String @key v: I32? }\nedge E: N -> N @card(0..1)")
    graph.mutate(
        'query q() { insert N { k: "a" } insert N { k: "b" } insert N { k: "c" } insert E { from: "a", to: "b" } }'
    )
    graph.create_branch("feature")
    write(graph, "feature", 'delete N where k = "b"')
    write(graph, "feature", 'insert E { from: "a", to: "c" }')
    write(graph, "main", 'update N set { v: 1 } where k = "b"')
    found = graph.merge("feature", strategy="ours", dry_run=True).conflicts
    assert [(conflict.kind, conflict.type_key) for conflict in found] == [("CardinalityViolation", "edge:E")]


def test_a_revert_that_keeps_a_node_keeps_its_edges(org: og.Graph) -> None:
    """A commit brought a node with its edges; the node was changed since, so taking the commit back meets a conflict."""
    links = ('insert Mentors { from: "eli", to: "ada" }', 'insert MemberOf { from: "eli", to: "core" }')
    brought = write(org, "main", 'insert Staff { handle: "eli", level: 1 }', *links)
    do(org, "main", "relevel", "eli", 2)
    assert brought.commit is not None
    org.revert(brought.commit.id, strategy="ours")
    assert ("eli", "ada") in edges(org)[0]
    assert ("eli", "core") in edges(org)[1]


def test_a_revert_that_brings_a_node_back_brings_its_edges(org: og.Graph) -> None:
    """A commit updated a node that was deleted since; taking the commit back for theirs restores the node."""
    changed = do(org, "main", "relevel", "ada", 31)
    do(org, "main", "drop", "ada")
    assert changed.commit is not None
    org.revert(changed.commit.id, strategy="theirs")
    assert edges(org) == (CIRCLE, MEMBERS)


@pytest.mark.parametrize("strategy", ["ours", "theirs"])
def test_a_cherry_pick_that_keeps_a_node_keeps_its_edges(org: og.Graph, strategy: str) -> None:
    deletes, updates = ("feature", "main") if strategy == "ours" else ("main", "feature")
    dropped = do(org, deletes, "drop", "ada")
    changed = do(org, updates, "relevel", "ada", 31)
    picked = dropped if strategy == "ours" else changed
    assert picked.commit is not None
    org.cherry_pick(picked.commit.id, "main", strategy=strategy)
    assert edges(org) == (CIRCLE, MEMBERS)


# --- what the result says ---------------------------------------------------------------------------------------------


def test_the_result_lists_what_was_decided_and_counts_per_type(org: og.Graph) -> None:
    do(org, "feature", "drop", "ada")
    do(org, "feature", "relevel", "ben", 1)
    do(org, "feature", "put", "eli", 1)
    do(org, "main", "relevel", "ada", 31)
    do(org, "main", "relevel", "ben", 2)
    first = org.merge("feature", strategy="ours", resolutions=[take("theirs", "ben")], idempotency_key="k")
    assert [(one.type_key, one.entity_id, one.take, one.by, one.conflict) for one in first.decided[:2]] == [
        ("node:Staff", "ada", "ours", "strategy", "DeleteVsUpdate"),
        ("node:Staff", "ben", "theirs", "resolution", None),
    ]
    assert first.stats["decided"] == {"ours": 4, "theirs": 1}
    assert first.stats["tables"] == {"node:Staff": {"inserted": 1, "updated": 1, "deleted": 0}}
    assert first.stats["identical"] == 0
    lines = list(first.lines())
    assert lines[:3] == [
        "node:Staff: 1 inserted, 1 updated",
        "decided DeleteVsUpdate node:Staff ada: ours (strategy)",
        "decided node:Staff ben: theirs (resolution)",
    ]
    assert len(lines) == 6
    again = org.merge("feature", strategy="ours", resolutions=[take("theirs", "ben")], idempotency_key="k")
    assert again == first
    assert again.to_dict()["decided"][0]["entity_id"] == "ada"


def test_a_long_list_of_decisions_is_cut(org: og.Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("omnigraph.merge.execute.LISTED_DECISIONS", 1)
    for branch, level in (("feature", 1), ("main", 2)):
        do(org, branch, "relevel", "ada", level)
        do(org, branch, "relevel", "ben", level)
    result = org.merge("feature", strategy="ours")
    assert (len(result.decided), result.stats["decided"]) == (1, {"ours": 2})
    assert list(result.lines())[-1] == "decided: and 1 more"


def test_what_was_combined_against_a_clash_is_decided(tmp_path: Path) -> None:
    graph = og.init(tmp_path / "g", "node N { k: String @key a: I32? b: I32? }")
    graph.mutate('query q() { insert N { k: "x" } insert N { k: "y" } }')
    graph.create_branch("feature")
    write(graph, "feature", 'update N set { a: 1, b: 1 } where k = "x"', 'update N set { a: 1 } where k = "y"')
    write(graph, "main", 'update N set { a: 2 } where k = "x"', 'update N set { b: 2 } where k = "y"')
    result = graph.merge("feature", strategy="ours", property_level=True)
    assert [(one.entity_id, one.conflict) for one in result.decided] == [("x", "DivergentUpdate")]
