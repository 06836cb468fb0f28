"""A graph from its first row to its clean-up, on every kind of store: each verb works on what the others left."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from tests.s3 import S3Server

SCHEMA = """
node Staff { handle: String @key level: I32? @index bio: String? photo: Blob? }
node Team { name: String @key }
edge Mentors: Staff -> Staff { since: Date? }
edge MemberOf: Staff -> Team @card(0..1)
"""
WRITES = """
query level($h: String, $l: I32) { update Staff set { level: $l } where handle = $h }
query leave($h: String) { delete Staff where handle = $h }
"""
PEOPLE = """query q() { match { $s: Staff } return { $s.handle, $s.level } order { $s.handle } }"""


@pytest.fixture(params=["local", "s3"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, dict[str, str]]:
    if request.param == "local":
        return str(tmp_path / "graph"), {}
    server: S3Server = request.getfixturevalue("s3_server")
    return f"s3://{server.new_bucket()}/a/graph", server.options


def staff(handle: str, **properties: Any) -> dict[str, Any]:
    return {"type": "Staff", "data": {"handle": handle, **properties}}


def people(graph: og.Graph, **where: Any) -> dict[str, int | None]:
    return {row["s.handle"]: row["s.level"] for row in graph.query(PEOPLE, **where).rows}


def test_a_life(place: tuple[str, dict[str, str]], tmp_path: Path) -> None:
    uri, options = place
    graph = og.init(uri, SCHEMA, actor="me", storage_options=options)
    rows = [staff("ada", level=30, photo="base64:AQID"), staff("ben", level=25), staff("cleo", level=40)]
    rows += [{"type": "Team", "data": {"name": "core"}}]
    rows += [{"edge": "Mentors", "from": "ada", "to": "ben", "data": {"since": "2024-02-29"}}]
    rows += [{"edge": "MemberOf", "from": name, "to": "core"} for name in ("ada", "ben")]
    first = graph.load(rows, mode="append").commit
    assert first is not None
    graph.ensure_indices()
    graph.tag("start", first.id)

    # A branch by ingest, changes on both sides, a merge.
    graph.ingest([staff("dov", level=1), staff("ada", level=31, photo="base64:BAUG")], branch="agent/1", base="main")
    graph.mutate(WRITES, "level", {"h": "cleo", "l": 41})
    graph.mutate(WRITES, "leave", {"h": "ben"}, branch="agent/1")
    assert people(graph, branch="agent/1") == {"ada": 31, "cleo": 40, "dov": 1}
    assert {(change.op, change.type, change.id) for change in graph.diff("main", "agent/1").changes} >= {
        ("delete", "Staff", "ben"),
        ("insert", "Staff", "dov"),
        ("update", "Staff", "cleo"),
    }
    merged = graph.merge("agent/1", delete_branch=True)
    assert merged.outcome == "merged"
    assert graph.branches() == ["main"]
    assert people(graph) == {"ada": 31, "cleo": 41, "dov": 1}
    assert graph.read_blob("node", "Staff", "ada", "photo").read() == b"\x04\x05\x06"

    # The schema goes on; the past stays.
    applied = graph.apply_schema(SCHEMA.replace("bio: String?", "bio: String? nick: String?"))
    assert applied.applied
    graph.mutate('query q() { update Staff set { nick: "d" } where handle = "dov" }')
    assert people(graph, snapshot="start") == {"ada": 30, "ben": 25, "cleo": 40}

    # Out and in again.
    lines = tmp_path / "out.jsonl"
    graph.export(lines)
    other = og.init(str(tmp_path / "copy"), graph.schema())
    other.load(lines, mode="append")
    assert people(other) == people(graph)
    assert other.read_blob("node", "Staff", "ada", "photo").read() == b"\x04\x05\x06"

    # Maintenance changes nothing that anybody sees, and keeps what a tag names.
    graph.optimize()
    graph.cleanup(keep=1)
    again = og.open(uri, storage_options=options)
    assert people(again) == {"ada": 31, "cleo": 41, "dov": 1}
    assert people(again, snapshot="start") == {"ada": 30, "ben": 25, "cleo": 40}
    assert again.pending_operations() == []
    head = again.head().id
    again.optimize()
    assert again.head().id == head, "there was nothing left to do"
    kinds = [commit.kind for commit in again.commits()]
    assert kinds[-1] == "init"
    assert {"load", "merge", "mutation", "schema", "maintenance"} <= set(kinds)
