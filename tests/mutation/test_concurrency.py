"""Section 21, and writers that race: history stays one line, nobody's write is lost, and nothing is half done."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from threading import Barrier, Thread
from typing import Any

import orjson
import pytest

import omnigraph as og
from omnigraph import failpoints
from omnigraph.errors import Conflict, ExpectedVersionMismatch, PreconditionFailed, ReadSetChanged, ValidationError
from omnigraph.graph.lifecycle import connect
from tests import warm
from tests.commit.healthy import Picture, assert_healthy, assert_linear, picture
from tests.commit.limited import limit
from tests.mutation.org_graph import call, commit_of, content, ids, known_level, level, org_graph, pairs

CHILD = Path(__file__).with_name("racing_child.py")
COUNTING = Path(__file__).with_name("counting_child.py")


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    return org_graph(tmp_path / "g")


def seen(graph: og.Graph) -> Picture:
    """What another process sees."""
    return picture(connect(graph.uri))


# --- stale handles ----------------------------------------------------------------------------------------------------


@pytest.mark.row("OCC-01", "OCC-02")
def test_a_handle_that_is_behind_writes_from_the_current_head(graph: og.Graph, row: list[str]) -> None:
    behind = og.open(graph.uri)
    call(graph, "put", "eve", 22)
    call(behind, "put", "fay", 23)
    call(graph, "relevel", "ada", 31)
    assert call(behind, "relevel", "ben", 26).affected_nodes == 1
    assert (level(graph, "ada"), level(graph, "ben")) == (31, 26)
    assert ids(behind, "node:Staff") == ["ada", "ben", "cleo", "dov", "eve", "fay"]


@pytest.mark.row("OCC-07")
def test_many_writes_on_one_handle_are_what_a_fresh_one_sees(graph: og.Graph, row: list[str]) -> None:
    for number in range(20):
        call(graph, "put_link", f"p{number}", number, "ada")
    call(graph, "drop_staff", "p3")
    fresh = og.open(graph.uri)
    assert ids(graph, "node:Staff") == ids(fresh, "node:Staff")
    assert pairs(graph, "Mentors") == pairs(fresh, "Mentors")
    assert fresh.snapshot().to_dict() == graph.snapshot().to_dict()
    assert_healthy(connect(graph.uri))


# --- overtaken between preparing and writing --------------------------------------------------------------------------


def another(graph: og.Graph) -> og.Graph:
    """A handle of its own: writers of one handle wait for each other, so only those of others overtake."""
    return og.open(graph.uri)


def overtaken(action: Callable[[], Any], by: Callable[[], Any]) -> Any:
    """Do something that another writer overtakes once it is prepared."""
    done: list[Any] = []

    def overtake() -> None:
        if not done:
            done.append("now")
            thread = Thread(target=by)
            thread.start()
            thread.join()

    with failpoints.armed("mutation.prepared", overtake):
        return action()


@pytest.mark.row("OCC-01")
def test_an_overtaken_insert_starts_over(graph: og.Graph, row: list[str]) -> None:
    other = og.open(graph.uri)
    result = overtaken(lambda: call(graph, "put", "eve", 22), by=lambda: call(other, "put", "fay", 23))
    assert ids(graph, "node:Staff")[-2:] == ["eve", "fay"]
    assert [commit.id for commit in graph.commits()[:2]] == [result.commit.id, result.commit.parent]


def test_an_overtaken_upsert_replaces_the_row_that_is_there_now(graph: og.Graph) -> None:
    overtaken(lambda: call(graph, "put", "eve", 1), by=lambda: call(another(graph), "put", "eve", 2))
    assert level(graph, "eve") == 1


@pytest.mark.parametrize(
    ("name", "values", "other", "error"),
    [
        ("relevel", ("ada", 1), ("relevel", "ada", 2), ExpectedVersionMismatch),
        ("relevel", ("ada", 1), ("drop_staff", "ada"), ExpectedVersionMismatch),
        ("drop_staff", ("ada",), ("relevel", "ben", 1), ExpectedVersionMismatch),
        ("drop_staff", ("dov",), ("hire", "cleo", "core"), ReadSetChanged),
    ],
)
def test_an_overtaken_update_or_delete_reports_the_conflict(
    graph: og.Graph, name: str, values: tuple[object, ...], other: tuple[Any, ...], error: type[Conflict]
) -> None:
    with pytest.raises(error) as conflict:
        overtaken(lambda: call(graph, name, *values), by=lambda: call(another(graph), *other))
    assert isinstance(conflict.value, (ExpectedVersionMismatch, ReadSetChanged))
    assert conflict.value.table_key in ("node:Staff", "edge:MemberOf")
    undisturbed = org_graph(Path(graph.uri).with_name("undisturbed"))
    call(undisturbed, *other)
    assert content(graph) == content(undisturbed)
    call(graph, name, *values)
    assert_healthy(connect(graph.uri))


@pytest.mark.parametrize(
    "other",
    [("put", "eve", 22), ("relevel", "ben", 1), ("drop_staff", "dov"), ("hire", "cleo", "core")],
    ids=lambda other: " ".join(map(str, other)),
)
@pytest.mark.parametrize("shared", [False, True], ids=["main", "a table that is shared still"])
def test_an_overtaken_update_whose_rows_did_not_change_starts_over(
    graph: og.Graph, other: tuple[Any, ...], shared: bool
) -> None:
    branch = "feature" if shared else "main"
    if shared:
        graph.create_branch(branch)
    done = overtaken(
        lambda: call(graph, "relevel", "ada", 1, branch=branch), by=lambda: call(another(graph), *other, branch=branch)
    )
    undisturbed = org_graph(Path(graph.uri).with_name("undisturbed"))
    call(undisturbed, *other)
    call(undisturbed, "relevel", "ada", 1)
    assert done.affected_nodes == 1
    assert content(graph, branch) == content(undisturbed)
    assert_linear(connect(graph.uri), branch)
    assert_healthy(connect(graph.uri))


SET_ALL = "query q($n: I32) { update Staff set { level: 99 } where level > $n }"


@pytest.mark.parametrize(
    ("other", "conflict"),
    [
        pytest.param(("put", "eve", 40), True, id="another row matches"),
        pytest.param(("relevel", "ada", 1), True, id="a row matches no more"),
        pytest.param(("relevel", "cleo", 36), True, id="a row that matches changed"),
        pytest.param(("relevel", "ben", 26), False, id="a row that does not match changed"),
        pytest.param(("put", "eve", 3), False, id="a row came that does not match"),
    ],
)
def test_an_overtaken_update_of_many_rows(graph: og.Graph, other: tuple[Any, ...], conflict: bool) -> None:
    def update() -> og.MutationResult:
        return graph.mutate(SET_ALL, params={"n": 29})

    if conflict:
        with pytest.raises(ExpectedVersionMismatch):
            overtaken(update, by=lambda: call(another(graph), *other))
        assert (level(graph, "cleo"), len(graph.commits())) == (36 if other[1] == "cleo" else 35, 3)
    else:
        assert overtaken(update, by=lambda: call(another(graph), *other)).affected_nodes == 2
        assert (level(graph, "ada"), level(graph, "cleo")) == (99, 99)


def test_an_update_that_is_overtaken_by_maintenance_starts_over(graph: og.Graph) -> None:
    """Compaction moves rows and changes none."""
    for number in range(3):
        call(graph, "put", f"p{number}", number)
    overtaken(lambda: call(graph, "relevel", "ada", 1), by=graph.optimize)
    assert level(graph, "ada") == 1


def test_an_update_of_a_row_with_a_blob_starts_over(tmp_path: Path) -> None:
    graph = og.init(
        tmp_path / "b", "node Doc { title: String @key content: Blob? note: String? w: F64? v: Vector(2)? }"
    )
    put = "query q($t: String, $c: Blob) { insert Doc { title: $t, content: $c, w: 0.5, v: [1.0, 2.0] } }"
    for title in ("a", "b"):
        graph.mutate(put, params={"t": title, "c": "base64:AQID"})
    note = 'query q($t: String) { update Doc set { note: "n" } where title = $t }'
    overtaken(lambda: graph.mutate(note, params={"t": "a"}), by=lambda: another(graph).mutate(note, params={"t": "b"}))
    assert graph.read_blob("node", "Doc", "a", "content").read(0, 3) == b"\x01\x02\x03"
    with pytest.raises(ExpectedVersionMismatch):
        overtaken(
            lambda: graph.mutate(note.replace('"n"', '"m"'), params={"t": "a"}),
            by=lambda: another(graph).mutate(put, params={"t": "a", "c": "base64:BAUG"}),
        )


def test_an_update_that_sees_an_earlier_insert_starts_over(graph: og.Graph) -> None:
    """The row it matches is the one that the mutation itself inserts, whoever has inserted it before."""
    both = 'query q() { insert Staff { handle: "yan", level: 10 } update Staff set { level: 99 } where handle = "yan" }'
    overtaken(lambda: graph.mutate(both), by=lambda: call(another(graph), "put", "yan", 5))
    assert level(graph, "yan") == 99


# --- read, decide, write ----------------------------------------------------------------------------------------------


def raise_level(handle: og.Graph, name: str = "ada") -> og.MutationResult:
    """Add one to a level: the value that is written depends on the one that was read."""
    return call(handle, "relevel", name, known_level(handle, name) + 1)


def test_a_retried_function_sees_what_overtook_it(graph: og.Graph) -> None:
    calls: list[int] = []

    def work(handle: og.Graph) -> str:
        calls.append(known_level(handle, "ada"))
        if len(calls) == 1:
            # After it was read and before anything is prepared.
            call(graph, "relevel", "ada", 40)
        raise_level(handle)
        return "done"

    assert graph.retrying(work) == "done"
    assert (calls, level(graph, "ada")) == ([30, 40], 41)


@pytest.mark.parametrize("change", ["put", "drop_staff"])
def test_whatever_a_retried_function_writes_must_be_as_it_was_read(graph: og.Graph, change: str) -> None:
    """An upsert and a delete too, not only an update."""
    calls: list[int] = []

    def work(handle: og.Graph) -> None:
        calls.append(known_level(handle, "ada"))
        if len(calls) == 1:
            call(graph, "relevel", "ada", 40)
        call(handle, change, *(("ada", calls[-1] + 1) if change == "put" else ("ada",)))

    graph.retrying(work)
    assert calls == [30, 40]
    assert ("ada" in ids(graph, "node:Staff")) == (change == "put")


def test_other_rows_do_not_matter_to_a_retried_function(graph: og.Graph) -> None:
    calls: list[int] = []

    def work(handle: og.Graph) -> None:
        calls.append(known_level(handle, "ada"))
        call(graph, "relevel", "ben", 1)
        raise_level(handle)

    graph.retrying(work)
    assert (calls, level(graph, "ada")) == ([30], 31)


def test_a_function_that_never_gets_through(graph: og.Graph) -> None:
    calls: list[int] = []

    def work(handle: og.Graph) -> None:
        calls.append(1)
        call(graph, "relevel", "ada", 100 + len(calls))
        call(handle, "relevel", "ada", 1)

    with pytest.raises(ReadSetChanged, match="node:Staff"):
        graph.retrying(work, attempts=3)
    assert (len(calls), level(graph, "ada")) == (3, 103)


def test_a_retried_function_makes_one_mutation(graph: og.Graph) -> None:
    def work(handle: og.Graph) -> None:
        assert call(handle, "relevel", "nobody", 1).commit is None
        raise_level(handle)
        raise_level(handle)

    with pytest.raises(og.errors.BadRequest, match="one mutation"):
        graph.retrying(work)
    with pytest.raises(og.errors.BadRequest, match="at least 1"):
        graph.retrying(raise_level, attempts=0)


def test_an_error_of_the_function_is_not_retried(graph: og.Graph) -> None:
    calls: list[int] = []

    def work(handle: og.Graph) -> None:
        calls.append(1)
        call(handle, "link", "ada", "nobody")

    with pytest.raises(ValidationError):
        graph.retrying(work)
    assert calls == [1]


def test_a_condition_works_in_a_retried_function(graph: og.Graph) -> None:
    calls: list[int] = []

    def work(handle: og.Graph) -> None:
        calls.append(1)
        head = handle.head().id
        if len(calls) == 1:
            call(graph, "put", "eve", 1)
        call(handle, "relevel", "ada", 1, if_commit=head)

    graph.retrying(work)
    assert len(calls) == 2


def test_four_processes_and_four_threads_count_in_one_row(graph: og.Graph, tmp_path: Path) -> None:
    """Nobody's increment is lost, and updates of rows of one's own meet no conflict."""
    start, rounds = tmp_path / "start", 5
    for number in range(4):
        call(graph, "put", f"own{number}", 0)
    children = [
        warm.Popen(
            [sys.executable, str(COUNTING), graph.uri, str(start), f"own{n}", str(rounds)], stdout=subprocess.PIPE
        )
        for n in range(4)
    ]
    for child in children:
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n"
    start.touch()
    done = at_once((lambda: [graph.retrying(raise_level, attempts=100) for _ in range(rounds)]) for _ in range(4))
    assert [result for result in done if isinstance(result, Conflict)] == []
    for child in children:
        printed, _ = child.communicate()
        assert child.returncode == 0
        assert orjson.loads(printed) == [], "an update of a row that nobody else touches is no conflict"
    assert level(graph, "ada") == 30 + rounds * 8
    assert [level(graph, f"own{n}") for n in range(4)] == [rounds] * 4
    assert_linear(connect(graph.uri), "main")
    assert_healthy(connect(graph.uri))


def test_an_overtaken_edge_whose_end_is_gone_is_refused(graph: og.Graph) -> None:
    with pytest.raises(ValidationError, match="'dov' not found"):
        overtaken(lambda: call(graph, "link", "ada", "dov"), by=lambda: call(another(graph), "drop_staff", "dov"))
    assert "dov" not in {end for pair in pairs(graph, "Mentors") for end in pair}


def test_an_overtaken_unique_value_is_refused(tmp_path: Path) -> None:
    graph = og.init(tmp_path / "u", "node U { name: String @key mail: String? @unique(mail) }")
    insert = 'query q($n: String) { insert U { name: $n, mail: "m" } }'
    with pytest.raises(ValidationError, match="@unique violation"):
        overtaken(
            lambda: graph.mutate(insert, params={"n": "a"}), by=lambda: another(graph).mutate(insert, params={"n": "b"})
        )
    assert ids(graph, "node:U") == ["b"]


def test_a_condition_is_never_retried(graph: og.Graph) -> None:
    head = graph.head().id
    with pytest.raises(PreconditionFailed) as error:
        overtaken(
            lambda: call(graph, "put", "eve", 1, if_commit=head), by=lambda: call(another(graph), "put", "fay", 2)
        )
    assert (error.value.expected, error.value.actual) == (head, graph.head().id)


def test_no_budget_no_restart(graph: og.Graph) -> None:
    limit(graph, restarts=0)
    with pytest.raises(ExpectedVersionMismatch):
        overtaken(lambda: call(graph, "put", "eve", 1), by=lambda: call(another(graph), "put", "fay", 2))
    assert ids(graph, "node:Staff")[-1] == "fay"


@pytest.mark.parametrize(("name", "values"), [("put", ("eve", 1)), ("relevel", ("ada", 1)), ("drop_staff", ("ada",))])
def test_a_request_that_is_overtaken_by_itself_returns_the_first_receipt(
    graph: og.Graph, name: str, values: tuple[object, ...]
) -> None:
    first: list[og.MutationResult] = []
    before = len(graph.commits())

    def send(handle: og.Graph) -> og.MutationResult:
        return call(handle, name, *values, idempotency_key="once")

    again = overtaken(lambda: send(graph), by=lambda: first.append(send(another(graph))))
    assert [again] == first
    assert len(graph.commits()) == before + 1


# --- races ------------------------------------------------------------------------------------------------------------


def at_once(actions: Iterable[Callable[[], Any]]) -> list[Any]:
    """Run actions in threads that start together; what each returned, or its conflict."""
    listed = list(actions)
    barrier = Barrier(len(listed))

    def run(action: Callable[[], Any]) -> Any:
        barrier.wait()
        try:
            return action()
        except Conflict as conflict:
            return conflict

    with ThreadPoolExecutor(len(listed)) as pool:
        return list(pool.map(run, listed))


@pytest.mark.parametrize("shared", [True, False], ids=["one handle", "a handle each"])
@pytest.mark.row("OCC-04")
def test_eight_inserts_of_different_keys_all_land(graph: og.Graph, shared: bool, row: list[str]) -> None:
    handles = [graph if shared else og.open(graph.uri) for _ in range(8)]
    done = at_once(partial(call, handle, "put", f"p{n}", n) for n, handle in enumerate(handles))
    assert [result for result in done if isinstance(result, Conflict)] == []
    assert ids(graph, "node:Staff") == ["ada", "ben", "cleo", "dov", *(f"p{number}" for number in range(8))]
    assert {result.commit.id for result in done} == {commit.id for commit in graph.commits()[:8]}
    assert_linear(connect(graph.uri), "main")


def test_sixteen_threads_and_four_processes_insert_one_key(graph: og.Graph, tmp_path: Path) -> None:
    start = tmp_path / "start"
    children = [
        warm.Popen(
            [sys.executable, str(CHILD), graph.uri, str(start), "eve", str(100 + 2 * number), str(101 + 2 * number)],
            stdout=subprocess.PIPE,
        )
        for number in range(4)
    ]
    for child in children:
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n"
    start.touch()

    def put(number: int) -> str:
        return commit_of(call(graph, "put", "eve", number)).id

    done = at_once(partial(put, number) for number in range(16))
    levels = {result: n for n, result in enumerate(done) if not isinstance(result, Conflict)}
    for child in children:
        printed, _ = child.communicate()
        assert child.returncode == 0
        levels |= {commit: value for value, commit, error in orjson.loads(printed) if error is None}
    history = [commit.id for commit in graph.commits() if commit.id in levels]
    assert set(history) == set(levels), "a call that returned is in the history"
    assert len(graph.commits()) == len(levels) + 2, "a call that failed is not"
    assert level(graph, "eve") == levels[history[0]]
    assert_healthy(connect(graph.uri))


@pytest.mark.parametrize("writers", [("put", "relevel"), ("drop_staff", "link")])
def test_writers_that_meet_either_succeed_or_report_a_conflict(graph: og.Graph, writers: tuple[str, str]) -> None:
    """What is in the history is what can be seen; a failed check or conflict leaves nothing."""
    values = {"put": ("ada", 1), "relevel": ("ada", 2), "drop_staff": ("ben",), "link": ("cleo", "ben")}

    def attempt(name: str) -> str:
        try:
            made = call(graph, name, *values[name]).commit
            return "unchanged" if made is None else made.id
        except ValidationError:
            return "refused"

    before = len(graph.commits())
    done = at_once(partial(attempt, name) for name in writers * 4)
    landed = [result for result in done if isinstance(result, str) and result not in ("refused", "unchanged")]
    assert len(graph.commits()) - before == len(set(landed))
    staff = set(ids(graph, "node:Staff"))
    assert all({source, target} <= staff for source, target in pairs(graph, "Mentors")), "an edge without its end"
    assert_healthy(connect(graph.uri))


# --- cancelled --------------------------------------------------------------------------------------------------------

CANCELLED_AT = [
    "mutation.prepared",
    "recovery.sidecar_list",
    "mutation.pre_phase_a",
    "recovery.sidecar_write",
    "mutation.post_phase_a",
    "table_commit.before_commit",
    "table_commit.lost_acknowledgement",
    "mutation.mid_phase_b",
    "mutation.post_phase_b_pre_manifest_commit",
    "publisher.load_contention",
    "publisher.before_commit",
    "publisher.after_commit",
    "mutation.post_phase_c",
    "recovery.sidecar_delete",
]


@pytest.mark.parametrize("failpoint", CANCELLED_AT)
@pytest.mark.parametrize("branch", ["main", "feature"])
@pytest.mark.row("OCC-06")
def test_a_cancelled_mutation_is_done_or_not(graph: og.Graph, failpoint: str, branch: str, row: list[str]) -> None:
    """The call is interrupted as by Ctrl-C: nothing of ours catches it."""
    graph.create_branch("feature")
    before, names = seen(graph), graph.branches()

    def cancel() -> None:
        raise KeyboardInterrupt

    with failpoints.armed(failpoint, cancel), pytest.raises(KeyboardInterrupt):
        call(graph, "put_link", "eve", 22, "ada", branch=branch)
    reopened = og.open(graph.uri)
    assert reopened.branches() == names
    assert_healthy(connect(graph.uri))
    done = ("eve" in ids(reopened, "node:Staff", branch), ("eve", "ada") in pairs(reopened, "Mentors", branch))
    assert done in ((True, True), (False, False))
    if done == (False, False):
        assert seen(graph) == before
    # The handle that was interrupted goes on.
    call(graph, "put_link", "fay", 1, "ada", branch=branch)
    assert ("fay", "ada") in pairs(reopened, "Mentors", branch)
    assert_healthy(connect(graph.uri))
