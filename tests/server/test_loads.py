"""Loading on the wire: JSON bodies read permissively, streams of lines read strictly; rows 17 to 19 and section 5."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from omnigraph.load.model import Progress
from omnigraph.server.jobs import Job, Jobs
from tests.server.serving import ALL, Served, assert_error

EVE = '{"type":"Person","data":{"name":"eve","age":3}}\n'
LINES = {"Content-Type": "application/x-ndjson"}


def lines(served: Served, content: Any, **params: str) -> httpx.Response:
    return served.post("/load/ndjson", content=content, params=params, headers=LINES)


def wait_for_an_empty_spool(served: Served) -> None:
    """A streamed body is removed once its request has ended, which may be after its answer was read."""
    while list(served.state.spool.glob("body-*")):
        time.sleep(0.01)


def test_load(served: Served) -> None:
    data = EVE + '{"edge":"Knows","from":"eve","to":"ada","data":{}}'
    answer = served.post("/load", {"data": data})
    told = answer.json()
    assert list(told) == [
        "uri",
        "branch",
        "base_branch",
        "branch_created",
        "mode",
        "nodes",
        "edges",
        "total_entities",
        "actor_id",
        "commit",
    ]
    commit = told.pop("commit")
    assert told == {
        "uri": str(served.path),
        "branch": "main",
        "base_branch": None,
        "branch_created": False,
        "mode": "merge",
        "nodes": [{"name": "Person", "entities_loaded": 1}],
        "edges": [{"name": "Knows", "entities_loaded": 1}],
        "total_entities": 2,
        "actor_id": "default",
    }
    assert commit["graph_commit_id"] == served.head()


def test_a_load_that_creates_its_branch(served: Served) -> None:
    told = served.post("/load", {"data": EVE, "branch": "agent/1", "from": "main"}).json()
    assert (told["branch"], told["base_branch"], told["branch_created"]) == ("agent/1", "main", True)
    assert served.get("/branches").json() == {"branches": ["agent/1", "main"]}
    missing = served.post("/load", {"data": EVE, "branch": "none"})
    assert_error(missing, 404, "not_found", "branch 'none' not found")


def test_the_permissive_reading(served: Served) -> None:
    """Values over several lines, extra keys, and `type` before `edge`."""
    pretty = '{\n "type": "Person",\n "edge": "Knows", "extra": 1,\n "data": {"name": "eve"}\n}\n'
    pretty += '{"type":"Person","data":{"name":"fay"}}'
    assert served.post("/load", {"data": pretty}).json()["total_entities"] == 2
    bad = served.post("/load", {"data": EVE + '{"type":"None","data":{}}'})
    assert_error(bad, 400, "bad_request", "record 2: ")


@pytest.mark.parametrize(
    ("data", "errors"),
    [
        (
            '{"type":"Person",\n"data":{"name":"x"}}\n\n{"type":"None",\n"data":{}}',
            ["record 2: unknown node type 'None'"],
        ),
        (EVE.strip() + ' {"type":"None"} 5\n// no value\n[]', ["record 2: ", "record 3: ", "record 4: "]),
        (
            '{"type":"Person",\n\n"data":{"name":"x"}}\n{"edge":"Knows",\n"from":"ada","to":"nobody"}',
            ["record 2: edge"],
        ),
        (EVE + '{"type":\n', ["record 2: not valid JSON"]),
    ],
)
def test_problems_are_told_by_record(served: Served, data: str, errors: list[str]) -> None:
    """Values are counted, wherever their lines begin."""
    answer = served.post("/load", {"data": data})
    assert_error(answer, 400, "bad_request")
    lines = answer.json()["error"].split("\n  ")[1:]
    assert len(lines) == len(errors)
    for line, error in zip(lines, errors, strict=True):
        assert line.startswith(error)


def test_a_key_that_is_taken_is_told_by_record(served: Served) -> None:
    data = '{"type":"Person",\n"data":{"name":"new"}}\n\n\n{"type":"Person","data":{"name":"ada"}}'
    answer = served.post("/load", {"data": data, "mode": "append"})
    key = {"entity_kind": "node", "type_name": "Person", "entity_id": "ada"}
    assert_error(answer, 409, "conflict", "record 2: ", key_conflict=key)


def test_ingest_is_the_older_name(served: Served) -> None:
    answer = served.post("/ingest", {"data": EVE})
    assert answer.json()["total_entities"] == 1
    assert answer.headers["link"] == '<load>; rel="successor-version"'
    assert answer.headers["deprecation"] == "true"
    assert_error(served.post("/ingest", {"data": EVE, "branch": "none"}), 404, "not_found")


@pytest.mark.parametrize("mode", ["merge", "append"])
def test_modes(served: Served, mode: str) -> None:
    told = served.post("/load", {"data": EVE, "mode": mode}).json()
    assert told["mode"] == mode
    assert served.post("/query", {"query": ALL}).json()["row_count"] == 3


def test_overwrite_replaces_the_types_it_names(served: Served) -> None:
    told = served.post("/load", {"data": '{"edge":"Knows","from":"ben","to":"ada"}', "mode": "overwrite"}).json()
    assert (told["mode"], told["edges"]) == ("overwrite", [{"name": "Knows", "entities_loaded": 1}])
    exported = served.post("/export", {"type_names": ["Knows"]}).text.splitlines()
    assert len(exported) == 1
    assert '"from":"ben","to":"ada"' in exported[0]
    assert served.post("/query", {"query": ALL}).json()["row_count"] == 2


def test_append_of_an_existing_id(served: Served) -> None:
    data = '{"type":"Person","data":{"name":"ada"}}'
    answer = served.post("/load", {"data": data, "mode": "append"})
    key = {"entity_kind": "node", "type_name": "Person", "entity_id": "ada"}
    assert_error(answer, 409, "conflict", "record 1: ", key_conflict=key)
    strict = lines(served, data, mode="append")
    assert_error(strict, 409, "conflict", "line 1: ", key_conflict=key)


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ({}, "missing required field `data`"),
        ({"data": EVE, "mode": "replace"}, "invalid enum value 'replace'"),
        ({"data": "{"}, "record 1: "),
        ({"data": '{"edge":"Knows","from":"ada","to":"nobody"}'}, "nobody"),
    ],
)
def test_load_errors(served: Served, body: Any, error: str) -> None:
    before = served.head()
    assert_error(served.post("/load", body), 400, "bad_request", error)
    assert served.head() == before


def test_load_lines(served: Served) -> None:
    def parts() -> Iterator[bytes]:
        yield b"// a comment\n\n"
        yield EVE.encode()[:20]
        yield EVE.encode()[20:]

    told = lines(served, parts()).json()
    assert "uri" not in told
    assert (told["branch"], told["mode"], told["total_entities"], told["actor_id"]) == ("main", "merge", 1, "default")
    assert told["commit"]["graph_commit_id"] == served.head()
    made = lines(served, EVE, branch="b", **{"from": "main"}, mode="append")
    assert made.status_code == 409
    made = lines(served, EVE, branch="b", **{"from": "main"}, mode="merge")
    assert made.json()["branch_created"] is True


def test_a_large_body_goes_through_a_file(served: Served) -> None:
    rows = "".join(
        f'{{"type":"Person","data":{{"name":"p{number}","tags":["{"x" * 400}"]}}}}\n' for number in range(20_000)
    )
    assert len(rows) > 8 * 2**20
    assert lines(served, rows.encode()).json()["total_entities"] == 20_000
    bad = lines(served, (rows + "{").encode(), mode="merge")
    assert_error(bad, 400, "bad_request", "line 20001: ")
    assert str(served.state.spool) not in bad.text
    wait_for_an_empty_spool(served)


@pytest.mark.parametrize(
    "line",
    [
        '{"type":"Person","edge":"Knows","data":{"name":"x"}}',
        '{"type":"Person","data":{"name":"x"},"more":1}',
        '{"data":{"name":"x"}}',
        '{"type":"None","data":{}}',
        '{"type":"Person","data":{"name":"x","none":1}}',
        '{"type":"Person","data":{"name":"x","name":"y"}}',
        '{"edge":"Knows","from":"ada","to":"ben","data":{"src":"ada"}}',
        '{"type":"Person","data":{"name":"x","_rowid":1}}',
        '["x"]',
        '{"type":"Person"',
    ],
)
def test_the_strict_grammar(served: Served, line: str) -> None:
    before = served.head()
    answer = lines(served, EVE + line + "\n")
    assert_error(answer, 400, "bad_request", "line 2: ")
    assert served.head() == before


@pytest.mark.parametrize("media", ["application/json", "", "text/plain"])
def test_only_lines_are_streamed(served: Served, media: str) -> None:
    answer = served.post("/load/ndjson", content=EVE.encode(), headers={"Content-Type": media})
    assert_error(answer, 415, "bad_request", "application/x-ndjson")


def test_it_is_decided_before_the_body_is_read(served: Served) -> None:
    missing = lines(served, EVE, branch="none")
    assert_error(missing, 404, "not_found", "branch 'none' not found")
    assert_error(lines(served, EVE, mode="none"), 400, "bad_request", "invalid query parameters")


def test_a_repeat_with_the_same_key(served: Served) -> None:
    answers = [
        served.post("/load/ndjson", content=EVE.encode(), headers=LINES | {"Idempotency-Key": "k"}) for _ in range(2)
    ]
    assert answers[0].json()["commit"] == answers[1].json()["commit"]
    assert len(served.get("/commits").json()["commits"]) == 3


# --- jobs -------------------------------------------------------------------------------------------------------------

ASYNC = {"Prefer": "respond-async"}


def ended(served: Served, begun: httpx.Response) -> dict[str, Any]:
    """A job once it has ended."""
    while True:
        told: dict[str, Any] = served.http.get(begun.headers["location"]).json()
        if told["state"] != "running":
            return told
        time.sleep(0.02)


def test_a_load_as_a_job(served: Served) -> None:
    begun = served.post("/load/ndjson", content=EVE.encode(), headers=LINES | ASYNC)
    assert begun.status_code == 202
    assert begun.headers["preference-applied"] == "respond-async"
    job = begun.json()
    assert job.keys() == {"job_id", "graph_id", "operation", "actor_id", "state", "started_at"}
    assert (job["operation"], job["state"]) == ("load_ndjson", "running")
    assert begun.headers["location"] == f"/graphs/people/jobs/{job['job_id']}"
    told = ended(served, begun)
    assert (told["state"], told["status"], told["result"]["total_entities"]) == ("done", 200, 1)
    assert told["result"]["commit"]["graph_commit_id"] == served.head()
    wait_for_an_empty_spool(served)


def test_a_job_that_fails(served: Served) -> None:
    told = ended(served, served.post("/load/ndjson", content=b"{", headers=LINES | ASYNC))
    assert (told["state"], told["status"], told["error"]["code"]) == ("failed", 400, "bad_request")
    assert "line 1: " in told["error"]["error"]
    # What can be told before the work begins is told at once.
    assert served.post("/load", {"data": 1}, headers=ASYNC).status_code == 400


def test_a_job_is_cancelled(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    head = served.head()
    note = Job.note

    def cancelled_first(job: Job, progress: Progress) -> None:
        served.http.delete(f"/graphs/people/jobs/{job.id}").raise_for_status()
        note(job, progress)

    monkeypatch.setattr(Job, "note", cancelled_first)
    begun = served.post("/load/ndjson", content=EVE.encode(), headers=LINES | ASYNC)
    told = ended(served, begun)
    assert (told["state"], told["error"]["error"]) == ("failed", "the job was cancelled; nothing was written")
    assert served.head() == head
    # One that has ended is left as it is.
    assert served.http.delete(begun.headers["location"]).json() == told
    assert_error(served.http.delete("/graphs/people/jobs/01ARZ3NDEKTSV4RRFFQ69G5FAV"), 404, "not_found", "job")


def test_a_job_is_followed(served: Served) -> None:
    begun = served.post("/load", {"data": EVE}, headers=ASYNC)
    with served.http.stream("GET", f"{begun.headers['location']}/events") as answer:
        lines = [line for line in answer.iter_lines() if line.startswith("event: ")]
    assert lines[-1] == "event: done"


def test_an_export_as_a_job(served: Served) -> None:
    whole = served.post("/export", {}).content
    begun = served.post("/export", {}, headers=ASYNC)
    assert begun.status_code == 202
    told = ended(served, begun)
    assert (told["state"], told["status"]) == ("done", 200)
    assert told["result"] == {"lines": whole.count(b"\n"), "bytes": len(whole)}
    place = begun.headers["location"]
    for _ in range(2):
        fetched = served.http.get(f"{place}/result")
        assert (fetched.content, fetched.headers["content-type"]) == (whole, "application/x-ndjson; charset=utf-8")
    served.http.delete(place).raise_for_status()
    assert_error(served.http.get(f"{place}/result"), 404, "not_found", "has no result")
    assert not list(served.state.jobs.folder.glob("*.result"))


def test_what_an_export_as_a_job_is_refused(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """What can be told before it begins is told at once; a result that is too large leaves nothing."""
    assert_error(served.post("/export", {"branches": "main"}, headers=ASYNC), 400, "bad_request")
    missing = ended(served, served.post("/export", {"branch": "none"}, headers=ASYNC))
    assert (missing["state"], missing["status"]) == ("failed", 404)
    monkeypatch.setattr(served.state, "jobs", Jobs(served.state.jobs.folder, room=10))
    begun = served.post("/export", {}, headers=ASYNC)
    told = ended(served, begun)
    assert (told["state"], told["status"], told["error"]["resource_limit"]["resource"]) == (
        "failed",
        413,
        "job_result_bytes",
    )
    assert not list(served.state.jobs.folder.glob("*.result"))
    load = served.post("/load", {"data": EVE}, headers=ASYNC)
    ended(served, load)
    assert_error(served.http.get(f"{load.headers['location']}/result"), 404, "not_found", "only exports have one")
    running = served.state.jobs.begin("people", "export", "ada")
    assert_error(served.get(f"/jobs/{running.id}/result"), 404, "not_found")


def test_results_go_after_an_hour(served: Served) -> None:
    begun = served.post("/export", {}, headers=ASYNC)
    ended(served, begun)
    (kept,) = served.state.jobs.folder.glob("*.result")
    os.utime(kept, (time.time() - 4000,) * 2)
    served.state.jobs.begin("people", "export", None)
    assert not kept.exists()


def test_jobs_of_others_are_not_found(served: Served) -> None:
    assert_error(served.get("/jobs/01ARZ3NDEKTSV4RRFFQ69G5FAV"), 404, "not_found", "job '01ARZ")
    assert_error(served.get("/jobs/..%2F..%2Fx"), 404, "not_found", "not found")
    job = served.state.jobs.begin("people", "load", "other")
    assert_error(served.get(f"/jobs/{job.id}"), 404, "not_found")
