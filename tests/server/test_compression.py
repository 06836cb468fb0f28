"""Answers are compressed for clients that ask, and streams still stream."""

from __future__ import annotations

import gzip
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import orjson
import pytest
import zstandard

import omnigraph as og
from tests.server.serving import ADD, ALL, Served, assert_error, serving, settings_of

ARROW = "application/vnd.apache.arrow.stream"


@pytest.fixture(scope="module")
def large(graph_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server of a graph with enough rows for an answer of several pieces."""
    folder = tmp_path_factory.mktemp("large")
    path = Path(shutil.copytree(graph_template, folder / "people.omni"))
    with og.open(path) as graph:
        graph.load([{"type": "Person", "data": {"name": f"person {n:06}", "age": n}} for n in range(12_000)])
    with serving(settings_of(path)) as served:
        yield served


def asked(served: Served, encoding: str, path: str = "/query", **headers: str) -> httpx.Response:
    body = {"query": ALL} if path == "/query" else {}
    return served.post(path, body, headers={"Accept-Encoding": encoding, **headers})


@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
@pytest.mark.parametrize("accept", ["application/json", ARROW, "application/x-ndjson"])
def test_answers_are_compressed_when_asked(large: Served, encoding: str, accept: str) -> None:
    plain = asked(large, "identity", Accept=accept)
    assert "content-encoding" not in plain.headers
    assert int(plain.headers["content-length"]) == len(plain.content)
    packed = asked(large, encoding, Accept=accept)
    assert packed.headers["content-encoding"] == encoding
    assert "accept-encoding" in packed.headers["vary"].lower()
    assert packed.content == plain.content
    assert packed.num_bytes_downloaded < len(plain.content)


def test_the_servers_choice_and_small_answers(large: Served) -> None:
    assert asked(large, "gzip, zstd").headers["content-encoding"] == "zstd"
    assert "content-encoding" not in asked(large, "br").headers
    assert "content-encoding" not in large.get("/branches", headers={"Accept-Encoding": "gzip"}).headers
    assert_error(large.get("/none", headers={"Accept-Encoding": "gzip"}), 404, "not_found")


@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
def test_an_export_comes_in_pieces(large: Served, encoding: str) -> None:
    plain = asked(large, "identity", "/export").content
    headers = {"Accept-Encoding": encoding}
    with large.http.stream("POST", "/graphs/people/export", json={}, headers=headers) as answer:
        assert answer.headers["content-encoding"] == encoding
        packed = list(answer.iter_raw())
    assert len(packed) > 3
    whole = b"".join(packed)
    unpacked = (
        gzip.decompress(whole) if encoding == "gzip" else zstandard.ZstdDecompressor().decompressobj().decompress(whole)
    )
    assert unpacked == plain
    assert len(whole) < len(plain) / 2


def test_events_are_sent_at_once(served: Served) -> None:
    headers = {"Accept-Encoding": "gzip"}
    with served.http.stream("GET", "/graphs/people/changes/stream", headers=headers, timeout=30) as events:
        assert events.headers["content-encoding"] == "gzip"
        lines = events.iter_lines()
        assert next(lines) == ": connected"
        began = time.monotonic()
        commit = served.mutate(ADD, name="eve")["commit"]["graph_commit_id"]
        assert next(line for line in lines if line.startswith("data:") and commit in line)
        assert time.monotonic() - began < 20


def test_blobs_go_out_as_they_are(reading: Served) -> None:
    selector = {"entity": "node", "type": "Doc", "id": "hello", "property": "content"}
    answer = reading.get("/blob", params=selector, headers={"Accept-Encoding": "gzip, zstd"})
    assert "content-encoding" not in answer.headers
    assert (answer.content, answer.headers["content-length"]) == (b"Hello World", "11")


def test_errors_have_the_id_of_their_request(served: Served) -> None:
    """One error of each status that a client can cause, also the 409 of a lost race: all name their request."""
    commit = served.head()
    served.post("/branches", {"name": "b"})
    for status, answer in {
        400: served.post("/query", {"query": "nonsense"}),
        401: httpx.get(f"{served.url}/graphs/people/branches"),
        404: served.get("/commits/none"),
        405: served.request("PUT", "/branches"),
        409: served.post("/branches", {"name": "b"}),
        412: served.post(
            "/mutate/if-graph-commit",
            {"query": ADD, "params": {"name": "x"}},
            headers={"Omnigraph-If-Graph-Commit": "01ARZ3NDEKTSV4RRFFQ69G5FAV"},
        ),
        413: served.get(f"/commits/{commit}/changes", params={"limit": 9000}),
        415: served.post("/load/ndjson", content=b"", headers={"Content-Type": "text/plain"}),
    }.items():
        assert answer.status_code == status, answer.text
        assert orjson.loads(answer.content)["request_id"] == answer.headers["x-request-id"]
