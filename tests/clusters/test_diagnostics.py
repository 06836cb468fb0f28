"""All 92 diagnostics of a cluster: each has a row that leads to it, the severity of the contract, an exit code and one line."""

from __future__ import annotations

import ast
import json
import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph import failpoints
from omnigraph.cluster import apply as applying
from omnigraph.cluster import commands, sources
from omnigraph.cluster.commands import Outcome
from omnigraph.cluster.plan import Change, Gates
from omnigraph.cluster.sources import Folder
from omnigraph.storage.faults import error_before
from tests.cli.calling import call, spawn
from tests.clusters import test_applied, test_config, test_faults
from tests.clusters.declaring import SCHEMA, WIDER, codes, declare, replace_in, started, without_graph
from tests.clusters.test_faults import LOCK, STATE, failing

ERRORS = [
    "apply_approval_invariant_violation",
    "approval_not_required",
    "approval_write_error",
    "catalog_payload_digest_mismatch",
    "catalog_payload_read_error",
    "cluster_config_read_error",
    "cluster_empty",
    "cluster_no_healthy_graphs",
    "cluster_recovery_unattributed",
    "cluster_state_missing",
    "config_dir_not_found",
    "conflicting_graph_manifest_observation",
    "dangling_embedding_provider_reference",
    "dangling_graph_reference",
    "duplicate_policy_binding",
    "duplicate_query_name",
    "duplicate_yaml_key",
    "embedding_api_key_inline",
    "embedding_api_key_required",
    "embedding_provider_digest_mismatch",
    "embedding_provider_missing",
    "embedding_provider_profile_missing",
    "empty_metadata_name",
    "external_blob_policy_digest_mismatch",
    "future_phase_field",
    "graph_create_failed",
    "graph_create_incomplete",
    "graph_delete_export_in_progress",
    "graph_delete_failed",
    "graph_not_applied",
    "graph_observation_error",
    "injected_failpoint",
    "invalid_cluster_yaml",
    "invalid_embedding_provider",
    "invalid_external_blob_base",
    "invalid_external_blob_policy",
    "invalid_resource_id",
    "invalid_state_json",
    "invalid_storage_root",
    "policy_bindings_missing",
    "policy_file_missing",
    "policy_invalid",
    "policy_missing_applies_to",
    "policy_mixed_binding_kinds",
    "query_dir_unreadable",
    "query_file_missing",
    "query_key_mismatch",
    "query_parse_error",
    "query_typecheck_error",
    "recovery_sidecar_write_error",
    "removed_streaming_declaration",
    "resource_content_changed",
    "resource_payload_write_error",
    "schema_apply_failed",
    "schema_catalog_error",
    "schema_file_missing",
    "schema_parse_error",
    "state_already_exists",
    "state_cas_mismatch",
    "state_lock_error",
    "state_lock_held",
    "state_lock_id_mismatch",
    "state_lock_missing",
    "state_read_error",
    "state_write_error",
    "storage_root_invalid",
    "unsupported_cluster_config_version",
    "unsupported_state_backend",
    "unsupported_state_version",
    "wrong_kind_reference",
]
WARNINGS = [
    "apply_dependency_blocked",
    "apply_unsupported_change",
    "approval_stale",
    "catalog_payload_mismatch",
    "cluster_recovery_pending",
    "cluster_recovery_rolled_forward",
    "external_blob_ingress_default_deny",
    "graph_create_skipped",
    "graph_delete_incomplete",
    "graph_delete_skipped",
    "query_dir_empty",
    "query_typecheck_skipped",
    "recovery_sidecar_cleanup_failed",
    "recovery_sidecar_read_error",
    "schema_apply_skipped",
    "schema_preview_unavailable",
    "state_lock_disabled",
]
EITHER = [
    "catalog_payload_missing",
    "invalid_state_lock",
    "state_lock_read_error",
    "state_missing",
    "unsupported_state_lock_version",
]
#: Diagnostics that readers of the applied revision have, where a graph is at fault: for them they are errors.
OF_READERS = {"cluster_recovery_pending"}

Capsys = pytest.CaptureFixture[str]
Monkey = pytest.MonkeyPatch


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return started(declare(tmp_path_factory.mktemp("diagnostics") / "c"))


@pytest.fixture
def cluster(template: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(template, tmp_path / "c"))


def everything(folder: Path) -> dict[str, bytes]:
    """All files below a folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


# --- declarations -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("file", "old", "new", "code", "part"),
    test_config.BROKEN,
    ids=[f"{row[3]}-{row[2][:24]}" for row in test_config.BROKEN],
)
def test_a_wrong_declaration_on_the_command_line(
    cluster: Path, capsys: Capsys, file: str, old: str, new: str, code: str, part: str
) -> None:
    """A cluster that is applied already stays as it is, byte for byte."""
    if old:
        replace_in(cluster / file, old, new)
    else:
        (cluster / file).write_text(new)
    before = everything(cluster)
    heads = {"validate": "cluster config invalid", "plan": "cluster plan failed", "apply": "cluster apply failed"}
    for command, head in heads.items():
        told = call(capsys, "cluster", command, "--config", str(cluster))
        assert (told.code, told.out) == (1, head + "\n")
        lines = [line for line in told.err.splitlines() if line.startswith(f"ERROR {code} ")]
        assert lines, told.err
        assert any(part in line for line in lines)
        shown = call(capsys, "cluster", command, "--config", str(cluster), "--json")
        listed = json.loads(shown.out)
        assert (shown.code, listed["ok"]) == (1, False)
        assert all(found.keys() == {"severity", "code", "path", "message"} for found in listed["diagnostics"])
    assert everything(cluster) == before


# --- what commands find -----------------------------------------------------------------------------------------------

Scene = Callable[[Path, Monkey], Outcome]


def _pending(folder: Path, operation: str, **about: Any) -> None:
    path = folder / "__cluster" / "recoveries" / "01ARZ3NDEKTSV4RRFFQ69G5FAV.json"
    path.parent.mkdir(exist_ok=True)
    told = {"version": 1, "recovery_id": path.stem, "operation": operation, "graph_id": "team", "created_at": "x"}
    path.write_text(json.dumps(told | about))


def _lock(folder: Path, text: str) -> None:
    (folder / "__cluster" / "lock.json").write_text(text)


def _edit(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    path = folder / "__cluster" / "state.json"
    told = json.loads(path.read_text())
    change(told)
    path.write_text(json.dumps(told))


def _invariant(folder: Path, monkeypatch: Monkey) -> Outcome:
    """No caller reaches it; the check stands for the day on which somebody changes the order of the steps."""
    without_graph(folder, "tasks")

    def open_gates(changes: list[Change], gates: Gates) -> list[Change]:
        return changes

    monkeypatch.setattr(applying, "blocked_by_gates", open_gates)
    return commands.apply(folder, "op")


def _older(folder: Path, monkeypatch: Monkey) -> Outcome:
    with og.open(folder / "graphs" / "team.omni") as graph:
        graph.load(b'{"type":"Person","data":{"name":"ada"}}\n')
    assert commands.refresh(folder).ok
    shutil.rmtree(folder / "graphs" / "team.omni")
    og.init(folder / "graphs" / "team.omni", SCHEMA).close()
    return commands.refresh(folder)


def _edited_meanwhile(folder: Path, monkeypatch: Monkey) -> Outcome:
    """Somebody saves a file while the declaration is read."""
    whole = Folder.read

    def read_and_edit(self: Folder, name: str) -> bytes | None:
        content = whole(self, name)
        if name == "listing.policy.yaml":
            (self.path / "team.pg").write_text(WIDER)
        return content

    monkeypatch.setattr(sources.Folder, "read", read_and_edit)
    return commands.apply(folder, "op")


def _newer_kind(folder: Path, monkeypatch: Monkey) -> Outcome:
    _edit(folder, lambda told: told["applied_revision"]["resources"].update({"pipeline.daily": {"digest": "d"}}))
    return commands.apply(folder, "op")


def _backup_running(folder: Path, monkeypatch: Monkey) -> Outcome:
    without_graph(folder, "tasks")
    assert commands.approve(folder, "graph.tasks", "me").ok
    environment = os.environ | {"OMNIGRAPH_FAILPOINTS": "staging.job_written=kill"}
    killed = spawn("backup", str(folder / "graphs" / "tasks.omni"), str(folder.parent / "copy"), env=environment)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    return commands.apply(folder, "op")


def _half_a_graph(folder: Path, monkeypatch: Monkey) -> Outcome:
    replace_in(folder / "cluster.yaml", "  tasks:\n", "  notes:\n    schema: tasks.pg\n  tasks:\n")
    (folder / "graphs" / "notes.omni" / "nodes").mkdir(parents=True)
    (folder / "graphs" / "notes.omni" / "nodes" / "x").write_text("no graph")
    return commands.apply(folder, "op")


def _unknown_graph(folder: Path, monkeypatch: Monkey) -> Outcome:
    replace_in(folder / "cluster.yaml", "  tasks:\n", "  notes:\n    schema: tasks.pg\n  tasks:\n")
    og.init(folder / "graphs" / "notes.omni", SCHEMA).close()
    return commands.apply(folder, "op")


def _skipped_create(folder: Path, monkeypatch: Monkey) -> Outcome:
    replace_in(folder / "cluster.yaml", "  tasks:\n", "  zeta:\n    schema: tasks.pg\n  tasks:\n")
    return _half_a_graph(folder, monkeypatch)


def _wrong_type(folder: Path, monkeypatch: Monkey) -> Outcome:
    with og.open(folder / "graphs" / "team.omni") as graph:
        graph.load(b'{"type":"Person","data":{"name":"ada","age":1}}\n')
    (folder / "team.pg").write_text(SCHEMA.replace("age: I32?", "age: String?"))
    return commands.apply(folder, "op")


def _faulty(command: Callable[[Path], Outcome], operation: str, path: str) -> Scene:
    def scene(folder: Path, monkeypatch: Monkey) -> Outcome:
        with failing(monkeypatch, error_before(operation, path)):
            return command(folder)

    return scene


def _stale(folder: Path, monkeypatch: Monkey) -> Outcome:
    without_graph(folder, "tasks")
    assert commands.approve(folder, "graph.tasks", "me").ok
    replace_in(folder / "cluster.yaml", "name: test", "name: other")
    return commands.plan(folder)


def _payload(folder: Path, change: Callable[[Path], object]) -> Outcome:
    change(next((folder / "__cluster" / "resources" / "query").rglob("*.gq")))
    return commands.refresh(folder)


def _after(change: Callable[[Path], object], command: Callable[[Path], Outcome]) -> Scene:
    def scene(folder: Path, monkeypatch: Monkey) -> Outcome:
        change(folder)
        return command(folder)

    return scene


def _apply(folder: Path) -> Outcome:
    return commands.apply(folder, "op")


def _failpoint(folder: Path, monkeypatch: Monkey) -> Outcome:
    (folder / "team.pg").write_text(WIDER)
    with failpoints.armed("cluster.schema_applied"):
        return _apply(folder)


def _rolled_forward(folder: Path, monkeypatch: Monkey) -> Outcome:
    assert codes(_failpoint(folder, monkeypatch)) == ["injected_failpoint"]
    return _apply(folder)


def _overtaken(folder: Path, monkeypatch: Monkey) -> Outcome:
    (folder / "team.pg").write_text(WIDER)
    with failpoints.armed("cluster.before_state", lambda: _edit(folder, lambda told: told.update(state_revision=9))):
        return _apply(folder)


def _observed_gone(folder: Path) -> None:
    shutil.rmtree(folder / "graphs" / "team.omni" / "__manifest")


def _preview_gone(folder: Path) -> None:
    (folder / "team.pg").write_text(WIDER)
    shutil.rmtree(folder / "graphs" / "team.omni")


def _schema_broken(folder: Path) -> None:
    replace_in(folder / "team.pg", "Person {", "Person ")


def _text(path: str, text: str) -> Callable[[Path], object]:
    return lambda folder: (folder / path).write_text(text)


FOREIGN = '{"version":1,"lock_id":"L1","operation":"apply","created_at":"2026-01-01T00:00:00Z","pid":1}'
NEWER = FOREIGN.replace('"version":1', '"version":9')

#: The code, whether it is an error, and what leads to it. The rows for which a command may leave traces end with True.
SCENES: list[tuple[str, str, Scene, bool]] = [
    ("apply_approval_invariant_violation", "error", _invariant, True),
    ("approval_not_required", "error", _after(lambda f: None, lambda f: commands.approve(f, "graph.team", "me")), False),
    ("conflicting_graph_manifest_observation", "error", _older, True),
    ("graph_delete_export_in_progress", "error", _backup_running, True),
    ("graph_create_failed", "error", _unknown_graph, True),
    ("graph_create_incomplete", "error", _half_a_graph, True),
    ("graph_observation_error", "error", _after(_observed_gone, commands.refresh), True),
    ("injected_failpoint", "error", _failpoint, True),
    ("invalid_state_json", "error", _after(_text("__cluster/state.json", '{"version": 1'), _apply), False),
    ("unsupported_state_version", "error", _after(_text("__cluster/state.json", '{"version": 2}'), _apply), False),
    ("resource_content_changed", "error", _edited_meanwhile, True),
    ("schema_apply_failed", "error", _wrong_type, True),
    ("state_already_exists", "error", _after(lambda f: None, commands.import_), False),
    ("state_cas_mismatch", "error", _overtaken, True),
    ("state_lock_held", "error", _after(lambda f: _lock(f, FOREIGN), _apply), False),
    ("state_lock_id_mismatch", "error", _after(lambda f: _lock(f, FOREIGN), lambda f: commands.force_unlock(f, "x")), False),
    ("state_lock_missing", "error", _after(lambda f: None, lambda f: commands.force_unlock(f, "x")), False),
    ("state_lock_read_error", "error", _faulty(lambda f: commands.force_unlock(f, "x"), "get", LOCK), False),
    ("state_lock_read_error", "warning", _faulty(commands.status, "get", LOCK), False),
    ("state_read_error", "error", _faulty(commands.plan, "get", STATE), False),
    ("invalid_state_lock", "error", _after(lambda f: _lock(f, "{"), _apply), False),
    ("invalid_state_lock", "warning", _after(lambda f: _lock(f, "{"), commands.status), False),
    ("unsupported_state_lock_version", "error", _after(lambda f: _lock(f, NEWER), _apply), False),
    ("unsupported_state_lock_version", "warning", _after(lambda f: _lock(f, NEWER), commands.status), False),
    ("state_missing", "error", _after(lambda f: (f / "__cluster/state.json").unlink(), _apply), False),
    ("state_missing", "warning", _after(lambda f: (f / "__cluster/state.json").unlink(), commands.plan), False),
    ("catalog_payload_read_error", "error", _faulty(commands.refresh, "get", "__cluster/resources/query/*"), True),
    ("catalog_payload_missing", "warning", lambda f, _: _payload(f, lambda path: path.unlink()), True),
    ("catalog_payload_mismatch", "warning", lambda f, _: _payload(f, lambda path: path.write_text("x")), True),
    ("apply_dependency_blocked", "warning", _wrong_type, True),
    ("apply_unsupported_change", "warning", _newer_kind, True),
    ("approval_stale", "warning", _stale, True),
    ("cluster_recovery_pending", "warning", _after(lambda f: _pending(f, "schema_apply"), commands.plan), False),
    ("cluster_recovery_rolled_forward", "warning", _rolled_forward, True),
    ("external_blob_ingress_default_deny", "warning", _after(lambda f: None, commands.validate), False),
    ("graph_create_skipped", "warning", _skipped_create, True),
    ("query_dir_empty", "warning", _after(lambda f: (f / "queries" / "people.gq").unlink(), commands.plan), False),
    (
        "recovery_sidecar_read_error",
        "warning",
        _after(lambda f: (_pending(f, "schema_apply", more=1)), commands.status),
        False,
    ),
    (
        "state_lock_disabled",
        "warning",
        _after(lambda f: replace_in(f / "cluster.yaml", "metadata: { name: test }", "state: { lock: false }"), commands.plan),
        False,
    ),
    ("schema_preview_unavailable", "warning", _after(_preview_gone, commands.plan), False),
    ("query_typecheck_skipped", "warning", _after(_schema_broken, commands.plan), False),
    ("config_dir_not_found", "error", _after(shutil.rmtree, commands.plan), False),
    ("cluster_config_read_error", "error", _after(lambda f: (f / "cluster.yaml").unlink(), commands.plan), False),
]  # fmt: skip


@pytest.mark.parametrize(
    ("code", "severity", "scene", "may_write"), SCENES, ids=[f"{row[0]}-{row[1]}" for row in SCENES]
)
def test_what_a_command_finds(
    cluster: Path, monkeypatch: Monkey, code: str, severity: str, scene: Scene, may_write: bool
) -> None:
    before: dict[str, bytes] = {}
    real = commands.Outcome

    def begun(*given: Any) -> Outcome:
        # What a scene prepares is there by now; what its last command changes is not.
        before.clear()
        before.update(everything(cluster))
        return real(*given)

    monkeypatch.setattr(commands, "Outcome", begun)
    outcome = scene(cluster, monkeypatch)
    assert code in codes(outcome, severity), outcome.findings.listed
    assert severity != "error" or not outcome.ok
    for found in outcome.findings.listed:
        assert "\n" not in found.line
        assert found.line.startswith(("ERROR " if found.severity == "error" else "WARN  ") + found.code + " ")
    if not may_write:
        assert everything(cluster) == before
    assert code == "state_lock_held" or "lock" in code or not (cluster / "__cluster" / "lock.json").exists()


def test_a_graph_that_was_put_back_is_accepted_by_the_next_refresh(cluster: Path, monkeypatch: Monkey) -> None:
    refused = _older(cluster, monkeypatch)
    assert codes(refused) == ["conflicting_graph_manifest_observation"]
    assert refused.data["resource_statuses"]["graph.team"]["status"] == "error"
    assert commands.refresh(cluster).ok
    assert commands.apply(cluster, "op").data["converged"]


def test_a_resource_of_a_newer_version_is_left_alone(cluster: Path, monkeypatch: Monkey) -> None:
    outcome = _newer_kind(cluster, monkeypatch)
    assert (outcome.ok, outcome.data["converged"], outcome.data["deferred_count"]) == (True, False, 1)
    (change,) = outcome.data["changes"]
    assert (change["resource"], change["disposition"], change["reason"]) == (
        "pipeline.daily",
        "deferred",
        "unsupported_kind",
    )
    assert "pipeline.daily" in commands.status(cluster).data["resource_digests"]


# --- the list as a whole ----------------------------------------------------------------------------------------------


def test_every_code_has_a_row() -> None:
    """Rows of other tables count: each of them is a test that a command, a fault or a reader leads to this code."""
    told = {row[3] for row in test_config.BROKEN} | {row[0] for row in SCENES}
    told |= {row[2] for row in test_applied.FATAL} | {row[2] for row in test_applied.FAULTS}
    for _, _, errors, warnings in test_faults.CASES:
        told |= {*errors, *warnings}
    # Tests by name, for what is no row of a table.
    told |= {
        "approval_write_error",  # test_faults_of_other_commands
        "embedding_provider_digest_mismatch",  # test_embedding_providers
        "embedding_provider_missing",
        "embedding_provider_profile_missing",
        "storage_root_invalid",  # test_a_place_that_can_be_none
        "graph_not_applied",  # test_a_graph_that_is_not_applied
        "cluster_no_healthy_graphs",  # tests/server/test_cluster.py, a_query_that_no_longer_fits
    }
    known = {*ERRORS, *WARNINGS, *EITHER}
    assert len(known) == 92
    assert known - told == set()
    assert told - known == set()


def test_no_other_code_and_no_other_severity() -> None:
    """The codes in the sources are those of the contract, told as errors or as warnings as it says."""
    found: set[tuple[str, str]] = set()
    for path in Path(commands.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr in ("error", "warn")
            ):
                first = node.args[0] if node.args else None
                if isinstance(first, ast.Constant):
                    found.add((node.func.attr, str(first.value)))
    assert len(found) > 60
    wrong = [
        (severity, code)
        for severity, code in found
        if code not in EITHER and code not in (ERRORS if severity == "error" else WARNINGS)
    ]
    assert not [pair for pair in wrong if pair[1] not in OF_READERS]
