"""Writers that wait for one branch: published together, each a commit of its own, judged in the order they came."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import orjson
import pytest

import omnigraph as og
from omnigraph import failpoints
from omnigraph.errors import BadRequest, PreconditionFailed, ValidationError
from omnigraph.graph.lifecycle import connect
from tests import warm
from tests.commit.healthy import assert_healthy, assert_linear
from tests.mutation.org_graph import call, content, ids, level, org_graph
from tests.mutation.waiting import publish_together


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    return org_graph(tmp_path / "g")


def puts(graph: og.Graph, *handles: str) -> list[Callable[[], og.MutationResult]]:
    return [partial(call, graph, "put", handle, number) for number, handle in enumerate(handles)]


# --- one publish, a commit each ---------------------------------------------------------------------------------------


def test_each_is_a_commit_of_its_own_and_they_share_one_publish(graph: og.Graph) -> None:
    head, scans = graph.head(), graph._context.manifest.load().version
    first, second, third = publish_together(graph, puts(graph, "eve", "fay", "gus"))
    commits = [result.commit for result in (first, second, third)]
    assert [commit.parent for commit in commits] == [head.id, commits[0].id, commits[1].id]
    assert {commit.manifest_version for commit in commits} == {scans + 1}
    assert [(commit.group.place, commit.group.size) for commit in commits] == [(1, 3), (2, 3), (3, 3)]
    assert len({commit.group.id for commit in commits}) == 1
    assert graph.head() == third.commit
    assert [graph.commit(commit.id) for commit in commits] == commits
    assert og.open(graph.uri).commits()[:3] == commits[::-1]
    assert_linear(connect(graph.uri), "main")


def test_each_keeps_its_actor_its_message_and_its_receipt(graph: og.Graph) -> None:
    def put(handle: str) -> og.MutationResult:
        source = f'query q() {{ insert Staff {{ handle: "{handle}" }} }}'
        return graph.mutate(source, actor=f"by {handle}", message=f"new: {handle}", idempotency_key=handle)

    told = publish_together(graph, [partial(put, handle) for handle in ("eve", "fay", "gus")])
    assert [(one.commit.actor, one.commit.message) for one in told] == [
        (f"by {handle}", f"new: {handle}") for handle in ("eve", "fay", "gus")
    ]
    assert [put(handle) for handle in ("eve", "fay", "gus")] == told
    assert [one.ids for one in told] == [("eve",), ("fay",), ("gus",)]


def test_a_lone_writer_is_in_no_group(graph: og.Graph) -> None:
    made = call(graph, "put", "eve", 1).commit
    assert made is not None
    assert made.group is None
    (told,) = publish_together(graph, puts(graph, "fay"))
    assert told.commit.group is None
    assert "group" not in told.commit.to_dict()


def test_each_sees_those_before_it(graph: og.Graph) -> None:
    told = publish_together(
        graph,
        [
            partial(call, graph, "link", "eve", "ada"),
            partial(call, graph, "put", "eve", 1),
            partial(call, graph, "link", "eve", "ben"),
            partial(call, graph, "hire", "eve", "core"),
        ],
    )
    assert isinstance(told[0], ValidationError), "nobody is there to link"
    assert [one.commit.group.place for one in told[1:]] == [1, 2, 3]


def test_one_that_is_refused_does_not_hurt_the_others(graph: og.Graph) -> None:
    calls = puts(graph, "eve", "fay")
    calls.insert(1, partial(call, graph, "link", "nobody", "ada"))
    told = publish_together(graph, calls)
    assert isinstance(told[1], ValidationError)
    assert [told[0].commit.group.size, told[2].commit.group.size] == [2, 2]
    assert told[2].commit.parent == told[0].commit.id
    assert {"eve", "fay"} <= set(ids(graph, "node:Staff"))
    assert_healthy(connect(graph.uri))


def test_one_that_changes_nothing_makes_no_commit(graph: og.Graph) -> None:
    told = publish_together(graph, [*puts(graph, "eve"), partial(call, graph, "relevel", "nobody", 1)])
    assert told[0].commit.group is None, "it is the only one that was published"
    assert told[1].commit is None


def test_two_that_write_one_row_are_published_one_after_the_other(graph: og.Graph) -> None:
    calls = [partial(call, graph, "relevel", "ada", number) for number in (1, 2, 3)]
    told = publish_together(graph, [*calls, *puts(graph, "eve")])
    versions = [one.commit.manifest_version for one in told]
    assert versions == sorted(versions)
    assert len(set(versions)) == 3, "the last two are published together"
    assert level(graph, "ada") == 3
    assert_linear(connect(graph.uri), "main")


def test_a_delete_takes_edges_that_came_before_it(graph: og.Graph) -> None:
    told = publish_together(
        graph,
        [partial(call, graph, "link", "dov", "ada"), partial(call, graph, "drop_staff", "ada"), *puts(graph, "eve")],
    )
    assert told[1].affected_edges == 4
    assert "ada" not in ids(graph, "node:Staff")
    assert_healthy(connect(graph.uri))


# --- conditions and keys ----------------------------------------------------------------------------------------------


def test_a_condition_is_judged_against_the_one_before(graph: og.Graph) -> None:
    head = graph.head().id

    def put(handle: str, if_commit: str) -> og.MutationResult:
        return graph.mutate(f'query q() {{ insert Staff {{ handle: "{handle}" }} }}', if_commit=if_commit)

    first, second, third = publish_together(
        graph, [partial(put, "eve", head), partial(put, "fay", head), *puts(graph, "gus")]
    )
    assert isinstance(second, PreconditionFailed)
    assert (second.expected, second.actual) == (head, first.commit.id)
    assert third.commit.parent == first.commit.id


def test_a_repeat_that_waits_with_the_first_gets_its_answer(graph: og.Graph) -> None:
    def put(handle: str) -> og.MutationResult:
        return graph.mutate(f'query q() {{ insert Staff {{ handle: "{handle}" }} }}', idempotency_key="once")

    first, again, other = publish_together(graph, [partial(put, "eve"), partial(put, "eve"), partial(put, "fay")])
    assert first == again
    assert isinstance(other, BadRequest)
    assert graph.commits()[0] == first.commit


def test_a_key_that_is_no_text_hurts_nobody_else(graph: og.Graph) -> None:
    def wrong() -> og.MutationResult:
        return graph.mutate('query q() { insert Staff { handle: "x" } }', idempotency_key=7)  # type: ignore[arg-type]

    told = publish_together(graph, [wrong, *puts(graph, "eve", "fay")])
    assert isinstance(told[0], BadRequest)
    assert told[2].commit.group.size == 2


# --- what was ---------------------------------------------------------------------------------------------------------


def test_the_states_in_between_are_read_like_others(graph: og.Graph) -> None:
    before = content(graph)
    told = publish_together(
        graph,
        [
            *puts(graph, "eve"),
            partial(call, graph, "relevel", "ben", 99),
            partial(call, graph, "drop_staff", "dov"),
            partial(call, graph, "link", "eve", "ada"),
        ],
    )
    at = [one.commit.id for one in told]
    staff = [
        {
            row["s.handle"]: row["s.level"]
            for row in graph.query(
                "query q() { match { $s: Staff } return { $s.handle, $s.level } }", snapshot=commit
            ).to_dicts()
        }
        for commit in at
    ]
    assert staff[0] == {**before["Staff"], "eve": 0}
    assert [len(one) for one in staff] == [5, 5, 4, 4]
    assert [one["ben"] for one in staff] == [25, 99, 99, 99]
    assert [graph.snapshot(at=commit).entry("node:Staff").row_count for commit in at] == [5, 5, 4, 4]
    assert [graph.snapshot(at=commit).entry("edge:Mentors").row_count for commit in at] == [3, 3, 2, 3]
    assert graph.snapshot(at=at[1]).id == at[1]
    assert graph.snapshot(at=graph.snapshot(at=at[1]).id).to_dict() == graph.snapshot(at=at[1]).to_dict()
    assert og.open(graph.uri).entity("node", "Staff", "dov", snapshot=at[1])["level"] == 28  # type: ignore[index]


def test_each_commit_tells_its_own_changes(graph: og.Graph) -> None:
    told = publish_together(
        graph,
        [*puts(graph, "eve"), partial(call, graph, "relevel", "ben", 99), partial(call, graph, "drop_staff", "dov")],
    )
    at = [one.commit.id for one in told]
    changes = [[(one.op, one.type, one.id) for one in graph.commit_changes(commit).changes] for commit in at]
    assert changes[:2] == [[("insert", "Staff", "eve")], [("update", "Staff", "ben")]]
    assert changes[2][0] == ("delete", "Staff", "dov")
    assert [one[:2] for one in changes[2][1:]] == [("delete", "Mentors")]
    feed = [
        (block.commit.id, len(list(block.changes)))
        for block in graph.changes(start=f"after:{told[0].commit.parent}").blocks
    ]
    assert feed == [(at[0], 1), (at[1], 1), (at[2], 2)]
    rest = graph.changes(start=f"after:{at[0]}")
    assert [block.commit.id for block in rest.blocks] == at[1:]
    assert [(one.op, one.id) for one in graph.diff(at[0], at[1]).changes] == [("update", "ben")]
    assert [(one.op, one.id) for one in graph.diff(at[1], at[0]).changes] == [("update", "ben")]
    assert {one.op for one in graph.diff(at[0], told[0].commit.parent).changes} == {"delete"}


def test_one_of_them_is_reverted_and_picked(graph: og.Graph) -> None:
    graph.create_branch("feature")
    told = publish_together(graph, puts(graph, "eve", "fay", "gus"))
    assert graph.cherry_pick(told[1].commit.id, "feature").outcome == "merged"
    assert set(ids(graph.at("feature"), "node:Staff")) - {"ada", "ben", "cleo", "dov"} == {"fay"}
    assert graph.revert(told[1].commit.id).outcome == "merged"
    assert set(ids(graph, "node:Staff")) - {"ada", "ben", "cleo", "dov"} == {"eve", "gus"}
    assert graph.merge("feature", "main").outcome == "merged"
    assert_healthy(connect(graph.uri))


def test_what_is_tagged_in_between_stays(graph: og.Graph) -> None:
    told = publish_together(graph, puts(graph, "eve", "fay", "gus"))
    graph.tag("between", told[1].commit.id)
    assert not graph.verify().damages
    for number in range(3):
        call(graph, "put", f"later{number}", number)
    graph.cleanup(keep=1)
    assert set(ids_at(graph, "between")) == {"ada", "ben", "cleo", "dov", "eve", "fay"}
    assert not graph.verify().damages


def ids_at(graph: og.Graph, at: str) -> list[str]:
    return list(graph.snapshot(at=at).open("node:Staff").read(["id"])["id"].to_pylist())


def test_the_first_write_on_a_branch_forks_once_for_all(graph: og.Graph) -> None:
    graph.create_branch("feature")
    feature = graph.at("feature")
    told = publish_together(feature, puts(feature, "eve", "fay"), "feature")
    assert [one.commit.group.size for one in told] == [2, 2]
    assert len(ids(feature, "node:Staff")) == 6
    assert len(feature.snapshot(at=told[0].commit.id).open("node:Staff").read()) == 5
    assert [one.id for one in feature.commit_changes(told[0].commit.id).changes] == ["eve"]
    assert graph.merge("feature", "main").outcome in ("merged", "fast_forward")
    assert_healthy(connect(graph.uri))


# --- when something fails ---------------------------------------------------------------------------------------------

FAILS = [
    "group.gathered",
    "group.published",
    "mutation.prepared",
    "mutation.pre_phase_a",
    "recovery.sidecar_write",
    "mutation.post_phase_a",
    "table_commit.before_commit",
    "table_commit.lost_acknowledgement",
    "mutation.post_phase_b_pre_manifest_commit",
    "publisher.before_commit",
    "publisher.after_commit",
    "mutation.post_phase_c",
    "recovery.sidecar_delete",
]


@pytest.mark.parametrize("failpoint", FAILS)
def test_a_group_that_fails_leaves_everybody_served_once(graph: og.Graph, failpoint: str) -> None:
    """Each goes on alone, and what was published nevertheless counts."""
    failed = threading.Event()

    def once() -> None:
        if not failed.is_set():
            failed.set()
            raise failpoints.FailpointError(f"failpoint {failpoint}", name=failpoint)

    before = len(graph.commits())
    with failpoints.armed(failpoint, once):
        told = publish_together(graph, puts(graph, "eve", "fay", "gus"))
    assert failed.is_set()
    assert [one.commit is not None for one in told] == [True] * 3, told
    assert len(graph.commits()) == before + 3
    assert len({one.commit.id for one in told}) == 3
    assert set(ids(graph, "node:Staff")) == {"ada", "ben", "cleo", "dov", "eve", "fay", "gus"}
    # A record that could not be removed is left for whoever comes next.
    assert_healthy(connect(og.open(graph.uri).uri))


def test_an_interrupted_leader_leaves_nobody_waiting(graph: og.Graph) -> None:
    interrupted = threading.Event()

    def interrupt() -> None:
        if not interrupted.is_set():
            interrupted.set()
            raise KeyboardInterrupt

    with failpoints.armed("mutation.post_phase_b_pre_manifest_commit", interrupt):
        told = publish_together(graph, puts(graph, "eve", "fay", "gus"))
    assert isinstance(told[0], KeyboardInterrupt)
    assert [one.commit is not None for one in told[1:]] == [True, True]
    # What it had done was complete, so whoever came next has finished it for all of them.
    assert set(ids(graph, "node:Staff")) == {"ada", "ben", "cleo", "dov", "eve", "fay", "gus"}
    assert [one.commit.group.place for one in told[1:]] == [2, 3]
    assert_healthy(connect(graph.uri))


# --- many at once -----------------------------------------------------------------------------------------------------


def test_eight_threads_share_publishes_and_lose_nothing(graph: og.Graph) -> None:
    version = graph.snapshot().version

    def work(number: int) -> None:
        for turn in range(6):
            call(graph, "put_link", f"t{number}n{turn}", number, "ada")

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    fresh = og.open(graph.uri)
    assert fresh.snapshot().entry("node:Staff").row_count == 4 + 48
    assert fresh.snapshot().entry("edge:Mentors").row_count == 3 + 48
    assert len(fresh.commits()) == 2 + 48
    assert fresh.snapshot().version - version < 48, "some of them were published together"
    assert_linear(connect(graph.uri), "main")
    assert_healthy(connect(graph.uri))


def test_threads_of_two_processes_share_a_branch(graph: og.Graph) -> None:
    command = [sys.executable, str(Path(__file__).with_name("together_child.py")), graph.uri, "main"]
    children = [warm.Popen([*command, name]) for name in ("left", "right")]
    assert [child.wait() for child in children] == [0, 0]
    fresh = og.open(graph.uri)
    made = [commit for commit in fresh.commits() if commit.actor in ("left", "right")]
    assert len(made) == 40
    assert fresh.snapshot().entry("node:Staff").row_count == 4 + 40
    groups = [commit.group for commit in made if commit.group is not None]
    assert {len({commit.actor for commit in made if commit.group == group}) for group in groups} <= {1}
    for commit in made[::7]:
        (change,) = fresh.commit_changes(commit.id).changes
        assert change.id.startswith(str(commit.actor))
    assert_linear(connect(graph.uri), "main")
    assert_healthy(connect(graph.uri))


def test_a_state_in_between_is_exported(graph: og.Graph, tmp_path: Path) -> None:
    told = publish_together(graph, puts(graph, "eve", "fay", "gus"))
    graph.export(tmp_path / "between.jsonl", snapshot=told[1].commit.id)
    lines = map(orjson.loads, (tmp_path / "between.jsonl").read_bytes().splitlines())
    staff = {line["data"]["handle"] for line in lines if line.get("type") == "Staff"}
    assert staff == {"ada", "ben", "cleo", "dov", "eve", "fay"}
