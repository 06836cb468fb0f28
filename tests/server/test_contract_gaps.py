"""Rows of the wire contract that no other page of tests holds: branches that are not there, references, recovery, headers."""

from __future__ import annotations

import os
import signal
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

import omnigraph as og
from omnigraph import failpoints
from tests.server.serving import ADD, ALL, SCHEMA, Served, without_id
from tests.server.test_process import _eventually, children, started

LINES = {"Content-Type": "application/x-ndjson"}
ROW = '{"type":"Person","data":{"name":"x"}}'


@pytest.mark.parametrize(
    ("method", "path", "options"),
    [
        ("GET", "/snapshot?branch=zz", {}),
        ("POST", "/query", {"json": {"query": ALL, "branch": "zz"}}),
        ("POST", "/read", {"json": {"query_source": ALL, "branch": "zz"}}),
        ("POST", "/mutate", {"json": {"query": ADD, "params": {"name": "x"}, "branch": "zz"}}),
        ("POST", "/change", {"json": {"query": ADD, "params": {"name": "x"}, "branch": "zz"}}),
        ("POST", "/queries/people", {"json": {"branch": "zz"}}),
        ("POST", "/load", {"json": {"data": ROW, "branch": "zz"}}),
        ("POST", "/ingest", {"json": {"data": ROW, "branch": "zz"}}),
        ("POST", "/load/ndjson?branch=zz", {"content": ROW, "headers": LINES}),
        ("POST", "/branches", {"json": {"name": "b", "from": "zz"}}),
        ("DELETE", "/branches/zz", {}),
        ("POST", "/branches/merge", {"json": {"source": "zz"}}),
        ("GET", "/commits?branch=zz", {}),
        ("GET", "/changes?branch=zz", {}),
        ("POST", "/changes/baseline", {"json": {"branch": "zz"}}),
        ("POST", "/export", {"json": {"branch": "zz"}}),
        ("GET", "/blob?entity=node&type=Doc&id=hello&property=content&branch=zz", {}),
    ],
)
def test_branches_that_are_not_there(reading: Served, method: str, path: str, options: Any) -> None:
    answer = reading.request(method, path, **options)
    assert answer.status_code == 404
    assert without_id(answer) == {"error": "branch 'zz' not found", "code": "not_found"}


@pytest.mark.parametrize(
    ("path", "successor", "body"),
    [
        ("/read", "query", {"query_source": "x"}),
        ("/change", "mutate", {"query": "x"}),
        ("/ingest", "load", {"data": "{"}),
    ],
)
def test_errors_of_older_routes_name_their_successor_too(reading: Served, path: str, successor: str, body: Any) -> None:
    answer = reading.post(path, body)
    assert answer.status_code == 400
    assert answer.headers["deprecation"] == "true"
    assert answer.headers["link"] == f'<{successor}>; rel="successor-version"'


def test_a_reference_that_can_not_be_read(served: Served, tmp_path: Path) -> None:
    """424 has no code, and names what could not be read; nothing is written."""
    known = served.state.graphs.healthy
    with og.open(served.path, external_blobs=[tmp_path.as_uri()]) as allowing:
        known["people"] = replace(known["people"], graph=allowing)
        missing = (tmp_path / "missing.bin").as_uri()
        query = "query add($c: Blob) { insert Doc { title: 'far', content: $c } }".replace("'", '"')
        answer = served.post("/mutate", {"query": query, "params": {"c": missing}})
        assert answer.status_code == 424, answer.text
        body = without_id(answer)
        assert set(body) == {"error", "external_blob_source"}
        assert set(body["external_blob_source"]) == {"uri", "reason"}
        assert len(served.get("/commits").json()["commits"]) == 2


def test_a_write_that_waits_for_recovery(served: Served) -> None:
    """503 has no code, and names the operation; the next write heals it."""
    body = {"query": ADD, "params": {"name": "eve"}}
    with failpoints.armed("mutation.post_phase_b_pre_manifest_commit"), failpoints.armed("recovery.record_audit"):
        answer = served.post("/mutate", body)
    assert answer.status_code == 503, answer.text
    told = without_id(answer)
    assert set(told) == {"error", "recovery_required"}
    assert set(told["recovery_required"]) == {"operation_id"}
    assert served.post("/mutate", {"query": ADD, "params": {"name": "fay"}}).status_code == 200


def test_a_main_that_is_to_be_deleted(served: Served) -> None:
    answer = served.request("DELETE", "/branches/main")
    assert answer.status_code == 400
    assert without_id(answer) == {"error": "cannot delete branch 'main'", "code": "bad_request"}


# --- receipts, from any worker and after any restart --------------------------------------------------------------------


def _asked(http: httpx.Client, name: str) -> httpx.Response:
    """A request under a key, by what it is about."""
    key = {"Idempotency-Key": f"key of {name}"}
    place = "/graphs/people"
    wider = SCHEMA.replace("age: I32?", "age: I32?\n  nick: String?")
    requests: dict[str, tuple[str, str, Any]] = {
        "create": ("POST", "/branches", {"name": "b"}),
        "delete": ("DELETE", "/branches/old", None),
        "tag": ("POST", "/tags", {"name": "t"}),
        "config": ("PUT", "/config", {"name": "merge.level", "value": "property"}),
        "schema": ("POST", "/schema/apply", {"schema_source": wider}),
        "optimize": ("POST", "/optimize", {}),
        "mutate": ("POST", "/mutate", {"query": ADD, "params": {"name": "eve"}}),
        "load": ("POST", "/load", {"data": ROW}),
    }
    method, path, body = requests[name]
    return http.request(method, place + path, headers=key, **({} if body is None else {"json": body}))


NAMES = ("create", "delete", "tag", "config", "schema", "optimize", "mutate", "load")


def test_receipts_of_every_route_outlive_workers_and_servers(graph_path: Path, tmp_path: Path) -> None:
    """Each request is sent several times at once to two workers, again after the workers are killed, and to another server."""
    first: dict[str, bytes] = {}
    with started(tmp_path, str(graph_path), "--workers", "2") as server:
        with server.client() as http:
            assert http.post("/graphs/people/branches", json={"name": "old"}).status_code == 200

        def send(name: str) -> httpx.Response:
            with server.client() as http:
                return _asked(http, name)

        for name in NAMES:
            with ThreadPoolExecutor(4) as pool:
                answers = list(pool.map(send, [name] * 4))
            assert [answer.status_code for answer in answers] == [200] * 4, (name, [answer.text for answer in answers])
            assert len({answer.content for answer in answers}) == 1, name
            first[name] = answers[0].content
        for worker in children(server.process.pid):
            os.kill(worker, signal.SIGKILL)
        _eventually(lambda: _answers(server.client()))
        for name in NAMES:
            assert send(name).content == first[name]
        commits = send("mutate").json()["commit"]
        os.kill(server.process.pid, signal.SIGKILL)
    with started(tmp_path, str(graph_path)) as server, server.client() as http:
        for name in NAMES:
            assert _asked(http, name).content == first[name]
        assert _asked(http, "mutate").json()["commit"] == commits
        assert http.get("/graphs/people/branches").json() == {"branches": ["b", "main"]}


def _answers(http: httpx.Client) -> bool:
    with http:
        try:
            return http.get("/healthz").status_code == 200
        except httpx.HTTPError:
            return False
