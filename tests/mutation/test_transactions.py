"""Transactions: several queries, each on what those before left, one commit or nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.errors import (
    BadRequest,
    PreconditionFailed,
    ReadSetChanged,
    TypecheckError,
    ValidationError,
)
from omnigraph.graph.lifecycle import connect
from omnigraph.storage.root import Root
from tests.commit.healthy import assert_healthy
from tests.mutation.org_graph import LOAD, SCHEMA, WRITES, call, content, level, org_graph

STAFF = "query staff() { match { $s: Staff } return { $s.handle, $s.level } order { $s.handle asc } }"
MENTORED = "query m($h: String) { match { $s: Staff { handle: $h } $s mentors $t } return { $t.handle } order { $t.handle asc } }"


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    return org_graph(tmp_path / "g")


def do(transaction: og.Transaction, name: str, **params: object) -> og.MutationResult:
    return transaction.mutate(WRITES, name, params)


def staff(asked: Any) -> dict[str, int]:
    return {row["s.handle"]: row["s.level"] for row in asked.query(STAFF).rows}


def mentored(asked: Any, handle: str) -> list[str]:
    return [row["t.handle"] for row in asked.query(MENTORED, params={"h": handle}).rows]


# --- one commit, and what queries see on the way ----------------------------------------------------------------------


def test_several_queries_are_one_commit(graph: og.Graph) -> None:
    before = graph.head()
    with graph.transaction(actor="ann", message="hire eve") as t:
        do(t, "put", h="eve", n=20)
        do(t, "link", a="eve", b="ada")
        do(t, "relevel", h="eve", n=21)
        do(t, "drop_staff", h="dov")
        assert graph.head() == before, "nothing is there before the end"
    assert t.result is not None
    assert t.result.commit == graph.head()
    assert (graph.head().parent, graph.head().actor, graph.head().message) == (before.id, "ann", "hire eve")
    assert (t.result.affected_nodes, t.result.affected_edges) == (3, 2)
    assert t.result.counts == {"Staff": 3, "Mentors": 2}
    assert content(graph)["Staff"] == {"ada": 30, "ben": 25, "cleo": 35, "eve": 21}
    assert content(graph)["Mentors"] == [("ada", "ben"), ("ada", "cleo"), ("eve", "ada")]
    assert_healthy(connect(graph.uri))


def test_queries_see_inserts_updates_deletes_and_cascades(graph: og.Graph) -> None:
    with graph.transaction() as t:
        do(t, "put", h="eve", n=20)
        assert staff(t) == {"ada": 30, "ben": 25, "cleo": 35, "dov": 28, "eve": 20}
        do(t, "relevel", h="eve", n=21)
        do(t, "relevel", h="ben", n=26)
        assert staff(t) == {"ada": 30, "ben": 26, "cleo": 35, "dov": 28, "eve": 21}
        do(t, "link", a="eve", b="ben")
        assert mentored(t, "eve") == ["ben"]
        do(t, "drop_staff", h="ben")
        assert mentored(t, "eve") == []
        assert mentored(t, "ada") == ["cleo"]
        assert staff(t) == {"ada": 30, "cleo": 35, "dov": 28, "eve": 21}
        assert staff(graph) == {"ada": 30, "ben": 25, "cleo": 35, "dov": 28}
    assert staff(graph) == {"ada": 30, "cleo": 35, "dov": 28, "eve": 21}


def test_mutations_see_those_before(graph: og.Graph) -> None:
    with graph.transaction() as t:
        assert do(t, "drop_staff", h="ada").counts == {"Staff": 1, "Mentors": 2, "MemberOf": 1}
        assert do(t, "drop_staff", h="ada").counts == {}
        assert do(t, "relevel", h="ada", n=1).affected_nodes == 0
        do(t, "put", h="ada", n=2)
        assert t.mutate("query q() { update Staff set { level: level + 1 } where level < 10 }").affected_nodes == 1
        do(t, "link", a="ada", b="ada")
        # Once from either end.
        assert do(t, "drop_staff", h="ada").counts == {"Staff": 1, "Mentors": 1}
        do(t, "put", h="ada", n=7)
    assert level(graph, "ada") == 7
    assert content(graph)["Mentors"] == [("ben", "dov")]


def test_what_is_made_and_removed_again_is_no_commit(graph: og.Graph) -> None:
    before = graph.head()
    with graph.transaction() as t:
        do(t, "put", h="eve", n=20)
        do(t, "link", a="eve", b="eve")
        do(t, "drop_staff", h="eve")
        assert staff(t) == staff(graph)
    assert t.result is not None
    assert t.result.commit is None
    assert graph.head() == before


def test_a_replaced_row_is_removed_by_what_it_is_now(graph: og.Graph) -> None:
    """The committed row does not fit the predicate, the row that took its place does."""
    with graph.transaction() as t:
        do(t, "put", h="ada", n=1)
        assert t.mutate("query q() { delete Staff where level = 1 }").counts == {
            "Staff": 1,
            "Mentors": 2,
            "MemberOf": 1,
        }
        assert t.mutate("query q() { delete Staff where level = 30 }").affected_nodes == 0
    assert "ada" not in content(graph)["Staff"]


def test_the_change_feed_shows_one_commit(graph: og.Graph) -> None:
    with graph.transaction() as t:
        do(t, "put", h="eve", n=20)
        do(t, "relevel", h="ben", n=26)
        do(t, "drop_staff", h="dov")
    assert t.result is not None
    assert t.result.commit is not None
    changes = graph.commit_changes(t.result.commit.id).changes
    assert sorted((change.op, change.type, change.id) for change in changes if change.kind == "node") == [
        ("delete", "Staff", "dov"),
        ("insert", "Staff", "eve"),
        ("update", "Staff", "ben"),
    ]


def test_on_a_branch_that_shares_its_tables(graph: og.Graph) -> None:
    graph.create_branch("feature")
    with graph.transaction(branch="feature") as t:
        do(t, "put", h="eve", n=20)
        do(t, "relevel", h="ben", n=26)
        do(t, "drop_staff", h="dov")
        assert staff(t) == {"ada": 30, "ben": 26, "cleo": 35, "eve": 20}
    assert staff(graph) == {"ada": 30, "ben": 25, "cleo": 35, "dov": 28}
    assert staff(graph.at("feature")) == {"ada": 30, "ben": 26, "cleo": 35, "eve": 20}
    with graph.transaction(branch="feature") as t:
        do(t, "relevel", h="ben", n=27)
        assert staff(t)["ben"] == 27
    assert_healthy(connect(graph.uri))


def test_on_an_object_store(s3_root: Root) -> None:
    graph = og.init(s3_root.uri, SCHEMA, storage_options=s3_root.storage_options)
    graph.mutate(LOAD)
    with graph.transaction() as t:
        do(t, "put", h="eve", n=20)
        do(t, "relevel", h="ben", n=26)
        assert staff(t) == {"ada": 30, "ben": 26, "cleo": 35, "dov": 28, "eve": 20}
        do(t, "drop_staff", h="dov")
        assert mentored(t, "ben") == []
    assert staff(graph) == {"ada": 30, "ben": 26, "cleo": 35, "eve": 20}
    assert [info.path for info in graph._context.store.list("__staging")] == []


# --- the rules --------------------------------------------------------------------------------------------------------

RULES = """
node P { name: String @key  n: I32?  badge: I32?  @range(n, 0..9)  @unique(badge) }
node T { code: String @key }
edge In: P -> T @card(0..1)
edge Knows: P -> P { since: I32  @key(src, dst) }
"""


@pytest.fixture
def ruled(tmp_path: Path) -> og.Graph:
    graph = og.init(tmp_path / "ruled", RULES)
    graph.mutate(
        'query q() { insert P { name: "a", badge: 1 } insert P { name: "b", badge: 2 } insert T { code: "t" } insert In '
        '{ from: "a", to: "t" } insert Knows { from: "a", to: "b", since: 1 } }'
    )
    return graph


@pytest.mark.parametrize(
    ("before", "broken", "message"),
    [
        (['insert P { name: "c", badge: 3 }'], 'insert P { name: "d", badge: 3 }', "@unique violation"),
        (['update P set { badge: 9 } where name = "a"'], 'insert P { name: "c", badge: 9 }', "@unique violation"),
        ([], 'insert P { name: "c", badge: 1 }', "@unique violation"),
        (['insert P { name: "c" }', 'insert In { from: "c", to: "t" }'], 'insert In { from: "c", to: "t" }', "@card"),
        ([], 'insert In { from: "a", to: "t" }', "@card violation"),
        (['delete T where code = "t"'], 'insert In { from: "b", to: "t" }', "not found"),
        (['insert P { name: "c" }', 'delete P where name = "c"'], 'insert In { from: "c", to: "t" }', "not found"),
        ([], 'insert P { name: "c", n: 10 }', "@range violation"),
    ],
)
def test_each_query_is_judged_on_what_those_before_left(
    ruled: og.Graph, before: list[str], broken: str, message: str
) -> None:
    head = ruled.head()
    with pytest.raises(ValidationError, match=message), ruled.transaction() as t:
        for statement in before:
            t.mutate(f"query q() {{ {statement} }}")
        t.mutate(f"query q() {{ {broken} }}")
    assert ruled.head() == head


def test_what_a_query_before_frees_can_be_used(ruled: og.Graph) -> None:
    with ruled.transaction() as t:
        t.mutate('query q() { update P set { badge: 7 } where name = "a" }')
        t.mutate('query q() { insert P { name: "c", badge: 1 } }')
        t.mutate('query q() { delete In where from = "a" }')
        t.mutate('query q() { insert T { code: "u" } insert In { from: "a", to: "u" } }')
        t.mutate('query q() { insert Knows { from: "a", to: "b", since: 2 } }')
        t.mutate('query q() { update Knows set { since: since + 1 } where from = "a" and to = "b" }')
    rows = ruled.query("query q() { match { $p: P } return { $p.name, $p.badge } order { $p.name asc } }").rows
    assert [row["p.badge"] for row in rows] == [7, 2, 1]
    edges = ruled.snapshot().open("edge:Knows").read(["src", "dst", "since"]).to_pylist()
    assert edges == [{"src": "a", "dst": "b", "since": 3}]


# --- failures ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "error"),
    [
        ('query q() { insert Mentors { from: "ada", to: "nobody" } }', ValidationError),
        ('query q() { insert Nothing { x: "ada" } }', TypecheckError),
        (STAFF, BadRequest),
    ],
)
def test_a_failure_in_one_undoes_all(graph: og.Graph, source: str, error: type[Exception]) -> None:
    before, head = content(graph), graph.head()
    with pytest.raises(error), graph.transaction() as t:
        do(t, "put", h="eve", n=20)
        t.mutate(source)
    assert content(graph) == before
    assert graph.head() == head
    with pytest.raises(BadRequest, match="this transaction is over"):
        do(t, "put", h="eve", n=20)


def test_an_error_of_the_caller_undoes_all(graph: og.Graph) -> None:
    head = graph.head()
    with pytest.raises(ZeroDivisionError), graph.transaction() as t:
        do(t, "put", h="eve", n=20)
        1 / 0  # noqa: B018
    assert graph.head() == head


def test_a_caught_failure_is_not_taken_for_success(graph: og.Graph) -> None:
    head = graph.head()
    with pytest.raises(BadRequest, match="nothing of this transaction was written: .*nobody"), graph.transaction() as t:
        do(t, "put", h="eve", n=20)
        with pytest.raises(ValidationError):
            do(t, "link", a="eve", b="nobody")
    assert graph.head() == head


def test_a_failed_question_changes_nothing(graph: og.Graph) -> None:
    with graph.transaction() as t:
        do(t, "put", h="eve", n=20)
        with pytest.raises(TypecheckError):
            t.query("query q() { match { $x: Nothing } return { $x } }")
        with pytest.raises(BadRequest, match="run it with mutate"):
            t.query(WRITES, "put", {"h": "x", "n": 1})
        do(t, "relevel", h="eve", n=21)
    assert level(graph, "eve") == 21


def test_rollback_and_commit_by_hand(graph: og.Graph) -> None:
    head = graph.head()
    t = graph.transaction()
    do(t, "put", h="eve", n=20)
    t.rollback()
    assert graph.head() == head
    with graph.transaction() as t:
        do(t, "put", h="eve", n=20)
        t.rollback()
    assert graph.head() == head
    t = graph.transaction()
    do(t, "put", h="eve", n=20)
    assert t.commit().commit == graph.head()
    with pytest.raises(BadRequest, match="this transaction is over: it is committed; begin another one"):
        t.commit()


def test_a_reader_begins_none(graph: og.Graph) -> None:
    with pytest.raises(BadRequest, match="read-only"):
        og.open(graph.uri, "ro").transaction()


# --- others write meanwhile -------------------------------------------------------------------------------------------


def test_two_transactions_on_one_row(graph: og.Graph) -> None:
    first, second = graph.transaction(), graph.transaction()
    do(first, "relevel", h="ada", n=1)
    do(second, "relevel", h="ada", n=2)
    second.commit()
    with pytest.raises(ReadSetChanged) as told:
        first.commit()
    assert told.value.table_key == "node:Staff"
    assert level(graph, "ada") == 2


def test_other_rows_do_not_matter_to_inserts_and_updates(graph: og.Graph) -> None:
    with graph.transaction() as t:
        do(t, "put", h="eve", n=20)
        do(t, "relevel", h="ada", n=1)
        do(t, "link", a="eve", b="ada")
        call(graph, "relevel", "ben", 3)
    assert content(graph)["Staff"] == {"ada": 1, "ben": 3, "cleo": 35, "dov": 28, "eve": 20}


def test_what_was_asked_must_still_be_so(graph: og.Graph) -> None:
    with pytest.raises(ReadSetChanged), graph.transaction() as t:
        total = sum(staff(t).values())
        t.mutate('query q() { insert Team { code: "sum" } }')
        assert total == 118
        call(graph, "relevel", "ben", 3)
    assert "sum" not in content(graph)["Team"]


def test_a_question_with_the_same_answer_is_no_conflict(graph: og.Graph) -> None:
    with graph.transaction() as t:
        assert mentored(t, "ada") == ["ben", "cleo"]
        do(t, "put", h="eve", n=20)
        assert mentored(t, "eve") == []
        call(graph, "link", "ben", "cleo")
    assert "eve" in content(graph)["Staff"]


def test_a_delete_reports_the_conflict(graph: og.Graph) -> None:
    with pytest.raises(ReadSetChanged), graph.transaction() as t:
        do(t, "drop_staff", h="ada")
        call(graph, "put", "zed", 1)
    assert "ada" in content(graph)["Staff"]


def test_an_end_that_is_deleted_meanwhile(graph: og.Graph) -> None:
    with pytest.raises(ValidationError, match="not found"), graph.transaction() as t:
        do(t, "link", a="ben", b="dov")
        call(graph, "drop_staff", "dov")


def test_generated_ids_stay_when_it_starts_over(graph: og.Graph) -> None:
    with graph.transaction() as t:
        told = do(t, "link", a="ben", b="cleo").ids
        call(graph, "link", "cleo", "dov")
    assert t.result is not None
    assert t.result.ids == told
    assert graph.entity("edge", "Mentors", told[0]) is not None


def test_if_commit(graph: og.Graph) -> None:
    head = graph.head().id
    with graph.transaction(if_commit=head) as t:
        do(t, "put", h="eve", n=20)
    with pytest.raises(PreconditionFailed):
        graph.transaction(if_commit=head)
    with pytest.raises(PreconditionFailed), graph.transaction(if_commit=graph.head().id) as t:
        do(t, "put", h="eve", n=22)
        call(graph, "relevel", "ben", 3)
    assert level(graph, "eve") == 20


def test_a_repeat_answers_like_the_first_call(graph: og.Graph) -> None:
    def hire() -> og.MutationResult:
        with graph.transaction(idempotency_key="k") as t:
            assert "eve" not in staff(t)
            do(t, "put", h="eve", n=20)
            do(t, "link", a="eve", b="ada")
        assert t.result is not None
        return t.result

    first = hire()
    call(graph, "relevel", "eve", 33)
    assert hire() == first
    assert level(graph, "eve") == 33
    assert content(graph)["Mentors"].count(("eve", "ada")) == 1
    with pytest.raises(BadRequest, match="was used for another request"), graph.transaction(idempotency_key="k") as t:
        do(t, "put", h="eve", n=20)


def test_within_retrying(graph: og.Graph) -> None:
    calls = []

    def swap(handle: og.Graph) -> None:
        calls.append(1)
        levels = staff(handle)
        with handle.transaction() as t:
            do(t, "relevel", h="ada", n=levels["ben"])
            do(t, "relevel", h="ben", n=levels["ada"])
            if len(calls) == 1:
                call(graph, "relevel", "ben", 3)

    graph.retrying(swap)
    assert (level(graph, "ada"), level(graph, "ben"), len(calls)) == (3, 30, 2)


# --- in one call ------------------------------------------------------------------------------------------------------


def test_mutate_many(graph: og.Graph) -> None:
    before = graph.head()
    result = graph.mutate_many(
        [
            (WRITES, "put", {"h": "eve", "n": 20}),
            (WRITES, "link", {"a": "eve", "b": "ada"}),
            'query q() { delete Team where code = "labs" }',
        ],
        message="several",
    )
    assert result.commit == graph.head()
    assert graph.head().parent == before.id
    assert result.counts == {"Staff": 1, "Mentors": 1, "Team": 1, "MemberOf": 1}
    with pytest.raises(ValidationError):
        graph.mutate_many([(WRITES, "put", {"h": "fay", "n": 20}), (WRITES, "link", {"a": "fay", "b": "nobody"})])
    assert "fay" not in content(graph)["Staff"]
    with pytest.raises(BadRequest, match="a mutation is a source"):
        graph.mutate_many([()])  # type: ignore[list-item]  # wrong on purpose


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            [(WRITES, {"h": "eve", "n": 20})],
            "the name of a query is a text, not a dict; parameters come behind it, as params=",
        ),
        ([(WRITES, "put", [1])], "params must be a JSON object, not a list"),
        ('insert Team { code: "x" }', "mutate_many takes a list of mutations, not a str; a mutation is a source, or"),
        ({"query": WRITES}, "mutate_many takes a list of mutations, not a dict"),
        ([[WRITES, "put"]], "a mutation is a source, or a tuple of a source, .* not a list"),
        (None, "mutate_many takes a list of mutations, not a NoneType"),
    ],
)
def test_what_mutate_many_does_not_take(graph: og.Graph, given: Any, message: str) -> None:
    with pytest.raises(BadRequest, match=message):
        graph.mutate_many(given)


def test_parameters_in_the_place_of_the_name(graph: og.Graph) -> None:
    name: Any = {"h": "eve", "n": 20}
    read = "query r($h: String) { match { $s: Staff { handle: $h } } return { $s.level } }"
    for ask in (lambda: graph.mutate(WRITES, name), lambda: graph.query(read, name), lambda: graph.explain(read, name)):
        with pytest.raises(BadRequest, match="the name of a query is a text, not a dict"):
            ask()
    with pytest.raises(BadRequest, match="the name of a query is a text, not a dict"), graph.transaction() as t:
        t.mutate(WRITES, name)


def test_a_thousand_mutations_are_one_commit(graph: og.Graph) -> None:
    before = len(graph.commits())
    with graph.transaction() as t:
        for number in range(1000):
            do(t, "put_link", h=f"p{number}", n=number, b="ada" if number == 0 else f"p{number - 1}")
    assert len(graph.commits()) == before + 1
    assert t.result is not None
    assert t.result.counts == {"Staff": 1000, "Mentors": 1000}
    assert len(t.result.ids) == 1000
    assert graph.snapshot().open("edge:Mentors").count_rows() == 1003


def test_statements_over_a_pattern_see_the_queries_before(graph: og.Graph) -> None:
    with graph.transaction() as t:
        do(t, "put", h="eve", n=20)
        do(t, "link", a="eve", b="ben")
        update = 'match { $s: Staff  $s mentors $t  $t.handle = "ben" } update $s set { level: $t.level + 1 }'
        assert t.mutate(f"query q() {{ {update} }}").counts == {"Staff": 2}
        assert staff(t)["eve"] == 26
        do(t, "drop_staff", h="ada")
        delete = "match { $s: Staff  not { $s mentors $t } } delete $s"
        assert t.mutate(f"query q() {{ {delete} }}").counts["Staff"] == 2
    assert content(graph)["Staff"] == {"ben": 25, "eve": 26}
