"""Blob values on the wire: ranges, conditions, external values; rows 5 and 6 and section 6."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

import omnigraph as og
from tests.server.serving import Served, assert_error, serving, settings_of

HELLO = {"entity": "node", "type": "Doc", "id": "hello", "property": "content"}
CONTENT = b"Hello World"


def blob(served: Served, method: str = "GET", headers: Any = None, **changes: str) -> httpx.Response:
    return served.request(method, "/blob", params={**HELLO, **changes}, headers=headers)


def etag(served: Served) -> str:
    return blob(served, "HEAD").headers["etag"]


def test_the_whole_value(reading: Served) -> None:
    answer = blob(reading)
    assert (answer.status_code, answer.content) == (200, CONTENT)
    assert answer.headers["content-type"] == "application/octet-stream"
    assert answer.headers["content-length"] == "11"
    assert answer.headers["accept-ranges"] == "bytes"
    assert re.fullmatch(r'"[0-9a-f]{32}"', answer.headers["etag"])
    assert answer.headers["omnigraph-snapshot-id"].startswith("manifest:main:v")


def test_head(reading: Served) -> None:
    answer = blob(reading, "HEAD", {"Range": "bytes=0-1", "If-Range": '"x"'})
    assert (answer.status_code, answer.content) == (200, b"")
    whole = blob(reading)
    for name in ("content-type", "content-length", "accept-ranges", "etag", "omnigraph-snapshot-id"):
        assert answer.headers[name] == whole.headers[name]


@pytest.mark.parametrize(
    ("asked", "expected", "told"),
    [
        ("bytes=0-4", b"Hello", "bytes 0-4/11"),
        ("bytes=6-", b"World", "bytes 6-10/11"),
        ("bytes=-3", b"rld", "bytes 8-10/11"),
        ("bytes=-100", CONTENT, "bytes 0-10/11"),
        ("bytes=4-100", b"o World", "bytes 4-10/11"),
    ],
)
def test_one_range(reading: Served, asked: str, expected: bytes, told: str) -> None:
    answer = blob(reading, headers={"Range": asked})
    assert (answer.status_code, answer.content) == (206, expected)
    assert answer.headers["content-range"] == told
    assert answer.headers["content-length"] == str(len(expected))


@pytest.mark.parametrize(
    "asked", ["bytes=0-1,3-4", "bytes=a-b", "bytes=", "bytes=-", "items=0-1", "bytes=4-2", "bytes 0-1"]
)
def test_other_ranges_are_ignored(reading: Served, asked: str) -> None:
    answer = blob(reading, headers={"Range": asked})
    assert (answer.status_code, answer.content) == (200, CONTENT)


@pytest.mark.parametrize(
    ("asked", "start", "end"), [("bytes=11-", 11, 11), ("bytes=50-60", 50, 61), ("bytes=-0", 11, 11)]
)
def test_unsatisfiable_ranges(reading: Served, asked: str, start: int, end: int) -> None:
    answer = blob(reading, headers={"Range": asked})
    assert_error(answer, 416, "bad_request", blob_range={"start": start, "end": end, "length": 11})
    assert answer.headers["content-range"] == "bytes */11"


def test_if_match(reading: Served) -> None:
    tag = etag(reading)
    for given in (tag, f'"other", {tag}', "*"):
        assert blob(reading, headers={"If-Match": given}).status_code == 200
    for given in ('"other"', f"W/{tag}", "nonsense"):
        answer = blob(reading, headers={"If-Match": given, "If-None-Match": tag})
        assert_error(answer, 412, "conflict", "If-Match")
        assert answer.headers["etag"] == tag
        assert blob(reading, "HEAD", {"If-Match": given}).status_code == 412


def test_if_none_match(reading: Served) -> None:
    tag = etag(reading)
    for given in (tag, f"W/{tag}", f'"other", {tag}', "*"):
        answer = blob(reading, headers={"If-None-Match": given, "Range": "bytes=0-1"})
        assert (answer.status_code, answer.content) == (304, b"")
        assert answer.headers["etag"] == tag
        assert blob(reading, "HEAD", {"If-None-Match": given}).status_code == 304
    assert blob(reading, headers={"If-None-Match": '"other"'}).status_code == 200


def test_if_range(reading: Served) -> None:
    tag = etag(reading)
    assert blob(reading, headers={"Range": "bytes=0-1", "If-Range": tag}).status_code == 206
    for given in ('"other"', f"W/{tag}", "Wed, 21 Oct 2015 07:28:00 GMT"):
        assert blob(reading, headers={"Range": "bytes=0-1", "If-Range": given}).status_code == 200


def test_at_a_branch_and_a_snapshot(reading: Served) -> None:
    assert blob(reading, branch="main").content == CONTENT
    assert blob(reading, snapshot=reading.head()).content == CONTENT


@pytest.mark.parametrize(
    ("changes", "status", "code", "error"),
    [
        ({"id": "none"}, 404, "not_found", "not found"),
        ({"id": "empty"}, 404, "not_found", "content is null"),
        ({"property": "title"}, 400, "bad_request", "is not a Blob property"),
        ({"type": "None"}, 400, "bad_request", "is not a Blob property"),
        ({"entity": "thing"}, 400, "bad_request", "invalid Blob selector query parameters: "),
        ({"more": "1"}, 400, "bad_request", "invalid Blob selector query parameters: "),
        ({"branch": "none"}, 404, "not_found", "branch 'none' not found"),
        ({"snapshot": "none"}, 404, "not_found", "commit 'none' not found"),
        ({"branch": "main", "snapshot": "x"}, 400, "bad_request", "exclude each other"),
    ],
)
def test_errors(reading: Served, changes: dict[str, str], status: int, code: str, error: str) -> None:
    assert_error(blob(reading, **changes), status, code, error)
    assert blob(reading, "HEAD", **changes).status_code == status


def test_a_selector_is_whole(reading: Served) -> None:
    answer = reading.get("/blob", params={"entity": "node"})
    assert_error(answer, 400, "bad_request", "invalid Blob selector query parameters: object missing required field")
    twice = reading.get("/blob", params=[*HELLO.items(), ("id", "x")])
    assert_error(twice, 400, "bad_request", "invalid Blob selector query parameters: 'id' is given twice")


def test_a_blob_of_an_edge(reading: Served) -> None:
    answer = blob(reading, entity="edge", type="Wrote", id="w1", property="draft")
    assert answer.content == b"\x01\x02\x03"


@pytest.fixture
def external(graph_path: Path, tmp_path: Path) -> Iterator[Served]:
    target = tmp_path / "outside.bin"
    target.write_bytes(b"outside")
    uri = target.as_uri()
    with og.open(graph_path, external_blobs=[tmp_path.as_uri()]) as graph:
        graph.load([{"type": "Doc", "data": {"title": "far", "content": uri}}], "merge")
    with serving(settings_of(graph_path)) as served:
        yield served


def test_an_external_value_is_pointed_at(external: Served) -> None:
    for method in ("GET", "HEAD"):
        answer = blob(external, method, id="far")
        assert (answer.status_code, answer.content) == (302, b"")
        assert answer.headers["location"].endswith("/outside.bin")
        assert answer.headers["cache-control"] == "no-store"
        assert "etag" not in answer.headers


def test_a_value_of_several_chunks(served: Served, tmp_path: Path) -> None:
    content = bytes(range(256)) * (9 * 2**20 // 256)
    graph = served.state.graphs.healthy["people"].graph
    graph.load(
        [{"type": "Doc", "data": {"title": "large", "content": f"base64:{base64.b64encode(content).decode()}"}}],
        "merge",
    )
    assert blob(served, id="large").content == content
    part = blob(served, headers={"Range": "bytes=4194300-4194310"}, id="large")
    assert part.content == content[4194300:4194311]
