"""Merges as their callers see them: what conflicts, what survives, what the commit says. The rows MRG-50 and later."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from tests.merge.graphs import do, everything, ids, named, pairs, rows, shown, write


def new_graph(path: Path, schema: str, *statements: str) -> og.Graph:
    """A graph with some rows and a branch `feature`."""
    graph = og.init(path / "g", schema)
    if statements:
        write(graph, "main", *statements)
    graph.create_branch("feature")
    return graph


def conflicts_of(graph: og.Graph, source: str = "feature", into: str = "main", **options: Any) -> list[Any]:
    """Merge, which must conflict and change nothing."""
    before, head = everything(graph, into), graph.head(into)
    with pytest.raises(og.errors.MergeConflicts) as raised:
        graph.merge(source, into=into, **options)
    assert (everything(graph, into), graph.head(into)) == (before, head)
    return named(raised.value.conflicts)


# --- changes on both sides --------------------------------------------------------------------------------------------


@pytest.mark.row("MRG-50")
def test_the_same_change_on_both_sides_is_no_conflict(graph: og.Graph, row: list[str]) -> None:
    do(graph, "feature", "relevel", "ada", 31)
    do(graph, "main", "relevel", "ada", 31)
    version = graph.snapshot().entry("node:Staff").version
    result = graph.merge("feature")
    assert (result.outcome, shown(graph)) == ("merged", "4/1/31/no")
    assert result.stats["identical"] == 1
    assert graph.snapshot().entry("node:Staff").version == version


def test_the_same_insert_on_both_sides_is_no_conflict(graph: og.Graph) -> None:
    for branch in ("feature", "main"):
        do(graph, branch, "put", "eli", 22)
        do(graph, branch, "drop", "dov")
    assert graph.merge("feature").outcome == "merged"
    assert shown(graph) == "4/1/30/yes"


def test_all_conflicts_are_reported_together_in_order(graph: og.Graph) -> None:
    for branch, level in (("feature", 1), ("main", 2)):
        do(graph, branch, "relevel", "ada", level)
        do(graph, branch, "put", "eli", level)
    do(graph, "feature", "drop", "dov")
    do(graph, "main", "relevel", "dov", 7)
    do(graph, "feature", "link", "cleo", "ben")
    do(graph, "main", "drop", "cleo")
    found = conflicts_of(graph)
    assert found[:3] == [
        ("DivergentUpdate", "node:Staff", "ada"),
        ("DeleteVsUpdate", "node:Staff", "dov"),
        ("DivergentInsert", "node:Staff", "eli"),
    ]
    assert [(kind, key) for kind, key, _ in found[3:]] == [("OrphanEdge", "edge:Mentors")]


def test_a_node_in_conflict_makes_no_orphans(graph: og.Graph) -> None:
    """Whether the node stays is open, so only its own conflict is told."""
    do(graph, "main", "drop", "ada")
    do(graph, "feature", "relevel", "ada", 31)
    do(graph, "feature", "link", "ada", "cleo")
    assert conflicts_of(graph) == [("DeleteVsUpdate", "node:Staff", "ada")]
    assert graph.merge("feature", strategy="theirs").outcome == "merged"
    assert shown(graph) == "4/2/31/no"


def test_an_edge_in_conflict_is_no_orphan_in_either_direction(tmp_path: Path) -> None:
    """One side updates an edge, the other deletes its node: the edge is deleted on one side, and that is the conflict."""
    schema = "node N { k: String @key }\nedge E: N -> N { w: I32? @key(src, dst) }"
    edge = 'insert E { from: "a", to: "b", w: 1 }'
    graph = new_graph(tmp_path, schema, 'insert N { k: "a" }', 'insert N { k: "b" }', edge)
    write(graph, "main", 'delete N where k = "a"')
    write(graph, "feature", 'insert E { from: "a", to: "b", w: 2 }')
    expected = [("DeleteVsUpdate", "edge:E", '["a","b"]')]
    assert conflicts_of(graph, "main", "feature") == conflicts_of(graph, "feature", "main") == expected
    for strategy, kind in (("ours", []), ("theirs", ["OrphanEdge"])):
        foreseen = graph.merge("feature", strategy=strategy, dry_run=True)
        assert [conflict.kind for conflict in foreseen.conflicts] == kind


def test_an_edge_that_lacks_both_ends_is_one_conflict(graph: og.Graph) -> None:
    do(graph, "feature", "link", "ada", "dov")
    do(graph, "main", "drop", "ada")
    do(graph, "main", "drop", "dov")
    (found,) = conflicts_of(graph)
    assert found[:2] == ("OrphanEdge", "edge:Mentors")


@pytest.mark.row("MRG-56")
def test_an_orphan_when_main_is_merged_into_a_branch(graph: og.Graph, row: list[str]) -> None:
    do(graph, "main", "link", "ada", "dov")
    do(graph, "feature", "drop", "dov")
    (found,) = conflicts_of(graph, "main", "feature")
    assert found[:2] == ("OrphanEdge", "edge:Mentors")


# --- broken rules -----------------------------------------------------------------------------------------------------

UNIQUE = "node U { name: String @key mail: String? @unique(mail) }"


@pytest.mark.row("MRG-53")
def test_a_unique_value_on_both_sides(tmp_path: Path, row: list[str]) -> None:
    graph = new_graph(tmp_path, UNIQUE)
    write(graph, "main", 'insert U { name: "bob", mail: "m" }')
    write(graph, "feature", 'insert U { name: "carol", mail: "m" }')
    assert conflicts_of(graph) == [("UniqueViolation", "node:U", "carol")]
    assert conflicts_of(graph, "main", "feature") == [("UniqueViolation", "node:U", "carol")]
    for strategy in ("ours", "theirs"):
        assert conflicts_of(graph, strategy=strategy) == [("UniqueViolation", "node:U", "carol")]


@pytest.mark.parametrize("many", [0, 20_001], ids=["few values", "many values"])
@pytest.mark.parametrize("zeros", [(0.0, -0.0), (-0.0, 0.0)])
def test_both_zeros_are_one_unique_value(tmp_path: Path, zeros: tuple[float, float], many: int) -> None:
    """However many values are looked up."""
    graph = new_graph(tmp_path, "node U { name: String @key size: F64? @unique(size) }")
    graph.load([{"type": "U", "data": {"name": "bob", "size": zeros[0]}}])
    rows = [{"type": "U", "data": {"name": f"u{n}", "size": float(n)}} for n in range(1, many)]
    graph.load([*rows, {"type": "U", "data": {"name": "carol", "size": zeros[1]}}], branch="feature", mode="append")
    assert conflicts_of(graph) == [("UniqueViolation", "node:U", "carol")]


def test_a_unique_value_that_moved_on(tmp_path: Path) -> None:
    graph = new_graph(tmp_path, UNIQUE, 'insert U { name: "ann", mail: "m" }', 'insert U { name: "bob", mail: "b" }')
    write(graph, "main", 'update U set { mail: "x" } where name = "ann"')
    write(graph, "main", 'update U set { mail: "m" } where name = "bob"')
    write(graph, "feature", 'insert U { name: "cy", mail: "c" }')
    assert graph.merge("feature").outcome == "merged"
    assert {row["id"]: row["mail"] for row in rows(graph, "node:U")} == {"ann": "x", "bob": "m", "cy": "c"}


def test_the_merge_looks_at_the_merged_image(tmp_path: Path) -> None:
    graph = new_graph(tmp_path, UNIQUE, 'insert U { name: "ann", mail: "m" }')
    write(graph, "main", 'update U set { mail: "x" } where name = "ann"')
    write(graph, "feature", 'delete U where name = "ann"')
    write(graph, "feature", 'insert U { name: "bob", mail: "m" }')
    assert conflicts_of(graph) == [("DeleteVsUpdate", "node:U", "ann")]
    assert graph.merge("feature", strategy="ours").outcome == "merged"
    assert {row["id"]: row["mail"] for row in rows(graph, "node:U")} == {"ann": "x", "bob": "m"}


@pytest.mark.row("VAL-14")
def test_composite_unique_values_do_not_collide_as_text(tmp_path: Path, row: list[str]) -> None:
    graph = new_graph(tmp_path, "node X { slug: String @key a: String b: String @unique(a, b) }")
    for number, separator in enumerate((":", "\u001f", ",", "|", "\u0000")):
        source = "query q($s: String, $a: String, $b: String) { insert X { slug: $s, a: $a, b: $b } }"
        graph.mutate(source, None, {"s": f"m{number}", "a": f"p{separator}q", "b": "r"})
        graph.mutate(source, None, {"s": f"f{number}", "a": "p", "b": f"q{separator}r"}, branch="feature")
    assert graph.merge("feature").outcome == "merged"
    assert len(ids(graph, "node:X")) == 10


@pytest.mark.row("MRG-54")
def test_a_unique_edge_on_both_sides(tmp_path: Path, row: list[str]) -> None:
    schema = "node A { x: String @key } edge R: A -> A { @unique(src, dst) }"
    nodes = [f'insert A {{ x: "{name}" }}' for name in "abc"]
    graph = new_graph(tmp_path, schema, *nodes)
    for branch in ("main", "feature"):
        write(graph, branch, 'insert R { from: "a", to: "b" }')
    ((kind, key, _),) = conflicts_of(graph)
    assert (kind, key) == ("UniqueViolation", "edge:R")

    other = new_graph(tmp_path / "other", schema, *nodes)
    write(other, "main", 'insert R { from: "a", to: "b" }')
    write(other, "feature", 'insert R { from: "a", to: "c" }')
    assert other.merge("feature").outcome == "merged"
    assert pairs(other, "R") == [("a", "b"), ("a", "c")]


CARD = "node S { h: String @key } node T { c: String @key } edge W: S -> T @card(CARD)"
CARD_ROWS = ('insert S { h: "s" }', 'insert T { c: "t1" }', 'insert T { c: "t2" }')


@pytest.mark.row("MRG-55")
def test_cardinality_over_both_sides(tmp_path: Path, row: list[str]) -> None:
    graph = new_graph(tmp_path, CARD.replace("CARD", "0..1"), *CARD_ROWS)
    write(graph, "main", 'insert W { from: "s", to: "t1" }')
    write(graph, "feature", 'insert W { from: "s", to: "t2" }')
    assert conflicts_of(graph) == [("CardinalityViolation", "edge:W", None)]
    assert conflicts_of(graph, "main", "feature") == [("CardinalityViolation", "edge:W", None)]


def test_cardinality_that_two_deletions_break(tmp_path: Path) -> None:
    both = ('insert W { from: "s", to: "t1" }', 'insert W { from: "s", to: "t2" }')
    graph = new_graph(tmp_path, CARD.replace("CARD", "1.."), *CARD_ROWS, *both)
    write(graph, "main", 'delete W where to = "t1"')
    write(graph, "feature", 'delete W where to = "t2"')
    assert conflicts_of(graph) == [("CardinalityViolation", "edge:W", None)]


def test_values_that_break_a_rule_only_together(tmp_path: Path) -> None:
    """Property by property each side is right, and the merged row is checked again."""
    graph = new_graph(
        tmp_path,
        "node U { name: String @key a: String? b: String? @unique(a, b) }",
        'insert U { name: "x", a: "1", b: "1" }',
    )
    write(graph, "main", 'insert U { name: "y", a: "2", b: "2" }')
    write(graph, "main", 'update U set { a: "2" } where name = "x"')
    write(graph, "feature", 'update U set { b: "2" } where name = "x"')
    assert conflicts_of(graph, property_level=True) == [("UniqueViolation", "node:U", "y")]


# --- the commit -------------------------------------------------------------------------------------------------------


@pytest.mark.row("MRG-58")
@pytest.mark.parametrize("diverged", [False, True], ids=["fast-forward", "three-way"])
def test_one_commit_with_two_parents(graph: og.Graph, diverged: bool, row: list[str]) -> None:
    do(graph, "feature", "put", "eli", 22)
    if diverged:
        do(graph, "main", "relevel", "ada", 31)
    head, count = graph.head(), len(graph.commits())
    result = graph.merge("feature", actor="act-merge")
    commit = graph.head()
    assert result.commit == commit
    assert (commit.parent, commit.merged_parent) == (head.id, graph.head("feature").id)
    assert (commit.kind, commit.actor, commit.branch) == ("merge", "act-merge", "main")
    # The merge, and the one commit of feature that main did not have.
    assert len(graph.commits()) == count + 2


@pytest.mark.row("MRG-59")
def test_nothing_new_is_nothing_done(graph: og.Graph, row: list[str]) -> None:
    do(graph, "main", "put", "eli", 22)
    head, version = graph.head(), graph.snapshot().version
    result = graph.merge("feature")
    assert (result.outcome, result.commit, result.conflicts) == ("already_up_to_date", None, ())
    assert (graph.head(), graph.snapshot().version) == (head, version)


@pytest.mark.row("MRG-60")
@pytest.mark.parametrize("name", ["main", "feature", "nope"])
def test_a_branch_is_not_merged_into_itself(graph: og.Graph, name: str, row: list[str]) -> None:
    with pytest.raises(og.errors.BadRequest, match="distinct source and target"):
        graph.merge(name, into=name)


@pytest.mark.parametrize(
    ("source", "into"), [("nope", "main"), ("feature", "nope"), ("", "main"), ("../x", "main"), ("feature", "")]
)
def test_an_unknown_branch(graph: og.Graph, source: str, into: str) -> None:
    head = graph.head()
    with pytest.raises(og.errors.BranchNotFound):
        graph.merge(source, into=into)
    assert (graph.head(), graph.branches()) == (head, ["main", "feature"])


@pytest.mark.row("MRG-61")
def test_a_target_that_is_not_main(graph: og.Graph, row: list[str]) -> None:
    graph.create_branch("experiment")
    do(graph, "feature", "put", "eli", 22)
    before, main = everything(graph), graph.head()
    assert graph.merge("feature", into="experiment").outcome == "fast_forward"
    assert shown(graph, "experiment") == "5/1/30/yes"
    assert (everything(graph), graph.head()) == (before, main)
    # And from a handle that is bound to it.
    do(graph, "feature", "relevel", "ada", 31)
    assert graph.at("experiment").merge("feature").outcome == "merged"
    assert shown(graph, "experiment") == "5/1/31/yes"


@pytest.mark.row("MRG-63")
def test_changes_that_cancel_out(graph: og.Graph, row: list[str]) -> None:
    do(graph, "feature", "put", "eli", 22)
    do(graph, "feature", "drop", "eli")
    do(graph, "feature", "relevel", "ada", 31)
    do(graph, "feature", "relevel", "ada", 30)
    before, version, entries = everything(graph), graph.snapshot().version, graph.snapshot().entries()
    assert graph.merge("feature").outcome == "fast_forward"
    assert everything(graph) == before
    assert (graph.snapshot().version, graph.snapshot().entries()) == (version + 1, entries)


@pytest.mark.row("MRG-64")
def test_one_type_cancels_out_and_another_does_not(graph: og.Graph, row: list[str]) -> None:
    do(graph, "feature", "link", "ada", "cleo")
    do(graph, "feature", "unlink", "ada")
    do(graph, "feature", "put", "eli", 22)
    before = graph.snapshot()
    assert graph.merge("feature").outcome == "fast_forward"
    after = graph.snapshot()
    assert shown(graph) == "5/1/30/yes"
    assert after.entry("edge:Mentors") == before.entry("edge:Mentors")
    assert after.entry("node:Staff").version == before.entry("node:Staff").version + 1


def test_the_merged_rows_survive_the_source(graph: og.Graph) -> None:
    do(graph, "feature", "put", "eli", 22)
    do(graph, "feature", "relevel", "ada", 31)
    graph.merge("feature")
    before, commits = everything(graph), graph.commits()
    graph.delete_branch("feature")
    fresh = og.open(graph.uri)
    assert (everything(fresh), fresh.commits()) == (before, commits)


# --- values -----------------------------------------------------------------------------------------------------------

#: What feature does to x, which main leaves alone while it changes y.
VALUES = [
    pytest.param("body", "String?", None, "", id="MRG-66 null is not empty"),
    pytest.param("body", "String?", "", None, id="MRG-66 empty is not null"),
    pytest.param("body", "[String]?", ["a, b"], ["a", "b"], id="MRG-67 a list is not its text"),
    pytest.param("body", "[String]?", [], None, id="an empty list is not null"),
    pytest.param("body", "[I32]?", [1, 2], [1], id="a shorter list"),
    pytest.param("_row_notes", "String?", "a", "b", id="MRG-69 a name that looks like one of Lance"),
    pytest.param("body", "F64?", 0.1, 0.30000000000000004, id="a float to the last digit"),
    pytest.param("body", "Vector(2)?", [1.0, 2.0], [1.0, 2.5], id="a vector"),
    pytest.param("body", "Bool?", None, False, id="false is not null"),
    pytest.param("body", "I32?", None, 0, id="0 is not null"),
]


@pytest.mark.parametrize("diverged", [False, True], ids=["fast-forward", "three-way"])
@pytest.mark.parametrize(("name", "kind", "before", "after"), VALUES)
def test_a_change_of_value_survives(
    tmp_path: Path, name: str, kind: str, before: object, after: object, diverged: bool
) -> None:
    graph = og.init(tmp_path / "g", f"node D {{ slug: String @key {name}: {kind} other: I32? }}")
    for slug in "xy":
        graph.mutate(
            f'query q($v: {kind}) {{ insert D {{ slug: "{slug}", {name}: $v, other: 1 }} }}', None, {"v": before}
        )
    graph.create_branch("feature")
    change = f'query q($v: {kind}) {{ update D set {{ {name}: $v }} where slug = "x" }}'
    graph.mutate(change, None, {"v": after}, branch="feature")
    if diverged:
        write(graph, "main", 'update D set { other: 2 } where slug = "y"')
    assert graph.merge("feature").outcome == ("merged" if diverged else "fast_forward")
    merged = {row["id"]: row for row in rows(graph, "node:D")}
    assert merged["x"][name] == after
    assert merged["y"]["other"] == (2 if diverged else 1)


@pytest.mark.row("MRG-68")
def test_no_separator_collides(tmp_path: Path, row: list[str]) -> None:
    graph = new_graph(tmp_path, "node D { slug: String @key a: String b: String }")
    put = "query q($s: String, $a: String, $b: String) { insert D { slug: $s, a: $a, b: $b } }"
    for slug in "xy":
        graph.mutate(put, None, {"s": slug, "a": "a\u001fb", "b": "c"})
    graph.merge("main", into="feature")
    graph.mutate(put, None, {"s": "x", "a": "a", "b": "b\u001fc"}, branch="feature")
    graph.mutate(put, None, {"s": "y", "a": "z", "b": "z"})
    assert graph.merge("feature").outcome == "merged"
    assert [(row["a"], row["b"]) for row in rows(graph, "node:D")] == [("a", "b\u001fc"), ("z", "z")]


def test_ids_of_any_text(tmp_path: Path) -> None:
    texts = ["it's", 'say "hi"', "a\\b", "naïve ☃ 😀", "%", "a\nb", " ", "x" * 600]
    graph = new_graph(tmp_path, "node D { slug: String @key n: I32? }")
    put = "query q($s: String, $n: I32) { insert D { slug: $s, n: $n } }"
    for number, text in enumerate(texts):
        graph.mutate(put, None, {"s": text, "n": number})
    graph.merge("main", into="feature")
    for text in texts[::2]:
        graph.mutate(put, None, {"s": text, "n": 100}, branch="feature")
    write(graph, "main", 'insert D { slug: "other", n: 1 }')
    graph.merge("feature")
    expected = {text: 100 if number % 2 == 0 else number for number, text in enumerate(texts)} | {"other": 1}
    assert {row["id"]: row["n"] for row in rows(graph, "node:D")} == expected


# --- which base -------------------------------------------------------------------------------------------------------


def test_a_merge_after_a_merge_compares_with_it(graph: og.Graph) -> None:
    do(graph, "feature", "put", "eli", 22)
    graph.merge("feature")
    do(graph, "main", "relevel", "ben", 26)
    do(graph, "feature", "relevel", "eli", 23)
    result = graph.merge("feature")
    assert result.outcome == "merged"
    assert (result.stats["inserted"], result.stats["updated"]) == (0, 1)
    # What main had changed before the first merge and feature changes now is a conflict, not a loss.
    do(graph, "feature", "relevel", "ben", 27)
    assert conflicts_of(graph) == [("DivergentUpdate", "node:Staff", "ben")]


def test_back_and_forth(graph: og.Graph) -> None:
    for number in range(3):
        do(graph, "feature", "put", f"f{number}", number)
        do(graph, "main", "put", f"m{number}", number)
        graph.merge("main", into="feature")
        assert graph.merge("feature").outcome == "fast_forward"
        assert everything(graph) == everything(graph, "feature")


def test_criss_cross(graph: og.Graph) -> None:
    """Each side merges the other's earlier head; both of those are bases, and one is taken, the same both ways."""
    graph.create_branch("left")
    graph.create_branch("right")
    do(graph, "left", "put", "l1", 1)
    do(graph, "right", "put", "r1", 1)
    graph.create_branch("left-then", base="left")
    graph.create_branch("right-then", base="right")
    graph.merge("right-then", into="left")
    graph.merge("left-then", into="right")
    assert everything(graph, "left") == everything(graph, "right")
    do(graph, "left", "relevel", "l1", 2)
    do(graph, "right", "relevel", "r1", 2)
    one, other = graph.merge("left", into="right", dry_run=True), graph.merge("right", into="left", dry_run=True)
    assert one.stats["base"] == other.stats["base"]
    assert graph.merge("left", into="right").outcome == "merged"
    assert graph.merge("right", into="left").outcome == "fast_forward"
    assert everything(graph, "left") == everything(graph, "right")
    levels = {row["id"]: row["level"] for row in rows(graph, "node:Staff", "left")}
    assert (levels["l1"], levels["r1"]) == (2, 2)


def test_a_sibling_whose_common_branch_is_gone(graph: og.Graph) -> None:
    """The best common ancestor was made on a branch that was deleted; its state stays readable and is the base."""
    graph.create_branch("dev")
    do(graph, "feature", "put", "eli", 22)
    do(graph, "feature", "relevel", "ada", 31)
    graph.merge("feature")
    graph.merge("feature", into="dev")
    graph.delete_branch("feature")
    do(graph, "dev", "put", "fay", 1)
    do(graph, "main", "put", "gus", 1)
    result = graph.merge("dev")
    assert result.outcome == "merged"
    assert "reclaimed_bases" not in result.stats
    assert sorted(ids(graph, "node:Staff")) == ["ada", "ben", "cleo", "dov", "eli", "fay", "gus"]
    assert shown(graph) == "7/1/31/yes"


def test_nested_branches(graph: og.Graph) -> None:
    graph.create_branch("deeper", base="feature")
    do(graph, "deeper", "put", "eli", 22)
    do(graph, "feature", "relevel", "ada", 31)
    assert graph.merge("deeper").outcome == "fast_forward"
    assert shown(graph) == "5/1/30/yes"
    assert graph.merge("feature").outcome == "merged"
    assert graph.merge("deeper", into="feature").outcome == "merged"
    assert shown(graph) == shown(graph, "feature") == "5/1/31/yes"


# --- blobs ------------------------------------------------------------------------------------------------------------

DOC = "node Doc { title: String @key content: Blob? note: String? }"


def put_doc(graph: og.Graph, branch: str, title: str, content: str | None, note: str | None = "n") -> None:
    source = "query q($t: String, $c: Blob?, $n: String?) { insert Doc { title: $t, content: $c, note: $n } }"
    graph.mutate(source, None, {"t": title, "c": content, "n": note}, branch=branch)


@pytest.mark.parametrize("diverged", [False, True], ids=["fast-forward", "three-way"])
def test_blobs_survive(tmp_path: Path, diverged: bool) -> None:
    graph = og.init(tmp_path / "g", DOC)
    for number in range(4):
        put_doc(graph, "main", f"old{number}", "base64:AQID")
    graph.create_branch("feature")
    put_doc(graph, "feature", "big", "base64:" + "QUJD" * 100_000)
    put_doc(graph, "feature", "new", "base64:SGk=")
    put_doc(graph, "feature", "void", "base64:")
    put_doc(graph, "feature", "none", None)
    write(graph, "feature", 'update Doc set { note: "m" } where title = "old0"')
    put_doc(graph, "feature", "old1", "base64:BAUG")
    put_doc(graph, "feature", "old2", None)
    if diverged:
        put_doc(graph, "main", "old3", "base64:")
        # The same bytes in another file are the same value.
        put_doc(graph, "main", "old1", "base64:BAUG")
    result = graph.merge("feature")
    assert result.stats["identical"] == int(diverged)
    found = {row["id"]: row["content"] for row in rows(graph, "node:Doc")}
    assert found == {
        "big": b"ABC" * 100_000,
        "new": b"Hi",
        "void": b"",
        "none": None,
        "old0": b"\1\2\3",
        "old1": b"\4\5\6",
        "old2": None,
        "old3": b"" if diverged else b"\1\2\3",
    }
    graph.delete_branch("feature")
    assert graph.read_blob("node", "Doc", "big", "content").read() == b"ABC" * 100_000


def test_blobs_that_differ_conflict(tmp_path: Path) -> None:
    graph = og.init(tmp_path / "g", DOC)
    put_doc(graph, "main", "x", "base64:AQID")
    graph.create_branch("feature")
    put_doc(graph, "feature", "x", "base64:BAUG")
    put_doc(graph, "main", "x", "base64:BAUH")
    assert conflicts_of(graph) == [("DivergentUpdate", "node:Doc", "x")]
    put_doc(graph, "main", "x", "base64:AQID", "m")
    assert graph.merge("feature", property_level=True).outcome == "merged"
    assert rows(graph, "node:Doc") == [{"id": "x", "title": "x", "content": b"\4\5\6", "note": "m"}]


def test_blobs_after_criss_cross_merges(tmp_path: Path) -> None:
    """Both bases have changed the table, so each entity is compared with what they have together."""
    graph = og.init(tmp_path / "g", DOC)
    for title in ("x", "y"):
        put_doc(graph, "main", title, "base64:AQID")
    for side, title in (("left", "x"), ("right", "y")):
        graph.create_branch(side)
        put_doc(graph, side, title, "base64:BAUG")
        graph.create_branch(f"{side}-then", base=side)
    graph.merge("right-then", into="left")
    graph.merge("left-then", into="right")
    put_doc(graph, "left", "x", "base64:AQID")
    put_doc(graph, "right", "y", None)
    put_doc(graph, "right", "new", "base64:")
    graph.create_branch("other-way", base="right")
    assert graph.merge("right", into="left").outcome == "merged"
    assert graph.merge("left", into="other-way").outcome == "fast_forward"
    for branch in ("left", "other-way"):
        found = {row["id"]: row["content"] for row in rows(graph, "node:Doc", branch)}
        assert found == {"x": b"\1\2\3", "y": None, "new": b""}


def test_external_blobs_stay_external(tmp_path: Path) -> None:
    (tmp_path / "far.bin").write_bytes(b"far away")
    uri = (tmp_path / "far.bin").as_uri()
    graph = og.init(tmp_path / "g", DOC, external_blobs=[tmp_path.as_uri()])
    graph.create_branch("feature")
    graph.mutate('query q($u: Blob) { insert Doc { title: "x", content: $u } }', None, {"u": uri}, branch="feature")
    graph.merge("feature")
    blob = graph.read_blob("node", "Doc", "x", "content")
    assert (blob.kind, blob.uri) == ("external", uri)


# --- declared edge keys -----------------------------------------------------------------------------------------------


def test_the_same_keyed_edge_on_both_sides_is_one(tmp_path: Path) -> None:
    schema = "node A { x: String @key } edge R: A -> A { w: I32? @key(src, dst) }"
    graph = new_graph(tmp_path, schema, *(f'insert A {{ x: "{name}" }}' for name in "abc"))
    for branch in ("main", "feature"):
        write(graph, branch, 'insert R { from: "a", to: "b", w: 1 }')
    write(graph, "feature", 'insert R { from: "a", to: "c", w: 1 }')
    assert graph.merge("feature").outcome == "merged"
    assert pairs(graph, "R") == [("a", "b"), ("a", "c")]
