"""Merges and what is left of history: cleanup, schema changes, other stores."""

from __future__ import annotations

import pyarrow as pa
import pytest

import omnigraph as og
from omnigraph.commit.context import CommitContext
from omnigraph.graph.lifecycle import connect
from omnigraph.storage.root import Root
from omnigraph.storage.tables.location import Location
from tests.commit.org import insert
from tests.merge.graphs import LOAD, SCHEMA, do, everything, ids, named, shown, write


@pytest.mark.row("MRG-77")
@pytest.mark.parametrize("diverged", [False, True], ids=["fast-forward", "three-way"])
def test_history_that_was_cleaned_up(graph: og.Graph, diverged: bool, row: list[str]) -> None:
    """The states are compared, not what happened in between."""
    for number in range(4):
        do(graph, "feature", "put", f"f{number}", number)
        do(graph, "feature", "relevel", "ada", 31 + number)
    do(graph, "feature", "drop", "f0")
    if diverged:
        for number in range(4):
            do(graph, "main", "put", f"m{number}", number)
    graph.cleanup(keep=1)
    result = graph.merge("feature")
    assert result.outcome == ("merged" if diverged else "fast_forward")
    assert len(ids(graph, "node:Staff")) == 4 + 3 + 4 * diverged
    assert {row["id"]: row["level"] for row in everything(graph)["node:Staff"]}["ada"] == 34


def test_a_base_that_was_cleaned_up(graph: og.Graph) -> None:
    """Main goes on for long after a merge; the base of the next one lies on feature and stays, as does its outcome."""
    do(graph, "feature", "put", "eli", 22)
    graph.merge("feature")
    for number in range(4):
        do(graph, "main", "relevel", "ben", number)
        do(graph, "feature", "relevel", "ada", number)
    graph.cleanup(keep=1)
    assert graph.merge("feature").outcome == "merged"
    assert shown(graph) == "5/1/3/yes"


def test_of_three_bases_the_latest_that_touched_an_entity_counts(graph: og.Graph) -> None:
    """Three commits are best common ancestors. The latest has not touched ada, the other two have, each in its own way."""
    for name in ("a", "b", "c", "x", "y"):
        graph.create_branch(name)
    do(graph, "b", "relevel", "ada", 1)
    do(graph, "c", "relevel", "ada", 2)
    do(graph, "a", "relevel", "ben", 9)
    for into, order in (("x", "acb"), ("y", "abc")):
        for source in order:
            graph.merge(source, into=into, strategy="ours")
    # x has what c says and y what b says. c is the base of ada, so x has left her alone and y has changed her.
    assert graph.merge("x", into="y").outcome == "merged"
    assert {row["id"]: row["level"] for row in everything(graph, "y")["node:Staff"]}["ada"] == 1


@pytest.mark.row("MRG-73")
@pytest.mark.parametrize("diverged", [False, True], ids=["fast-forward", "three-way"])
def test_rows_are_checked_again(tmp_path: object, diverged: bool, row: list[str]) -> None:
    """A row that came past the evaluator does not come past a merge."""
    graph = og.init(f"{tmp_path}/g", "node P { name: String @key t: F64? @range(t, -40.0..60.0) }")
    write(graph, "main", 'insert P { name: "x", t: 1.0 }')
    graph.create_branch("feature")
    context: CommitContext = connect(graph.uri)
    schema = context.tables.open(*_entry(context)).schema
    wrong = pa.table({"id": ["a", "b"], "name": ["a", "b"], "t": [-50.0, 5.0]}, schema=schema)
    insert(context, {"node:P": wrong}, branch="feature")
    if diverged:
        write(graph, "main", 'insert P { name: "y", t: 1.0 }')
    with pytest.raises(og.errors.MergeConflicts, match="@range violation") as raised:
        graph.merge("feature", strategy="theirs")
    assert named(raised.value.conflicts) == [("ValueConstraintViolation", "node:P", "a")]
    assert ids(graph, "node:P") == (["x", "y"] if diverged else ["x"])


def _entry(context: CommitContext) -> tuple[Location, int]:
    entry = context.manifest.load().by_key["node:P"]
    return entry.location, entry.version


def test_a_commit_from_before_a_schema_change(tmp_path: object) -> None:
    graph = og.init(f"{tmp_path}/g", "node P { name: String @key a: I32? }")
    changed = write(graph, "main", 'insert P { name: "x", a: 1 }').commit
    assert changed is not None
    graph.apply_schema("node P { name: String @key a: I32? b: I32? }")
    widened = graph.head().id
    assert graph.revert(changed.id).outcome == "merged"
    assert ids(graph, "node:P") == []
    assert graph.revert(widened).outcome == "merged"
    assert graph.schema() == "node P { name: String @key a: I32? }"


def test_a_schema_change_elsewhere_is_no_boundary(tmp_path: object) -> None:
    graph = og.init(f"{tmp_path}/g", "node P { name: String @key a: I32? } node Old { k: String @key }")
    changed = write(graph, "main", 'insert P { name: "x", a: 1 }').commit
    assert changed is not None
    graph.apply_schema("node P { name: String @key a: I32? } node New { k: String @key }", allow_data_loss=True)
    assert graph.revert(changed.id).outcome == "merged"
    assert ids(graph, "node:P") == []


def test_a_commit_from_before_a_rename(tmp_path: object) -> None:
    graph = og.init(f"{tmp_path}/g", "node P { name: String @key a: I32? }")
    changed = write(graph, "main", 'insert P { name: "x", a: 1 }', 'insert P { name: "y", a: 2 }').commit
    gone = write(graph, "main", 'delete P where name = "y"').commit
    assert changed is not None
    assert gone is not None
    graph.apply_schema('node Q @rename_from("P") { name: String @key b: I32? @rename_from("a") }')
    assert graph.revert(gone.id).outcome == "merged"
    assert everything(graph)["node:Q"] == [{"id": "x", "name": "x", "b": 1}, {"id": "y", "name": "y", "b": 2}]
    graph.revert(changed.id)
    assert ids(graph, "node:Q") == []


def test_branches_after_a_schema_change(tmp_path: object) -> None:
    graph = og.init(f"{tmp_path}/g", "node P { name: String @key a: I32? }")
    write(graph, "main", 'insert P { name: "x", a: 1 }')
    graph.apply_schema("node P { name: String @key a: I32? b: I32? } node R { k: String @key }")
    graph.create_branch("feature")
    write(graph, "feature", 'update P set { b: 2 } where name = "x"', 'insert R { k: "r" }')
    write(graph, "main", 'insert P { name: "y", b: 3 }')
    assert graph.merge("feature").outcome == "merged"
    assert [(row["id"], row["b"]) for row in everything(graph)["node:P"]] == [("x", 2), ("y", 3)]
    assert ids(graph, "node:R") == ["r"]


def test_every_kind_of_store(shared_root: Root) -> None:
    graph = og.init(shared_root.uri, SCHEMA, storage_options=shared_root.storage_options)
    graph.mutate(LOAD)
    graph.create_branch("feature")
    graph.create_branch("other")
    do(graph, "feature", "put", "eli", 22)
    do(graph, "feature", "relevel", "ada", 31)
    do(graph, "feature", "drop", "dov")
    do(graph, "main", "link", "ada", "ben")
    assert graph.merge("feature").outcome == "merged"
    assert graph.merge("feature", into="other").outcome == "fast_forward"
    assert (shown(graph), shown(graph, "other")) == ("4/2/31/yes", "4/1/31/yes")
    assert graph.revert(graph.head().id).outcome == "merged"
    assert shown(graph) == "4/2/30/no"


@pytest.mark.parametrize("later", ["edge Later: P -> P", "edge Knows: P -> P { w: I32? }"])
def test_conflicts_of_types_that_were_not_so_then_have_ours_as_their_image(tmp_path: object, later: str) -> None:
    graph = og.init(f"{tmp_path}/g", "node P { name: String @key }\nedge Knows: P -> P")
    commit = write(graph, "main", 'insert P { name: "x" }').commit
    assert commit is not None
    known = "" if later.startswith("edge Knows") else "edge Knows: P -> P\n"
    graph.apply_schema(f"node P {{ name: String @key }}\n{known}{later}")
    edge = later.split(":")[0].split()[1]
    write(graph, "main", f'insert {edge} {{ from: "x", to: "x" }}')
    (conflict,) = graph.revert(commit.id, dry_run=True, images=True).conflicts
    assert (conflict.kind, conflict.type_key, conflict.base, conflict.theirs) == (
        "OrphanEdge",
        f"edge:{edge}",
        None,
        None,
    )
    assert conflict.ours is not None
    assert (conflict.ours["src"], conflict.ours["dst"]) == ("x", "x")


def test_a_decision_about_a_type_that_was_not_there_is_refused(tmp_path: object) -> None:
    graph = og.init(f"{tmp_path}/g", "node P { name: String @key }")
    commit = write(graph, "main", 'insert P { name: "x" }').commit
    assert commit is not None
    graph.apply_schema("node P { name: String @key }\nedge Later: P -> P")
    write(graph, "main", 'insert Later { from: "x", to: "x" }')
    (edge,) = ids(graph, "edge:Later")
    decision = {"type_key": "edge:Later", "id": edge, "take": "base"}
    with pytest.raises(og.errors.BadRequest, match="edge:Later exists on one side only"):
        graph.revert(commit.id, resolutions=[decision])
    with pytest.raises(og.errors.MergeConflicts):
        graph.revert(commit.id, resolutions=[{**decision, "take": "ours"}])


@pytest.mark.parametrize(
    "schema",
    [
        "node P { name: String @key a: I32? @index }",
        'node P { name: String @key b: I32? @rename_from("a") }',
        "node P { name: String @key a: I32? }\nnode Q { name: String @key }",
    ],
)
def test_a_schema_change_is_taken_back(tmp_path: object, schema: str) -> None:
    first = "node P { name: String @key a: I32? }"
    graph = og.init(f"{tmp_path}/g", first)
    write(graph, "main", 'insert P { name: "x", a: 1 }')
    graph.apply_schema(schema)
    assert graph.revert(graph.head().id).outcome == "merged"
    assert graph.schema() == first
    assert everything(graph) == {"node:P": [{"id": "x", "name": "x", "a": 1}]}
