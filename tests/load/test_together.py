"""Small loads and transactions that wait for a branch with mutations: one publish, each a commit of its own."""

from __future__ import annotations

import shutil
import tempfile
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import omnigraph as og
from omnigraph.errors import KeyConflict, LoadRejected, PreconditionFailed, ReadSetChanged, ValidationError
from omnigraph.graph.lifecycle import connect
from omnigraph.load.model import LoadResult, Progress
from tests.commit.healthy import assert_healthy, assert_linear
from tests.commit.limited import limit
from tests.load.loading import content, edge, ends, ids, lines, node, org, rows
from tests.mutation.model import SCHEMA, Content, Insert, Outcome, Refused, Statement, Update, carry_out
from tests.mutation.test_stateful import INSERTS, POPULATION, STATEMENTS, UPDATES, shown
from tests.mutation.waiting import publish_together


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    return org(tmp_path / "g")


def put(graph: og.Graph, handle: str) -> Callable[[], Any]:
    return partial(graph.mutate, f'query q() {{ insert Staff {{ handle: "{handle}" }} }}')


def load(graph: og.Graph, *documents: Any, mode: Any = "append", **options: Any) -> Callable[[], Any]:
    return partial(graph.load, lines(documents), mode, engine="local", **options)


def many(graph: og.Graph, *sources: str, **options: Any) -> Callable[[], Any]:
    return partial(graph.mutate_many, [f"query q() {{ {source} }}" for source in sources], **options)


def staff(handle: str, **data: Any) -> dict[str, Any]:
    return node("Staff", handle=handle, **data)


# --- one publish, a commit each ---------------------------------------------------------------------------------------


def test_loads_transactions_and_mutations_share_a_publish(graph: og.Graph) -> None:
    head = graph.head()
    told = publish_together(
        graph,
        [
            load(graph, staff("eve", level=3), edge("Mentors", "eve", "ada"), actor="loader", idempotency_key="l"),
            many(graph, 'insert Staff { handle: "fay" }', 'insert Mentors { from: "fay", to: "ada" }', message="two"),
            put(graph, "gus"),
            load(graph, staff("hal"), mode="merge"),
        ],
    )
    commits = [one.commit for one in told]
    assert [(one.group.place, one.group.size) for one in commits] == [(1, 4), (2, 4), (3, 4), (4, 4)]
    assert [one.kind for one in commits] == ["load", "mutation", "mutation", "load"]
    assert [one.parent for one in commits] == [head.id, *(one.id for one in commits[:3])]
    assert (commits[0].actor, commits[1].message) == ("loader", "two")
    assert commits[0].message == "Load (append): 1 node, 1 edge"
    assert (told[0].nodes_loaded, told[0].edges_loaded, told[1].affected_edges) == (1, 1, 1)
    changed = [{one.id for one in graph.commit_changes(commit.id).changes} for commit in commits]
    assert "eve" in changed[0]
    assert [len(ids) for ids in changed] == [2, 2, 1, 1]
    again = graph.load(
        lines([staff("eve", level=3), edge("Mentors", "eve", "ada")]), idempotency_key="l", actor="loader"
    )
    assert again.commit == commits[0]
    assert_linear(connect(graph.uri), "main")
    assert_healthy(connect(graph.uri))


def test_each_sees_those_before_it(graph: og.Graph) -> None:
    told = publish_together(
        graph,
        [
            load(graph, edge("Mentors", "eve", "ada")),
            put(graph, "eve"),
            load(graph, edge("Mentors", "eve", "ada")),
            load(graph, staff("eve")),
            many(graph, 'insert Mentors { from: "ada", to: "ben" }'),
            load(graph, staff("fay"), edge("Mentors", "fay", "eve")),
        ],
    )
    assert isinstance(told[0], LoadRejected), "nobody is there yet"
    assert isinstance(told[3], KeyConflict), "the one before it has put this key"
    assert [told[place].commit.group.place for place in (1, 2, 4, 5)] == [1, 2, 3, 4]
    assert ("fay", "eve") in ends(graph, "Mentors")


@pytest.mark.filterwarnings("error::RuntimeWarning")  # a row without an address is no number
def test_what_an_update_leaves_out_is_what_those_before_it_leave(tmp_path: Path) -> None:
    """It reads the graph as they leave it; a row that one of them writes waits for the next publish."""
    graph = og.init(tmp_path / "g", "node Staff { handle: String @key level: I32? bio: String? }")
    graph.load(lines([staff("ada", level=1, bio="a"), staff("ben", level=2, bio="b")]), engine="local")
    told = publish_together(
        graph,
        [
            put(graph, "eve"),
            load(graph, staff("ada", bio="new"), mode="update"),
            partial(graph.mutate, 'query q() { update Staff set { level: 77 } where handle = "ben" }'),
            load(graph, staff("ben", bio="later"), mode="update"),
            load(graph, staff("fay", bio="f"), mode="update"),
        ],
    )
    found = {row["id"]: (row["level"], row["bio"]) for row in rows(graph, "node:Staff")}
    assert found == {"ada": (1, "new"), "ben": (77, "later"), "eve": (None, None), "fay": (None, "f")}
    assert [one.commit.manifest_version - told[0].commit.manifest_version for one in told] == [0, 0, 0, 1, 1]


def test_a_condition_and_a_key_of_a_load(graph: og.Graph) -> None:
    head = graph.head().id
    first, second, third, again = publish_together(
        graph,
        [
            load(graph, staff("eve"), if_commit=head, idempotency_key="k"),
            load(graph, staff("fay"), if_commit=head),
            put(graph, "gus"),
            load(graph, staff("eve"), if_commit=head, idempotency_key="k"),
        ],
    )
    assert isinstance(second, PreconditionFailed)
    assert third.commit.parent == first.commit.id
    assert again.commit == first.commit


def test_a_transaction_that_another_one_has_overtaken(graph: og.Graph) -> None:
    """Its update must meet the rows that it met when it was prepared, whoever wrote them."""

    def relevel() -> og.MutationResult:
        with graph.transaction() as transaction:
            transaction.mutate('query q() { update Staff set { level: 9 } where handle = "ada" }')
        assert transaction.result is not None
        return transaction.result

    overtaking = partial(graph.mutate, 'query q() { update Staff set { level: 1 } where handle = "ada" }')
    told = publish_together(graph, [overtaking, relevel, put(graph, "eve")])
    assert isinstance(told[1], ReadSetChanged)
    assert told[0].commit.group.size == told[2].commit.group.size == 2


def test_each_is_told_once_that_it_is_committed(graph: og.Graph) -> None:
    """On the thread of its caller, whoever has led the group, and also when it is alone."""
    told: list[tuple[str, int, bool]] = []

    def call(handle: str) -> LoadResult:
        thread = threading.get_ident()

        def progress(one: Progress) -> None:
            if one.stage == "commit" and one.done:
                told.append((handle, one.rows, threading.get_ident() == thread))

        return graph.load(lines([staff(handle)]), engine="local", progress=progress)

    publish_together(graph, [partial(call, handle) for handle in ("eve", "fay", "gus")])
    call("hal")
    assert sorted(told) == [(handle, 1, True) for handle in ("eve", "fay", "gus", "hal")]


def test_what_can_not_join_goes_alone(graph: og.Graph) -> None:
    """An overwrite, many rows, a transaction that asks or deletes."""
    limit(graph, group_rows=3)

    def asks() -> og.MutationResult:
        with graph.transaction() as transaction:
            transaction.query("query q() { match { $s: Staff } return { $s.handle } }")
            transaction.mutate('query q() { insert Staff { handle: "fay" } }')
        assert transaction.result is not None
        return transaction.result

    calls = [
        load(graph, *(staff(f"s{number}") for number in range(5))),
        asks,
        many(
            graph, 'insert Staff { handle: "hal" }', 'delete Staff where handle = "hal"', 'insert Staff { handle: "x" }'
        ),
        load(graph, edge("Mentors", "ada", "ben"), mode="overwrite"),
        load(graph, staff("gus"), branch="other", base="main"),
        put(graph, "eve"),
    ]
    told = publish_together(graph, calls)
    assert [one.commit.group for one in told] == [None] * 6


def test_one_that_is_interrupted_while_it_waits_is_whole_or_not_there(graph: og.Graph) -> None:
    """What it has read is not taken from the leader that carries it out."""
    before = content(graph)

    class Interrupted(BaseException):
        pass

    def interrupted() -> Any:
        queue = graph._context.queues._queues["main"]
        ticket_wait = queue.write

        def write(member: Any) -> Any:
            ticket_wait(member)
            raise Interrupted

        queue.write = write  # type: ignore[assignment, method-assign]
        try:
            return load(graph, staff("eve"), edge("Mentors", "eve", "ada"))()
        finally:
            queue.write = ticket_wait  # type: ignore[method-assign]

    put(graph, "ina")()
    with pytest.raises(Interrupted):
        interrupted()
    assert {"eve"} <= set(ids(graph, "node:Staff"))
    assert ("eve", "ada") in ends(graph, "Mentors")
    assert before != content(graph)
    assert_healthy(connect(graph.uri))


# --- against the model ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Loaded:
    """A load of inserts, one line for each; of several lines for one key the model knows the last."""

    mode: Literal["merge", "append"]
    inserts: tuple[Insert, ...]

    def documents(self) -> list[Any]:
        columns = {"Staff": ("handle", "level", "badge"), "Team": ("code",), "Note": ("text",)}
        made = []
        for one in self.inserts:
            if one.type in columns:
                given = zip(columns[one.type], one.values, strict=True)
                made.append(node(one.type, **{name: value for name, value in given if value is not None}))
            else:
                made.append(edge(one.type, *one.values))
        return made

    def meets(self, content: Content) -> bool:
        """Whether a strict insert of these rows meets one that is there."""
        return self.mode == "append" and any(
            (one.type == "Staff" and one.values[0] in content.staff)
            or (one.type == "Team" and one.values[0] in content.teams)
            for one in self.inserts
        )


Step = list[Statement] | tuple[list[Statement], ...] | Loaded


def _once(inserts: Sequence[Insert]) -> tuple[Insert, ...]:
    """The last of those with one key."""
    named = {(one.type, one.values[0]) if one.type in ("Staff", "Team") else object(): one for one in inserts}
    return tuple(named.values())


LOADS = st.builds(
    lambda mode, inserts: Loaded(mode, _once(inserts)),
    st.sampled_from(["merge", "append"]),
    st.lists(INSERTS, min_size=1, max_size=4),
)
TRANSACTIONS = st.lists(st.lists(INSERTS | UPDATES, min_size=1, max_size=3), min_size=1, max_size=3).map(tuple)
ROUNDS = st.lists(st.lists(STATEMENTS | LOADS | TRANSACTIONS, min_size=2, max_size=6), min_size=1, max_size=3)


def _source(statements: Sequence[Statement]) -> str:
    return f"query q() {{ {' '.join(statement.text() for statement in statements)} }}"


def _call(graph: og.Graph, step: Step, branch: str) -> Callable[[], Any]:
    if isinstance(step, Loaded):
        return load(graph, *step.documents(), mode=step.mode, branch=branch)
    if isinstance(step, tuple):
        return partial(graph.mutate_many, [_source(one) for one in step], branch=branch)
    return partial(graph.mutate, _source(step), branch=branch)


def _outcome(content: Content, step: Step) -> Outcome:
    if isinstance(step, Loaded):
        if step.meets(content):
            raise Refused(("a key that exists",))
        return carry_out(content, step.inserts)
    if isinstance(step, tuple):
        outcome = Outcome(content)
        for statements in step:
            one = carry_out(outcome.content, statements)
            outcome = Outcome(one.content, outcome.nodes + one.nodes, outcome.edges + one.edges, True)
        return outcome
    return carry_out(content, step)


def _agree(rounds: list[list[Step]], branch: str) -> None:
    folder = Path(tempfile.mkdtemp(prefix="together-"))
    try:
        graph = og.init(folder / "g", SCHEMA)
        graph.mutate(_source(POPULATION))
        content = carry_out(Content(), POPULATION).content
        if branch != "main":
            graph.create_branch(branch)
        known: list[tuple[str, Content]] = []
        for steps in rounds:
            told = publish_together(graph, [_call(graph, step, branch) for step in steps], branch)
            commits = []
            for step, result in zip(steps, told, strict=True):
                if isinstance(step, tuple) and isinstance(result, ReadSetChanged):
                    # It was prepared on the state before the group, and others have changed what it met.
                    assert any(isinstance(one, Update) for statements in step for one in statements)
                    continue
                if isinstance(step, tuple) and isinstance(result, ValidationError):
                    # Its first attempt is judged on the state before the group.
                    continue
                try:
                    outcome = _outcome(content, step)
                except Refused:
                    assert isinstance(result, ValidationError | LoadRejected | KeyConflict), result
                    continue
                assert isinstance(result, og.MutationResult | LoadResult), result
                if isinstance(result, og.MutationResult):
                    assert (result.affected_nodes, result.affected_edges) == (outcome.nodes, outcome.edges)
                content = outcome.content
                if result.commit is not None:
                    commits.append(result.commit)
                    known.append((result.commit.id, content))
            assert graph.commits(branch)[: len(commits)] == commits[::-1], "in the order of arrival, and nothing else"
            assert shown(graph, branch) == content
        for commit, state in known:
            assert shown(graph, branch, commit) == state
        assert_healthy(connect(graph.uri))
    finally:
        shutil.rmtree(folder)


def _run(examples: int, branch: str) -> None:
    quiet = list(HealthCheck)
    options = settings(max_examples=examples, deadline=None, suppress_health_check=quiet, print_blob=True)

    @options
    @given(rounds=ROUNDS)
    def agree(rounds: list[list[Step]]) -> None:
        _agree(rounds, branch)

    agree()


@pytest.mark.parametrize("branch", ["main", "feature"])
def test_a_mixed_group_is_what_its_members_are_one_after_the_other(branch: str) -> None:
    _run(8, branch)


@pytest.mark.long
@pytest.mark.timeout(0)
@pytest.mark.parametrize("branch", ["main", "feature"])
def test_a_mixed_group_is_what_its_members_are_for_long(branch: str) -> None:
    _run(1_000, branch)
