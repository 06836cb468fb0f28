"""No wedge: whatever fails during a write, the same handle writes again afterwards, and what the caller was told is true."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

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
    SchemaChanged,
)
from omnigraph.graph.lifecycle import connect, create, open_for_writing
from omnigraph.storage.tables.staged import stage_delete
from tests.commit.aftermath import crash, insert_restarting
from tests.commit.failing import WAYS, trials
from tests.commit.healthy import Picture, assert_healthy, picture
from tests.commit.org import (
    MEMBER_OF,
    MENTORS,
    SCHEMA,
    STAFF,
    TEAM,
    accepted,
    effect,
    ids,
    insert,
    lineage,
    new_graph,
    staff,
    team,
)
from tests.commit.scenarios import FEATURE, FIRST_WRITE, MAIN_LINE, SCENARIOS, SECOND_WRITE, branch_of, prepare

#: Errors that promise nothing but that the write will be finished or undone as a whole.
UNDECIDED = (RecoveryRequired, CommitStateUnknown)

#: Creating and deleting what has no table commits.
WAYS_OF_THE_STORE = [way for way in WAYS if way != "commit-loses-answer"]


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
    branch, scenario = branch_of(place), SCENARIOS[writer]
    # A table that the write leaves alone.
    elsewhere = MENTORS if writer == "schema_apply" else MEMBER_OF

    def start(target: Path) -> None:
        shutil.copytree(filled, target)
        prepare(connect(str(target)), place)

    finished: Picture | None = None
    for trial in trials(way, tmp_path, start):
        context = trial.context
        before, known = picture(context), set(context.manifest.commits(branch))
        write = scenario.plan(context, branch)
        error = trial.run(execute, context, write)
        assert_true_now(context, write, error, before)
        delete_first_rows(context, branch, [elsewhere])

        happened = context.manifest.find_commit(branch, write.lineage.id) is not None
        if not isinstance(error, UNDECIDED):
            assert happened == (error is None), "what was said is not true later"
        seen, untouched = without(picture(context), branch, elsewhere), without(before, branch, elsewhere)
        if happened:
            finished = finished or seen
            assert (seen != untouched) == scenario.shows
        assert seen == (finished if happened else untouched), "half of it is there"
        assert known <= set(context.manifest.commits(branch)), "an acknowledged commit is lost"
        recorded = [row.recovery_kind for row in audit.recoveries(context) if row.operation_id == write.operation_id]
        assert recorded in ([], ["RolledForward" if happened else "RolledBack"])
        assert_healthy(context)

        delete_first_rows(
            context, branch, [e.key for e in context.manifest.load(branch).tables.values() if e.row_count]
        )
        assert_healthy(context)
    assert finished is not None


def assert_true_now(context: CommitContext, write: Write, error: OmnigraphError | None, before: Picture) -> None:
    """An answer means that the commit is there, an error that nothing happened; or it says how to look it up."""
    if error is None:
        assert context.manifest.find_commit(write.branch, write.lineage.id) is not None
    elif isinstance(error, UNDECIDED):
        assert write.operation_id in str(error) or write.lineage.id in str(error)
    else:
        assert picture(context) == before


def without(seen: Picture, branch: str, key: str) -> Picture:
    rows = {name: value for name, value in seen.branches[branch].items() if name != key}
    return Picture({**seen.branches, branch: rows}, seen.schema)


def delete_first_rows(context: CommitContext, branch: str, keys: list[str]) -> None:
    """Take one row from each table; started over, as writers do, when a recovery has moved one or the schema."""

    def once() -> None:
        state = context.manifest.load(branch)
        step = Step(lambda table: stage_delete(table, ids=table.read(["id"])["id"][:1]))
        effects = [effect(context, state, key, step) for key in keys]
        execute(context, Write(Kind.MUTATION, branch, lineage(), tuple(effects), accepted(state)))

    try:
        once()
    except (ExpectedVersionMismatch, SchemaChanged):
        once()


# --- recovery ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("failpoint", ["mutation.mid_phase_b", "mutation.post_phase_b_pre_manifest_commit"])
def test_a_recovery(failpoint: str, way: str, tmp_path: Path) -> None:
    """A dead writer's record is settled exactly once, however often the one who settles it fails."""
    operations: dict[str, str] = {}
    forward = "post" in failpoint

    def start(target: Path) -> None:
        context = new_graph(str(target))
        insert(context, {STAFF: staff(["ada"]), TEAM: team(["core"])})
        doomed = SCENARIOS["mutation"].plan(context, MAIN)
        operations[context.root.uri] = doomed.operation_id
        crash(context, doomed, failpoint)

    for trial in trials(way, tmp_path, start):
        context = trial.context
        trial.run(heal, context)
        insert_restarting(context, {TEAM: team(["labs"])})
        assert ids(context, TEAM) == ["core", "labs"]
        assert ids(context, STAFF) == (["ada", "hal"] if forward else ["ada"])
        assert len(ids(context, MENTORS)) == int(forward)
        (row,) = audit.recoveries(context)
        assert row.operation_id == operations[context.root.uri]
        assert row.recovery_kind == ("RolledForward" if forward else "RolledBack")
        assert_healthy(context)


# --- branches and graphs ----------------------------------------------------------------------------------------------


def start_small(place: Path) -> CommitContext:
    context = new_graph(str(place))
    insert(context, {STAFF: staff(["ada"])})
    return context


@pytest.mark.parametrize("way", WAYS_OF_THE_STORE)
def test_creating_a_branch(way: str, tmp_path: Path) -> None:
    """The branch is there or it is not; it can be made, and it can be used."""
    for trial in trials(way, tmp_path, start_small):
        context = trial.context
        error = trial.run(create_branch, context, FEATURE, MAIN)
        if FEATURE in branch_names(context):
            with pytest.raises(AlreadyExists):
                create_branch(context, FEATURE, MAIN)
        else:
            assert error is not None
            create_branch(context, FEATURE, MAIN)
        insert(context, {STAFF: staff(["eve"])}, branch=FEATURE)
        assert ids(context, STAFF, FEATURE) == ["ada", "eve"]
        assert ids(context, STAFF) == ["ada"]
        assert_healthy(context)


@pytest.mark.parametrize("way", WAYS_OF_THE_STORE)
def test_deleting_a_branch(way: str, tmp_path: Path) -> None:
    """The branch is there or it is gone; its name can be used again at once."""

    def start(target: Path) -> None:
        context = start_small(target)
        create_branch(context, FEATURE, MAIN)
        insert(context, {STAFF: staff(["eve"])}, branch=FEATURE)

    for trial in trials(way, tmp_path, start):
        context = trial.context
        error = trial.run(delete_branch, context, FEATURE)
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


@pytest.mark.parametrize("way", WAYS_OF_THE_STORE)
def test_creating_a_graph(way: str, tmp_path: Path) -> None:
    """A creation that failed can be repeated on the same handle; one that only says so is found."""
    for trial in trials(way, tmp_path, lambda target: None):
        context = trial.context
        if trial.run(create, context, SCHEMA) is not None:
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
