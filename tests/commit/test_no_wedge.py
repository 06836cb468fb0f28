"""No wedge: whatever fails during a write, the same handle writes again afterwards, and what the caller was told is true.

Every call to the object store and every failpoint that a write passes is made to fail in turn: the first, the second, and
so on until the write comes through untouched. So nothing that a write does is left out, also what is added later.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from pathlib import Path

import pytest

from omnigraph import failpoints
from omnigraph.commit import audit
from omnigraph.commit.branches import branch_names, create_branch, delete_branch
from omnigraph.commit.context import CommitContext
from omnigraph.commit.model import MAIN
from omnigraph.commit.protocol import Step, Write, execute
from omnigraph.commit.recovery import heal
from omnigraph.commit.sidecar import Kind
from omnigraph.errors import (
    AlreadyExists,
    BranchNotFound,
    CommitStateUnknown,
    ExpectedVersionMismatch,
    OmnigraphError,
    RecoveryRequired,
)
from omnigraph.graph.lifecycle import connect, create, open_for_writing
from omnigraph.storage.faults import Fault, FaultyStore, error_after, error_before
from omnigraph.storage.objects import open_store
from omnigraph.storage.root import Root
from omnigraph.storage.tables.staged import stage_delete
from tests.commit.aftermath import crash, insert_restarting
from tests.commit.healthy import Picture, assert_healthy, picture
from tests.commit.org import (
    MEMBER_OF,
    MENTORS,
    SCHEMA,
    STAFF,
    TEAM,
    effect,
    ids,
    insert,
    lineage,
    new_graph,
    staff,
    team,
)
from tests.commit.scenarios import FEATURE, FIRST_WRITE, MAIN_LINE, SCENARIOS, SECOND_WRITE, branch_of, fill, prepare

#: More calls than any operation makes.
ALL = 200

#: Errors that promise nothing but that the write will be finished or undone as a whole.
UNDECIDED = (RecoveryRequired, CommitStateUnknown)


@dataclass
class Trouble:
    """Something that goes wrong at the nth chance, once or from then on; `fired` when it did."""

    chance: int
    lasting: bool
    passed: int = 0
    fired: list[str] = field(default_factory=list)

    def strikes(self, where: str) -> bool:
        self.passed += 1
        if self.passed == self.chance or (self.lasting and self.passed > self.chance):
            self.fired.append(where)
            return True
        return False


@contextmanager
def failing_store(store: FaultyStore, chance: int, make: Callable[..., Fault], last: int) -> Iterator[list[object]]:
    """The object store fails at its nth call, or from the nth call on."""
    store.fired.clear()
    for nth in range(chance, last + 1):
        store.inject(make("*", nth=nth))
    try:
        yield store.fired  # type: ignore[misc]
    finally:
        store.clear()


@contextmanager
def failing_failpoints(chance: int, lasting: bool) -> Iterator[list[str]]:
    """The nth failpoint that is passed, whichever it is, fails; or all from the nth on."""
    trouble = Trouble(chance, lasting)

    def passing(name: str) -> None:
        if trouble.strikes(name):
            raise failpoints.FailpointError(f"failpoint {name}", name=name)

    with ExitStack() as stack:
        for name in sorted(failpoints.NAMES):
            stack.enter_context(failpoints.armed(name, partial(passing, name)))
        yield trouble.fired


@contextmanager
def failing_answers(chance: int) -> Iterator[list[str]]:
    """The nth commit to a table or to the manifest is made, and then the connection breaks."""
    trouble = Trouble(chance, lasting=False)

    def lose() -> None:
        if trouble.strikes("commit"):
            raise OSError("connection reset by peer")

    with failpoints.armed("table_commit.lost_acknowledgement", lose):
        yield trouble.fired


#: The ways to fail at the nth chance: what to enter around an operation on a handle.
WAYS: dict[str, Callable[[FaultyStore, int], object]] = {
    "store-refuses": lambda store, nth: failing_store(store, nth, error_before, nth),
    "store-loses-answer": lambda store, nth: failing_store(store, nth, error_after, nth),
    "store-goes-down": lambda store, nth: failing_store(store, nth, error_before, nth + ALL),
    "store-goes-deaf": lambda store, nth: failing_store(store, nth, error_after, nth + ALL),
    "failpoint": lambda store, nth: failing_failpoints(nth, lasting=False),
    "failpoints-from-there": lambda store, nth: failing_failpoints(nth, lasting=True),
    "commit-loses-answer": lambda store, nth: failing_answers(nth),
}


@pytest.fixture(scope="session")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("wedge") / "filled"
    fill(new_graph(str(place)))
    return place


def handle_on(place: Path) -> tuple[CommitContext, FaultyStore]:
    store = FaultyStore(open_store(Root.parse(place)))
    return connect(str(place), store=store), store


def each_failure(
    way: str, tmp_path: Path, prepared: Callable[[Path], None]
) -> Iterator[tuple[CommitContext, Callable[[Callable[[], object]], OmnigraphError | None]]]:
    """A fresh graph for the first chance to fail, the second, and so on until nothing fails any more.

    Gives a handle, and a function that runs an operation under that failure and returns its typed error, if any.
    """
    for nth in count(1):
        place = tmp_path / str(nth)
        prepared(place)
        context, store = handle_on(place)
        fired: list[object] = []

        def attempt(operation: Callable[[], object]) -> OmnigraphError | None:
            with WAYS[way](store, nth) as struck:  # type: ignore[attr-defined]  # noqa: B023
                try:
                    operation()
                    error = None
                except OmnigraphError as raised:
                    error = raised
            fired.extend(struck)  # noqa: B023
            return error

        yield context, attempt
        shutil.rmtree(place)
        if not fired:
            assert nth > 1, "this way to fail never met the operation"
            return
    raise AssertionError("there is no end to what can fail")


# --- writers ----------------------------------------------------------------------------------------------------------

SHORT = {("mutation", MAIN_LINE), ("mutation", FIRST_WRITE), ("branch_merge", MAIN_LINE), ("schema_apply", MAIN_LINE)}
WRITES = [
    pytest.param(
        writer, place, way, id=f"{writer}-{place}-{way}", marks=() if (writer, place) in SHORT else pytest.mark.long
    )
    for writer, scenario in SCENARIOS.items()
    for place in scenario.places
    if place != SECOND_WRITE
    for way in WAYS
]


@pytest.mark.parametrize(("writer", "place", "way"), WRITES)
def test_a_write(writer: str, place: str, way: str, filled: Path, tmp_path: Path) -> None:
    branch = branch_of(place)
    # A table that the write leaves alone.
    elsewhere = MENTORS if writer == "schema_apply" else MEMBER_OF

    def prepared(target: Path) -> None:
        shutil.copytree(filled, target)
        prepare(connect(str(target)), place)

    undisturbed: Picture | None = None
    for context, attempt in each_failure(way, tmp_path, prepared):
        before, known = picture(context), set(context.manifest.commits(branch))
        write = SCENARIOS[writer].plan(context, branch)
        error = attempt(lambda: execute(context, write))  # noqa: B023
        if error is None:
            assert context.manifest.find_commit(branch, write.lineage.id) is not None, "acknowledged, but not there"
        elif not isinstance(error, UNDECIDED):
            assert picture(context) == before, f"it says that nothing happened: {error}"
        else:
            assert write.operation_id in str(error) or write.lineage.id in str(error), "how to look it up is not said"
        delete_first_rows(context, branch, [elsewhere])
        published = context.manifest.find_commit(branch, write.lineage.id) is not None
        seen = without(picture(context), branch, elsewhere)
        if published:
            assert error is None or isinstance(error, UNDECIDED), f"it says that nothing happened: {error}"
            undisturbed = undisturbed or seen
            assert seen == undisturbed, "half of it is there"
            assert seen != without(before, branch, elsewhere) or writer in ("ensure_indices", "optimize")
        else:
            assert error is not None
            assert seen == without(before, branch, elsewhere), "half of it is there"
        assert known <= set(context.manifest.commits(branch)), "an acknowledged commit is lost"
        recorded = [row for row in audit.recoveries(context) if row.operation_id == write.operation_id]
        assert len(recorded) <= 1
        assert all((row.recovery_kind == "RolledForward") == published for row in recorded)
        assert_healthy(context)
        write_everywhere(context, branch)
        assert_healthy(context)


def without(seen: Picture, branch: str, key: str) -> Picture:
    rows = {name: value for name, value in seen.branches[branch].items() if name != key}
    return Picture({**seen.branches, branch: rows}, seen.schema)


def write_everywhere(context: CommitContext, branch: str) -> None:
    """One write of every table that has rows."""
    delete_first_rows(context, branch, [e.key for e in context.manifest.load(branch).tables.values() if e.row_count])


def delete_first_rows(context: CommitContext, branch: str, keys: list[str]) -> None:
    """Take one row from each table; started over, as writers do, when a recovery has moved one of them."""

    def once() -> None:
        state = context.manifest.load(branch)
        step = Step(lambda table: stage_delete(table, ids=table.read(["id"])["id"][:1]))
        effects = [effect(context, state, key, step) for key in keys if key in state.by_key]
        execute(context, Write(Kind.MUTATION, branch, lineage(), tuple(effects)))

    try:
        once()
    except ExpectedVersionMismatch:
        once()


# --- recovery ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("failpoint", ["mutation.mid_phase_b", "mutation.post_phase_b_pre_manifest_commit"])
def test_a_recovery(failpoint: str, way: str, tmp_path: Path) -> None:
    """A dead writer's record is settled exactly once, however often the one who settles it fails."""
    operations: dict[Path, str] = {}
    forward = "post" in failpoint

    def prepared(target: Path) -> None:
        context = new_graph(str(target))
        insert(context, {STAFF: staff(["ada"]), TEAM: team(["core"])})
        doomed = SCENARIOS["mutation"].plan(context, MAIN)
        operations[target] = doomed.operation_id
        crash(context, doomed, failpoint)

    for context, attempt in each_failure(way, tmp_path, prepared):
        attempt(lambda: heal(context))  # noqa: B023
        insert_restarting(context, {TEAM: team(["labs"])})
        assert ids(context, TEAM) == ["core", "labs"]
        assert ids(context, STAFF) == (["ada", "hal"] if forward else ["ada"])
        assert len(ids(context, MENTORS)) == int(forward)
        (row,) = audit.recoveries(context)
        assert row.operation_id == operations[Path(context.root.uri)]
        assert row.recovery_kind == ("RolledForward" if forward else "RolledBack")
        assert_healthy(context)


# --- branches and graphs ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", [way for way in WAYS if way != "commit-loses-answer"])
def test_creating_a_branch(way: str, tmp_path: Path) -> None:
    for context, attempt in each_failure(way, tmp_path, lambda target: _with_one_row(target)):
        error = attempt(lambda: create_branch(context, FEATURE, MAIN))  # noqa: B023
        if error is None:
            assert branch_names(context) == [MAIN, FEATURE]
        else:
            try:
                create_branch(context, FEATURE, MAIN)
            except AlreadyExists:
                assert way in ("store-loses-answer", "store-goes-deaf", "store-refuses", "store-goes-down")
        insert(context, {STAFF: staff(["eve"])}, branch=FEATURE)
        assert ids(context, STAFF, FEATURE) == ["ada", "eve"]
        assert ids(context, STAFF) == ["ada"]
        assert_healthy(context)


@pytest.mark.parametrize("way", [way for way in WAYS if way != "commit-loses-answer"])
def test_deleting_a_branch(way: str, tmp_path: Path) -> None:
    """The branch is there or it is gone; its name can be used again at once."""

    def prepared(target: Path) -> None:
        _with_one_row(target)
        context = connect(str(target))
        create_branch(context, FEATURE, MAIN)
        insert(context, {STAFF: staff(["eve"])}, branch=FEATURE)

    for context, attempt in each_failure(way, tmp_path, prepared):
        error = attempt(lambda: delete_branch(context, FEATURE))  # noqa: B023
        if FEATURE in branch_names(context):
            assert error is not None
            assert ids(context, STAFF, FEATURE) == ["ada", "eve"]
            delete_branch(context, FEATURE)
        with pytest.raises(BranchNotFound):
            delete_branch(context, FEATURE)
        create_branch(context, FEATURE, MAIN)
        assert ids(context, STAFF, FEATURE) == ["ada"]
        insert(context, {STAFF: staff(["fay"])}, branch=FEATURE)
        assert ids(context, STAFF, FEATURE) == ["ada", "fay"]
        assert ids(context, STAFF) == ["ada"]


def _with_one_row(place: Path) -> None:
    insert(new_graph(str(place)), {STAFF: staff(["ada"])})


@pytest.mark.parametrize("way", [way for way in WAYS if way != "commit-loses-answer"])
def test_creating_a_graph(way: str, tmp_path: Path) -> None:
    """A creation that failed can be repeated on the same handle; one that only says so is found."""
    for context, attempt in each_failure(way, tmp_path, lambda target: None):
        error = attempt(lambda: create(context, SCHEMA))  # noqa: B023
        if error is not None:
            try:
                create(context, SCHEMA)
            except AlreadyExists:
                open_for_writing(context)
        for left in context.store.list():
            if left.path.startswith("__probe-"):
                # What tried whether the store can be written safely is left where the store refused to delete it.
                context.store.delete(left.path)
        insert(context, {STAFF: staff(["ada"])})
        assert ids(context, STAFF) == ["ada"]
        assert_healthy(context)
