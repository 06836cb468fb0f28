"""Changes, exports and baselines on the wire; rows 26 to 29 and section 5."""

from __future__ import annotations

import threading
from typing import Any

import orjson
import pytest

from tests.server.serving import ADD, AGE, DROP, SCHEMA, Served, assert_error

NDJSON = "application/x-ndjson; charset=utf-8"


def parsed(content: bytes) -> list[dict[str, Any]]:
    return [orjson.loads(line) for line in content.splitlines()]


def test_commit_changes(served: Served) -> None:
    commit = served.mutate(AGE, name="ada", age=40)["commit"]
    told = served.get(f"/commits/{commit['graph_commit_id']}/changes").json()
    assert told["cause"] == {
        "graph_commit_id": commit["graph_commit_id"],
        "authored_branch": None,
        "parent_commit_id": commit["parent_commit_id"],
        "actor_id": "default",
        "authored_at": commit["created_at"],
    }
    (change,) = told["changes"]
    assert (change["kind"], change["type"]["name"], change["id"], change["op"]) == ("node", "Person", "ada", "update")
    assert (change["before"]["properties"]["age"], change["after"]["properties"]["age"]) == (36, 40)
    assert told.keys() == {"cause", "changes"}


def test_the_order_and_shape_of_changes(served: Served) -> None:
    commit = served.mutate(DROP, name="ada")["commit"]["graph_commit_id"]
    changes = served.get(f"/commits/{commit}/changes").json()["changes"]
    assert [(change["kind"], change["type"]["name"], change["op"]) for change in changes] == [
        ("node", "Person", "delete"),
        ("edge", "Knows", "delete"),
        ("edge", "Wrote", "delete"),
    ]
    assert changes[0].keys() == {"kind", "type", "id", "op", "before"}
    assert changes[1]["before"]["endpoints"] == {"from": "ada", "to": "ben"}


def test_pages_of_a_commit(served: Served) -> None:
    commit = served.mutate(DROP, name="ada")["commit"]["graph_commit_id"]
    path = f"/commits/{commit}/changes"
    whole = served.get(path).json()["changes"]
    first = served.get(path, params={"limit": 2}).json()
    assert len(first["changes"]) == 2
    rest = served.get(path, params={"limit": 2, "page_token": first["next_page_token"]}).json()
    assert first["changes"] + rest["changes"] == whole
    assert "next_page_token" not in rest
    edges = served.get(path, params={"kind": "edge", "type": ["Knows", "Wrote"], "op": "delete"}).json()
    assert edges["changes"] == whole[1:]


def test_errors_of_commit_changes(served: Served) -> None:
    commit = served.mutate(AGE, name="ada", age=40)["commit"]["graph_commit_id"]
    path = f"/commits/{commit}/changes"
    assert_error(served.get(path, params={"none": "1"}), 400, "bad_request", "unknown field `none`")
    assert_error(served.get(path, params={"limit": 0}), 400, "bad_request", "1 to 8192")
    assert_error(served.get(path, params={"page_token": "x"}), 400, "bad_request", "change cursor rejected")
    assert_error(served.get(path, params={"kind": "none"}), 400, "bad_request", "none")
    assert_error(
        served.get(path, params={"limit": 8193}),
        413,
        "bad_request",
        resource_limit={"resource": "commit_changes_page_changes", "limit": 8192, "actual": 8193},
    )
    unknown = served.get("/commits/01ARZ3NDEKTSV4RRFFQ69G5FAV/changes")
    assert_error(unknown, 404, "not_found", "commit '01ARZ3NDEKTSV4RRFFQ69G5FAV' not found")
    first = served.get("/commits").json()["commits"][-1]["graph_commit_id"]
    assert_error(
        served.get(f"/commits/{first}/changes"),
        409,
        "conflict",
        change_diff_refusal={"reason": "parentless_commit", "graph_commit_id": first},
    )


def test_a_schema_boundary(served: Served) -> None:
    wanted = SCHEMA.replace("  day: Date?\n", "")
    commit = served.post("/schema/apply", {"schema_source": wanted}).json()["commit"]
    assert_error(
        served.get(f"/commits/{commit}/changes"),
        409,
        "conflict",
        change_diff_refusal={"reason": "schema_boundary", "graph_commit_id": commit, "type_name": "Person"},
    )


def test_the_feed(served: Served) -> None:
    start = served.get("/changes").json()
    assert (start["blocks"], start["caught_up"]) == ([], True)
    commits = [served.mutate(ADD, name=name)["commit"]["graph_commit_id"] for name in ("eve", "fay")]
    page = served.get("/changes", params={"cursor": start["cursor"], "limit": 1}).json()
    assert [block["cause"]["graph_commit_id"] for block in page["blocks"]] == commits[:1]
    assert page.keys() == {"blocks", "next_page_token"}
    rest = served.get("/changes", params={"page_token": page["next_page_token"], "limit": 1}).json()
    assert [block["cause"]["graph_commit_id"] for block in rest["blocks"]] == commits[1:]
    assert rest["caught_up"] is True
    after = served.get("/changes", params={"start": f"after:{commits[0]}", "branch": " main "}).json()
    assert [block["cause"]["graph_commit_id"] for block in after["blocks"]] == commits[1:]


@pytest.mark.parametrize(
    ("params", "status", "code", "error"),
    [
        ({"cursor": "x", "start": "now"}, 400, "bad_request", "one of cursor, start and page_token"),
        ({"cursor": "x"}, 400, "bad_request", "change cursor rejected"),
        ({"start": "soon"}, 400, "bad_request", "soon"),
        ({"branch": "none"}, 404, "not_found", "branch 'none' not found"),
        ({"none": "1"}, 400, "bad_request", "unknown field"),
        ({"limit": "0"}, 400, "bad_request", "1 to 8192"),
    ],
)
def test_errors_of_the_feed(reading: Served, params: dict[str, str], status: int, code: str, error: str) -> None:
    assert_error(reading.get("/changes", params=params), status, code, error)


def test_a_cursor_of_another_scope(served: Served) -> None:
    cursor = served.get("/changes").json()["cursor"]
    answer = served.get("/changes", params={"cursor": cursor, "kind": "edge"})
    assert_error(answer, 400, "bad_request", "change cursor rejected")
    answer = served.get("/changes", params={"limit": 8193})
    limit = {"resource": "change_feed_page_changes", "limit": 8192, "actual": 8193}
    assert_error(answer, 413, "bad_request", resource_limit=limit)


def test_a_gap(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMNIGRAPH_FEED_RETENTION", "0s")
    cursor = served.get("/changes").json()["cursor"]
    commits = [served.mutate(AGE, name="ada", age=age)["commit"]["graph_commit_id"] for age in range(3)]
    served.state.graphs.healthy["people"].graph.cleanup(keep=1)
    gap = {"cursor": cursor, "first_unreadable_commit_id": commits[0]}
    assert_error(served.get("/changes", params={"cursor": cursor}), 410, None, change_feed_gap=gap)
    answer = served.get(f"/commits/{commits[0]}/changes")
    assert_error(answer, 410, None, change_feed_gap={"first_unreadable_commit_id": commits[0]})


def test_baseline(served: Served) -> None:
    answer = served.post("/changes/baseline", {})
    assert answer.headers["content-type"] == NDJSON
    *entities, last = parsed(answer.content)
    assert [line.get("type") or line.get("edge") for line in entities] == [
        "Doc",
        "Doc",
        "Person",
        "Person",
        "Knows",
        "Wrote",
    ]
    assert last["baseline"].keys() == {"snapshot_commit_id", "resume_cursor"}
    assert last["baseline"]["snapshot_commit_id"] == served.head()
    commit = served.mutate(ADD, name="eve")["commit"]["graph_commit_id"]
    page = served.get("/changes", params={"cursor": last["baseline"]["resume_cursor"]}).json()
    assert [block["cause"]["graph_commit_id"] for block in page["blocks"]] == [commit]


def test_a_filtered_baseline(reading: Served) -> None:
    *entities, last = parsed(reading.post("/changes/baseline", {"kind": ["edge"], "type": "Knows"}).content)
    assert [line["edge"] for line in entities] == ["Knows"]
    page = reading.get(
        "/changes", params={"cursor": last["baseline"]["resume_cursor"], "kind": "edge", "type": "Knows"}
    )
    assert page.status_code == 200
    assert_error(reading.post("/changes/baseline", {"branch": "none"}), 404, "not_found", "branch 'none' not found")
    assert_error(reading.post("/changes/baseline", {"type": ["None"]}), 400, "bad_request", "unknown type 'None'")


def test_export(reading: Served) -> None:
    answer = reading.post("/export", {})
    assert answer.headers["content-type"] == NDJSON
    exported = parsed(answer.content)
    assert exported[0] == {"type": "Doc", "data": {"id": "empty", "title": "empty", "content": None}}
    assert exported[1]["data"]["content"] == "base64:SGVsbG8gV29ybGQ="
    knows = exported[4]
    assert (knows["edge"], knows["from"], knows["to"], knows["data"]["since"]) == ("Knows", "ada", "ben", "1840-01-01")
    some = parsed(reading.post("/export", {"type_names": ["Person"]}).content)
    assert [line["data"]["name"] for line in some] == ["ada", "ben"]


@pytest.mark.parametrize(
    ("options", "status", "code", "error"),
    [
        ({"json": {"types": ["Person"]}}, 400, "bad_request", "unknown field `types`"),
        ({"json": {"type_names": ["None"]}}, 400, "bad_request", "unknown export type 'None'"),
        ({"json": {"branch": "none"}}, 404, "not_found", "branch 'none' not found"),
        ({"content": b"{}"}, 415, "bad_request", "application/json"),
        ({"content": b"{}", "headers": {"Content-Type": "text/plain"}}, 415, "bad_request", "application/json"),
    ],
)
def test_errors_of_export(reading: Served, options: Any, status: int, code: str, error: str) -> None:
    assert_error(reading.post("/export", **options), status, code, error)


def test_one_export_of_a_graph_at_a_time(served: Served) -> None:
    rows = "".join(
        f'{{"type":"Person","data":{{"name":"p{number}","tags":["{"x" * 500}"]}}}}\n' for number in range(30_000)
    )
    served.post("/load/ndjson", content=rows.encode(), headers={"Content-Type": "application/x-ndjson"})
    # As it is, and not compressed: what is sent and not read fits no buffer, so this export is not over.
    plain = {"Accept-Encoding": "identity"}
    with served.http.stream("POST", "/graphs/people/export", json={}, headers=plain) as first:
        pieces = first.iter_raw()
        next(pieces)
        refused = served.post("/export", {})
        limit = {"resource": "stream_export_slots", "limit": 1, "actual": 2}
        assert_error(refused, 413, "bad_request", resource_limit=limit)
        assert served.get("/snapshot").status_code == 200
    done = threading.Event()
    while not done.wait(0.05):
        if served.post("/export", {"type_names": ["Doc"]}).status_code == 200:
            done.set()


def test_chunks_are_small(served: Served) -> None:
    rows = "".join(
        f'{{"type":"Person","data":{{"name":"p{number}","tags":["{"ä" * 500}"]}}}}\n' for number in range(2_000)
    )
    served.post("/load/ndjson", content=rows.encode(), headers={"Content-Type": "application/x-ndjson"})
    graph = served.state.graphs.healthy["people"].graph
    assert max(map(len, graph.export_chunks())) <= 65_536
    assert served.post("/export", {}).content == b"".join(graph.export_chunks())


def events(served: Served, wanted: int, headers: dict[str, str] | None = None, **params: str) -> list[dict[str, Any]]:
    """The first events of the followed feed: their id and data."""
    found: list[dict[str, Any]] = []
    with served.http.stream("GET", "/graphs/people/changes/stream", params=params, headers=headers) as answer:
        assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
        told: dict[str, Any] = {}
        for line in answer.iter_lines():
            if line.startswith("id: "):
                told = {"id": line.removeprefix("id: ")}
            elif line.startswith("data: "):
                found.append(told | orjson.loads(line.removeprefix("data: ")))
                if len(found) == wanted:
                    break
    return found


def test_the_feed_is_followed(served: Served) -> None:
    """Commits arrive as they are made; a client that comes back goes on behind the last event that it has seen."""
    writer = threading.Timer(0.5, lambda: served.mutate(ADD, name="eve"))
    writer.start()
    first, second = events(served, 2)
    writer.join()
    assert (first["blocks"], first["caught_up"]) == ([], True)
    assert [block["cause"]["graph_commit_id"] for block in second["blocks"]] == [served.head()]
    assert second["id"] == second["cursor"]
    commit = served.mutate(ADD, name="fay")["commit"]["graph_commit_id"]
    (again,) = events(served, 1, {"Last-Event-ID": second["id"]}, start="now")
    assert [block["cause"]["graph_commit_id"] for block in again["blocks"]] == [commit]


def test_errors_of_the_followed_feed(reading: Served) -> None:
    assert_error(reading.get("/changes/stream", params={"cursor": "x"}), 400, "bad_request", "change cursor rejected")
    assert_error(reading.get("/changes/stream", params={"branch": "none"}), 404, "not_found", "branch 'none' not found")
    headers = {"Last-Event-ID": "x"}
    assert_error(reading.get("/changes/stream", headers=headers), 400, "bad_request", "change cursor rejected")
