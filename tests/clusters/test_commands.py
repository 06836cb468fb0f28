"""The commands of a cluster: plan, apply, drift, approvals, locks, and states that are damaged."""

from __future__ import annotations

import json
import os
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph import failpoints
from omnigraph.cluster import commands, lock
from omnigraph.cluster.applied import read_applied
from omnigraph.cluster.layout import Place
from tests.cli.calling import spawn
from tests.clusters.declaring import (
    QUERIES,
    SCHEMA,
    WIDER,
    applied,
    codes,
    declare,
    dispositions,
    replace_in,
    started,
    without_graph,
)


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return started(declare(tmp_path_factory.mktemp("clusters") / "c"))


@pytest.fixture
def cluster(template: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(template, tmp_path / "c"))


def state_of(folder: Path) -> dict[str, Any]:
    told: dict[str, Any] = json.loads((folder / "__cluster" / "state.json").read_text())
    return told


def test_the_first_apply(tmp_path: Path) -> None:
    folder = declare(tmp_path / "c")
    assert codes(commands.apply(folder, None)) == ["state_missing"]
    planned = commands.plan(folder)
    assert planned.ok
    assert not planned.data["state_observations"]["state_found"]
    assert {operation for operation, _ in dispositions(planned).values()} == {"create"}
    assert not (folder / "__cluster" / "state.json").exists()
    imported = commands.import_(folder)
    assert imported.data["state_observations"]["state_revision"] == 1
    assert imported.data["observations"]["graph.team"]["exists"] is False
    assert codes(commands.import_(folder)) == ["state_already_exists"]
    told = applied(folder)
    assert (told["applied_count"], told["converged"], told["state_written"], told["actor"]) == (8, True, True, "op")
    again = applied(folder)
    assert (again["applied_count"], again["converged"], again["state_written"]) == (0, True, False)
    assert again["state_observations"]["state_revision"] == told["state_observations"]["state_revision"] == 2
    assert not (folder / "__cluster" / "lock.json").exists()
    assert not list((folder / "__cluster" / "recoveries").glob("*"))
    with og.open(folder / "graphs" / "team.omni", "ro") as graph:
        assert graph.schema() == SCHEMA
        assert graph.commits()[0].actor == "op"


def test_import_takes_graphs_over_that_are_there(tmp_path: Path) -> None:
    folder = declare(tmp_path / "c")
    (folder / "graphs").mkdir()
    og.init(folder / "graphs" / "team.omni", WIDER).close()
    outcome = commands.import_(folder)
    assert outcome.ok, outcome.findings.listed
    assert set(outcome.data["resource_digests"]) == {"graph.team", "schema.team"}
    assert outcome.data["observations"]["graph.team"]["manifest_version"] >= 1
    planned = commands.plan(folder)
    assert dispositions(planned)["schema.team"] == ("update", "applied")
    assert dispositions(planned)["query.team.people"] == ("create", "applied")


def test_a_schema_change(cluster: Path) -> None:
    with og.open(cluster / "graphs" / "team.omni") as graph:
        graph.load(b'{"type":"Person","data":{"name":"ada"}}\n')
    (cluster / "team.pg").write_text(WIDER)
    planned = commands.plan(cluster)
    changes = {change["resource"]: change for change in planned.data["changes"]}
    assert changes["schema.team"]["migration"]["supported"]
    assert changes["schema.team"]["migration"]["steps"][0]["kind"] == "add_property"
    assert changes["graph.team"]["disposition"] == "derived"
    radius = {entry["resource"]: entry["affected"] for entry in planned.data["blast_radius"]}
    assert radius["schema.team"] == ["query.team.add_person", "query.team.people"]
    before = state_of(cluster)["applied_revision"]["config_digest"]
    assert applied(cluster)["converged"]
    assert state_of(cluster)["applied_revision"]["config_digest"] != before
    with og.open(cluster / "graphs" / "team.omni", "ro") as graph:
        assert graph.schema() == WIDER
        assert len(graph.query("query q() { match { $p: Person } return { $p.email } }")) == 1


def test_a_plan_names_the_stored_queries_that_a_schema_change_would_break(cluster: Path) -> None:
    (cluster / "team.pg").write_text(SCHEMA.replace("name: String @key", "title: String @key"))
    for outcome in (commands.plan(cluster), commands.apply(cluster, "op")):
        assert not outcome.ok
        broken = {found.path for found in outcome.findings.listed if found.code == "query_typecheck_error"}
        assert broken == {"query.team.people", "query.team.add_person"}
    with og.open(cluster / "graphs" / "team.omni", "ro") as graph:
        assert graph.schema() == SCHEMA


def test_a_schema_that_is_a_comment_is_no_path(cluster: Path) -> None:
    """`//home/…/other.pg` is a comment in a schema, and the name of a file for the system."""
    (cluster / "other.pg").write_text("node Secret { code: String @key }\n")
    (cluster / "tasks.pg").write_text(f"/{cluster / 'other.pg'}")
    assert commands.plan(cluster).ok
    assert applied(cluster)["converged"]
    with og.open(cluster / "graphs" / "tasks.omni", "ro") as graph:
        assert graph.schema() == f"/{cluster / 'other.pg'}"


def test_an_unsupported_schema_change_blocks_what_needs_it(cluster: Path) -> None:
    with og.open(cluster / "graphs" / "team.omni") as graph:
        graph.load(b'{"type":"Person","data":{"name":"ada","age":1}}\n')
    (cluster / "team.pg").write_text(SCHEMA.replace("age: I32?", "age: String?"))
    (cluster / "tasks.pg").write_text("node Task { title: String @key  done: Bool? }\n")
    (cluster / "queries" / "people.gq").write_text(QUERIES + "\n")
    planned = commands.plan(cluster)
    assert planned.ok
    assert dispositions(planned)["schema.team"] == ("update", "blocked")
    assert dispositions(planned)["graph.team"] == ("update", "blocked")
    outcome = commands.apply(cluster, "op")
    assert codes(outcome) == ["schema_apply_failed"]
    assert "apply_dependency_blocked" in codes(outcome, "warning")
    assert not outcome.data["converged"]
    assert dispositions(outcome)["query.team.people"] == ("update", "blocked")
    # tasks comes before team, so it was changed; the state says so.
    assert dispositions(outcome)["schema.tasks"] == ("update", "applied")
    assert not list((cluster / "__cluster" / "recoveries").glob("*"))
    (cluster / "team.pg").write_text(SCHEMA)
    assert applied(cluster)["converged"]


def test_the_first_failure_stops_further_graphs(tmp_path: Path) -> None:
    folder = declare(tmp_path / "c")
    assert commands.import_(folder).ok
    (folder / "graphs" / "tasks.omni" / "nodes").mkdir(parents=True)
    (folder / "graphs" / "tasks.omni" / "nodes" / "x").write_text("not a graph")
    outcome = commands.apply(folder, "op")
    assert codes(outcome) == ["graph_create_incomplete"]
    assert "graph_create_skipped" in codes(outcome, "warning")
    told = dispositions(outcome)
    assert told["graph.team"] == told["schema.team"] == told["query.team.people"] == ("create", "blocked")
    assert told["policy.base"] == ("create", "blocked")
    assert told["policy.listing"] == ("create", "applied")
    assert (outcome.data["converged"], outcome.data["state_written"]) == (False, True)
    shutil.rmtree(folder / "graphs" / "tasks.omni")
    assert applied(folder)["converged"]


def test_a_graph_that_the_state_does_not_know_is_left_alone(tmp_path: Path) -> None:
    folder = declare(tmp_path / "c")
    assert commands.import_(folder).ok
    og.init(folder / "graphs" / "team.omni", SCHEMA).close()
    outcome = commands.apply(folder, "op")
    assert codes(outcome) == ["graph_create_failed"]
    assert "cluster refresh" in outcome.findings.listed[-1].message or any(
        "cluster refresh" in found.message for found in outcome.findings.listed
    )
    assert commands.refresh(folder).ok
    assert applied(folder)["converged"]


def test_queries_policies_and_bindings(cluster: Path) -> None:
    (cluster / "queries" / "people.gq").write_text(QUERIES.replace("add_person", "add_one"))
    replace_in(cluster / "cluster.yaml", "applies_to: [team]", "applies_to: [team, graph.tasks]")
    planned = dispositions(commands.plan(cluster))
    assert planned["query.team.add_person"] == ("delete", "applied")
    assert planned["query.team.add_one"] == ("create", "applied")
    change = next(change for change in commands.plan(cluster).data["changes"] if change["resource"] == "policy.base")
    assert (change["binding_change"], change["metadata_change"]) == (True, "policy_bindings")
    assert applied(cluster)["converged"]
    assert state_of(cluster)["applied_revision"]["resources"]["policy.base"]["applies_to"] == [
        "graph.tasks",
        "graph.team",
    ]
    old = list((cluster / "__cluster" / "resources" / "query" / "team" / "add_person").glob("*.gq"))
    assert len(old) == 1, "stored contents of before stay"


def test_deleting_a_graph_needs_an_approval(cluster: Path) -> None:
    assert codes(commands.approve(cluster, "graph.tasks", "me")) == ["approval_not_required"]
    without_graph(cluster, "tasks")
    planned = commands.plan(cluster)
    assert planned.data["approvals_required"] == [
        {"resource": "graph.tasks", "reason": "delete_graph", "satisfied": False}
    ]
    outcome = commands.apply(cluster, "op")
    assert outcome.ok
    assert not outcome.data["converged"]
    assert dispositions(outcome) == {"graph.tasks": ("delete", "blocked"), "schema.tasks": ("delete", "blocked")}
    again = commands.apply(cluster, "op")
    assert not again.data["state_written"]
    approved = commands.approve(cluster, "graph.tasks", "me")
    assert approved.ok
    path = cluster / "__cluster" / "approvals" / f"{approved.data['approval_id']}.json"
    told = json.loads(path.read_text())
    assert (told["approved_by"], told["operation"], told["consumed_at"]) == ("me", "delete", None)
    # Any change of the declaration makes it stale.
    replace_in(cluster / "cluster.yaml", "name: test", "name: other")
    assert "approval_stale" in codes(commands.plan(cluster), "warning")
    assert not commands.plan(cluster).data["approvals_required"][0]["satisfied"]
    assert (cluster / "graphs" / "tasks.omni").exists()
    replace_in(cluster / "cluster.yaml", "name: other", "name: test")
    assert commands.plan(cluster).data["approvals_required"][0]["satisfied"]
    assert applied(cluster)["converged"]
    assert not (cluster / "graphs" / "tasks.omni").exists()
    assert json.loads(path.read_text())["consumed_at"] is not None
    state = state_of(cluster)
    assert not [address for address in state["applied_revision"]["resources"] if "tasks" in address]
    assert state["observations"]["graph.tasks"]["tombstone"]
    assert approved.data["approval_id"] in state["approval_records"]
    assert commands.refresh(cluster).ok
    assert applied(cluster)["converged"]


def test_a_graph_is_not_deleted_while_it_is_backed_up(cluster: Path, tmp_path: Path) -> None:
    """A backup that is killed in the middle counts as running until its lease has ended."""
    graph = cluster / "graphs" / "tasks.omni"
    without_graph(cluster, "tasks")
    assert commands.approve(cluster, "graph.tasks", "me").ok
    environment = os.environ | {"OMNIGRAPH_FAILPOINTS": "staging.job_written=kill"}
    killed = spawn("backup", str(graph), str(tmp_path / "copy"), env=environment)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    outcome = commands.apply(cluster, "op")
    assert codes(outcome) == ["graph_delete_export_in_progress"]
    assert not outcome.data["converged"]
    assert dispositions(outcome)["graph.tasks"] == ("delete", "blocked")
    assert not list((cluster / "__cluster").glob("recoveries/*"))
    with og.open(graph, "ro") as untouched:
        assert "Task" in untouched.schema()
    (record,) = (graph / "__staging").glob("*.json")
    record.write_text(json.dumps(json.loads(record.read_text()) | {"expires_at": 1}))
    # What the failed apply wrote down has not used up the approval.
    assert applied(cluster)["converged"]
    assert not graph.exists()


# --- drift ------------------------------------------------------------------------------------------------------------


def test_a_changed_live_schema_is_drift_and_is_changed_back(cluster: Path) -> None:
    with og.open(cluster / "graphs" / "team.omni") as graph:
        graph.apply_schema(WIDER)
    assert not commands.plan(cluster).data["changes"], "a plan does not look at live graphs"
    refreshed = commands.refresh(cluster)
    assert refreshed.data["resource_statuses"]["schema.team"]["status"] == "drifted"
    assert dispositions(commands.plan(cluster))["schema.team"] == ("update", "applied")
    assert applied(cluster)["converged"]
    with og.open(cluster / "graphs" / "team.omni", "ro") as graph:
        assert graph.schema() == SCHEMA
    assert commands.refresh(cluster).data["resource_statuses"]["schema.team"]["status"] == "applied"


def test_a_graph_that_is_gone_is_made_again_empty(cluster: Path) -> None:
    shutil.rmtree(cluster / "graphs" / "team.omni")
    refreshed = commands.refresh(cluster)
    assert refreshed.ok
    assert refreshed.data["resource_statuses"]["graph.team"]["status"] == "drifted"
    assert "schema.team" not in refreshed.data["resource_digests"]
    assert dispositions(commands.plan(cluster))["graph.team"] == ("create", "applied")
    assert applied(cluster)["converged"]
    assert (cluster / "graphs" / "team.omni").exists()
    assert state_of(cluster)["resource_statuses"]["graph.team"]["status"] == "applied"


@pytest.mark.parametrize("damage", ["missing", "mismatch"])
def test_stored_contents_are_mended(cluster: Path, damage: str) -> None:
    path = next((cluster / "__cluster" / "resources" / "query" / "team" / "people").glob("*.gq"))
    if damage == "missing":
        path.unlink()
    else:
        path.write_text("other")
    refreshed = commands.refresh(cluster)
    assert refreshed.ok
    assert f"catalog_payload_{damage}" in codes(refreshed, "warning")
    assert refreshed.data["resource_statuses"]["query.team.people"]["status"] == "drifted"
    assert applied(cluster)["converged"]
    assert path.read_text() == QUERIES


def test_what_can_not_be_observed_is_an_error(cluster: Path) -> None:
    shutil.rmtree(cluster / "graphs" / "team.omni" / "__manifest")
    refreshed = commands.refresh(cluster)
    assert codes(refreshed) == ["graph_observation_error"]
    assert state_of(cluster)["resource_statuses"]["graph.team"]["status"] == "error"


# --- locks ------------------------------------------------------------------------------------------------------------


def _lock(folder: Path, text: str | None = None) -> Path:
    path = folder / "__cluster" / "lock.json"
    path.parent.mkdir(exist_ok=True)
    told = {"version": 1, "lock_id": "L1", "operation": "apply", "created_at": "2026-01-01T00:00:00Z", "pid": 1}
    path.write_text(json.dumps(told) if text is None else text)
    return path


def test_a_foreign_lock(cluster: Path) -> None:
    path = _lock(cluster)
    before = (cluster / "__cluster" / "state.json").read_bytes()
    for outcome in (
        commands.plan(cluster),
        commands.apply(cluster, "op"),
        commands.refresh(cluster),
        commands.import_(cluster),
        commands.approve(cluster, "graph.team", "me"),
    ):
        assert codes(outcome) == ["state_lock_held"]
        assert "force-unlock L1" in outcome.findings.listed[-1].message
    seen = commands.status(cluster)
    assert seen.ok
    told = seen.data["state_observations"]
    assert (told["locked"], told["lock_id"], told["lock_operation"], told["lock_pid"]) == (True, "L1", "apply", 1)
    assert told["lock_age_seconds"] > 1000
    assert codes(commands.force_unlock(cluster, "L2")) == ["state_lock_id_mismatch"]
    assert path.exists()
    assert (cluster / "__cluster" / "state.json").read_bytes() == before
    assert commands.force_unlock(cluster, "L1").data["lock_removed"]
    assert codes(commands.force_unlock(cluster, "L1")) == ["state_lock_missing"]
    assert applied(cluster)["converged"]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("{", "invalid_state_lock"),
        (
            '{"version": 9, "lock_id": "a", "operation": "x", "created_at": "", "pid": 1}',
            "unsupported_state_lock_version",
        ),
        ("[]", "invalid_state_lock"),
        ('{"version": 1, "lock_id": "a", "operation": "x", "created_at": 5, "pid": 1}', "invalid_state_lock"),
        ('{"version": 1, "lock_id": 7, "operation": "x", "created_at": "", "pid": 1}', "invalid_state_lock"),
        ('{"version": 1, "lock_id": "a", "operation": "x", "created_at": "", "pid": "1"}', "invalid_state_lock"),
        (
            '{"version": true, "lock_id": "a", "operation": "x", "created_at": "", "pid": 1}',
            "unsupported_state_lock_version",
        ),
    ],
)
def test_a_lock_that_says_nothing(cluster: Path, text: str, code: str) -> None:
    path = _lock(cluster, text)
    assert codes(commands.apply(cluster, "op")) == [code]
    assert codes(commands.status(cluster), "warning") == [code]
    assert codes(commands.force_unlock(cluster, "a")) == [code]
    assert path.exists()


@pytest.mark.parametrize(
    ("created_at", "is_known"), [("2026-01-01T00:00:00", True), ("2026-01-01T00:00:00+02:00", True), ("once", False)]
)
def test_the_age_of_a_lock_of_another_program(cluster: Path, created_at: str, is_known: bool) -> None:
    told = {"version": 1, "lock_id": "L1", "operation": "apply", "created_at": created_at, "pid": 1}
    _lock(cluster, json.dumps(told))
    seen = commands.status(cluster).data["state_observations"]
    assert (seen["locked"], seen["lock_created_at"]) == (True, created_at)
    assert (seen.get("lock_age_seconds", 0) > 1000) is is_known


def test_what_force_unlock_tells_of_the_state(cluster: Path) -> None:
    """Also when nothing was removed, and when the state can not be read."""
    path = _lock(cluster)
    for lock_id, removed in (("L2", False), ("L1", True), ("L1", False)):
        told = commands.force_unlock(cluster, lock_id).to_dict()
        assert told.keys() == {"ok", "config_dir", "diagnostics", "state_observations", "lock_removed"}
        assert (told["ok"], told["lock_removed"]) == (removed, removed)
        seen = told["state_observations"]
        assert (seen["state_found"], seen["state_revision"], seen["resource_count"]) == (True, 2, 8)
        assert seen["locked"] is path.exists()
    _lock(cluster)
    (cluster / "__cluster" / "state.json").write_text("{")
    outcome = commands.force_unlock(cluster, "L1")
    assert (codes(outcome), outcome.data["lock_removed"], path.exists()) == ([], True, False)
    assert not outcome.data["state_observations"]["state_found"]


@pytest.mark.parametrize("what", ["folder", "dangling link"])
def test_something_at_the_place_of_the_lock(cluster: Path, what: str) -> None:
    path = cluster / "__cluster" / "lock.json"
    path.mkdir() if what == "folder" else path.symlink_to(cluster / "nowhere")
    outcome = commands.apply(cluster, "op")
    assert codes(outcome) == ["state_lock_error"]
    assert "remove it by hand" in outcome.findings.listed[-1].message
    assert path.is_symlink() or path.is_dir()


def test_a_lock_that_is_given_back_meanwhile_is_taken(cluster: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody ends between the try and the look at who has the lock: that is no reason to fail."""
    path = _lock(cluster)
    whole = lock.read_lock

    def ends(place: Place) -> lock.Lock | lock.Unreadable | None:
        path.unlink()
        monkeypatch.setattr(lock, "read_lock", whole)
        return whole(place)

    monkeypatch.setattr(lock, "read_lock", ends)
    assert applied(cluster)["converged"]


def test_working_without_a_lock(cluster: Path) -> None:
    _lock(cluster)
    replace_in(cluster / "cluster.yaml", "metadata: { name: test }", "state: { lock: false }")
    outcome = commands.apply(cluster, "op")
    assert outcome.ok
    assert "state_lock_disabled" in codes(outcome, "warning")


def _changed(text: bytes, change: dict[str, Any]) -> bytes:
    """A state with other fields."""
    return json.dumps(json.loads(text) | change).encode()


# --- states that are damaged ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("damage", "code"),
    [
        (lambda text: text[: len(text) // 2], "invalid_state_json"),
        (lambda text: b"", "invalid_state_json"),
        (lambda text: b"[]", "invalid_state_json"),
        (lambda text: text.replace(b'"version": 1', b'"version": 7'), "unsupported_state_version"),
        (lambda text: text.replace(b'"observations"', b'"obs"'), "invalid_state_json"),
        (lambda text: text.replace(b'"digest"', b'"dgst"', 1), "invalid_state_json"),
        (lambda text: text.replace(b'"status": "applied"', b'"status": "fine"', 1), "invalid_state_json"),
        (lambda text: text.replace(b'"version": 1', b'"version": true'), "unsupported_state_version"),
        (lambda text: text.replace(b'"version": 1', b'"version": 1.0'), "unsupported_state_version"),
        *[
            (lambda text, change=change: _changed(text, change), "invalid_state_json")
            for change in (
                {"state_revision": 2**64 - 1},
                {"observations": {"graph.team": 5}},
                {"resource_statuses": {"graph.team": {"status": "applied", "message": 5}}},
                {"resource_statuses": {"graph.team": {"status": "applied", "conditions": "x"}}},
                {"applied_revision": {"config_digest": 5, "resources": {}}},
                *[
                    {"applied_revision": {"resources": {address: {"digest": "0" * 64} | more}}}
                    for address, more in (
                        ("graph.../../elsewhere", {}),
                        ("graph.", {}),
                        ("query.team", {}),
                        ("query.team.../x", {}),
                        ("policy.a/b", {}),
                        ("provider.x", {}),
                        ("query.team.people", {"digest": "../../secret"}),
                        ("graph.team", {"embedding_provider": ["e"]}),
                        ("graph.team", {"embedding_profile": "e"}),
                        ("graph.team", {"embedding_profile": {"kind": 1}}),
                        ("graph.team", {"external_blob_policy": {"deny": []}}),
                        ("graph.team", {"external_blob_policy": {"allow": [{"base": "s3://b/"}]}}),
                        ("policy.base", {"applies_to": [1]}),
                    )
                ],
            )
        ],
    ],
)
def test_a_damaged_state_is_left_as_it_is(cluster: Path, damage: Any, code: str) -> None:
    path = cluster / "__cluster" / "state.json"
    damaged = damage(path.read_bytes())
    path.write_bytes(damaged)
    (cluster / "team.pg").write_text(WIDER)
    for outcome in (
        commands.plan(cluster),
        commands.apply(cluster, "op"),
        commands.refresh(cluster),
        commands.import_(cluster),
        commands.status(cluster),
        commands.approve(cluster, "graph.team", "me"),
    ):
        assert codes(outcome) == [code]
    assert path.read_bytes() == damaged
    assert not (cluster / "__cluster" / "lock.json").exists()
    with og.open(cluster / "graphs" / "team.omni", "ro") as graph:
        assert graph.schema() == SCHEMA


def test_a_state_that_somebody_else_writes_meanwhile(cluster: Path) -> None:
    path = cluster / "__cluster" / "state.json"
    (cluster / "team.pg").write_text(WIDER)

    def overtake() -> None:
        path.write_bytes(path.read_bytes().replace(b'"state_revision": 2', b'"state_revision": 5'))

    with failpoints.armed("cluster.before_state", overtake):
        outcome = commands.apply(cluster, "op")
    assert codes(outcome) == ["state_cas_mismatch"]
    assert state_of(cluster)["state_revision"] == 5
    # The schema was changed; its record tells the next apply.
    outcome = commands.apply(cluster, "op")
    assert "cluster_recovery_rolled_forward" in codes(outcome, "warning")
    assert outcome.data["converged"]


def test_storage_that_can_not_be_written(cluster: Path) -> None:
    replace_in(cluster / "cluster.yaml", "metadata: { name: test }", "storage: team.pg/inside")
    for outcome in (commands.plan(cluster), commands.apply(cluster, "op"), commands.import_(cluster)):
        assert codes(outcome) == ["state_lock_error"]
    assert (cluster / "team.pg").read_text() == SCHEMA


def test_a_record_that_can_not_be_read_stops_graph_moves(cluster: Path) -> None:
    path = cluster / "__cluster" / "recoveries" / "01ARZ3NDEKTSV4RRFFQ69G5FAV.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text("{")
    (cluster / "team.pg").write_text(WIDER)
    assert "recovery_sidecar_read_error" in codes(commands.status(cluster), "warning")
    outcome = commands.apply(cluster, "op")
    assert "recovery_sidecar_read_error" in codes(outcome, "warning")
    assert dispositions(outcome)["schema.team"] == ("update", "blocked")
    assert path.exists()
    path.unlink()
    assert applied(cluster)["converged"]


def test_files_of_other_programs_are_no_records(cluster: Path) -> None:
    for folder in ("recoveries", "approvals"):
        (cluster / "__cluster" / folder).mkdir(exist_ok=True)
        (cluster / "__cluster" / folder / ".DS_Store").write_bytes(b"\0")
    (cluster / "team.pg").write_text(WIDER)
    assert applied(cluster)["converged"]
    assert sorted(read_applied(str(cluster)).graphs) == ["tasks", "team"]


def test_a_record_about_something_outside_of_the_cluster_is_not_followed(cluster: Path) -> None:
    """A record that was not written by a command must not make the next one delete what is no graph."""
    outside = cluster.parent / "kept.omni"
    (outside / "nodes").mkdir(parents=True)
    record = {"version": 1, "recovery_id": "01ARZ3NDEKTSV4RRFFQ69G5FAV", "operation": "graph_delete", "created_at": "x"}
    path = cluster / "__cluster" / "recoveries" / f"{record['recovery_id']}.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(record | {"graph_id": "../../kept"}))
    outcome = commands.apply(cluster, "op")
    assert "recovery_sidecar_read_error" in codes(outcome, "warning")
    assert outside.exists()
    assert path.exists()


def test_an_armed_failpoint_is_told(cluster: Path) -> None:
    (cluster / "team.pg").write_text(WIDER)
    with failpoints.armed("cluster.schema_applied"):
        outcome = commands.apply(cluster, "op")
    assert codes(outcome) == ["injected_failpoint"]
    outcome = commands.apply(cluster, "op")
    assert "cluster_recovery_rolled_forward" in codes(outcome, "warning")
    assert outcome.data["converged"]
