"""The soak with operations of every kind, and its model: a few minutes in the long run, as long as wanted with `make soak`."""

from __future__ import annotations

from typing import Any

import pytest

from tests.soak.__main__ import soak
from tests.soak.model import Impossible, Node, State, bases, combine, difference, faults, state_of, write


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(("place", "seconds"), [("local", 180), ("s3", 240)])
def test_nothing_is_lost_doubled_or_wrong(place: str, seconds: float) -> None:
    report = soak(seconds, place, seed=15, round_seconds=45)
    assert report.wrong == [], report.show()
    assert report.counts["killed"] > 0
    assert report.counts["commits"] > 20
    if place == "s3":
        assert sum(count for fault, count in report.faults.items() if fault != "none") > 20


# --- the model --------------------------------------------------------------------------------------------------------


def item(code: str, **data: Any) -> dict[str, Any]:
    return {"type": "Item", "data": {"id": code, "code": code, "owner": "o", **data}}


def edge(kind: str, source: str, target: str, **data: Any) -> dict[str, Any]:
    return {"edge": kind, "from": source, "to": target, "data": {"id": f"{source}{target}{data}", **data}}


def graph(*lines: dict[str, Any]) -> State:
    return state_of(lines)


GROUP = {"type": "Group", "data": {"id": "g", "name": "g"}}


def test_an_entity_that_is_there_twice_is_seen() -> None:
    with pytest.raises(Impossible, match="twice"):
        graph(item("a"), item("a"))


def test_a_renamed_property_is_the_same_and_null_is_absent() -> None:
    assert graph(item("a", rank_1=5, note=None)) == graph(item("a", rank_7=5))


def test_an_insert_replaces_the_whole_node() -> None:
    after = write(graph(item("a", rank_0=1)), {"op": "insert", "lines": [item("a", note="n")]})
    assert after["Item"]["a"] == {"code": "a", "owner": "o", "note": "n"}


def test_a_deleted_node_takes_its_edges_along() -> None:
    before = graph(item("a"), item("b"), GROUP, edge("Next", "b", "a"), edge("Joins", "a", "g", token="t"))
    after = write(before, {"op": "delete", "type": "Item", "where": ["code", "a"]})
    assert difference(after, graph(item("b"), GROUP)) == {}


def test_an_append_of_what_is_there_is_impossible() -> None:
    with pytest.raises(Impossible, match="existed"):
        write(graph(item("a")), {"op": "load", "mode": "append", "lines": [item("a")]})


def test_an_overwrite_that_leaves_an_edge_dangling_is_a_fault() -> None:
    before = graph(item("a"), GROUP, edge("Joins", "a", "g", token="t"))
    after = write(before, {"op": "load", "mode": "overwrite", "lines": [{"type": "Group", "data": {"name": "h"}}]})
    assert list(faults(after)) == ["Joins t dangles: Group g is gone"]


def test_marks_are_unique_and_an_item_leads_one_group() -> None:
    state = graph(
        item("a", mark=1),
        item("b", mark=1),
        GROUP,
        edge("Leads", "a", "g", token="1"),
        edge("Leads", "a", "g", token="2"),
    )
    assert list(faults(state)) == ["mark 1 is on 2 items", "a leads 2 groups"]


def test_a_merge_takes_what_theirs_changed() -> None:
    base, ours = graph(item("a"), item("b")), graph(item("a", rank_0=1), item("b"))
    theirs = graph(item("a"), item("b", note="n"), item("c"))
    merged = combine(base, ours, theirs, None, False)
    assert merged.conflicts == []
    assert merged.state == graph(item("a", rank_0=1), item("b", note="n"), item("c"))


@pytest.mark.parametrize(("strategy", "kept"), [(None, None), ("ours", 1), ("theirs", 2)])
def test_a_strategy_decides_what_both_changed(strategy: str | None, kept: int | None) -> None:
    merged = combine(graph(item("a")), graph(item("a", rank_0=1)), graph(item("a", rank_0=2)), strategy, False)
    assert merged.conflicts == ([("Item", "a")] if strategy is None else [])
    assert kept is None or merged.state["Item"]["a"]["rank"] == kept


def test_properties_are_combined_one_by_one() -> None:
    base, ours, theirs = graph(item("a", rank_0=1)), graph(item("a", rank_0=2)), graph(item("a", rank_0=1, note="n"))
    merged = combine(base, ours, theirs, None, True)
    assert merged.conflicts == []
    assert merged.state == graph(item("a", rank_0=2, note="n"))


def test_a_node_that_is_kept_keeps_its_edges() -> None:
    base = graph(item("a"), item("b"), edge("Next", "a", "b", weight=1))
    ours = graph(item("a", rank_0=1), item("b"), edge("Next", "a", "b", weight=1))
    merged = combine(base, ours, graph(item("b")), "ours", False)
    assert merged.state == ours


def test_a_node_that_comes_back_brings_its_edges() -> None:
    """Not those whose other end is gone, and not those that theirs deleted."""
    edges = [edge("Next", "a", "b", weight=1), edge("Next", "a", "c"), edge("Next", "b", "a")]
    base = graph(item("a"), item("b"), item("c"), *edges)
    theirs = graph(item("a", rank_0=1), item("b"), item("c"), *edges[:2])
    merged = combine(base, graph(item("b")), theirs, "theirs", False)
    assert merged.state == graph(item("a", rank_0=1), item("b"), edges[0])
    assert combine(base, graph(item("b")), theirs, "ours", False).state == graph(item("b"))


def test_the_bases_of_a_criss_cross() -> None:
    listed = [("0", None, None), ("a", "0", None), ("b", "0", None), ("x", "a", "b"), ("y", "b", "a")]
    nodes = {name: Node(name, parent, merged) for name, parent, merged in listed}
    assert bases(nodes, "x", "y") == {"a", "b"}
    assert bases(nodes, "x", "a") == {"a"}
