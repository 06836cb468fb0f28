"""The operations for looking around and for upkeep, on the wire."""

from __future__ import annotations

import io
from dataclasses import dataclass, replace
from typing import Any

import pyarrow.parquet as pq
import pytest

from omnigraph.commit.model import MAIN
from omnigraph.errors import Denied
from omnigraph.server.access import Need
from tests.server.serving import AGE, ALL, Served, assert_error, serving, settings_of


def test_the_catalog_tells_types_functions_and_words(reading: Served) -> None:
    told = reading.get("/catalog").json()
    by_name = {each["name"]: each for each in told["types"]}
    assert by_name["Person"]["key"] == ["name"]
    assert by_name["Knows"]["from"] == by_name["Knows"]["to"] == "Person"
    tags = next(each for each in by_name["Person"]["properties"] if each["name"] == "tags")
    assert (tags["type"], tags["kind"], tags["nullable"], tags["is_list"]) == ("[String]?", "String", True, True)
    functions = {each["name"]: each for each in told["functions"]}
    assert functions["lower"]["usage"] == "lower(text)"
    assert "count" in functions
    assert "match" in told["words"]


def test_each_branch_has_the_catalog_of_its_own_schema(served: Served) -> None:
    served.post("/branches", {"name": "wider"})
    source = served.get("/schema").json()["schema_source"] + "\nnode City { name: String @key }"
    served.post("/schema/apply?branch=wider", {"schema_source": source})
    names = {each["name"] for each in served.get("/catalog?branch=wider").json()["types"]}
    assert names - {each["name"] for each in served.get("/catalog").json()["types"]} == {"City"}
    text = {"query": "query q() { match { $c: City } return { $c.name } }"}
    assert served.post("/lint", text).json()["status"] == "error"
    assert served.post("/lint", {**text, "branch": "wider"}).json()["status"] == "ok"
    assert_error(served.get("/catalog?branch=none"), 404, "not_found", "branch 'none' not found")


def test_lint_gives_places_and_parameters(reading: Served) -> None:
    source = "query q($n: String) { match { $p: Persn } return { $p.name } }"
    told = reading.post("/lint", {"query": source}).json()
    [found] = told["diagnostics"]
    assert told["status"] == "error"
    assert found["code"] == "T1"
    assert "did you mean `Person`?" in found["message"]
    assert source[found["start"] : found["end"]] == "$p: Persn"
    fine = reading.post("/lint", {"query": source.replace("Persn", "Person")}).json()
    assert fine["status"] == "ok"
    assert fine["results"][0]["operation"]["params"] == [{"name": "n", "kind": "string", "nullable": False}]
    unreadable = reading.post("/lint", {"query": "query {{{"}).json()
    assert unreadable["diagnostics"][0]["code"] == "Q000"


def test_neighbours_are_of_one_snapshot(served: Served) -> None:
    told = served.get("/neighbours", params={"type": "Person", "id": "ada"}).json()
    assert told["node"]["properties"]["age"] == 36
    groups = {
        (each["edge"], each["direction"]): (each["type"], each["total"], each["given"]) for each in told["groups"]
    }
    assert groups == {
        ("Knows", "out"): ("Person", 1, 1),
        ("Knows", "in"): ("Person", 0, 0),
        ("Wrote", "out"): ("Doc", 1, 1),
    }
    assert {(each["type"], each["id"]) for each in told["nodes"]} == {("Person", "ben"), ("Doc", "hello")}
    wrote = next(each for each in told["edges"] if each["type"] == "Wrote")
    # Blobs are not part of it.
    assert (wrote["from"], wrote["to"], wrote["id"], wrote["properties"]) == ("ada", "hello", "w1", {})
    before = served.head()
    served.mutate(
        "query q() { insert Person { name: 'cleo' } insert Knows { from: 'ada', to: 'cleo' } }".replace("'", '"')
    )
    page = {"type": "Person", "id": "ada", "edge": "Knows", "direction": "out"}
    now = served.get("/neighbours", params={**page, "limit": 1, "skip": 1}).json()
    assert [(each["total"], each["given"]) for each in now["groups"]] == [(2, 1)]
    then = served.get("/neighbours", params={**page, "snapshot": before}).json()
    assert then["graph_commit_id"] == before
    assert [each["total"] for each in then["groups"]] == [1]


def test_long_texts_of_neighbours_are_cut(served: Served) -> None:
    served.mutate("query q($t: String) { insert Doc { title: $t } }", t="x" * 3000)
    told = served.get("/neighbours", params={"type": "Doc", "id": "x" * 3000}).json()
    assert len(told["node"]["properties"]["title"]) == 500


@pytest.mark.parametrize(
    ("asked", "status", "code", "message"),
    [
        ({"type": "Persn", "id": "ada"}, 404, "not_found", "did you mean `Person`?"),
        ({"type": "Person", "id": "zoe"}, 404, "not_found", "there is no Person with the id 'zoe'"),
        ({"type": "Person", "id": "ada", "edge": "Know"}, 404, "not_found", "no edge type 'Know'"),
        ({"type": "Person", "id": "ada", "limit": 1001}, 400, "bad_request", "from 0 to 1000, not 1001"),
        ({"type": "Person", "id": "ada", "skip": -1}, 400, "bad_request", "skip is"),
        ({"type": "Person", "id": "ada", "branch": "none"}, 404, "not_found", "branch 'none' not found"),
    ],
)
def test_wrong_neighbours(reading: Served, asked: dict[str, Any], status: int, code: str, message: str) -> None:
    assert_error(reading.get("/neighbours", params=asked), status, code, message)


def test_branches_ahead_and_behind(served: Served) -> None:
    served.post("/branches", {"name": "agent/1"})
    served.mutate(AGE, "agent/1", name="ada", age=40)
    served.mutate(AGE, "agent/1", name="ada", age=41)
    served.mutate(AGE, name="ben", age=26)
    told = served.get("/branches/status").json()["branches"]
    assert [(each["name"], each["ahead"], each["behind"]) for each in told] == [("main", 0, 0), ("agent/1", 2, 1)]
    assert told[1]["head"]["id"] == served.head("agent/1")
    assert told[1]["head"]["actor"] == "default"
    # A branch may be called like the route.
    served.post("/branches", {"name": "status"})
    assert served.request("DELETE", "/branches/status").status_code == 200


def test_a_comparison_counts_first_and_comes_in_pages(served: Served) -> None:
    served.post("/branches", {"name": "many"})
    lines = "\n".join(f'{{"type":"Person","data":{{"name":"p{n:03}","age":{n % 90}}}}}' for n in range(250))
    served.post("/load", {"data": lines, "branch": "many"})
    served.mutate(AGE, "many", name="ada", age=1)
    served.mutate("query q() { delete Doc where title = 'empty' }".replace("'", '"'), "many")
    first = served.post("/compare", {"before": "main", "after": "many", "limit": 100}).json()
    assert first["counts"] == [
        {"kind": "node", "type": "Doc", "inserts": 0, "updates": 0, "deletes": 1},
        {"kind": "node", "type": "Person", "inserts": 250, "updates": 1, "deletes": 0},
    ]
    found, token = list(first["changes"]), first["next_page_token"]
    # The branch moves on; the pages stay those of the states that were compared.
    served.mutate(AGE, "many", name="ben", age=2)
    while token:
        page = served.post("/compare", {"before": "main", "after": "many", "limit": 100, "page_token": token}).json()
        assert "counts" not in page
        found += page["changes"]
        token = page.get("next_page_token")
    assert len(found) == 252
    assert found == served.post("/diff", {"before": first["before"], "after": first["after"]}).json()["changes"]
    counted = served.post("/compare", {"before": "main", "after": "many", "limit": 0, "ops": ["update"]}).json()
    assert counted["changes"] == []
    assert counted["counts"] == [{"kind": "node", "type": "Person", "inserts": 0, "updates": 2, "deletes": 0}]


def test_a_wrong_page_of_a_comparison(reading: Served) -> None:
    body = {"before": "main", "after": "main"}
    assert_error(reading.post("/compare", {**body, "page_token": "zzz"}), 400, "bad_request", "not one of a comparison")
    assert_error(reading.post("/compare", {**body, "limit": 5001}), 400, "bad_request", "from 0 to 5000")
    assert_error(reading.post("/compare", {"before": "none"}), 404, "not_found", "branch 'none' not found")


def test_permissions_tell_what_is_allowed(served: Served) -> None:
    told = served.get("/permissions").json()
    assert (told["actor_id"], told["read_only"], told["branch"]) == ("default", False, "main")
    assert all(told["may"].values())
    with serving(settings_of(served.path, read_only=True)) as reader:
        may = reader.get("/permissions").json()
        assert may["read_only"] is True
        assert {action for action, allowed in may["may"].items() if allowed} == {"read", "export", "invoke_query"}
        assert may["why_not"]["change"] == "action 'change' on branch 'main' is not possible: this server is read-only"
        assert may["why_not"].keys() == {action for action, allowed in may["may"].items() if not allowed}
        # Only who administers the graph may ask about others.
        assert_error(reader.get("/permissions?actor=bob"), 403, "forbidden", "read-only")


@dataclass(frozen=True)
class DraftsOnly:
    """A rule that lets everybody read, and write and merge what is not main."""

    def check(self, actor: str | None, need: Need) -> None:
        if need.action in ("change", "branch_delete") and MAIN in (need.branch, need.target):
            raise Denied("no", action=need.action, actor=actor)


def test_permissions_tell_of_drafts_where_main_is_protected(served: Served) -> None:
    graphs = served.state.graphs
    graphs.healthy["people"] = replace(graphs.healthy["people"], access=DraftsOnly())
    may = served.get("/permissions").json()["may"]
    assert (may["change"], may["change_new_branch"], may["branch_merge"]) == (False, True, True)
    other = served.get("/permissions?actor=bob").json()
    assert (other["actor_id"], other["may"]["change"], other["why_not"]["change"]) == ("bob", False, "no")


def test_rows_as_a_parquet_file(reading: Served) -> None:
    answer = reading.post("/query", {"query": ALL}, headers={"Accept": "application/vnd.apache.parquet"})
    assert answer.headers["content-type"] == "application/vnd.apache.parquet"
    assert pq.read_table(io.BytesIO(answer.content)).to_pylist() == [
        {"p.name": "ada", "p.age": 36},
        {"p.name": "ben", "p.age": 25},
    ]


def test_upkeep_over_http(served: Served) -> None:
    served.mutate(AGE, name="ada", age=40)
    tables = {each["type_key"]: each for each in served.get("/stats").json()["tables"]}
    assert tables["node:Person"]["rows"] == 2
    assert tables["node:Person"]["fragments_to_compact"] == 2
    planned = served.post("/optimize", {"dry_run": True}).json()
    assert planned["dry_run"] is True
    assert planned["report"]["commit"] is None if "commit" in planned["report"] else True
    head = served.head()
    done = served.post("/optimize", {})
    assert done.status_code == 200
    assert served.head() != head
    assert served.get("/stats").json()["tables"][1]["fragments_to_compact"] == 0
    assert served.post("/ensure-indices", {"dry_run": True}).json()["dry_run"] is True
    cleaned = served.post("/cleanup", {"keep": 1, "dry_run": True}).json()
    assert cleaned["report"]["keep_versions"] == 1
    assert served.get("/recoveries").json() == {"recoveries": [], "waiting": 0}
    with serving(settings_of(served.path, read_only=True)) as reader:
        assert_error(reader.post("/optimize", {}), 403, "forbidden", "read-only")


@pytest.mark.parametrize(
    ("path", "body"), [("/cleanup", {"keep": 2**80}), ("/query", {"query": "", "memory_limit": 2**80})]
)
def test_numbers_that_no_answer_can_hold(reading: Served, path: str, body: dict[str, Any]) -> None:
    assert_error(reading.post(path, body), 400, "bad_request")
