"""Snapshots by time and by ancestor."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.cli.wording import iso
from omnigraph.errors import BadRequest, BranchNotFound, CommitNotFound
from omnigraph.graph.snapshot import Past, read_past
from tests.mutation.org_graph import call, commit_of, org_graph

NOW = datetime(2026, 11, 18, 12, 0, tzinfo=UTC)
HOUR = 3_600_000_000


def micros(moment: datetime) -> int:
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


@pytest.mark.parametrize(
    ("text", "past"),
    [
        ("2026-11-18T12:00:00Z", Past("", micros(NOW), 0)),
        ("2026-11-18 12:00:00", Past("", micros(NOW), 0)),
        ("2026-11-18T13:00:00.000001+01:00", Past("", micros(NOW) + 1, 0)),
        ("2026-11-18t12:00:00z", Past("", micros(NOW), 0)),
        ("2026-11-18 13:00:00 +01:00", Past("", micros(NOW), 0)),
        ("main@{2026-11-18t12:00:00 z}", Past("main", micros(NOW), 0)),
        ("2026-11-18", Past("", micros(NOW) - 12 * HOUR, 0)),
        ("main~3", Past("main", None, 3)),
        ("main~", Past("main", None, 1)),
        ("~2", Past("", None, 2)),
        ("main~0", Past("main", None, 0)),
        ("agent/x@{2 days ago}", Past("agent/x", micros(NOW) - 48 * HOUR, 0)),
        ("@{1 hour ago}", Past("", micros(NOW) - HOUR, 0)),
        ("main@{3 weeks ago}~2", Past("main", micros(NOW) - 21 * 24 * HOUR, 2)),
        ("main@{2026-11-18T12:00:00Z}", Past("main", micros(NOW), 0)),
        ("main@{now}", Past("main", micros(NOW), 0)),
        ("main", None),
        ("main~x", None),
        ("main~1~1", None),
        ("main@2", None),
        ("main@{1 day ago", None),
        ("", None),
    ],
)
def test_what_a_text_says(text: str, past: Past | None) -> None:
    assert read_past(text, NOW) == past


@pytest.mark.parametrize(
    "text",
    ["2026-13-01T00:00:00Z", "2026-11-16T25:00:00Z", "main@{}", "main@{yesterday}", "main@{999999999 weeks ago}"],
)
def test_what_is_no_time(text: str) -> None:
    with pytest.raises(BadRequest):
        read_past(text, NOW)


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    return org_graph(tmp_path / "g")


def at(graph: og.Graph, reference: Any) -> str:
    return graph.snapshot(at=reference).commit


def test_ancestors_follow_first_parents(graph: og.Graph) -> None:
    before = graph.head()
    graph.create_branch("x")
    on_x = commit_of(call(graph, "put", "eve", 1, branch="x"))
    call(graph, "put", "fay", 1)
    fay = graph.head()
    graph.merge("x", delete_branch=True)
    merge = graph.head()
    assert [at(graph, f"main~{back}") for back in range(3)] == [merge.id, fay.id, before.id]
    assert at(graph, "main~") == at(graph, "~1") == at(graph, f"{merge.id}~1") == fay.id
    # Also from a commit whose branch is gone.
    assert at(graph, f"{on_x.id}~1") == before.id
    graph.tag("done")
    assert at(graph, "done~2") == before.id
    with pytest.raises(CommitNotFound, match="before the first commit"):
        at(graph, "main~99")


def test_times(graph: og.Graph) -> None:
    first = commit_of(call(graph, "put", "eve", 1))
    second = commit_of(call(graph, "put", "fay", 1))
    moment = datetime.fromtimestamp(0, UTC) + timedelta(microseconds=second.created_at - 1)
    references: list[Any] = [
        iso(second.created_at - 1),
        moment,
        moment.replace(tzinfo=None),
        moment.astimezone(timezone(timedelta(hours=5))),
        f"main@{{{iso(second.created_at - 1)}}}",
    ]
    assert {at(graph, reference) for reference in references} == {first.id}
    assert (
        at(graph, iso(second.created_at)) == at(graph, "main@{now}") == at(graph, "main@{0 seconds ago}") == second.id
    )
    assert at(graph, f"main@{{{iso(second.created_at)}}}~1") == first.id
    # What was merged later is not seen before it was merged.
    graph.create_branch("x", "main")
    call(graph, "put", "gus", 1, branch="x")
    between = graph.head("x").created_at
    graph.merge("x")
    assert at(graph, iso(between)) == second.id
    assert at(graph, f"x@{{{iso(between)}}}") == graph.head("x").id
    source = "query q() { match { $s: Staff } return { count($s) as n } }"
    rows = [graph.query(source, snapshot=reference).rows[0]["n"] for reference in (moment, "main~1", "main")]
    assert rows == [5, 6, 7]


@pytest.mark.parametrize(
    ("reference", "error", "words"),
    [
        ("2999-01-01T00:00:00Z", BadRequest, "in the future"),
        ("1999-01-01T00:00:00Z", CommitNotFound, "before the first commit"),
        ("main@{3000 weeks ago}", CommitNotFound, "before the first commit"),
        ("nothing~1", BranchNotFound, "neither a branch nor a tag nor a commit"),
        ("v1@{1 hour ago}", BadRequest, "only a branch"),
        ("both", BadRequest, "is a tag and a branch"),
        ("both~1", BadRequest, "is a tag and a branch"),
        ("nothing", BadRequest, "names no snapshot"),
        ("main~x", BadRequest, "names no snapshot"),
    ],
)
def test_what_is_refused(graph: og.Graph, reference: str, error: type[Exception], words: str) -> None:
    graph.tag("v1")
    graph.tag("both")
    graph.create_branch("both")
    with pytest.raises(error, match=words):
        at(graph, reference)


def test_a_branch_and_a_snapshot_exclude_each_other(graph: og.Graph) -> None:
    with pytest.raises(BadRequest, match="exclude each other"):
        graph.query("query q() { match { $s: Staff } return { $s.handle } }", branch="main", snapshot="main~1")


def test_the_feed_starts_behind_an_ancestor(graph: og.Graph) -> None:
    call(graph, "put", "eve", 1)
    call(graph, "put", "fay", 1)
    told = [change.id for block in graph.changes(start="after:main~1").blocks for change in block.changes]
    assert told == ["fay"]
    with pytest.raises(CommitNotFound):
        graph.changes(start="after:main~99")
