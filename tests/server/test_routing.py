"""Who is let in, which graph is meant, and what a request that goes nowhere is told."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from omnigraph.server.settings import GraphSource
from tests.server.serving import ADD, ALL, TOKEN, Served, assert_error, serving, settings_of, without_id


def test_healthz_is_open(reading: Served) -> None:
    answer = httpx.get(f"{reading.url}/healthz")
    assert (answer.status_code, answer.json()) == (
        200,
        {"status": "ok", "version": "0.1.0", "internal_schema_version": 4},
    )


def test_readyz_names_graphs_only_to_who_has_a_token(reading: Served) -> None:
    assert httpx.get(f"{reading.url}/readyz").json() == {"status": "ready"}
    assert reading.http.get("/readyz").json() == {"status": "ready", "graphs": {"people": "ready"}}


def test_graphs_lists_ids_and_uris(reading: Served) -> None:
    answer = reading.http.get("/graphs")
    assert answer.json() == {"graphs": [{"graph_id": "people", "uri": str(reading.path)}]}
    assert_error(reading.http.post("/graphs"), 405, "method_not_allowed")


@pytest.mark.parametrize(
    ("headers", "error"),
    [
        ([], "missing bearer token"),
        ([("Authorization", "Basic abc")], "missing bearer token"),
        ([("Authorization", f"bearer {TOKEN}")], "missing bearer token"),
        ([("Authorization", "Bearer")], "invalid bearer token"),
        ([("Authorization", f"Bearer  {TOKEN}")], "invalid bearer token"),
        ([("Authorization", f"Bearer {TOKEN}x")], "invalid bearer token"),
        ([("Authorization", f"Bearer {TOKEN[:-1]}")], "invalid bearer token"),
        ([("Authorization", f"Bearer {TOKEN.upper()}")], "invalid bearer token"),
        ([("Authorization", f"Bearer {TOKEN}"), ("Authorization", f"Bearer {TOKEN}")], "invalid bearer token"),
    ],
)
@pytest.mark.parametrize("path", ["/graphs", "/graphs/people/snapshot", "/graphs/none/snapshot", "/metrics"])
def test_401(reading: Served, headers: list[tuple[str, str]], error: str, path: str) -> None:
    answer = httpx.get(f"{reading.url}{path}", headers=headers)
    assert_error(answer, 401, "unauthorized", error)
    assert answer.headers["www-authenticate"] == "Bearer"
    assert answer.json()["error"] == error


@pytest.mark.parametrize(
    "graph_id", ["no_such", "a.b", "healthz", "graphs", "openapi", "policies", "x" * 65, "a%2Fb", "%00"]
)
def test_a_malformed_graph_id_is_400(reading: Served, graph_id: str) -> None:
    assert_error(reading.http.get(f"/graphs/{graph_id}/snapshot"), 400, "bad_request", "a graph id")


def test_an_unknown_graph_is_404(reading: Served) -> None:
    answer = reading.http.get("/graphs/none/snapshot")
    assert_error(answer, 404, "not_found")
    assert answer.json()["error"] == "graph 'none' not found"


@pytest.mark.parametrize(
    "path",
    ["/snapshot", "/query", "/", "/graphs/", "/graphs/people", "/graphs/people/", "/graphs/people/none", "/healthz/"],
)
def test_an_unknown_path_is_404(reading: Served, path: str) -> None:
    assert_error(reading.http.get(path), 404, "not_found", "there is nothing at this path")


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("GET", "/graphs/people/query", "POST"),
        ("POST", "/graphs/people/snapshot", "GET"),
        ("HEAD", "/graphs/people/snapshot", "GET"),
        ("PUT", "/graphs/people/branches", "GET, POST"),
        ("POST", "/healthz", "GET"),
        ("OPTIONS", "/graphs/people/blob", "GET, HEAD"),
    ],
)
def test_a_wrong_method_is_405(reading: Served, method: str, path: str, allowed: str) -> None:
    answer = reading.http.request(method, path)
    assert answer.status_code == 405
    assert sorted(answer.headers["allow"].split(", ")) == sorted(allowed.split(", "))
    if method != "HEAD":
        assert_error(answer, 405, "method_not_allowed", "method not allowed")
    assert "access-control-allow-origin" not in answer.headers


def test_the_order_of_checks(graph_path: Path) -> None:
    """Token, then graph, then the request, then permission: each hides what comes behind it."""
    with serving(settings_of(graph_path, rights="default-deny", one_time_token=TOKEN)) as served:
        anonymous = httpx.Client(base_url=served.url)
        assert anonymous.post("/graphs/no_such/mutate", content=b"{").status_code == 401
        assert served.http.post("/graphs/no_such/mutate", content=b"{").status_code == 400
        assert served.http.post("/graphs/none/mutate", content=b"{").status_code == 404
        assert_error(served.post("/mutate", content=b"{"), 400, "bad_request", "invalid request body")
        assert_error(served.post("/mutate", {"query": "nonsense"}), 403, "forbidden", "default-deny")


def test_request_ids(reading: Served) -> None:
    answer = reading.get("/none", headers={"X-Request-Id": "abc-1"})
    assert answer.headers["x-request-id"] == "abc-1"
    assert answer.json()["request_id"] == "abc-1"
    made = reading.get("/snapshot", headers={"X-Request-Id": "not shown!"}).headers["x-request-id"]
    assert len(made) == 26


def test_the_actor_comes_from_the_token_alone(served: Served) -> None:
    answer = served.post(
        "/mutate",
        {"query": ADD, "params": {"name": "eve"}},
        headers={"X-Actor-Id": "root", "X-Omnigraph-Actor": "root"},
    )
    assert answer.json()["actor_id"] == "default"
    assert answer.json()["commit"]["actor_id"] == "default"


def test_open_mode(graph_path: Path) -> None:
    with serving(settings_of(graph_path, rights="open", one_time_token=None)) as served:
        assert served.get("/snapshot").status_code == 200
        assert served.mutate(ADD, name="eve")["actor_id"] is None
        assert served.post("/queries/people").status_code == 200
        assert_error(served.http.get("/graphs"), 403, "forbidden", "graph_list")


def test_default_deny(graph_path: Path) -> None:
    with serving(settings_of(graph_path, rights="default-deny")) as served:
        assert served.get("/snapshot").status_code == 200
        assert served.post("/query", {"query": ALL}).json()["row_count"] == 2
        assert served.get("/queries").json()["queries"] != []
        for method, path, body in (
            ("POST", "/mutate", {"query": ADD}),
            ("POST", "/change", {"query": ADD}),
            ("POST", "/load", {"data": ""}),
            ("POST", "/ingest", {"data": ""}),
            ("POST", "/branches", {"name": "b"}),
            ("DELETE", "/branches/b", None),
            ("POST", "/branches/merge", {"source": "b"}),
            ("POST", "/schema/apply", {"schema_source": "x"}),
            ("POST", "/export", {}),
            ("POST", "/changes/baseline", {}),
        ):
            answer = served.request(method, path, **({} if body is None else {"json": body}))
            assert answer.status_code == 403, (path, answer.text)
            assert "default-deny" in answer.json()["error"]
        lines = served.post("/load/ndjson", content=b"", headers={"Content-Type": "application/x-ndjson"})
        assert_error(lines, 403, "forbidden", "policy denied action 'change' on branch 'main' for actor 'default'")
        same = {"X-Request-Id": "same"}
        hidden, unknown = (served.post(f"/queries/{name}", headers=same) for name in ("people", "none"))
        assert_error(unknown, 404, "not_found", "stored query not found")
        assert hidden.content == unknown.content
        assert_error(served.http.get("/graphs"), 403, "forbidden", "default-deny")


def test_read_only(graph_path: Path) -> None:
    with serving(settings_of(graph_path, read_only=True)) as served:
        assert served.post("/query", {"query": ALL}).status_code == 200
        assert served.post("/export", {}).status_code == 200
        assert_error(served.post("/mutate", {"query": ADD}), 403, "forbidden", "read-only")
        assert_error(served.post("/queries/add_person", {}), 403, "forbidden", "read-only")


def test_a_broken_graph_is_quarantined(graph_path: Path, tmp_path: Path) -> None:
    sources = (GraphSource("broken", str(tmp_path / "none.omni")), GraphSource("people", str(graph_path)))
    with serving(settings_of(graph_path, graphs=sources)) as served:
        assert [graph["graph_id"] for graph in served.http.get("/graphs").json()["graphs"]] == ["people"]
        answer = served.http.get("/graphs/broken/snapshot")
        assert_error(answer, 404, "not_found", "graph 'broken' not found")
        ready = served.http.get("/readyz")
        assert ready.status_code == 503
        assert ready.json() == {"status": "unavailable", "graphs": {"broken": "quarantined", "people": "ready"}}


def test_metrics(served: Served) -> None:
    served.mutate(ADD, name="eve")
    served.get("/none")
    text = served.http.get("/metrics").text
    assert 'omnigraph_requests_total{operation="mutate",status="200"} 1.0' in text
    assert 'omnigraph_requests_total{operation="unknown",status="404"} 1.0' in text
    assert 'omnigraph_commits_total{graph="people"} 1.0' in text
    assert TOKEN not in text


def test_errors_hold_no_places(served: Served) -> None:
    """What a client is told names neither folders nor buckets."""
    for answer in (
        served.get("/commits/01ARZ3NDEKTSV4RRFFQ69G5FAV"),
        served.get("/snapshot", params={"branch": "none"}),
        served.post("/branches", {"name": "a/../b"}),
        served.post("/query", {"query": "/etc/passwd.gq"}),
        served.post("/schema/apply", {"schema_source": "/etc/passwd.pg"}),
    ):
        assert answer.status_code in (400, 404)
        assert str(served.path.parent) not in answer.text
        assert "root:" not in answer.text
        without_id(answer)
