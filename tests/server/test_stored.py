"""Stored queries on the wire; rows 12 to 14."""

from __future__ import annotations

from typing import Any

import pytest

from omnigraph.language.query.parser import find_query, parse_query_file
from omnigraph.wire.shapes import stored_query_output
from tests.server.serving import Served, assert_error

IF = "Omnigraph-If-Graph-Commit"


def test_the_catalogue(reading: Served) -> None:
    assert reading.get("/queries").json() == {
        "queries": [
            {
                "name": "add_person",
                "tool_name": "add_person",
                "mutation": True,
                "params": [
                    {"name": "name", "kind": "string", "nullable": False},
                    {"name": "age", "kind": "int", "nullable": True},
                ],
            },
            {
                "name": "near",
                "tool_name": "near",
                "mutation": False,
                "params": [
                    {"name": "v", "kind": "vector", "vector_dim": 3, "nullable": False},
                    {"name": "days", "kind": "list", "item_kind": "date", "nullable": False},
                ],
            },
            {
                "name": "one",
                "tool_name": "one",
                "mutation": False,
                "params": [
                    {"name": "name", "kind": "string", "nullable": False},
                    {"name": "least", "kind": "bigint", "nullable": True},
                ],
            },
            {
                "name": "people",
                "tool_name": "people",
                "mutation": False,
                "description": "All people.",
                "instruction": "Call it first.",
                "params": [],
            },
        ]
    }


@pytest.mark.parametrize("options", [{}, {"json": {}}, {"json": {"params": None}}, {"content": b" "}])
def test_a_read_is_called_by_name(reading: Served, options: Any) -> None:
    told = reading.request("POST", "/queries/people", **options).json()
    assert (told["query_name"], told["row_count"]) == ("people", 2)
    assert told["graph_commit_id"] == reading.head()


def test_a_mutation_is_called_by_name(served: Served) -> None:
    answer = served.post("/queries/add_person", {"params": {"name": "eve"}, "expect_mutation": True})
    told = answer.json()
    assert (told["branch"], told["query_name"], told["affected_nodes"]) == ("main", "add_person", 1)
    assert told["commit"]["actor_id"] == "default"


def test_on_a_branch_and_at_a_commit(served: Served) -> None:
    first = served.head()
    served.post("/branches", {"name": "b"})
    served.post("/queries/add_person", {"params": {"name": "eve"}, "branch": "b"})
    assert served.post("/queries/people", {"branch": "b"}).json()["row_count"] == 3
    told = served.post("/queries/people", {"snapshot": first}).json()
    assert (told["row_count"], told["target"]) == (2, {"branch": None, "snapshot": first})


@pytest.mark.parametrize(
    ("name", "body", "status", "code", "error"),
    [
        ("none", {}, 404, "not_found", "stored query not found"),
        ("one", {}, 400, "bad_request", "parameter 'name' not provided"),
        ("one", {"params": {"name": 1}}, 400, "bad_request", "parameter 'name'"),
        ("one", {"params": []}, 400, "bad_request", "invalid stored-query invocation body"),
        ("one", [], 400, "bad_request", "invalid stored-query invocation body"),
        ("people", {"expect_mutation": True}, 400, "bad_request", "'people' is a read — use omnigraph query people"),
        ("add_person", {"expect_mutation": False}, 400, "bad_request", "use omnigraph mutate add_person"),
        ("people", {"branch": "none"}, 404, "not_found", "branch 'none' not found"),
        ("people", {"branch": "main", "snapshot": "x"}, 400, "bad_request", "exclude each other"),
    ],
)
def test_errors(reading: Served, name: str, body: Any, status: int, code: str, error: str) -> None:
    assert_error(reading.post(f"/queries/{name}", body), status, code, error)


def test_a_snapshot_on_a_mutation(served: Served) -> None:
    body = {"params": {"name": "x"}, "snapshot": served.head()}
    assert_error(served.post("/queries/add_person", body), 400, "bad_request", "not to a snapshot")


def test_if_graph_commit(served: Served) -> None:
    head = served.head()
    body = {"params": {"name": "eve"}}
    won = served.post("/queries/add_person/if-graph-commit", body, headers={IF: head})
    assert won.json()["affected_nodes"] == 1
    now = won.json()["commit"]["graph_commit_id"]
    lost = served.post("/queries/add_person/if-graph-commit", {"params": {"name": "fay"}}, headers={IF: head})
    assert_error(lost, 412, None, precondition_failure={"expected": head, "actual": now})
    read = served.post("/queries/people/if-graph-commit", {}, headers={IF: now})
    assert_error(read, 400, "bad_request", "is a read")
    assert_error(served.post("/queries/add_person/if-graph-commit", body), 400, "bad_request", "exactly once")
    unknown = served.post("/queries/none/if-graph-commit", {}, headers={IF: now})
    assert_error(unknown, 404, "not_found", "stored query not found")


@pytest.mark.parametrize("name", ["people", "add_person"])
def test_a_condition_on_the_plain_route_is_refused(served: Served, name: str) -> None:
    """It must not be taken as if it had been checked."""
    head = served.head()
    answer = served.post(f"/queries/{name}", {"params": {"name": "eve"}}, headers={IF: head})
    assert_error(answer, 400, "bad_request", "is for the route that ends in /if-graph-commit")
    assert served.head() == head


def test_every_kind_of_parameter() -> None:
    """The kinds that clients know, and no other."""
    types = {
        "string": "String", "bool": "Bool", "int": "I32", "bigint": "I64", "float": "F64", "date": "Date",
        "datetime": "DateTime", "blob": "Blob", "vector": "Vector(3)", "list": "[String]",
    }  # fmt: skip
    params = ", ".join(f"$p{at}: {name}" for at, name in enumerate(types.values()))
    text = f"query every({params}) {{ match {{ $p: Person }} return {{ $p.name }} }}"
    shown = stored_query_output(find_query(parse_query_file(text), "every"))
    assert [param["kind"] for param in shown["params"]] == list(types)
    assert [param for param in shown["params"] if "item_kind" in param or "vector_dim" in param] == [
        {"name": "p8", "kind": "vector", "vector_dim": 3, "nullable": False},
        {"name": "p9", "kind": "list", "item_kind": "string", "nullable": False},
    ]
    assert {param["nullable"] for param in shown["params"]} == {False}
