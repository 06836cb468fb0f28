"""Recovery on branches, and of what a write makes: forks, tables, branches."""

from __future__ import annotations

from dataclasses import replace

import pytest

from omnigraph.commit.branches import branch_names, create_branch, delete_branch
from omnigraph.commit.context import CommitContext
from omnigraph.commit.model import MAIN
from omnigraph.commit.sidecar import list_sidecars
from omnigraph.errors import DriftNeedsRepair
from omnigraph.graph.lifecycle import connect
from omnigraph.ids import new_ulid
from omnigraph.storage.faults import FaultyStore, error_before
from tests.commit.aftermath import (
    break_invariant,
    crash,
    entry_of,
    head_of,
    left_record,
    only_recovery,
    reopen,
    take_record,
)
from tests.commit.handmade import drift, leave, planned, record
from tests.commit.healthy import assert_healthy, picture
from tests.commit.org import STAFF, TEAM, ids, insert, staff, team, write
from tests.commit.scenarios import FEATURE, SCENARIOS

# --- branches ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("forward", [True, False], ids=["REC-17-forward", "REC-17-back"])
def test_a_record_of_a_branch_is_judged_on_that_branch(small: CommitContext, forward: bool) -> None:
    create_branch(small, FEATURE, MAIN)
    insert(small, {STAFF: staff(["eve"])}, branch=FEATURE)
    main = small.manifest.load()
    entry = entry_of(small, STAFF, FEATURE)
    head = drift(small, entry.location, staff(["fay"]))
    leave(small, record(planned(entry, **({} if forward else {"post_commit_pin": 9})), branch=FEATURE))
    fresh = reopen(small)
    assert ids(fresh, STAFF, FEATURE) == ["ada", "eve", *(["fay"] if forward else [])]
    assert entry_of(fresh, STAFF, FEATURE).version == head_of(fresh, STAFF, FEATURE) == head + (not forward)
    assert fresh.manifest.load() == main
    assert ids(fresh, STAFF) == ["ada"]
    row = only_recovery(fresh)
    assert (row.branch, row.recovery_kind) == (FEATURE, "RolledForward" if forward else "RolledBack")
    assert_healthy(fresh)


@pytest.mark.parametrize("nested", [False, True], ids=["of-main", "of-a-branch"])
def test_a_record_of_a_branch_never_undoes_a_table_it_shares(small: CommitContext, nested: bool) -> None:
    """A branch forks a table before it writes it, so what moved on a shared line is not this write's."""
    base = MAIN
    if nested:
        base = "base"
        create_branch(small, base, MAIN)
        insert(small, {STAFF: staff(["bob"])}, branch=base)
    create_branch(small, FEATURE, base)
    entry = entry_of(small, STAFF, FEATURE)
    insert(small, {STAFF: staff(["ben"])}, branch=base)
    insert(small, {STAFF: staff(["cleo"])}, branch=base)
    before = picture(small)
    leave(small, record(planned(entry, expected_version=999, post_commit_pin=1000), branch=FEATURE))
    fresh = reopen(small)
    assert picture(fresh) == before
    assert only_recovery(fresh).tables[0].cls == "NoMovement"
    assert_healthy(fresh)


@pytest.mark.row("REC-23")
@pytest.mark.parametrize("next_step", ["write", "open"])
def test_the_record_of_a_deleted_branch_is_discarded(small: CommitContext, next_step: str) -> None:
    """A roll-back class record, far above reality."""
    create_branch(small, FEATURE, MAIN)
    leave(small, record(planned(entry_of(small), expected_version=999, post_commit_pin=1000), branch=FEATURE))
    delete_branch(small, FEATURE)
    if next_step == "write":
        insert(small, {STAFF: staff(["ben"])})
    fresh = reopen(small)
    assert list_sidecars(fresh.store) == []
    assert only_recovery(fresh).recovery_kind == "RolledBack"
    assert_healthy(fresh)


def test_a_record_outlives_its_branch(small: CommitContext) -> None:
    """The branch went while its record could not be settled; its fork goes, the tables of others stay."""
    create_branch(small, FEATURE, MAIN)
    crash(small, write(small, {STAFF: staff(["eve"])}, branch=FEATURE), "mutation.post_phase_b_pre_manifest_commit")
    faulty = FaultyStore(small.store, [error_before("list", "__recovery", nth=None)])
    delete_branch(connect(small.root.uri, store=faulty), FEATURE)
    assert len(list_sidecars(small.store)) == 1
    fresh = reopen(small)
    assert_healthy(fresh)
    assert only_recovery(fresh).recovery_kind == "RolledBack"


def test_a_record_never_reaches_the_next_branch_of_its_name(small: CommitContext) -> None:
    create_branch(small, FEATURE, MAIN)
    crash(small, write(small, {STAFF: staff(["eve"])}, branch=FEATURE), "mutation.post_phase_b_pre_manifest_commit")
    faulty = FaultyStore(small.store, [error_before("list", "__recovery", nth=None)])
    delete_branch(connect(small.root.uri, store=faulty), FEATURE)
    create_branch(small, FEATURE, MAIN)
    fresh = reopen(small)
    assert ids(fresh, STAFF, FEATURE) == ["ada"]
    assert_healthy(fresh)


def test_a_discarded_record_removes_no_table_of_others(small: CommitContext) -> None:
    """A record says that it creates a table which main publishes."""
    create_branch(small, FEATURE, MAIN)
    leave(small, record(planned(entry_of(small), expected_version=None, post_commit_pin=1), branch=FEATURE))
    faulty = FaultyStore(small.store, [error_before("list", "__recovery", nth=None)])
    delete_branch(connect(small.root.uri, store=faulty), FEATURE)
    fresh = reopen(small)
    assert ids(fresh, STAFF) == ["ada"]
    assert_healthy(fresh)


@pytest.mark.row("REC-24")
def test_pending_work_of_one_branch_does_not_stop_another(small: CommitContext) -> None:
    """The error is about the drift on main, and says `repair`."""
    create_branch(small, FEATURE, MAIN)
    insert(small, {STAFF: staff(["eve"])}, branch=FEATURE)
    break_invariant(small, FEATURE)
    leave(small, record(planned(entry_of(small), expected_version=999, post_commit_pin=1000), branch=FEATURE))
    insert(small, {TEAM: team(["labs"])})
    drift(small, entry_of(small).location, staff(["zoe"]))
    with pytest.raises(DriftNeedsRepair, match="omnigraph repair") as caught:
        insert(small, {STAFF: staff(["ben"])})
    assert "open" not in str(caught.value)
    assert caught.value.table_key == STAFF
    assert len(list_sidecars(small.store)) == 1


# --- forks, new tables, new branches ----------------------------------------------------------------------------------


def test_a_fork_whose_table_was_published_meanwhile_is_dropped(small: CommitContext) -> None:
    create_branch(small, FEATURE, MAIN)
    left_behind = write(small, {STAFF: staff(["eve"])}, branch=FEATURE)
    crash(small, left_behind, "mutation.post_phase_b_pre_manifest_commit")
    hidden = take_record(small, left_behind.operation_id)
    insert(small, {STAFF: staff(["fay"])}, branch=FEATURE)
    leave(small, hidden)
    fresh = reopen(small)
    assert ids(fresh, STAFF, FEATURE) == ["ada", "fay"]
    assert only_recovery(fresh).recovery_kind == "RolledBack"
    assert_healthy(fresh)


@pytest.mark.parametrize("said", ["ours", "unsaid", "foreign"])
@pytest.mark.parametrize("complete", [True, False], ids=["all-moved", "not-all-moved"])
def test_created_tables(small: CommitContext, said: str, complete: bool) -> None:
    """A table this write made goes forward with it or is removed with it; one that it did not make is left alone."""
    change = SCENARIOS["schema_apply"].plan(small, MAIN)
    crash(small, change, "schema_apply.post_phase_b_pre_manifest_commit")
    left = left_record(small, change.operation_id)
    if said != "ours":
        left["tables"][1]["transaction_id"] = None if said == "unsaid" else new_ulid()
    if not complete:
        left["tables"][0]["post_commit_pin"] = 9
    leave(small, left)
    fresh = reopen(small)
    new_table = left["tables"][1]["table_path"]
    if complete and said != "foreign":
        assert "node:Office" in fresh.manifest.load().by_key
        assert only_recovery(fresh).recovery_kind == "RolledForward"
    else:
        assert "node:Office" not in fresh.manifest.load().by_key
        assert fresh.tables.exists(new_table) == (said == "foreign")
        assert only_recovery(fresh).recovery_kind == "RolledBack"
    assert list_sidecars(fresh.store) == []


@pytest.mark.parametrize("used", ["unused", "written", "branched-from"])
def test_a_branch_made_for_a_write_goes_with_it(small: CommitContext, used: str) -> None:
    """Unless it is somebody else's by now."""
    create_branch(small, FEATURE, MAIN)
    prepared = write(small, {STAFF: staff(["eve"]), TEAM: team(["labs"])}, branch=FEATURE)
    delete_branch(small, FEATURE)
    doomed = replace(prepared, branch_created_from=MAIN)
    crash(small, doomed, "mutation.mid_phase_b")
    hidden = take_record(small, doomed.operation_id)
    if used == "written":
        insert(small, {TEAM: team(["ops"])}, branch=FEATURE)
    if used == "branched-from":
        create_branch(small, "leaf", FEATURE)
    leave(small, hidden)
    fresh = reopen(small)
    assert (FEATURE in branch_names(fresh)) == (used != "unused")
    assert_healthy(fresh)


def test_a_branch_made_for_a_write_stays_when_it_goes_forward(small: CommitContext) -> None:
    create_branch(small, FEATURE, MAIN)
    prepared = replace(write(small, {STAFF: staff(["eve"])}, branch=FEATURE), branch_created_from=MAIN)
    delete_branch(small, FEATURE)
    crash(small, prepared, "mutation.post_phase_b_pre_manifest_commit")
    fresh = reopen(small)
    assert ids(fresh, STAFF, FEATURE) == ["ada", "eve"]
    assert_healthy(fresh)
