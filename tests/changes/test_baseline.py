"""CHG-33: a baseline is an export and the cursor behind it."""

from __future__ import annotations

import io
from pathlib import Path

import orjson
import pytest

import omnigraph as og
from omnigraph import failpoints
from omnigraph.errors import BadRequest, ChangeCursorRejected, ChangeFeedGap, Conflict
from omnigraph.storage.file_lock import try_lock, unlock
from tests.changes.test_commit_changes import made, reclaim
from tests.mutation.org_graph import call, org_graph


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    return org_graph(tmp_path / "g")


@pytest.mark.row("CHG-33")
def test_after_a_gap(graph: og.Graph, tmp_path: Path, row: list[str]) -> None:
    lost = graph.changes().cursor
    call(graph, "put", "eve", 1)
    reclaim(graph)
    graph = og.open(graph.uri)
    with pytest.raises(ChangeFeedGap):
        graph.changes(cursor=lost)
    captured = graph.baseline(out=tmp_path / "all.jsonl")
    graph.export(tmp_path / "export.jsonl")
    assert (tmp_path / "all.jsonl").read_bytes() == (tmp_path / "export.jsonl").read_bytes()
    assert captured.entities == 12
    assert captured.commit == graph.head().id
    assert captured.to_dict() == {"snapshot_commit_id": captured.commit, "resume_cursor": captured.cursor}
    later = made(call(graph, "put", "fay", 1))
    page = graph.changes(cursor=captured.cursor)
    assert [block.commit.id for block in page.blocks] == [later]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["all.jsonl", "export.jsonl", "g"]


def test_any_sink(graph: og.Graph) -> None:
    plain = b"".join(graph.export_chunks())
    file = io.BytesIO()
    parts: list[bytes] = []
    assert graph.baseline(out=file).cursor
    assert graph.baseline(out=parts.append).entities == plain.count(b"\n")
    assert file.getvalue() == b"".join(parts) == plain
    without = graph.baseline()
    assert b"".join(graph.export_chunks(snapshot=without.snapshot)) == plain


def test_a_sink_that_fails_gives_no_cursor(graph: og.Graph, tmp_path: Path) -> None:
    def full(data: bytes) -> None:
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        graph.baseline(out=full)
    place = tmp_path / "all.jsonl"
    place.write_text("before")
    with failpoints.armed("outputs.written"), pytest.raises(failpoints.FailpointError):
        graph.baseline(out=place)
    assert place.read_text() == "before"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["all.jsonl", "g"]
    with pytest.raises(og.OmnigraphError):
        graph.baseline(out=tmp_path / "missing" / "\0")
    with pytest.raises(BadRequest):
        graph.baseline(out=tmp_path)


def test_one_at_a_time(graph: og.Graph, tmp_path: Path) -> None:
    held = try_lock(tmp_path / "all.jsonl.lock")
    assert held is not None
    with pytest.raises(Conflict, match="another baseline"):
        graph.baseline(out=tmp_path / "all.jsonl")
    unlock(held)
    assert graph.baseline(out=tmp_path / "all.jsonl").entities == 11


def test_a_filtered_baseline_goes_on_with_its_filter(graph: og.Graph) -> None:
    parts: list[bytes] = []
    captured = graph.baseline(out=parts.append, types="Staff", kinds="node")
    lines = [orjson.loads(line) for line in b"".join(parts).splitlines()]
    assert [line["type"] for line in lines] == ["Staff"] * 4
    call(graph, "put_link", "eve", 1, "ada")
    page = graph.changes(cursor=captured.cursor, types=["Staff"], kinds=["node"])
    assert [change.id for block in page.blocks for change in block.changes] == ["eve"]
    with pytest.raises(ChangeCursorRejected):
        graph.changes(cursor=captured.cursor)
    with pytest.raises(BadRequest, match="unknown type"):
        graph.baseline(types="Nothing")


def test_a_baseline_of_a_branch(graph: og.Graph) -> None:
    graph.create_branch("b")
    call(graph, "put", "eve", 1, branch="b")
    captured = graph.baseline("b")
    assert captured.commit == graph.head("b").id
    assert graph.changes("b", cursor=captured.cursor).blocks == []
    with pytest.raises(ChangeCursorRejected):
        graph.changes(cursor=captured.cursor)


def test_images_say_what_an_export_says(tmp_path: Path) -> None:
    graph = og.init(
        tmp_path / "g",
        "node T { key: String @key d: Date? t: DateTime? b: Blob? v: Vector(2)? f: F64? u: U64? l: [I32]? }",
    )
    graph.mutate(
        'query q($b: Blob, $u: U64) { insert T { key: "a", d: date("2024-01-02"), t: datetime("2024-01-02T03:04:05Z"), '
        'b: $b, v: [1.0, 2.5], f: 0.1, u: $u, l: [1, 2] } insert T { key: "b" } }',
        params={"b": "base64:AQID", "u": 2**63 - 1},
    )
    exported = {
        line["data"]["id"]: line["data"] for line in map(orjson.loads, b"".join(graph.export_chunks()).splitlines())
    }
    for change in graph.commit_changes(graph.head().id).changes:
        image = orjson.loads(orjson.dumps({"id": change.id, **(change.after or {})}))
        assert image == exported[change.id]
