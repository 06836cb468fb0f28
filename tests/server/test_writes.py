"""Writing on the wire: mutations, conditions, branches, merges and schema changes; rows 9 to 11, 16 and 21 to 23."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

import omnigraph as og
from omnigraph import failpoints
from tests.server.serving import ADD, AGE, ALL, DROP, SCHEMA, Served, assert_error, without_id

IF = "Omnigraph-If-Graph-Commit"


def test_mutate(served: Served) -> None:
    before = served.head()
    answer = served.post("/mutate", {"query": ADD, "params": {"name": "eve", "age": 3}})
    told = answer.json()
    assert list(told) == ["branch", "query_name", "affected_nodes", "affected_edges", "actor_id", "commit"]
    commit = told.pop("commit")
    assert told == {
        "branch": "main",
        "query_name": "add",
        "affected_nodes": 1,
        "affected_edges": 0,
        "actor_id": "default",
    }
    assert commit["parent_commit_id"] == before
    read = served.post("/query", {"query": ALL}).json()
    assert read["graph_commit_id"] == commit["graph_commit_id"]
    assert read["row_count"] == 3


def test_the_older_names(served: Served) -> None:
    answer = served.post("/change", {"query_source": ADD, "query_name": "add", "params": {"name": "eve"}})
    assert answer.json()["affected_nodes"] == 1
    assert answer.headers["deprecation"] == "true"
    assert answer.headers["link"] == '<mutate>; rel="successor-version"'
    refused = served.post("/change", {"query": ALL})
    assert_error(refused, 400, "bad_request", "is a read")
    assert refused.headers["deprecation"] == "true"


def test_cascades_are_counted(served: Served) -> None:
    told = served.mutate(DROP, name="ada")
    assert (told["affected_nodes"], told["affected_edges"]) == (1, 2)


def test_no_effect_is_no_commit(served: Served) -> None:
    before = served.head()
    told = served.mutate(DROP, name="nobody")
    assert (told["affected_nodes"], told["affected_edges"], told["commit"]) == (0, 0, None)
    assert served.head() == before


@pytest.mark.parametrize(
    ("body", "status", "code", "error"),
    [
        ({"query": ALL}, 400, "bad_request", "is a read"),
        ({}, 400, "bad_request", "missing required field `query`"),
        ({"query": ADD, "query_source": ADD}, 400, "bad_request", "query and query_source exclude each other"),
        ({"query": ADD, "name": "a", "query_name": "b"}, 400, "bad_request", "name and query_name exclude each other"),
        ({"query": ADD}, 400, "bad_request", "parameter 'name' not provided"),
        ({"query": ADD, "params": {"name": "x"}, "branch": "none"}, 404, "not_found", "branch 'none' not found"),
        ({"query": "query q() { insert None { a: 1 } }"}, 400, "bad_request", "None"),
    ],
)
def test_mutate_errors(served: Served, body: Any, status: int, code: str, error: str) -> None:
    assert_error(served.post("/mutate", body), status, code, error)


def test_an_existing_key_is_a_conflict(served: Served) -> None:
    answer = served.post("/load", {"data": '{"type":"Person","data":{"name":"ada"}}', "mode": "append"})
    key = {"entity_kind": "node", "type_name": "Person", "entity_id": "ada"}
    assert_error(answer, 409, "conflict", "ada", key_conflict=key)


def test_if_graph_commit(served: Served) -> None:
    head = served.head()
    body = {"query": ADD, "params": {"name": "eve"}}
    won = served.post("/mutate/if-graph-commit", body, headers={IF: head})
    assert won.status_code == 200
    now = won.json()["commit"]["graph_commit_id"]
    lost = served.post("/mutate/if-graph-commit", {"query": ADD, "params": {"name": "fay"}}, headers={IF: head})
    assert_error(lost, 412, None, head, precondition_failure={"expected": head, "actual": now})
    assert served.head() == now


@pytest.mark.parametrize("given", [[], ["*"], ['"01ARZ3NDEKTSV4RRFFQ69G5FAV"'], ['W/"a"'], ["a,b"], ["a", "a"], [""]])
def test_a_condition_is_one_raw_id(served: Served, given: list[str]) -> None:
    answer = served.http.post(
        "/graphs/people/mutate/if-graph-commit",
        json={"query": ADD, "params": {"name": "eve"}},
        headers=[(IF, value) for value in given],
    )
    assert_error(answer, 400, "bad_request", IF)


@pytest.mark.parametrize("path", ["/mutate", "/change", "/queries/add_person"])
def test_a_condition_on_a_plain_route_is_refused(served: Served, path: str) -> None:
    body: dict[str, Any] = (
        {"params": {"name": "eve"}} if "queries" in path else {"query": ADD, "params": {"name": "eve"}}
    )
    assert_error(served.post(path, body, headers={IF: served.head()}), 400, "bad_request", IF)


def test_a_repeat_with_the_same_key_returns_the_first_receipt(served: Served) -> None:
    body = {"query": ADD, "params": {"name": "eve"}}
    answers = [served.post("/mutate", body, headers={"Idempotency-Key": "k1"}) for _ in range(2)]
    assert answers[0].content == answers[1].content
    assert len(served.get("/commits").json()["commits"]) == 3
    other = {"query": ADD, "params": {"name": "fay"}}
    assert_error(served.post("/mutate", other, headers={"Idempotency-Key": "k1"}), 400, "bad_request", "k1")
    for given in ("", "x" * 256):
        answer = served.post("/mutate", other, headers={"Idempotency-Key": given})
        assert_error(answer, 400, "bad_request", "Idempotency-Key")


def test_keys_of_verbs_that_make_no_commit(served: Served) -> None:
    """A repeat of a lost answer gets the answer, not the news that it is done already."""
    key = {"Idempotency-Key": "k1"}
    created = [served.post("/branches", {"name": "b"}, headers=key) for _ in range(2)]
    assert [answer.status_code for answer in created] == [200, 200]
    assert created[0].content == created[1].content
    assert_error(served.post("/branches", {"name": "c"}, headers=key), 400, "bad_request", "another request")
    deleted = [served.request("DELETE", "/branches/b", headers={"Idempotency-Key": "k2"}) for _ in range(2)]
    assert [answer.status_code for answer in deleted] == [200, 200]
    assert served.get("/branches").json() == {"branches": ["main"]}
    assert_error(served.request("DELETE", "/branches/b", headers={"Idempotency-Key": "k3"}), 404, "not_found")
    wanted = {"schema_source": SCHEMA.replace("age: I32?", "age: I32?\n  nick: String?")}
    applied = [served.post("/schema/apply", wanted, headers={"Idempotency-Key": "k4"}) for _ in range(2)]
    assert applied[0].json()["applied"] is True
    assert applied[0].content == applied[1].content


def test_parallel_inserts_all_succeed(served: Served) -> None:
    def add(number: int) -> int:
        with httpx.Client(base_url=served.url, headers=served.http.headers, timeout=60, verify=False) as http:
            body = {"query": ADD, "params": {"name": f"p{number}"}}
            return http.post("/graphs/people/mutate", json=body).status_code

    with ThreadPoolExecutor(6) as pool:
        assert list(pool.map(add, range(12))) == [200] * 12
    assert served.post("/query", {"query": ALL}).json()["row_count"] == 14


def test_parallel_updates_of_one_key_are_never_lost(served: Served) -> None:
    add_one = "query inc($name: String, $age: I32) { update Person set { age: $age } where name = $name }"
    start = threading.Barrier(4)

    def update(number: int) -> httpx.Response:
        with httpx.Client(base_url=served.url, headers=served.http.headers, timeout=60, verify=False) as http:
            start.wait()
            return http.post("/graphs/people/mutate", json={"query": add_one, "params": {"name": "ada", "age": number}})

    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(update, range(100, 104)))
    assert {answer.status_code for answer in answers} <= {200, 409}
    kept = {answer.json()["commit"]["graph_commit_id"] for answer in answers if answer.status_code == 200}
    assert kept
    listed = {commit["graph_commit_id"] for commit in served.get("/commits").json()["commits"]}
    assert kept <= listed


def test_a_lost_race_is_told_with_the_versions(served: Served) -> None:
    """The body of a lost race is exactly the contract's, with the real numbers of the table."""
    other = og.open(served.path, actor="other")
    before = other.snapshot().entry("node:Person").version
    overtaken: list[bool] = []

    def overtake() -> None:
        if not overtaken:
            overtaken.append(True)
            other.mutate(AGE, "age", {"name": "ben", "age": 1})

    with failpoints.armed("mutation.prepared", overtake):
        answer = served.post("/mutate", {"query": DROP, "params": {"name": "ada"}})
    body = without_id(answer)
    assert answer.status_code == 409
    assert body.pop("error")
    assert body == {
        "code": "conflict",
        "manifest_conflict": {"table_key": "node:Person", "expected": before, "actual": before + 1},
        "published_dataset_version_conflict": {
            "entity_kind": "node",
            "type_name": "Person",
            "expected_published_dataset_version": before,
            "actual_published_dataset_version": before + 1,
        },
    }


# --- transactions -----------------------------------------------------------------------------------------------------


def test_a_transaction_is_one_commit(served: Served) -> None:
    before = served.head()
    mutations = [
        {"query": ADD, "params": {"name": "eve", "ignored": 1}},
        {"query": AGE, "name": "age", "params": {"name": "eve", "age": 5}},
        {"query": DROP, "params": {"name": "ada"}},
    ]
    answer = served.post("/transactions", {"mutations": mutations, "message": "all three", "if_commit": before})
    told = answer.json()
    names = ["branch", "query_name", "affected_nodes", "affected_edges", "actor_id", "commit", "mutations"]
    assert (answer.status_code, list(told)) == (200, names)
    assert (told["branch"], told["query_name"], told["actor_id"]) == ("main", "add, age, drop", "default")
    assert told["mutations"] == [
        {"query_name": "add", "affected_nodes": 1, "affected_edges": 0},
        {"query_name": "age", "affected_nodes": 1, "affected_edges": 0},
        {"query_name": "drop", "affected_nodes": 1, "affected_edges": 2},
    ]
    assert told["commit"]["parent_commit_id"] == before
    rows = served.post("/query", {"query": ALL}).json()["rows"]
    assert rows == [{"p.name": "ben", "p.age": 25}, {"p.name": "eve", "p.age": 5}]


def test_a_failure_in_a_transaction_undoes_all(served: Served) -> None:
    before = served.head()
    add = {"query": ADD, "params": {"name": "eve"}}
    for other, status, error in (
        ({"query": "query q() { insert None { a: 1 } }"}, 400, "None"),
        ({"query": ALL}, 400, "is a read"),
        ({"query": ADD, "name": "none"}, 400, "none"),
        ({"query": 'query k() { insert Knows { from: "eve", to: "nobody" } }'}, 400, "nobody"),
    ):
        assert_error(served.post("/transactions", {"mutations": [add, other]}), status, "bad_request", error)
    assert_error(served.post("/transactions", {"mutations": []}), 400, "bad_request", "mutations")
    assert_error(served.post("/transactions", {"mutations": [add], "branch": "none"}), 404, "not_found")
    lost = served.post("/transactions", {"mutations": [add], "if_commit": "01ARZ3NDEKTSV4RRFFQ69G5FAV"})
    failure = {"expected": "01ARZ3NDEKTSV4RRFFQ69G5FAV", "actual": before}
    assert_error(lost, 412, None, precondition_failure=failure)
    assert_error(served.post("/transactions", {"mutations": [add]}, headers={IF: before}), 400, "bad_request")
    assert served.head() == before


def test_a_repeated_transaction_returns_the_first_receipt(served: Served) -> None:
    body = {"mutations": [{"query": ADD, "params": {"name": "eve"}}, {"query": DROP, "params": {"name": "ada"}}]}
    first, again = (served.post("/transactions", body, headers={"Idempotency-Key": "k"}) for _ in range(2))
    assert first.status_code == 200, first.text
    assert again.json() == first.json()
    assert served.head() == first.json()["commit"]["graph_commit_id"]
    other = served.post("/transactions", {"mutations": body["mutations"][:1]}, headers={"Idempotency-Key": "k"})
    assert_error(other, 400, "bad_request", "was used for another request")


# --- branches ---------------------------------------------------------------------------------------------------------


def test_create_branch(served: Served) -> None:
    answer = served.post("/branches", {"name": "b"})
    uri = str(served.path)
    assert answer.json() == {"uri": uri, "from": "main", "name": "b", "actor_id": "default"}
    child = served.post("/branches", {"name": "c", "from": "b"})
    assert child.json() == {"uri": uri, "from": "b", "name": "c", "actor_id": "default"}
    assert_error(served.post("/branches", {"name": "b"}), 409, "conflict", "'b'")
    assert_error(served.post("/branches", {"name": "b/x"}), 409, "conflict", "b")
    assert_error(served.post("/branches", {"name": "d", "from": "none"}), 404, "not_found", "branch 'none' not found")
    for name in ("", "a b", "../x", "main"):
        assert_error(served.post("/branches", {"name": name}), 400, "bad_request", "cannot create branch")
    assert_error(served.post("/branches", {}), 400, "bad_request", "missing required field `name`")


def test_delete_branch(served: Served) -> None:
    for name, base in (("agent/1", "main"), ("merge", "main"), ("child", "merge")):
        served.post("/branches", {"name": name, "from": base})
    answer = served.request("DELETE", "/branches/agent%2F1")
    assert answer.json() == {"uri": str(served.path), "name": "agent/1", "actor_id": "default"}
    assert_error(served.request("DELETE", "/branches/agent%2F1"), 404, "not_found", "agent/1")
    main = served.request("DELETE", "/branches/main")
    assert_error(main, 400, "bad_request", "cannot delete branch 'main'")
    assert_error(served.request("DELETE", "/branches/merge"), 409, "conflict", "child")
    assert served.request("DELETE", "/branches/child").status_code == 200
    assert served.request("DELETE", "/branches/merge").json()["name"] == "merge"
    assert served.get("/branches").json() == {"branches": ["main"]}


def test_merge(served: Served) -> None:
    served.post("/branches", {"name": "b"})
    same = served.post("/branches/merge", {"source": "b"})
    assert same.json() == {
        "source": "b",
        "target": "main",
        "outcome": "already_up_to_date",
        "actor_id": "default",
    }
    served.mutate(ADD, "b", name="eve")
    forward = served.post("/branches/merge", {"source": "b", "target": "main"})
    assert forward.json()["outcome"] == "fast_forward"
    served.mutate(ADD, name="main-only")
    served.mutate(ADD, "b", name="fay")
    merged = served.post("/branches/merge", {"source": "b", "delete_branch": True})
    assert merged.json() == {
        "source": "b",
        "target": "main",
        "outcome": "merged",
        "actor_id": "default",
        "branch_deleted": True,
    }
    assert served.get("/commits").json()["commits"][0]["merged_parent_commit_id"] is not None


def test_settings(served: Served) -> None:
    assert served.get("/config").json() == {"config": {"merge.level": "entity"}}
    told = served.put("/config", {"name": "merge.level", "value": "property"})
    assert told.json() == {"config": {"merge.level": "property"}, "actor_id": "default"}
    assert (
        served.get("/stats").json()["config"] == served.get("/config").json()["config"] == {"merge.level": "property"}
    )
    served.post("/branches", {"name": "b"})
    assert served.post("/branches/merge", {"source": "b"}).json()["level"] == "property"
    asked = {"source": "b", "options": {"property_level": False}}
    assert "level" not in served.post("/branches/merge", asked).json()
    assert served.post("/branches/rebase", {"branch": "b"}).json()["level"] == "property"
    unset = served.put("/config", {"name": "merge.level", "value": None})
    assert unset.json()["config"] == {"merge.level": "entity"}
    assert_error(served.put("/config", {"name": "merge.levl", "value": None}), 400, "bad_request", "did you mean")
    assert_error(served.put("/config", {"name": "merge.level", "value": "x"}), 400, "bad_request", "entity or property")
    assert served.put("/config", {"name": "merge.level"}).status_code in (400, 422)


def test_a_refused_delete_is_no_error(served: Served) -> None:
    served.post("/branches", {"name": "b"})
    served.post("/branches", {"name": "c", "from": "b"})
    served.mutate(ADD, "b", name="eve")
    told = served.post("/branches/merge", {"source": "b", "delete_branch": True}).json()
    assert told["branch_deleted"] is False
    assert "c" in told["branch_delete_error"]


def test_merge_errors(served: Served) -> None:
    assert_error(served.post("/branches/merge", {"source": "main"}), 400, "bad_request", "distinct source and target")
    assert_error(served.post("/branches/merge", {"source": "none"}), 404, "not_found", "branch 'none' not found")
    served.post("/branches", {"name": "b"})
    assert_error(served.post("/branches/merge", {"source": "b", "target": "none"}), 404, "not_found", "'none'")


def test_merge_conflicts(served: Served) -> None:
    served.post("/branches", {"name": "b"})
    served.mutate(AGE, name="ada", age=1)
    served.mutate(AGE, "b", name="ada", age=2)
    answer = served.post("/branches/merge", {"source": "b"})
    body = without_id(answer)
    assert (answer.status_code, body["code"]) == (409, "conflict")
    (conflict,) = body["merge_conflicts"]
    message = conflict.pop("message")
    assert conflict == {
        "entity_kind": "node",
        "type_name": "Person",
        "entity_id": "ada",
        "kind": "divergent_update",
    }
    assert message
    assert body.keys() == {"error", "code", "merge_conflicts"}


# --- schema -----------------------------------------------------------------------------------------------------------


def test_schema_apply(served: Served) -> None:
    wanted = SCHEMA.replace("age: I32?", "age: I32?\n  nick: String?")
    told = served.post("/schema/apply", {"schema_source": wanted}).json()
    assert (told["uri"], told["supported"], told["applied"], told["step_count"]) == (str(served.path), True, True, 1)
    assert told["steps"][0]["kind"] == "add_property"
    assert served.get("/schema").json() == {"schema_source": wanted}
    again = served.post("/schema/apply", {"schema_source": wanted}).json()
    assert (again["applied"], again["step_count"], again["commit"]) == (False, 0, None)
    assert_error(served.post("/schema/apply", {"schema_source": "node"}), 400, "bad_request")
    refused = served.post("/schema/apply", {"schema_source": wanted.replace("age: I32?", "age: String?")})
    assert_error(refused, 400, "bad_request", "the schema can not be applied")


def test_schema_apply_with_a_backfill(served: Served) -> None:
    wanted = SCHEMA.replace("age: I32?", "age: I64?\n  loud: String")
    body = {"schema_source": wanted, "backfill": ["Person.loud = upper(name)"]}
    planned = served.post("/schema/plan", body).json()
    assert [step["kind"] for step in planned["steps"]] == ["add_property", "backfill", "widen"]
    told = served.post("/schema/apply", body).json()
    assert (told["applied"], told["steps"]) == (True, planned["steps"])
    wrong = served.post("/schema/apply", {"schema_source": wanted, "backfill": ["Person.loud = upper(nam)"]})
    assert_error(wrong, 400, "bad_request", "no property `nam` on Person")
    assert_error(served.post("/schema/apply", {"schema_source": wanted, "backfill": "x"}), 400, "bad_request")
