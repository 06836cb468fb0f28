"""The whole life of a cluster, on a local folder and on S3: declared, applied, changed, damaged, killed, mended, removed."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.cluster import commands
from omnigraph.cluster.applied import read_applied
from omnigraph.cluster.config import read_config
from omnigraph.cluster.diagnostics import Findings
from omnigraph.cluster.layout import Place, place_at
from omnigraph.cluster.sources import Folder
from omnigraph.errors import Denied
from omnigraph.server.settings import Settings
from omnigraph.server.state import open_state
from tests import warm
from tests.cli.calling import call
from tests.clusters.declaring import WIDER, codes, declare, without_graph
from tests.s3 import S3Server

Capsys = pytest.CaptureFixture[str]


@pytest.fixture(params=["local", "s3"])
def folder(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The declaration; its storage is the folder itself, or a prefix of a bucket."""
    if request.param == "local":
        return declare(tmp_path / "c")
    server: S3Server = request.getfixturevalue("s3_server")
    for name, value in {
        "ACCESS_KEY_ID": "test",
        "SECRET_ACCESS_KEY": "test",
        "REGION": "us-east-1",
        "ENDPOINT": server.endpoint,
    }.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    return declare(tmp_path / "c", f"s3://{server.new_bucket()}/clusters/one")


def place_of(folder: Path) -> Place:
    return place_at(read_config(Folder(folder), Findings()).root)


def done(capsys: Capsys, folder: Path, *arguments: str) -> dict[str, Any]:
    """Run a cluster command that succeeds; its JSON."""
    outcome = call(capsys, "cluster", *arguments, "--config", str(folder), "--json")
    assert outcome.code == 0, outcome.out + outcome.err
    told: dict[str, Any] = json.loads(outcome.out)
    assert told["ok"]
    return told


def test_a_whole_life(folder: Path, capsys: Capsys) -> None:
    place = place_of(folder)
    assert len(done(capsys, folder, "validate")["resources"]) == 8
    assert done(capsys, folder, "import")["state_observations"]["state_revision"] == 1
    assert len(done(capsys, folder, "plan")["changes"]) == 8
    assert done(capsys, folder, "apply", "--as", "op")["converged"]
    assert not done(capsys, folder, "apply", "--as", "op")["state_written"]
    _serve(place)
    _change_schema(capsys, folder)
    _kill(capsys, folder)
    _remove_graph(capsys, folder, place)
    _mend_drift(capsys, folder, place)
    assert done(capsys, folder, "status")["state_observations"]["locked"] is False


def _serve(place: Place) -> None:
    """A writer may, a reader may not; the server finds the cluster by its storage alone."""
    state = open_state(Settings(cluster=place.root.uri, rights="default-deny", one_time_token="t"))
    try:
        graph = state.graphs.find("team").graph
        graph.load(b'{"type":"Person","data":{"name":"ada"}}\n', actor="bob")
        with pytest.raises(Denied):
            graph.load(b'{"type":"Person","data":{"name":"eve"}}\n', actor="ann")
        stored = state.graphs.find("team").stored["people"]
        assert len(graph.query(stored.source, "people")) == 1
    finally:
        state.close()


def _change_schema(capsys: Capsys, folder: Path) -> None:
    (folder / "team.pg").write_text(WIDER)
    planned = {change["resource"]: change for change in done(capsys, folder, "plan")["changes"]}
    assert planned["schema.team"]["migration"]["supported"]
    assert done(capsys, folder, "apply", "--as", "op")["converged"]


def _kill(capsys: Capsys, folder: Path) -> None:
    """An apply dies after its schema change; the next one, once it has the lock, comes to the end."""
    (folder / "team.pg").write_text(WIDER.replace("email: String?", "email: String?  phone: String?"))
    environment = os.environ | {"OMNIGRAPH_FAILPOINTS": "cluster.schema_applied=kill"}
    command = [sys.executable, "-m", "omnigraph", "cluster", "apply", "--config", str(folder), "--as", "op"]
    dead = warm.run(command, env=environment, capture_output=True, text=True, check=False)
    assert dead.returncode == -signal.SIGKILL, dead.stderr
    held = call(capsys, "cluster", "apply", "--config", str(folder))
    assert held.code == 1
    lock_id = held.err.partition("force-unlock ")[2].partition("`")[0]
    assert done(capsys, folder, "force-unlock", lock_id)["lock_removed"]
    told = done(capsys, folder, "apply", "--as", "op")
    assert "cluster_recovery_rolled_forward" in [found["code"] for found in told["diagnostics"]]
    assert told["converged"]


def _remove_graph(capsys: Capsys, folder: Path, place: Place) -> None:
    without_graph(folder, "tasks")
    blocked = done(capsys, folder, "apply", "--as", "op")
    assert (blocked["converged"], blocked["deferred_count"]) == (False, 2)
    done(capsys, folder, "approve", "graph.tasks", "--as", "boss")
    assert done(capsys, folder, "apply", "--as", "op")["converged"]
    assert not place.store.exists("graphs/tasks.omni")
    assert sorted(read_applied(place.root.uri).graphs) == ["team"]


def _mend_drift(capsys: Capsys, folder: Path, place: Place) -> None:
    with og.open(place.graph_root("team").uri) as graph:
        graph.apply_schema(WIDER)
    place.store.delete_prefix("__cluster/resources/query")
    refreshed = done(capsys, folder, "refresh")
    drifted = {name for name, about in refreshed["resource_statuses"].items() if about["status"] == "drifted"}
    assert drifted == {"graph.team", "schema.team", "query.team.add_person", "query.team.people"}
    assert done(capsys, folder, "apply", "--as", "op")["converged"]
    with og.open(place.graph_root("team").uri, "ro") as graph:
        assert "phone" in graph.schema()
        assert len(graph.query("query q() { match { $p: Person } return { $p.name } }")) == 1
    assert codes(commands.refresh(folder)) == []


def test_a_graph_that_is_declared_again_after_its_deletion(tmp_path: Path, capsys: Capsys) -> None:
    folder = declare(tmp_path / "c")
    text = (folder / "cluster.yaml").read_text()
    done(capsys, folder, "import")
    done(capsys, folder, "apply")
    without_graph(folder, "tasks")
    done(capsys, folder, "approve", "graph.tasks", "--as", "boss")
    assert done(capsys, folder, "apply")["converged"]
    (folder / "cluster.yaml").write_text(text)
    assert done(capsys, folder, "apply")["converged"]
    assert (folder / "graphs" / "tasks.omni").exists()
    seen = done(capsys, folder, "status")["observations"]["graph.tasks"]
    assert seen["exists"] is True
    # The approval was for the graph of before.
    without_graph(folder, "tasks")
    assert done(capsys, folder, "apply")["deferred_count"] == 2
    assert (folder / "graphs" / "tasks.omni").exists()
