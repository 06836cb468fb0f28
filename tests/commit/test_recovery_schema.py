"""Recovery of schema changes: the files follow the manifest, and a read-only open waits for them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from omnigraph import failpoints
from omnigraph.commit import audit
from omnigraph.commit.branches import branch_names, create_branch, delete_branch
from omnigraph.commit.context import CommitContext
from omnigraph.commit.model import MAIN, RECOVERY_ACTOR, TableEntry
from omnigraph.commit.protocol import Write, execute
from omnigraph.commit.publisher import publish
from omnigraph.commit.recovery import heal
from omnigraph.commit.sidecar import Kind, UnreadableSidecar, discard_sidecar, list_sidecars
from omnigraph.commit.updates import SetTable
from omnigraph.errors import DriftNeedsRepair, ExpectedVersionMismatch, OmnigraphError, RecoveryRequired, StorageError
from omnigraph.graph.lifecycle import connect, open_for_reading, open_for_writing
from omnigraph.ids import new_ulid
from omnigraph.storage.faults import FaultyStore, error_before, stale_list
from omnigraph.storage.objects import open_store
from omnigraph.storage.tables.location import Location
from tests.commit.aftermath import at, break_invariant, crash, entry_of, head_of, insert_restarting, left_by_steps, left_record, only_recovery, reopen, take_record
from tests.commit.handmade import Json, drift, leave, move, planned, record
from tests.commit.healthy import assert_healthy, assert_open_is_idle, picture, tree
from tests.commit.org import STAFF, TEAM, again, ids, insert, lineage, staff, team, write
from tests.commit.scenarios import FEATURE, SCENARIOS


# --- schema changes ---------------------------------------------------------------------------------------------------


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


def test_a_schema_change_before_confirmation_existed_is_judged_loosely(small: CommitContext) -> None:
    """REC-08: a version 1 record, and the table is two versions on."""
    change = SCENARIOS["schema_apply"].plan(small, MAIN)
    crash(small, change, "schema_apply.post_phase_b_pre_manifest_commit")
    drift(small, entry_of(small).location, small.tables.open_head(entry_of(small).location).read())  # type: ignore[union-attr]
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


