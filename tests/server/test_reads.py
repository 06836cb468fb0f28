"""Reading on the wire: snapshot, query, read, schema, branches and commits; rows 4, 7, 8, 15, 20, 24 and 25 of the contract."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from tests.server.serving import ADD, ALL, SCHEMA, Served, assert_error

COMMIT_KEYS = [
    "graph_commit_id",
    "graph_branch",
    "graph_manifest_version",
    "parent_commit_id",
    "merged_parent_commit_id",
    "actor_id",
    "created_at",
]


def test_snapshot(reading: Served) -> None:
    answer = reading.get("/snapshot")
    told = answer.json()
    assert list(told) == ["graph_branch", "graph_manifest_version", "internal_schema_version", "datasets"]
    assert (told["graph_branch"], told["internal_schema_version"]) == ("main", 4)
    first = told["datasets"][0]
    assert list(first) == ["entity_kind", "type_name", "dataset_path", "published_dataset_version", "entity_count"]
    assert [(table["entity_kind"], table["type_name"], table["entity_count"]) for table in told["datasets"]] == [
        ("node", "Doc", 2),
        ("node", "Person", 2),
        ("edge", "Knows", 1),
        ("edge", "Wrote", 1),
    ]
    assert reading.get("/snapshot", params={"branch": "main"}).json() == told
    assert_error(reading.get("/snapshot", params={"branch": "none"}), 404, "not_found", "branch 'none' not found")


def test_a_forked_table_names_its_branch(served: Served) -> None:
    served.post("/branches", {"name": "b"})
    served.mutate(ADD, "b", name="eve")
    tables = served.get("/snapshot", params={"branch": "b"}).json()["datasets"]
    person = next(table for table in tables if table["type_name"] == "Person")
    assert "native_dataset_branch" in person
    assert person["entity_count"] == 3
    assert all("native_dataset_branch" not in table for table in tables if table["type_name"] != "Person")


def test_query(reading: Served) -> None:
    answer = reading.post("/query", {"query": ALL})
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/json")
    assert answer.json() == {
        "query_name": "q",
        "target": {"branch": "main", "snapshot": None},
        "row_count": 2,
        "columns": ["p.name", "p.age"],
        "rows": [{"p.name": "ada", "p.age": 36}, {"p.name": "ben", "p.age": 25}],
        "graph_commit_id": reading.head(),
    }


def test_values_on_the_wire(reading: Served) -> None:
    source = 'query v() { match { $p: Person { name: "ada" } } return { $p.big, $p.born, $p.day, $p.tags } }'
    answer = reading.post("/query", {"query": source})
    assert '"p.big":9007199254740993' in answer.text
    assert answer.json()["rows"] == [
        {"p.big": 9007199254740993, "p.born": "1815-12-10T09:00:00.000Z", "p.day": "1815-12-10", "p.tags": ["x", "y"]}
    ]


def test_query_of_a_snapshot(reading: Served) -> None:
    head = reading.head()
    told = reading.post("/query", {"query": ALL, "snapshot": head}).json()
    assert told["target"] == {"branch": None, "snapshot": head}
    assert told["graph_commit_id"] == head


@pytest.mark.parametrize(
    ("body", "status", "code", "error"),
    [
        ({"query": ADD}, 400, "bad_request", "contains mutations"),
        ({"query": ADD}, 400, "bad_request", "POST /mutate"),
        ({"query": ALL + ALL.replace("query q", "query r")}, 400, "bad_request", "multiple queries; pass a name"),
        ({"query": ALL, "name": "none"}, 400, "bad_request", "query 'none' not found"),
        ({"query": ALL, "branch": "main", "snapshot": "x"}, 400, "bad_request", "branch and snapshot"),
        ({"query": ALL, "branch": "none"}, 404, "not_found", "branch 'none' not found"),
        ({"query": ALL, "snapshot": "none"}, 404, "not_found", "commit 'none' not found"),
        (
            {"query": ALL, "snapshot": "01ARZ3NDEKTSV4RRFFQ69G5FAV"},
            404,
            "not_found",
            "commit '01ARZ3NDEKTSV4RRFFQ69G5FAV' not found",
        ),
        ({}, 400, "bad_request", "missing required field `query`"),
        ({"query": 1}, 400, "bad_request", "expected `str`, got `int` - at `$.query`"),
        ({"query": ALL, "params": []}, 400, "bad_request", "expected `object"),
        ([], 400, "bad_request", "expected `object`, got `array`"),
        ({"query": "query q( {"}, 400, "bad_request", "parse error"),
        ({"query": "query q() { match { $p: None } return { $p.x } }"}, 400, "bad_request", "None"),
        ({"query": "queries.gq"}, 400, "bad_request", "parse error"),
        ({"query": ""}, 400, "bad_request", "contains no queries"),
    ],
)
def test_query_errors(reading: Served, body: Any, status: int, code: str, error: str) -> None:
    assert_error(reading.post("/query", body), status, code, error)


ONE = "query one($name: String, $n: I64?, $d: Date?) { match { $p: Person { name: $name } } return { $p.name } }"


@pytest.mark.parametrize(
    ("params", "error"),
    [
        ({}, "parameter 'name' not provided"),
        (None, "parameter 'name' not provided"),
        ({"name": None}, "null is not accepted for non-nullable parameter 'name'"),
        ({"name": 1}, "parameter 'name'"),
        ({"name": "ada", "n": "x"}, "parameter 'n'"),
        ({"name": "ada", "d": "yesterday"}, "parameter 'd'"),
        ({"name": "ada", "other": {"a": 1}}, "a JSON object is not a value"),
    ],
)
def test_parameter_errors(reading: Served, params: Any, error: str) -> None:
    assert_error(reading.post("/query", {"query": ONE, "params": params}), 400, "bad_request", error)


def test_parameters(reading: Served) -> None:
    params = {"name": "ada", "n": "9007199254740993", "d": "2026-01-01", "ignored": [1, "x"]}
    assert reading.post("/query", {"query": ONE, "params": params}).json()["rows"] == [{"p.name": "ada"}]


@pytest.mark.parametrize("content", [b"", b"{", b'{"query": "\xff"}', b"[" * 100_000, b'{"query":"a"} x', b"null"])
def test_malformed_bodies(reading: Served, content: bytes) -> None:
    assert_error(reading.post("/query", content=content), 400, "bad_request", "invalid request body: ")


def test_read_is_the_older_form(reading: Served) -> None:
    answer = reading.post("/read", {"query_source": ALL, "query_name": "q"})
    assert answer.content == (
        b'{"query_name":"q","target":{"branch":"main","snapshot":null},"row_count":2,"columns":["p.name","p.age"],'
        b'"rows":[{"p.name":"ada","p.age":36},{"p.name":"ben","p.age":25}]}'
    )
    assert answer.headers["deprecation"] == "true"
    assert answer.headers["link"] == '<query>; rel="successor-version"'
    assert_error(reading.post("/read", {"query": ALL}), 400, "bad_request", "missing required field `query_source`")
    assert_error(reading.post("/read", {"query_source": ADD}), 400, "bad_request", "contains mutations")


def test_arrow_answers(reading: Served) -> None:
    answer = reading.post("/query", {"query": ALL}, headers={"Accept": "application/vnd.apache.arrow.stream"})
    assert answer.headers["content-type"] == "application/vnd.apache.arrow.stream"
    assert answer.headers["omnigraph-graph-commit"] == reading.head()
    table = pa.ipc.open_stream(answer.content).read_all()
    assert table.to_pydict() == {"p.name": ["ada", "ben"], "p.age": [36, 25]}


def test_rows_one_by_one(reading: Served) -> None:
    answer = reading.post("/query", {"query": ALL}, headers={"Accept": "application/x-ndjson"})
    assert answer.headers["content-type"] == "application/x-ndjson; charset=utf-8"
    assert answer.content == b'{"p.name":"ada","p.age":36}\n{"p.name":"ben","p.age":25}\n'


def test_schema(reading: Served) -> None:
    assert reading.get("/schema").json() == {"schema_source": SCHEMA}


def test_branches_are_sorted(served: Served) -> None:
    for name in ("z", "agent/1", "b"):
        served.post("/branches", {"name": name})
    assert served.get("/branches").json() == {"branches": ["agent/1", "b", "main", "z"]}
    first = served.get("/branches", params={"limit": 3}).json()
    assert first == {"branches": ["agent/1", "b", "main"], "next_page_token": "main"}
    rest = served.get("/branches", params={"limit": 3, "page_token": "main"}).json()
    assert rest == {"branches": ["z"]}
    assert_error(served.get("/branches", params={"limit": 0}), 400, "bad_request", "limit is 1 to")
    assert_error(served.get("/branches", params={"limit": "x"}), 400, "bad_request", "invalid query parameters")
    assert_error(served.get("/branches", params={"page_token": "none"}), 400, "bad_request", "page token")


def test_commits(served: Served) -> None:
    made = served.mutate(ADD, name="eve")["commit"]
    served.post("/branches", {"name": "b"})
    other = served.mutate(ADD, "b", name="fay")["commit"]
    commits = served.get("/commits").json()["commits"]
    assert commits[0] == made
    # What the contract names comes first, as it is; messages and counts came later.
    assert list(made) == [*COMMIT_KEYS, "kind", "changed"]
    assert (made["graph_branch"], made["actor_id"], made["parent_commit_id"]) == (
        None,
        "default",
        commits[1]["graph_commit_id"],
    )
    inherited = served.get("/commits", params={"branch": "b"}).json()["commits"]
    assert inherited == [other, *commits]
    assert other["graph_branch"] == "b"
    assert_error(served.get("/commits", params={"branch": "none"}), 404, "not_found", "branch 'none' not found")
    page = served.get("/commits", params={"limit": 1}).json()
    assert page == {"commits": [made], "next_page_token": made["graph_commit_id"]}


def test_commit(served: Served) -> None:
    made = served.mutate(ADD, name="eve")["commit"]
    assert served.get(f"/commits/{made['graph_commit_id']}").json() == made
    assert_error(
        served.get("/commits/01ARZ3NDEKTSV4RRFFQ69G5FAV"),
        404,
        "not_found",
        "commit '01ARZ3NDEKTSV4RRFFQ69G5FAV' not found",
    )
    assert_error(served.get("/commits/none"), 404, "not_found", "commit 'none' not found")


def test_a_deadline(reading: Served) -> None:
    heavy = "query h() { match { $a: Person $b: Person $c: Person } return { $a.name } }"
    for given in ("0", "x", "-1", ""):
        answer = reading.post("/query", {"query": heavy}, headers={"Omnigraph-Timeout-Ms": given})
        assert_error(answer, 400, "bad_request", "Omnigraph-Timeout-Ms")
    assert reading.post("/query", {"query": ALL}, headers={"Omnigraph-Timeout-Ms": "60000"}).status_code == 200
