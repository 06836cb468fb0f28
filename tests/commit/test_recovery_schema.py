"""Recovery of schema changes: the files follow the manifest, and a read-only open waits for them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from omnigraph.commit import schema_files
from omnigraph.commit.context import CommitContext
from omnigraph.commit.model import MAIN
from omnigraph.commit.recovery import heal
from omnigraph.errors import RecoveryRequired
from omnigraph.graph.lifecycle import open_for_reading
from tests.commit.aftermath import (
    crash,
    entry_of,
    left_record,
    only_recovery,
    reopen,
)
from tests.commit.handmade import Json, drift, leave, planned, record
from tests.commit.healthy import assert_healthy, picture, tree
from tests.commit.org import STAFF, TEAM, again, ids, staff, team, write
from tests.commit.scenarios import SCENARIOS


def test_a_schema_change_without_its_staged_files_is_rolled_back(small: CommitContext) -> None:
    before = picture(small)
    crash(small, SCENARIOS["schema_apply"].plan(small, MAIN), "schema_apply.post_phase_b_pre_manifest_commit")
    small.store.delete("_schema.ir.json.staged")
    fresh = reopen(small)
    assert picture(fresh) == before
    assert only_recovery(fresh).recovery_kind == "RolledBack"
    assert_healthy(fresh)


def test_a_schema_change_with_other_staged_files_is_rolled_back(small: CommitContext) -> None:
    before = picture(small)
    crash(small, SCENARIOS["schema_apply"].plan(small, MAIN), "schema_apply.post_phase_b_pre_manifest_commit")
    small.store.put("_schema.ir.json.staged", small.store.get("_schema.ir.json"))
    fresh = reopen(small)
    assert picture(fresh) == before
    assert_healthy(fresh)


@pytest.mark.row("REC-08")
def test_a_schema_change_before_confirmation_existed_is_judged_loosely(small: CommitContext) -> None:
    """A version 1 record, and the table is two versions on."""
    change = SCENARIOS["schema_apply"].plan(small, MAIN)
    crash(small, change, "schema_apply.post_phase_b_pre_manifest_commit")
    widened = small.tables.open_head(entry_of(small).location)
    assert widened is not None
    drift(small, widened.location, widened.read())
    left = left_record(small, change.operation_id)
    leave(small, {**left, "schema_version": 1})
    fresh = reopen(small)
    assert only_recovery(fresh).recovery_kind == "RolledForward"
    assert "node:Squad" in fresh.manifest.load().by_key


READ_ONLY = [
    pytest.param("schema_apply.after_promote", True, id="REC-22-published-and-live"),
    pytest.param("schema_apply.post_phase_c", False, id="REC-22-published-not-live"),
    pytest.param("schema_apply.before_promote", False, id="REC-22-flagged-not-live"),
    pytest.param("schema_apply.post_phase_b_pre_manifest_commit", False, id="REC-22-not-published"),
    pytest.param("schema_apply.post_phase_a", False, id="REC-22-nothing-moved"),
]


@pytest.mark.parametrize(("failpoint", "accepted"), READ_ONLY)
def test_a_read_only_open_of_a_pending_schema_change(small: CommitContext, failpoint: str, accepted: bool) -> None:
    crash(small, SCENARIOS["schema_apply"].plan(small, MAIN), failpoint)
    before = tree(small)
    if accepted:
        assert "desk" in open_for_reading(again(small)).source
    else:
        with pytest.raises(RecoveryRequired, match="read-write"):
            open_for_reading(again(small))
    assert tree(small) == before, "a read-only open changed something"
    reopen(small)
    open_for_reading(again(small))


@pytest.mark.parametrize(
    ("changes", "accepted"),
    [
        pytest.param({"published": True, "schema_target": "live"}, True, id="REC-22-published-target-live"),
        pytest.param({"published": False, "schema_target": "live"}, False, id="REC-22-not-published-target-live"),
        pytest.param({"published": True, "schema_target": "0" * 64}, False, id="REC-22-published-target-other"),
    ],
)
def test_a_read_only_open_by_hand(small: CommitContext, changes: Json, accepted: bool) -> None:
    if changes["schema_target"] == "live":
        changes = {**changes, "schema_target": schema_files.live_target(small.store)}
    leave(small, record(planned(entry_of(small)), kind="SchemaApply", **changes))
    if accepted:
        open_for_reading(again(small))
    else:
        with pytest.raises(RecoveryRequired):
            open_for_reading(again(small))


@pytest.mark.parametrize("failpoint", ["mutation.post_phase_a", "mutation.mid_phase_b", "mutation.post_phase_c"])
def test_a_read_only_open_leaves_other_records_alone(small: CommitContext, failpoint: str) -> None:
    crash(small, write(small, {STAFF: staff(["ben"]), TEAM: team(["labs"])}), failpoint)
    before = tree(small)
    fresh = again(small)
    open_for_reading(fresh)
    assert ids(fresh, STAFF) == (["ada", "ben"] if failpoint == "mutation.post_phase_c" else ["ada"])
    assert tree(small) == before


def test_a_table_that_is_moved_and_renamed_gets_its_new_name(small: CommitContext) -> None:
    change = SCENARIOS["schema_apply"].plan(small, MAIN)
    widened, new = change.effects
    renamed = replace(widened, entry=replace(widened.entry, key="node:Person"))
    crash(small, replace(change, effects=(renamed, new)), "schema_apply.post_phase_b_pre_manifest_commit")
    fresh = reopen(small)
    assert {"node:Person", "node:Squad", "node:Office"} <= set(fresh.manifest.load().by_key)
    assert STAFF not in fresh.manifest.load().by_key


@pytest.mark.parametrize("staged", [True, False], ids=["staged", "not-staged"])
def test_a_schema_change_that_moves_no_table(small: CommitContext, staged: bool) -> None:
    """Its staged files are all there is of it: with them it goes forward, without them it is forgotten."""
    change = replace(SCENARIOS["schema_apply"].plan(small, MAIN), effects=())
    squad = change.updates[0]
    crash(small, replace(change, updates=(squad,)), "schema_apply.post_phase_a")
    if not staged:
        small.store.delete("__schema_state.json.staged")
    before = small.manifest.load().head
    (recovery,) = heal(again(small))
    assert recovery.recovery_kind == ("RolledForward" if staged else "RolledBack")
    state = again(small).manifest.load()
    assert state.head == (change.lineage.id if staged else before)
    assert ("node:Squad" in state.by_key) == staged
    assert ("desk" in small.store.get("_schema.pg").decode()) == staged
