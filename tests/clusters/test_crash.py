"""A process that is killed inside apply, at every step: the next apply comes to the same end."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.cluster import commands
from tests import warm
from tests.clusters.declaring import (
    QUERIES,
    SCHEMA,
    SECOND,
    WIDER,
    applied,
    codes,
    declare,
    replace_in,
    started,
    without_graph,
)

#: Every step of an apply, in order.
STEPS = [
    "cluster.locked",
    "cluster.record_written",
    "init.after_tables",
    "cluster.graph_created",
    "schema_apply.post_phase_a",
    "schema_apply.post_phase_c",
    "cluster.schema_applied",
    "cluster.payload_written",
    "cluster.graph_marked",
    "cluster.graph_deleted",
    "cluster.before_state",
    "cluster.state_written",
    "cluster.records_removed",
]


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cluster whose next apply creates a graph, changes a schema, stores queries and deletes a graph."""
    folder = started(declare(tmp_path_factory.mktemp("crash") / "c"))
    with og.open(folder / "graphs" / "team.omni") as graph:
        graph.load(b'{"type":"Person","data":{"name":"ada"}}\n')
    without_graph(folder, "tasks")
    replace_in(folder / "cluster.yaml", "graphs:\n", "graphs:\n  notes:\n    schema: tasks.pg\n")
    (folder / "team.pg").write_text(WIDER)
    (folder / "queries" / "people.gq").write_text(QUERIES.replace("$p.name }", "$p.name, $p.email }"))
    assert commands.approve(folder, "graph.tasks", "me").ok
    return folder


def killed(folder: Path, failpoint: str) -> None:
    """Run an apply that dies at a failpoint."""
    environment = os.environ | {"OMNIGRAPH_FAILPOINTS": f"{failpoint}=kill"}
    command = [sys.executable, "-m", "omnigraph", "cluster", "apply", "--config", str(folder), "--as", "op"]
    done = warm.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL, (done.returncode, done.stdout, done.stderr)


def unlock(folder: Path) -> None:
    """Do what the message of the held lock says."""
    outcome = commands.apply(folder, "op")
    assert codes(outcome) == ["state_lock_held"]
    lock_id = json.loads((folder / "__cluster" / "lock.json").read_text())["lock_id"]
    assert lock_id in outcome.findings.listed[-1].message
    assert commands.force_unlock(folder, lock_id).ok


def assert_converged(folder: Path) -> dict[str, Any]:
    """The cluster is what is declared, and nothing of a dead command is left."""
    again = applied(folder)
    assert again["converged"]
    assert not again["state_written"]
    state: dict[str, Any] = json.loads((folder / "__cluster" / "state.json").read_text())
    assert state["applied_revision"]["resources"] == {
        address: {"digest": digest} | ({"applies_to": scopes} if (scopes := _scopes(address)) else {})
        for address, digest in commands.validate(folder).data["resource_digests"].items()
    }
    assert {status["status"] for status in state["resource_statuses"].values()} == {"applied"}
    assert not list((folder / "__cluster" / "recoveries").glob("*"))
    assert not (folder / "__cluster" / "lock.json").exists()
    assert sorted(path.name for path in (folder / "graphs").iterdir()) == ["notes.omni", "team.omni"]
    with og.open(folder / "graphs" / "team.omni") as graph:
        assert graph.schema() == WIDER
        assert len(graph.query("query q() { match { $p: Person } return { $p.name } }")) == 1
        assert [commit.kind for commit in graph.commits()].count("schema") == 1
    with og.open(folder / "graphs" / "notes.omni") as graph:
        assert graph.schema() == SECOND
    approvals = [json.loads(path.read_text()) for path in (folder / "__cluster" / "approvals").iterdir()]
    assert [approval["consumed_at"] is not None for approval in approvals] == [True]
    assert state["observations"]["graph.tasks"]["tombstone"]
    refreshed = commands.refresh(folder)
    assert refreshed.ok
    assert {status["status"] for status in refreshed.data["resource_statuses"].values()} == {"applied"}
    return state


def _scopes(address: str) -> list[str]:
    return {"policy.base": ["graph.team"], "policy.listing": ["cluster"]}.get(address, [])


@pytest.mark.parametrize("step", STEPS)
def test_killed_inside_apply(template: Path, tmp_path: Path, step: str) -> None:
    folder = Path(shutil.copytree(template, tmp_path / "c"))
    killed(folder, step)
    seen = commands.status(folder)
    assert seen.ok
    unlock(folder)
    assert applied(folder)["converged"]
    assert_converged(folder)


@pytest.mark.parametrize("step", ["cluster.graph_created", "cluster.schema_applied", "cluster.graph_deleted"])
def test_killed_again_while_recovering(template: Path, tmp_path: Path, step: str) -> None:
    folder = Path(shutil.copytree(template, tmp_path / "c"))
    killed(folder, step)
    unlock(folder)
    killed(folder, "cluster.recovery_settled")
    unlock(folder)
    assert applied(folder)["converged"]
    assert_converged(folder)


def test_a_refresh_settles_what_a_dead_apply_left(template: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(template, tmp_path / "c"))
    killed(folder, "cluster.schema_applied")
    unlock(folder)
    assert "cluster_recovery_pending" in codes(commands.plan(folder), "warning")
    refreshed = commands.refresh(folder)
    assert "cluster_recovery_rolled_forward" in codes(refreshed, "warning")
    assert not list((folder / "__cluster" / "recoveries").glob("*"))
    # The state has moved on since the approval, but not the graph that it is about.
    assert applied(folder)["converged"]
    assert_converged(folder)


def test_a_deletion_that_had_not_begun_is_asked_for_anew(template: Path, tmp_path: Path) -> None:
    """Who declares the graph again after a dead apply keeps it, unless it is half gone."""
    folder = Path(shutil.copytree(template, tmp_path / "c"))
    applied_text = (folder / "cluster.yaml").read_text()
    # The record of the deletion is the third one: after those of a creation and of a schema change.
    record = {"version": 1, "recovery_id": "01ARZ3NDEKTSV4RRFFQ69G5FAV", "operation": "graph_delete", "created_at": "x"}
    (folder / "__cluster" / "recoveries").mkdir(exist_ok=True)
    path = folder / "__cluster" / "recoveries" / "01ARZ3NDEKTSV4RRFFQ69G5FAV.json"
    path.write_text(json.dumps(record | {"graph_id": "tasks"}))
    replace_in(folder / "cluster.yaml", "graphs:\n", "graphs:\n  tasks:\n    schema: tasks.pg\n")
    assert applied(folder)["converged"]
    assert not path.exists()
    with og.open(folder / "graphs" / "tasks.omni", "ro") as graph:
        assert graph.schema() == SECOND
    (folder / "cluster.yaml").write_text(applied_text)
    assert applied(folder)["converged"], "the approval is still bound to this declaration"


def test_a_first_import_and_apply_killed(tmp_path: Path) -> None:
    folder = declare(tmp_path / "c")
    assert commands.import_(folder).ok
    killed(folder, "cluster.graph_created")
    unlock(folder)
    assert applied(folder)["converged"]
    with og.open(folder / "graphs" / "team.omni", "ro") as graph:
        assert graph.schema() == SCHEMA
