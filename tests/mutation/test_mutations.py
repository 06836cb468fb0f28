"""Section 8: what insert, update and delete do, and what a mutation reports. The row ids are in the test ids."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.errors import BadRequest, PreconditionFailed, TypecheckError, ValidationError
from tests.mutation.org_graph import call, commit_of, ids, level, org_graph, pairs, rows


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    return org_graph(tmp_path / "g")


def counts(result: og.MutationResult) -> tuple[int, int]:
    return result.affected_nodes, result.affected_edges


def test_mut_01_insert_node(graph: og.Graph) -> None:
    assert counts(call(graph, "put", "eve", 22)) == (1, 0)
    assert level(graph, "eve") == 22


def test_mut_02_insert_edge(graph: og.Graph) -> None:
    call(graph, "put", "eve", 22)
    assert counts(call(graph, "link", "eve", "ada")) == (0, 1)
    assert ("eve", "ada") in pairs(graph, "Mentors")


def test_mut_03_later_statements_see_earlier_ones(graph: og.Graph) -> None:
    before = len(graph.commits())
    assert counts(call(graph, "put_link", "eve", 22, "ada")) == (1, 1)
    assert len(graph.commits()) == before + 1
    assert ("eve", "ada") in pairs(graph, "Mentors")


def test_mut_04_update(graph: og.Graph) -> None:
    assert counts(call(graph, "relevel", "ada", 31)) == (1, 0)
    assert level(graph, "ada") == 31


def test_mut_05_keyed_insert_is_an_upsert_of_the_whole_row(graph: og.Graph) -> None:
    assert counts(call(graph, "put", "ada", 99)) == (1, 0)
    assert level(graph, "ada") == 99
    assert ids(graph, "node:Staff") == ["ada", "ben", "cleo", "dov"]
    graph.mutate('query q() { insert Staff { handle: "ada" } }')
    assert level(graph, "ada") is None


def test_mut_06_deleting_a_node_deletes_its_edges(graph: og.Graph) -> None:
    assert counts(call(graph, "drop_staff", "ada")) == (1, 3)
    assert ids(graph, "node:Staff") == ["ben", "cleo", "dov"]
    assert pairs(graph, "Mentors") == [("ben", "dov")]
    assert pairs(graph, "MemberOf") == [("ben", "labs")]


def test_mut_09_a_key_can_not_be_updated(graph: og.Graph) -> None:
    before = graph.head()
    query = "query q($h: String, $n: String) { update Staff set { handle: $n } where handle = $h }"
    with pytest.raises(BadRequest, match="@key"):
        graph.mutate(query, params={"h": "ada", "n": "eva"})
    assert graph.head() == before


def test_mut_10_missing_endpoint(graph: og.Graph) -> None:
    before = pairs(graph, "Mentors")
    head = graph.head()
    with pytest.raises(ValidationError, match="not found") as error:
        call(graph, "link", "ada", "ghost")
    assert error.value.type_key == "edge:Mentors"
    assert (pairs(graph, "Mentors"), graph.head()) == (before, head)


def test_mut_12_insert_then_update_of_one_row(graph: og.Graph) -> None:
    version = graph.snapshot().entry("node:Staff").version
    query = (
        'query q() { insert Staff { handle: "yan", level: 10 } update Staff set { level: 99 } where handle = "yan" }'
    )
    assert counts(graph.mutate(query)) == (2, 0)
    assert level(graph, "yan") == 99
    assert graph.snapshot().entry("node:Staff").version == version + 1


def test_mut_14_inserts_and_deletes_do_not_mix(graph: og.Graph) -> None:
    head = graph.head()
    query = """query q($h: String, $n: I32, $o: String) {
      insert Staff { handle: $h, level: $n } delete Staff where handle = $o }"""
    with pytest.raises(BadRequest) as error:
        graph.mutate(query, params={"h": "x", "n": 1, "o": "ada"})
    assert "inserts/updates and deletes" in str(error.value)
    assert "split into separate mutations" in str(error.value)
    assert graph.head() == head


def test_mut_18_two_deletes(graph: og.Graph) -> None:
    graph.mutate('query q() { delete Staff where handle = "ada" delete Mentors where from = "ben" }')
    assert pairs(graph, "Mentors") == []


def test_mut_19_deleting_a_node_without_edges_leaves_edge_tables_alone(graph: og.Graph) -> None:
    call(graph, "put", "loner", 1)
    before = {key: graph.snapshot().entry(key).version for key in ("edge:Mentors", "edge:MemberOf")}
    assert counts(call(graph, "drop_staff", "loner")) == (1, 0)
    assert {key: graph.snapshot().entry(key).version for key in before} == before
    call(graph, "link", "ben", "ada")
    assert ("ben", "ada") in pairs(graph, "Mentors")


def test_mut_20_parallel_edges_are_allowed(graph: og.Graph) -> None:
    version = graph.snapshot().entry("edge:Mentors").version
    query = 'query q() { insert Mentors { from: "ada", to: "ben" } insert Mentors { from: "ada", to: "dov" } }'
    assert counts(graph.mutate(query)) == (0, 2)
    assert len(pairs(graph, "Mentors")) == 5
    assert graph.snapshot().entry("edge:Mentors").version == version + 1


DOCS = "node Doc { slug: String @key repoName: String @index status: String? }"


@pytest.fixture
def docs(tmp_path: Path) -> og.Graph:
    graph = og.init(tmp_path / "docs", DOCS)
    graph.mutate(
        'query q() { insert Doc { slug: "d1", repoName: "acme" } insert Doc { slug: "d2", repoName: "globex" } }'
    )
    return graph


def test_mut_22_camel_case_predicates(docs: og.Graph) -> None:
    update = "query q($r: String, $s: String) { update Doc set { status: $s } where repoName = $r }"
    assert counts(docs.mutate(update, params={"r": "acme", "s": "done"})) == (1, 0)
    assert [row["status"] for row in rows(docs, "node:Doc")] == ["done", None]
    delete = "query q($r: String) { delete Doc where repoName = $r }"
    assert counts(docs.mutate(delete, params={"r": "globex"})) == (1, 0)
    assert ids(docs, "node:Doc") == ["d1"]


def test_mut_23_two_updates_of_one_row_count_twice(docs: og.Graph) -> None:
    query = """query q($r: String) { update Doc set { status: "s1" } where repoName = $r
      update Doc set { status: "s2" } where repoName = $r }"""
    assert counts(docs.mutate(query, params={"r": "acme"})) == (2, 0)
    assert rows(docs, "node:Doc")[0]["status"] == "s2"


def test_an_update_sees_rows_as_earlier_statements_left_them(docs: og.Graph) -> None:
    query = """query q() { update Doc set { status: "x" } where slug = "d1"
      update Doc set { status: "y" } where status = "x" update Doc set { status: "z" } where status = "x" }"""
    assert counts(docs.mutate(query)) == (2, 0)
    assert rows(docs, "node:Doc")[0]["status"] == "y"


def test_mut_24_repeated_updates(graph: og.Graph) -> None:
    call(graph, "relevel", "ada", 99)
    call(graph, "relevel", "ada", 42)
    assert level(graph, "ada") == 42


def test_mut_25_actor(graph: og.Graph) -> None:
    result = call(graph, "put", "eve", 22, actor="act-x")
    assert graph.head().actor == "act-x"
    assert result.commit == graph.head()


def test_mut_28_lost_condition(graph: og.Graph) -> None:
    first = graph.head().id
    call(graph, "put", "eve", 22)
    second = graph.head().id
    for name, values in (("relevel", ("ada", 1)), ("put", ("fay", 1))):
        with pytest.raises(PreconditionFailed) as error:
            call(graph, name, *values, if_commit=first)
        assert (error.value.branch, error.value.expected, error.value.actual) == ("main", first, second)
    assert graph.head().id == second


def test_mut_29_kept_condition(graph: og.Graph) -> None:
    head = graph.head().id
    result = call(graph, "put", "eve", 22, if_commit=head)
    assert commit_of(result).parent == head
    assert graph.head() == result.commit


def test_mut_30_conditional_no_op(graph: og.Graph) -> None:
    head = graph.head()
    result = call(graph, "relevel", "nobody", 9, if_commit=head.id)
    assert (counts(result), result.commit, graph.head()) == ((0, 0), None, head)


def test_mut_31_a_fresh_branch_has_its_fork_point_as_condition(graph: og.Graph) -> None:
    graph.create_branch("feature")
    token = graph.head("feature").id
    assert token == graph.head("main").id
    call(graph, "put", "eve", 22, branch="feature", if_commit=token)
    assert graph.head("feature").id != token
    assert graph.head("main").id == token


def test_mut_32_a_token_read_after_another_handle_committed(graph: og.Graph) -> None:
    other = og.open(graph.uri)
    call(other, "put", "eve", 22)
    token = graph.head().id
    assert token == other.head().id
    call(graph, "put", "fay", 1, if_commit=token)
    assert ids(graph, "node:Staff")[-2:] == ["eve", "fay"]


def test_mut_33_now(tmp_path: Path) -> None:
    graph = og.init(tmp_path / "g", "node Ev { slug: String @key at: DateTime? }")
    before = int(time.time() * 1000)
    graph.mutate('query q() { insert Ev { slug: "x", at: now() } insert Ev { slug: "y", at: now() } }')
    after = int(time.time() * 1000)
    instants = [round(row["at"].timestamp() * 1000) for row in rows(graph, "node:Ev")]
    assert instants[0] == instants[1]
    assert before <= instants[0] <= after


def test_mut_34_a_read_query_is_not_a_mutation(graph: og.Graph) -> None:
    with pytest.raises(BadRequest, match="read query"):
        graph.mutate("query q() { match { $s: Staff } return { $s.handle } }")


# --- exactly once -----------------------------------------------------------------------------------------------------


def test_a_repeated_request_returns_the_first_receipt(graph: og.Graph) -> None:
    first = call(graph, "put", "eve", 22, idempotency_key="k1")
    call(graph, "relevel", "eve", 23)
    head = graph.head()
    assert call(graph, "put", "eve", 22, idempotency_key="k1") == first
    assert (graph.head(), level(graph, "eve")) == (head, 23)
    with pytest.raises(BadRequest, match="another request"):
        call(graph, "put", "eve", 24, idempotency_key="k1")


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("I32", 1),
        ("F64", 0.5),
        ("String", ""),
        ("Bool", False),
        ("Date", "1969-12-31"),
        ("DateTime", "2024-01-01T00:00:00.001Z"),
        ("U64", 2**63 - 1),
        ("[String]", ["a", ""]),
        ("[F32]", []),
        ("Vector(2)", [0.1, 0.0]),
        ("I32", None),
        ("[Date]", None),
    ],
)
def test_an_update_to_what_is_there_makes_no_commit(tmp_path: Path, kind: str, value: object) -> None:
    graph = og.init(tmp_path / "g", f"node N {{ k: String @key v: {kind}? }}")
    graph.mutate(f'query q($v: {kind}?) {{ insert N {{ k: "a" v: $v }} }}', params={"v": value})
    update = f'query q($v: {kind}?) {{ update N set {{ v: $v }} where k = "a" }}'
    head, done = graph.head(), graph.mutate(update, params={"v": value})
    assert (done.affected_nodes, done.commit, graph.head()) == (1, None, head)


def test_an_update_writes_only_the_rows_it_changes(graph: og.Graph) -> None:
    before = graph.head()
    done = graph.mutate('query q() { update Staff set { level: 30 } where handle != "nobody" }')
    assert done.affected_nodes == 4
    commit = commit_of(done)
    changes = graph.commit_changes(commit.id).changes
    assert (commit.parent, [change.id for change in changes]) == (before.id, ["ben", "cleo", "dov"])


def test_a_row_that_was_left_alone_is_still_seen_by_later_statements(graph: og.Graph) -> None:
    done = graph.mutate(
        """query q() { update Staff set { level: 30 } where handle = "ada"
        insert Staff { handle: "eve", level: 30 } update Staff set { level: 31 } where level = 30 }"""
    )
    assert (done.affected_nodes, level(graph, "ada"), level(graph, "eve")) == (4, 31, 31)


def test_a_no_op_is_not_recorded(graph: og.Graph) -> None:
    assert call(graph, "relevel", "eve", 1, idempotency_key="k2").commit is None
    call(graph, "put", "eve", 22)
    assert counts(call(graph, "relevel", "eve", 1, idempotency_key="k2")) == (1, 0)


# --- bad input --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "params", "error"),
    [
        ("query q($n: I32) { insert Staff { level: $n } }", {"n": 1}, TypecheckError),
        ("query q() { insert Nobody { a: 1 } }", None, TypecheckError),
        ("query q($h: String) { insert Staff { handle: $h } }", {}, BadRequest),
        ("query q($h: String) { insert Staff { handle: $h } }", {"h": 5}, BadRequest),
        ('query q($n: I64) { insert Staff { handle: "x", level: $n } }', {"n": 2**40}, BadRequest),
        ('query q($n: F64) { insert Staff { handle: "x", level: $n } }', {"n": 2.7}, BadRequest),
        ("nonsense", None, BadRequest),
        ("no/such/file.gq", None, BadRequest),
    ],
)
def test_bad_input_changes_nothing(
    graph: og.Graph, source: str, params: Mapping[str, object] | None, error: type[Exception]
) -> None:
    head, version = graph.head(), graph.snapshot().version
    with pytest.raises(error):
        graph.mutate(source, params=params)
    assert (graph.head(), graph.snapshot().version) == (head, version)


def test_unknown_branch(graph: og.Graph) -> None:
    with pytest.raises(og.errors.BranchNotFound):
        call(graph, "put", "eve", 1, branch="nope")


def test_a_read_only_handle_does_not_write(graph: og.Graph) -> None:
    with pytest.raises(BadRequest, match="read-only"):
        call(og.open(graph.uri, "ro"), "put", "eve", 1)


@pytest.mark.parametrize(
    "source", ['upsert Staff { handle: "ada" }', 'update Staff set { level: level } where handle = "ada"']
)
def test_what_is_matched_counts_also_where_it_stays_as_it_was(graph: og.Graph, source: str) -> None:
    before = graph.head()
    result = graph.mutate(source)
    assert (result.affected_nodes, result.counts, result.ids, result.commit) == (1, {"Staff": 1}, (), None)
    assert graph.head() == before
