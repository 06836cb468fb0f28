"""Two applies of one cluster at once, on a local folder and on S3: nothing is lost, and nothing is done twice."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph import failpoints
from omnigraph.cluster import commands
from omnigraph.cluster.commands import Outcome
from omnigraph.cluster.layout import LOCK, RECOVERIES, STATE, Place
from tests.clusters.declaring import SECOND, WIDER, applied, codes, declare, replace_in, started, without_graph
from tests.clusters.test_life import place_of
from tests.s3 import S3Server

ADA = b'{"type":"Person","data":{"name":"ada"}}\n'


@pytest.fixture
def folder(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cluster whose next apply creates a graph, changes a schema, stores a query and deletes a graph."""
    storage = str(tmp_path / "storage")
    if request.param == "s3":
        server: S3Server = request.getfixturevalue("s3_server")
        for name, value in {
            "ACCESS_KEY_ID": "test",
            "SECRET_ACCESS_KEY": "test",
            "REGION": "us-east-1",
            "ENDPOINT": server.endpoint,
        }.items():
            monkeypatch.setenv(f"AWS_{name}", value)
        storage = f"s3://{server.new_bucket()}/clusters/one"
    made = started(declare(tmp_path / "c", storage))
    with og.open(place_of(made).graph_root("team").uri) as graph:
        graph.load(ADA)
    without_graph(made, "tasks")
    replace_in(made / "cluster.yaml", "graphs:\n", "graphs:\n  notes:\n    schema: tasks.pg\n")
    (made / "team.pg").write_text(WIDER)
    (made / "queries" / "mail.gq").write_text("query mail() { match { $p: Person } return { $p.email } }\n")
    assert commands.approve(made, "graph.tasks", "boss").ok
    return made


def assert_applied_once(folder: Path, revision: int) -> None:
    """The cluster is what is declared, each change was done once, and nothing is left of any command."""
    place = place_of(folder)
    again = applied(folder)
    assert (again["applied_count"], again["converged"], again["state_written"]) == (0, True, False)
    state = _state(place)
    assert state["state_revision"] == revision
    declared = commands.validate(folder).data["resource_digests"]
    assert {name: entry["digest"] for name, entry in state["applied_revision"]["resources"].items()} == declared
    assert {about["status"] for about in state["resource_statuses"].values()} == {"applied"}
    assert state["observations"]["graph.tasks"]["tombstone"]
    assert len(state["approval_records"]) == 1
    assert not place.store.exists(LOCK)
    assert not list(place.store.list(RECOVERIES))
    assert not place.store.exists("graphs/tasks.omni")
    with og.open(place.graph_root("team").uri, "ro") as graph:
        assert graph.schema() == WIDER
        assert [commit.kind for commit in graph.commits()].count("schema") == 1
        assert graph.query("query q() { match { $p: Person } return { $p.name, $p.email } }").rows == [
            {"p.name": "ada", "p.email": None}
        ]
    with og.open(place.graph_root("notes").uri, "ro") as graph:
        assert graph.schema() == SECOND
        assert len(graph.commits()) == 1
    assert commands.refresh(folder).ok


def _state(place: Place) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(place.store.get(STATE))
    return told


def _spawned(folder: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "omnigraph", "cluster", "apply", "--config", str(folder), "--as", "op", "--json"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def _ended(process: subprocess.Popen[str]) -> dict[str, Any]:
    out, err = process.communicate()
    assert process.returncode in (0, 1), err
    told: dict[str, Any] = json.loads(out)
    assert told["ok"] is (process.returncode == 0)
    return told


@pytest.mark.parametrize("folder", ["local", "s3"], indirect=True)
def test_processes_that_apply_the_same(folder: Path) -> None:
    answers = [_ended(process) for process in [_spawned(folder) for _ in range(3)]]
    assert sum(answer.get("state_written", False) for answer in answers) == 1
    for answer in answers:
        errors = [found for found in answer["diagnostics"] if found["severity"] == "error"]
        assert [found["code"] for found in errors] == ([] if answer["ok"] else ["state_lock_held"])
        assert answer["ok"] is answer.get("converged", False)
        assert all("run it again" in found["message"] or "force-unlock " in found["message"] for found in errors)
    assert_applied_once(folder, 3)


#: The steps of an apply at which another one is started. On S3, where each takes long, the others are part of the long run.
STEPS = [
    "cluster.locked",
    "cluster.record_written",
    "cluster.graph_created",
    "cluster.schema_applied",
    "cluster.payload_written",
    "cluster.graph_marked",
    "cluster.graph_deleted",
    "cluster.before_state",
    "cluster.state_written",
    "cluster.records_removed",
]
SHORT_ON_S3 = ("cluster.schema_applied", "cluster.before_state")
PLACES = [("local", step) for step in STEPS] + [
    pytest.param("s3", step, marks=() if step in SHORT_ON_S3 else pytest.mark.long) for step in STEPS
]


@pytest.mark.parametrize(("folder", "step"), PLACES, indirect=["folder"])
def test_the_second_is_told_who_holds_the_lock(folder: Path, step: str) -> None:
    place, met = place_of(folder), list[Outcome]()

    def second() -> None:
        before = place.store.get(STATE)
        met.append(commands.apply(folder, "other"))
        assert place.store.get(STATE) == before

    with failpoints.armed(step, second):
        first = commands.apply(folder, "op")
    assert first.ok, first.findings.listed
    lock_id = first.data["state_observations"]["acquired_lock_id"]
    for outcome in met:
        assert codes(outcome) == ["state_lock_held"]
        assert f"force-unlock {lock_id}`" in outcome.findings.listed[-1].message
        assert not outcome.ok
    assert met
    assert_applied_once(folder, 3)


@pytest.mark.parametrize(("folder", "step"), PLACES, indirect=["folder"])
def test_a_lock_that_was_removed_while_its_owner_was_alive(folder: Path, step: str) -> None:
    """Both work at once then: the state of one of them counts, and the next apply comes to the end."""
    place, met = place_of(folder), list[Outcome]()

    def second() -> None:
        lock_id = json.loads(place.store.get(LOCK))["lock_id"]
        assert commands.force_unlock(folder, lock_id).ok
        met.append(commands.apply(folder, "other"))

    with failpoints.armed(step, once(second)):
        first = commands.apply(folder, "op")
    _assert_one_counts(folder, first, *met)


@pytest.mark.parametrize("step", [step for step in STEPS if step != "cluster.locked"])
@pytest.mark.parametrize("folder", ["local"], indirect=True)
def test_a_cluster_that_works_without_a_lock(folder: Path, step: str) -> None:
    """Nothing but the compare-and-swap of the state and the records stand between the two."""
    replace_in(folder / "cluster.yaml", "metadata: { name: test }", "state: { lock: false }")
    assert commands.approve(folder, "graph.tasks", "boss").ok
    met = list[Outcome]()
    with failpoints.armed(step, once(lambda: met.append(commands.apply(folder, "other")))):
        first = commands.apply(folder, "op")
    _assert_one_counts(folder, first, *met)


def once(call: Callable[[], object]) -> Callable[[], None]:
    """What is called at the first hit of a failpoint only: the apply that is started there comes by as well."""
    calls = iter([call])

    def hit() -> None:
        for first in calls:
            first()

    return hit


def _assert_one_counts(folder: Path, first: Outcome, second: Outcome) -> None:
    refused = {"state_cas_mismatch", "graph_create_failed", "schema_apply_failed", "graph_delete_failed"}
    assert {*codes(first), *codes(second)} <= refused
    assert first.ok or second.ok
    # No state was written over another one that its writer had not seen.
    done = [outcome.data for outcome in (first, second) if outcome.ok and outcome.data["state_written"]]
    assert sorted({data["state_observations"]["state_revision"] for data in done}) == list(range(3, 3 + len(done)))
    assert applied(folder)["converged"]
    assert_applied_once(folder, _state(place_of(folder))["state_revision"])


@pytest.mark.parametrize("folder", ["local", "s3"], indirect=True)
def test_two_declarations(folder: Path, tmp_path: Path) -> None:
    """Two people apply from their own folders until it is done: the cluster is what one of them declares, wholly."""
    other = Path(shutil.copytree(folder, tmp_path / "other"))
    (other / "queries" / "mail.gq").write_text("query mail() { match { $p: Person } return { $p.name, $p.email } }\n")
    (other / "queries" / "ages.gq").write_text("query ages() { match { $p: Person } return { $p.age } }\n")
    assert commands.approve(other, "graph.tasks", "boss").ok
    last: dict[str, Any] = {}
    waiting = {folder: _spawned(folder), other: _spawned(other)}
    while waiting:
        for declared, process in list(waiting.items()):
            told = _ended(process)
            if told["ok"]:
                del waiting[declared]
                last = (
                    told
                    if last.get("state_observations", {}).get("state_revision", 0)
                    < told["state_observations"]["state_revision"]
                    else last
                )
            else:
                assert [found["code"] for found in told["diagnostics"] if found["severity"] == "error"] == [
                    "state_lock_held"
                ]
                waiting[declared] = _spawned(declared)
    winner = folder if last["desired_revision"] == commands.plan(folder).data["desired_revision"] else other
    assert commands.plan(winner).data["changes"] == []
    loser = other if winner is folder else folder
    assert {change["resource"] for change in commands.plan(loser).data["changes"]} == {
        "graph.team",
        "query.team.mail",
        "query.team.ages",
    }
    assert _state(place_of(folder))["state_revision"] == 4
