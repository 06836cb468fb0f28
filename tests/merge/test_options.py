"""What callers can decide: a strategy, resolutions, property by property, a dry run, exactly once, the source's end."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.commit.branches import delete_branch
from omnigraph.graph import merging
from tests.merge.graphs import do, everything, ids, named, rows, shown, write

#: What both sides do so that there is one conflict of each kind between them.
BOTH = [("relevel", "ada"), ("put", "eli")]


def diverge(graph: og.Graph) -> None:
    """ada is updated on both sides, eli inserted on both, dov deleted on feature and updated on main, cleo the reverse."""
    do(graph, "feature", "unlink", "ben")
    do(graph, "main", "unlink", "ben")
    for branch, level in (("feature", 1), ("main", 2)):
        do(graph, branch, "relevel", "ada", level)
        do(graph, branch, "put", "eli", level)
    do(graph, "feature", "drop", "dov")
    do(graph, "main", "relevel", "dov", 2)
    do(graph, "feature", "relevel", "cleo", 1)
    do(graph, "main", "drop", "cleo")


def levels(graph: og.Graph, branch: str = "main") -> dict[str, int]:
    return {row["id"]: row["level"] for row in rows(graph, "node:Staff", branch)}


# --- strategy ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        ("ours", {"ada": 2, "ben": 25, "dov": 2, "eli": 2}),
        ("theirs", {"ada": 1, "ben": 25, "cleo": 1, "eli": 1}),
    ],
)
def test_a_strategy_decides_every_conflict_between_the_sides(
    graph: og.Graph, strategy: str, expected: dict[str, int]
) -> None:
    diverge(graph)
    foreseen = graph.merge("feature", dry_run=True)
    assert (foreseen.outcome, len(foreseen.conflicts)) == ("conflicts", 4)
    assert graph.merge("feature", dry_run=True, strategy=strategy).outcome == "merged"
    result = graph.merge("feature", strategy=strategy)
    assert (result.outcome, levels(graph)) == ("merged", expected)
    assert graph.merge("feature").outcome == "already_up_to_date"


@pytest.mark.parametrize("strategy", ["ours", "theirs"])
def test_a_strategy_never_breaks_a_rule(graph: og.Graph, strategy: str) -> None:
    do(graph, "feature", "drop", "ada")
    do(graph, "main", "link", "ada", "cleo")
    before = everything(graph)
    with pytest.raises(og.errors.MergeConflicts) as raised:
        graph.merge("feature", strategy=strategy)
    assert [conflict.kind for conflict in raised.value.conflicts] == ["OrphanEdge"]
    assert everything(graph) == before


def test_a_decision_can_break_a_rule_of_its_own(graph: og.Graph) -> None:
    """Theirs wins the deletion, and then an edge of ours has lost its node."""
    do(graph, "feature", "drop", "ada")
    do(graph, "main", "relevel", "ada", 31)
    do(graph, "main", "link", "ada", "cleo")
    kinds = [conflict.kind for conflict in graph.merge("feature", dry_run=True).conflicts]
    assert kinds == ["DeleteVsUpdate"]
    kinds = [conflict.kind for conflict in graph.merge("feature", dry_run=True, strategy="theirs").conflicts]
    assert kinds == ["OrphanEdge"]


@pytest.mark.parametrize("strategy", ["mine", "", "OURS"])
def test_an_unknown_strategy(graph: og.Graph, strategy: str) -> None:
    with pytest.raises(og.errors.BadRequest, match="strategy is ours or theirs"):
        graph.merge("feature", strategy=strategy)


# --- resolutions ------------------------------------------------------------------------------------------------------


def decided(take: Any, entity_id: str = "ada", type_key: str = "node:Staff", **more: Any) -> dict[str, Any]:
    return {"type_key": type_key, "id": entity_id, "take": take, **more}


@pytest.mark.parametrize(
    ("resolution", "expected"),
    [
        pytest.param(decided("ours"), 2, id="ours"),
        pytest.param(decided("theirs"), 1, id="theirs"),
        pytest.param(decided("base"), 30, id="base"),
        pytest.param(decided("value", value={"level": 33}), 33, id="value"),
        pytest.param(decided("value", value={"level": None}), None, id="null"),
        pytest.param(decided({"level": 34}), 34, id="a value in the place of the word"),
    ],
)
def test_a_resolution(graph: og.Graph, resolution: dict[str, Any], expected: int | None) -> None:
    do(graph, "feature", "relevel", "ada", 1)
    do(graph, "feature", "put", "eli", 22)
    do(graph, "main", "relevel", "ada", 2)
    assert graph.merge("feature", resolutions=[resolution]).outcome == "merged"
    assert levels(graph)["ada"] == expected
    assert levels(graph)["eli"] == 22


def test_resolutions_from_a_file_and_a_strategy_for_the_rest(graph: og.Graph, tmp_path: Path) -> None:
    diverge(graph)
    file = tmp_path / "resolved.json"
    file.write_text(json.dumps([decided("theirs", "dov"), decided("base", "eli"), decided("base", "cleo")]))
    assert graph.merge("feature", resolutions=file, strategy="ours").outcome == "merged"
    assert levels(graph) == {"ada": 2, "ben": 25, "cleo": 40}


@pytest.mark.parametrize("take", ["ours", "theirs", "base", {"level": 7}], ids=str)
def test_a_resolution_of_one_entity_hides_no_broken_rule_of_another(graph: og.Graph, take: Any) -> None:
    """A conflict of the merged image is found whether or not anything was decided."""
    do(graph, "feature", "drop", "ada")
    do(graph, "main", "link", "ada", "cleo")
    do(graph, "feature", "relevel", "dov", 1)
    do(graph, "main", "relevel", "dov", 2)
    before = everything(graph)
    with pytest.raises(og.errors.MergeConflicts) as raised:
        graph.merge("feature", resolutions=[decided(take, "dov")])
    assert [(one.kind, one.type_key) for one in raised.value.conflicts] == [("OrphanEdge", "edge:Mentors")]
    assert everything(graph) == before


def test_a_resolution_that_breaks_a_rule_itself(tmp_path: Path) -> None:
    graph = og.init(tmp_path / "u", "node U { name: String @key mail: String? @unique(mail) }")
    graph.mutate('query q() { insert U { name: "ann", mail: "a" } insert U { name: "bob", mail: "b" } }')
    graph.create_branch("feature")
    write(graph, "feature", 'update U set { mail: "c" } where name = "ann"')
    write(graph, "main", 'update U set { mail: "d" } where name = "ann"')
    with pytest.raises(og.errors.MergeConflicts) as raised:
        graph.merge("feature", resolutions=[decided({"mail": "b"}, "ann", "node:U")])
    assert [one.kind for one in raised.value.conflicts] == ["UniqueViolation"]


def test_an_end_that_a_resolution_gives_is_looked_for_in_a_table_that_nobody_changed(tmp_path: Path) -> None:
    """What theirs brings was checked against that table; what a caller decides was not."""
    graph = og.init(tmp_path / "g", "node N { name: String @key }\nedge E: N -> N { w: I32? }")
    write(graph, "main", 'insert N { name: "a" }', 'insert N { name: "b" }', 'insert E { from: "a", to: "b", w: 0 }')
    graph.create_branch("feature")
    for branch, weight in (("feature", 1), ("main", 2)):
        write(graph, branch, f'update E set {{ w: {weight} }} where from = "a"')
    (edge,) = ids(graph, "edge:E")
    before = everything(graph)
    with pytest.raises(og.errors.MergeConflicts) as raised:
        graph.merge("feature", resolutions=[decided({"to": "nobody"}, edge, "edge:E")])
    assert named(raised.value.conflicts) == [("OrphanEdge", "edge:E", edge)]
    assert everything(graph) == before
    graph.merge("feature", resolutions=[decided({"to": "a"}, edge, "edge:E")])
    assert [(row["src"], row["dst"]) for row in rows(graph, "edge:E")] == [("a", "a")]


def test_edges_of_a_node_that_a_resolution_deletes_are_looked_for_in_a_table_that_nobody_changed(
    tmp_path: Path,
) -> None:
    """The commit that is picked is part of the target: both have its edges, and the base has not even the node."""
    graph = og.init(tmp_path / "g", "node N { name: String @key n: I32? }\nedge E: N -> N")
    write(graph, "main", 'insert N { name: "a" }')
    picked = write(graph, "main", 'insert N { name: "b" }', 'insert E { from: "a", to: "b" }').commit
    assert picked is not None
    write(graph, "main", 'update N set { n: 1 } where name = "a"')
    (edge,) = ids(graph, "edge:E")
    before = everything(graph)
    with pytest.raises(og.errors.MergeConflicts) as raised:
        graph.cherry_pick(picked.id, resolutions=[decided("base", "b", "node:N")])
    assert named(raised.value.conflicts) == [("OrphanEdge", "edge:E", edge)]
    assert everything(graph) == before
    graph.cherry_pick(picked.id, resolutions=[decided("base", "b", "node:N"), decided("base", edge, "edge:E")])
    assert (ids(graph, "node:N"), ids(graph, "edge:E")) == (["a"], [])


def test_a_resolution_decides_about_a_broken_rule(graph: og.Graph) -> None:
    do(graph, "feature", "drop", "ada")
    do(graph, "main", "link", "ada", "cleo")
    (conflict,) = graph.merge("feature", dry_run=True).conflicts
    keeping_the_node = graph.merge("feature", dry_run=True, resolutions=[decided("ours", "ada")])
    assert keeping_the_node.conflicts == ()
    without_the_edge = [decided("base", conflict.entity_id or "", "edge:Mentors")]
    assert graph.merge("feature", resolutions=without_the_edge).outcome == "merged"
    assert shown(graph) == "3/1/absent/no"


def test_a_resolution_is_checked_like_any_row(tmp_path: Path) -> None:
    graph = og.init(tmp_path / "g", "node P { name: String @key t: I32? @range(t, 0..9) }")
    write(graph, "main", 'insert P { name: "x", t: 1 }')
    graph.create_branch("feature")
    write(graph, "feature", 'update P set { t: 2 } where name = "x"')
    write(graph, "main", 'update P set { t: 3 } where name = "x"')
    with pytest.raises(og.errors.MergeConflicts) as raised:
        graph.merge("feature", resolutions=[decided({"t": 10}, "x", "node:P")])
    assert named(raised.value.conflicts) == [("ValueConstraintViolation", "node:P", "x")]
    assert rows(graph, "node:P")[0]["t"] == 3


BAD_RESOLUTIONS = [
    pytest.param("x", "expected an object", id="no object"),
    pytest.param({"type_key": "node:Staff", "take": "ours"}, "type_key and id must be texts", id="no id"),
    pytest.param(decided("mine"), "take is one of ours, theirs, base, value", id="unknown take"),
    pytest.param(decided("ours", type_key="node:Stuff"), "did you mean", id="unknown type"),
    pytest.param(decided("ours", type_key="Staff"), "unknown type 'Staff'", id="no kind"),
    pytest.param(decided("value"), "`value` goes with", id="no value"),
    pytest.param(decided("ours", value={"level": 1}), "`value` goes with", id="a value too many"),
    pytest.param(decided({"lvl": 1}), "has no property 'lvl'", id="unknown property"),
    pytest.param(decided({"level": "x"}), "Staff.level", id="wrong type"),
    pytest.param(decided({"handle": "bob"}), "part of the key", id="key"),
    pytest.param(decided("ours", "nobody"), "neither side nor their base has", id="unknown entity"),
    pytest.param(decided("ours", taek=1), "unknown field 'taek'", id="unknown field"),
]


@pytest.mark.parametrize(("resolution", "message"), BAD_RESOLUTIONS)
def test_a_bad_resolution(graph: og.Graph, resolution: Any, message: str) -> None:
    do(graph, "feature", "relevel", "ada", 1)
    do(graph, "main", "relevel", "ada", 2)
    head = graph.head()
    with pytest.raises(og.errors.BadRequest, match=message):
        graph.merge("feature", resolutions=[resolution])
    assert graph.head() == head


@pytest.mark.parametrize(
    ("text", "message"), [("{", "not valid JSON"), ("{}", "must hold a JSON array"), (None, "cannot read")]
)
def test_a_bad_file_of_resolutions(graph: og.Graph, tmp_path: Path, text: str | None, message: str) -> None:
    if text is not None:
        (tmp_path / "r.json").write_text(text)
    with pytest.raises(og.errors.BadRequest, match=message):
        graph.merge("feature", resolutions=tmp_path / "r.json")


def test_one_entity_is_decided_once(graph: og.Graph) -> None:
    with pytest.raises(og.errors.BadRequest, match="was decided otherwise before"):
        graph.merge("feature", resolutions=[decided("ours"), decided("theirs")])


# --- property by property ---------------------------------------------------------------------------------------------

WIDE = "node P { name: String @key a: I32? b: String? c: [String]? }"


@pytest.fixture
def wide(tmp_path: Path) -> og.Graph:
    graph = og.init(tmp_path / "wide", WIDE)
    write(graph, "main", *(f'insert P {{ name: "{name}", a: 1, b: "b", c: ["c"] }}' for name in "xyz"))
    graph.create_branch("feature")
    return graph


def test_different_properties_combine_only_when_asked(wide: og.Graph) -> None:
    write(wide, "feature", 'update P set { a: 2 } where name = "x"', 'update P set { b: "m" } where name = "y"')
    write(wide, "main", 'update P set { b: "n" } where name = "x"', 'update P set { c: ["m", "n"] } where name = "y"')
    assert len(wide.merge("feature", dry_run=True).conflicts) == 2
    assert wide.merge("feature", property_level=True).outcome == "merged"
    found = {row["id"]: (row["a"], row["b"], row["c"]) for row in rows(wide, "node:P")}
    assert found == {"x": (2, "n", ["c"]), "y": (1, "m", ["m", "n"]), "z": (1, "b", ["c"])}


def test_the_same_property_still_conflicts(wide: og.Graph) -> None:
    write(wide, "feature", 'update P set { a: 2, b: "m" } where name = "x"')
    write(wide, "main", 'update P set { a: 3, c: [] } where name = "x"')
    assert named(wide.merge("feature", property_level=True, dry_run=True).conflicts) == [
        ("DivergentUpdate", "node:P", "x")
    ]
    assert wide.merge("feature", property_level=True, strategy="theirs").outcome == "merged"
    assert rows(wide, "node:P")[0] == {"id": "x", "name": "x", "a": 2, "b": "m", "c": []}


def test_ours_wins_only_where_both_changed(wide: og.Graph) -> None:
    write(wide, "feature", 'update P set { a: 2, b: "m" } where name = "x"')
    write(wide, "main", 'update P set { a: 3, c: [] } where name = "x"')
    assert wide.merge("feature", property_level=True, strategy="ours").outcome == "merged"
    assert rows(wide, "node:P")[0] == {"id": "x", "name": "x", "a": 3, "b": "m", "c": []}


def test_the_same_new_value_of_a_property_is_no_conflict(wide: og.Graph) -> None:
    write(wide, "feature", 'update P set { a: 2, b: "m" } where name = "x"')
    write(wide, "main", 'update P set { a: 2, c: [] } where name = "x"')
    assert wide.merge("feature", property_level=True).outcome == "merged"
    assert rows(wide, "node:P")[0] == {"id": "x", "name": "x", "a": 2, "b": "m", "c": []}


# --- dry run, images --------------------------------------------------------------------------------------------------


def test_a_dry_run_writes_nothing_at_all(graph: og.Graph) -> None:
    diverge(graph)
    before = {path: path.stat().st_mtime_ns for path in Path(graph.uri).rglob("*")}
    result = og.open(graph.uri, "ro").merge("feature", dry_run=True, delete_branch=True)
    assert {path: path.stat().st_mtime_ns for path in Path(graph.uri).rglob("*")} == before
    assert (result.outcome, result.commit, len(result.conflicts)) == ("conflicts", None, 4)
    assert graph.branches() == ["main", "feature"]


def test_a_dry_run_counts(graph: og.Graph) -> None:
    do(graph, "feature", "put", "eli", 22)
    do(graph, "feature", "relevel", "ada", 31)
    do(graph, "feature", "drop", "ben")
    stats = graph.merge("feature", dry_run=True).stats
    assert (stats["inserted"], stats["updated"], stats["deleted"]) == (1, 1, 2)
    assert stats["tables"] == {
        "node:Staff": {"inserted": 1, "updated": 1, "deleted": 1},
        "edge:Mentors": {"inserted": 0, "updated": 0, "deleted": 1},
    }
    done = graph.merge("feature").stats
    assert done == stats


def test_a_read_only_handle_does_not_merge(graph: og.Graph) -> None:
    do(graph, "feature", "put", "eli", 22)
    with pytest.raises(og.errors.BadRequest, match="read-only"):
        og.open(graph.uri, "ro").merge("feature")


def test_images_unless_they_are_not_wanted(graph: og.Graph) -> None:
    do(graph, "feature", "relevel", "ada", 1)
    do(graph, "main", "drop", "ada")
    (plain,) = graph.merge("feature", dry_run=True, images=False).conflicts
    assert (plain.base, plain.ours, plain.theirs) == (None, None, None)
    (conflict,) = graph.merge("feature", dry_run=True).conflicts
    assert conflict.base == {"id": "ada", "handle": "ada", "level": 30}
    assert conflict.ours is None
    assert conflict.theirs == {"id": "ada", "handle": "ada", "level": 1}
    assert conflict.to_dict()["theirs"]["level"] == 1
    assert "ours" not in conflict.to_dict()


def test_images_of_an_edge_that_theirs_left_alone(graph: og.Graph) -> None:
    do(graph, "feature", "drop", "ada")
    do(graph, "main", "link", "ada", "cleo")
    (conflict,) = graph.merge("feature", dry_run=True, images=True).conflicts
    assert (conflict.base, conflict.theirs) == (None, None)
    assert conflict.ours is not None
    assert (conflict.ours["src"], conflict.ours["dst"]) == ("ada", "cleo")


# --- exactly once -----------------------------------------------------------------------------------------------------


def test_a_repeated_request_returns_the_first_answer(graph: og.Graph) -> None:
    do(graph, "feature", "put", "eli", 22)
    first = graph.merge("feature", idempotency_key="k", delete_branch=True)
    # The connection was lost; the source is gone by now.
    do(graph, "main", "put", "fay", 1)
    again = og.open(graph.uri).merge("feature", idempotency_key="k")
    assert (again.outcome, again.commit) == ("fast_forward", first.commit)
    assert again.stats["inserted"] == 1
    assert sorted(ids(graph, "node:Staff")) == ["ada", "ben", "cleo", "dov", "eli", "fay"]


@pytest.mark.parametrize("other", [{"strategy": "ours"}, {"property_level": True}, {"source": "other"}])
def test_the_same_key_for_another_request(graph: og.Graph, other: dict[str, Any]) -> None:
    graph.create_branch("other")
    do(graph, "feature", "put", "eli", 22)
    graph.merge("feature", idempotency_key="k")
    with pytest.raises(og.errors.BadRequest, match="idempotency key 'k' was used for another request"):
        graph.merge(**{"source": "feature", "idempotency_key": "k", **other})


def test_a_merge_of_nothing_is_not_recorded(graph: og.Graph) -> None:
    assert graph.merge("feature", idempotency_key="k").outcome == "already_up_to_date"
    do(graph, "feature", "put", "eli", 22)
    assert graph.merge("feature", idempotency_key="k").outcome == "fast_forward"


# --- the end of the source --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("changed", [True, False], ids=["merged", "nothing new"])
def test_the_source_is_deleted_afterwards(graph: og.Graph, changed: bool) -> None:
    if changed:
        do(graph, "feature", "put", "eli", 22)
    result = graph.merge("feature", delete_branch=True)
    assert result.stats["branch_deleted"] is True
    assert graph.branches() == ["main"]
    assert shown(graph) == ("5/1/30/yes" if changed else "4/1/30/no")


def test_a_source_that_can_not_be_deleted_is_merged_all_the_same(graph: og.Graph) -> None:
    graph.create_branch("child", base="feature")
    do(graph, "feature", "put", "eli", 22)
    result = graph.merge("feature", delete_branch=True)
    assert result.outcome == "fast_forward"
    assert result.stats["branch_deleted"] is False
    assert "child" in result.stats["branch_delete_error"]
    assert shown(graph) == "5/1/30/yes"


@pytest.mark.parametrize(
    ("source", "reason"), [("main", "cannot delete branch 'main'"), ("feature", "currently active")]
)
def test_branches_that_are_never_deleted(graph: og.Graph, source: str, reason: str) -> None:
    graph.create_branch("other")
    do(graph, source, "put", "eli", 22)
    result = graph.at("feature" if source == "feature" else "main").merge(source, into="other", delete_branch=True)
    assert reason in result.stats["branch_delete_error"]
    assert graph.branches() == ["main", "feature", "other"]


def test_a_conflict_deletes_nothing(graph: og.Graph) -> None:
    do(graph, "feature", "relevel", "ada", 1)
    do(graph, "main", "relevel", "ada", 2)
    with pytest.raises(og.errors.MergeConflicts, match="1 conflict, nothing was written: DivergentUpdate"):
        graph.merge("feature", delete_branch=True)
    assert graph.branches() == ["main", "feature"]


def test_the_error_is_plain_data_and_survives_pickling(graph: og.Graph) -> None:
    do(graph, "feature", "relevel", "ada", 1)
    do(graph, "main", "relevel", "ada", 2)
    with pytest.raises(og.errors.MergeConflicts) as raised:
        graph.merge("feature")
    assert json.loads(json.dumps(raised.value.to_dict()))["conflicts"] == [
        {
            "kind": "DivergentUpdate",
            "entity_kind": "node",
            "type_name": "Staff",
            "type_key": "node:Staff",
            "entity_id": "ada",
            "message": "Staff 'ada' was updated differently on both sides",
            "base": {"id": "ada", "handle": "ada", "level": 30},
            "ours": {"id": "ada", "handle": "ada", "level": 2},
            "theirs": {"id": "ada", "handle": "ada", "level": 1},
        }
    ]
    assert pickle.loads(pickle.dumps(raised.value)).conflicts == raised.value.conflicts


def test_results_are_plain_data(graph: og.Graph) -> None:
    do(graph, "feature", "put", "eli", 22)
    result = graph.merge("feature")
    assert json.loads(json.dumps(result.to_dict()))["outcome"] == "fast_forward"
    assert isinstance(result, og.MergeResult)


def test_a_source_that_moved_on_is_not_deleted(graph: og.Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    do(graph, "feature", "put", "eli", 1)

    def late(*arguments: Any) -> None:
        do(og.open(graph.uri), "feature", "put", "late", 2)
        delete_branch(*arguments)

    monkeypatch.setattr(merging, "delete_branch", late)
    for _ in range(2):
        result = graph.merge("feature", delete_branch=True)
        assert (result.stats["branch_deleted"], result.stats["branch_delete_error"]) == (
            False,
            "cannot delete branch 'feature': it has moved on since it was merged",
        )
    assert "late" in ids(graph, "node:Staff", "feature")


def test_a_repeat_leaves_another_branch_of_that_name_alone(graph: og.Graph) -> None:
    do(graph, "feature", "put", "eli", 1)
    assert graph.merge("feature", idempotency_key="k", delete_branch=True).stats["branch_deleted"] is True
    graph.create_branch("feature")
    repeated = graph.merge("feature", idempotency_key="k", delete_branch=True)
    assert repeated.stats["branch_deleted"] is False
    do(graph, "feature", "put", "new", 2)
    assert graph.merge("feature", idempotency_key="k", delete_branch=True).stats["branch_deleted"] is False
    assert "new" in ids(graph, "node:Staff", "feature")


def test_a_repeat_finishes_the_deletion_that_was_missed(graph: og.Graph) -> None:
    do(graph, "feature", "put", "eli", 1)
    graph.merge("feature", idempotency_key="k")
    assert graph.merge("feature", idempotency_key="k", delete_branch=True).stats["branch_deleted"] is True
    assert graph.branches() == ["main"]


@pytest.mark.parametrize("take", [{"take": "theirs"}, {"take": "base"}, {"take": {"level": 40}}, {"take": {}}])
def test_a_decision_for_what_ours_has_writes_nothing(graph: og.Graph, take: dict[str, Any]) -> None:
    do(graph, "feature", "put", "eli", 1)
    entry = graph.snapshot().entry("edge:Mentors")
    result = graph.merge("feature", resolutions=[{"type_key": "node:Staff", "id": "cleo", **take}])
    assert (result.stats["inserted"], result.stats["updated"], result.stats["identical"]) == (1, 0, 1)
    assert graph.snapshot().entry("edge:Mentors") == entry
    assert [(change.op, change.id) for change in graph.commit_changes(graph.head().id)] == [("insert", "eli")]


@pytest.mark.parametrize("value", [{"to": "cleo"}, {"from": "cleo", "w": 2}])
def test_the_ends_of_an_edge_with_a_key_say_which_edge_it_is(tmp_path: Path, value: dict[str, Any]) -> None:
    graph = og.init(tmp_path / "g", "node P { n: String @key }\nedge Knows: P -> P { w: I32? @key(src, dst) }")
    write(graph, "main", *(f'insert P {{ n: "{name}" }}' for name in ("ada", "ben", "cleo")))
    graph.create_branch("feature")
    for level, branch in enumerate(("main", "feature")):
        write(graph, branch, f'insert Knows {{ from: "ada", to: "ben", w: {level} }}')
    (edge,) = ids(graph, "edge:Knows")
    decision = {"type_key": "edge:Knows", "id": edge, "take": value}
    with pytest.raises(og.errors.BadRequest, match="is part of the key"):
        graph.merge("feature", resolutions=[decision])
    assert graph.merge("feature", resolutions=[{**decision, "take": {"w": 7}}]).outcome == "merged"
    assert rows(graph, "edge:Knows") == [{"id": edge, "src": "ada", "dst": "ben", "w": 7}]


@pytest.mark.parametrize(
    "asked",
    [
        {"idempotency_key": 5},
        {"idempotency_key": "\ud800"},
        {"actor": 5},
        {"actor": "\ud800"},
        {"resolutions": 5},
        {"resolutions": [{"type_key": "node:Staff", "id": "\ud800", "take": "ours"}]},
        {"resolutions": [{"type_key": "node:Staff", "id": "ada", "take": {5: 1}}]},
    ],
    ids=ascii,
)
def test_what_is_no_text_is_refused_before_anything_is_written(graph: og.Graph, asked: Any) -> None:
    do(graph, "feature", "put", "eli", 1)
    head = graph.head()
    with pytest.raises(og.errors.BadRequest):
        graph.merge("feature", **asked)
    assert (graph.head(), graph.pending_operations()) == (head, [])
