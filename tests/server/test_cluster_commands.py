"""`cluster plan` and `cluster apply` through a running server: who may, what is refused, and that the result is served."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from omnigraph.cluster import commands
from tests.cli.calling import call
from tests.clusters.declaring import WIDER, declare, replace_in, started, without_graph
from tests.server.serving import assert_error
from tests.server.test_cluster import TOKENS, ready_for_reload, until
from tests.server.test_process import Process
from tests.server.test_process import started as process

Capsys = pytest.CaptureFixture[str]
OPERATORS = """version: 1
groups: { ops: [bob], watchers: [ann] }
rules:
  - { id: apply, allow: { actors: { group: ops }, actions: [cluster_plan, cluster_apply] } }
  - { id: watch, allow: { actors: { group: watchers }, actions: [cluster_plan, graph_list] } }
"""
MAIL = "query mail() { match { $p: Person } return { $p.email } }\n"


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = declare(tmp_path_factory.mktemp("commands") / "c")
    (folder / "listing.policy.yaml").write_text(OPERATORS)
    return started(folder)


@pytest.fixture
def cluster(template: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(template, tmp_path / "c"))


@pytest.fixture
def checkout(cluster: Path, tmp_path: Path) -> Path:
    """The declaration without its storage, as somebody has it who only reaches the server."""
    return Path(shutil.copytree(cluster, tmp_path / "mine", ignore=shutil.ignore_patterns("__cluster", "graphs")))


@contextmanager
def served(cluster: Path, tmp_path: Path, *arguments: str) -> Iterator[Process]:
    with process(
        tmp_path, "--cluster", str(cluster), *arguments, OMNIGRAPH_SERVER_BEARER_TOKENS_JSON=TOKENS
    ) as running:
        yield running


def ran(capsys: Capsys, monkeypatch: pytest.MonkeyPatch, running: Process, who: str, *words: str) -> Any:
    monkeypatch.setenv("OMNIGRAPH_BEARER_TOKEN", f"t-{who}")
    return call(capsys, "cluster", *words, "--server", running.url)


def state_bytes(cluster: Path) -> bytes:
    return (cluster / "__cluster" / "state.json").read_bytes()


def test_a_declaration_is_planned_and_applied_by_the_server(
    cluster: Path, checkout: Path, tmp_path: Path, capsys: Capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMNIGRAPH_HOME", str(tmp_path / "home"))
    folder = ("--config", str(checkout))
    with served(cluster, tmp_path) as running, running.client("t-bob") as bob:
        nothing = ran(capsys, monkeypatch, running, "ann", "plan", *folder)
        assert (nothing.code, nothing.out) == (0, "cluster plan: 0 change(s), 0 approval gate(s)\n")
        before = state_bytes(cluster)
        (checkout / "team.pg").write_text(WIDER)
        (checkout / "queries" / "mail.gq").write_text(MAIL)
        planned = ran(capsys, monkeypatch, running, "ann", "plan", *folder, "--json")
        told = json.loads(planned.out)
        # What the server says is what a plan beside the storage says, but for the folder and the lock of that moment.
        shutil.copy(checkout / "team.pg", cluster)
        shutil.copy(checkout / "queries" / "mail.gq", cluster / "queries")
        here = commands.plan(cluster).to_dict()
        assert told["config_dir"] == str(checkout)
        for name in ("ok", "changes", "blast_radius", "desired_revision", "diagnostics", "approvals_required"):
            assert told[name] == here[name], name
        denied = ran(capsys, monkeypatch, running, "ann", "apply", *folder)
        assert (denied.code, denied.out) == (1, "")
        assert denied.err == "Error: policy denied action 'cluster_apply' for actor 'ann'\n"
        assert "unknown actor 'eve'" in ran(capsys, monkeypatch, running, "eve", "plan", *folder).err
        assert state_bytes(cluster) == before
        assert bob.post("/graphs/team/queries/mail").status_code == 404
        done = ran(capsys, monkeypatch, running, "bob", "apply", *folder)
        assert (done.code, done.out.splitlines()[0]) == (0, "cluster apply: 2 applied, 0 deferred/blocked")
        assert done.out.endswith("  state: revision 3, converged: true, written: true\n  served: revision 3\n")
        assert bob.post("/graphs/team/queries/mail").status_code == 200
        again = json.loads(ran(capsys, monkeypatch, running, "bob", "apply", *folder, "--json").out)
        assert (again["applied_count"], again["state_written"], again["actor"]) == (0, False, "bob")
        assert (again["served_revision"], again["config_dir"]) == (3, str(checkout))


def test_what_a_server_does_not_do(
    cluster: Path, checkout: Path, tmp_path: Path, capsys: Capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMNIGRAPH_HOME", str(tmp_path / "home"))
    folder = ("--config", str(checkout))
    before = state_bytes(cluster)
    text = (checkout / "cluster.yaml").read_text()
    with served(cluster, tmp_path) as running, running.client("t-bob") as bob:
        # A declaration that is wrong by itself is told here, with the diagnostic it always has.
        (checkout / "cluster.yaml").write_text(text + "colour: red\n")
        wrong = ran(capsys, monkeypatch, running, "bob", "apply", *folder)
        assert (wrong.code, wrong.out) == (1, "cluster apply failed\n")
        assert "ERROR invalid_cluster_yaml colour: unknown field" in wrong.err
        # The storage is that of the server.
        for storage in ("s3://elsewhere/prefix", "/etc", "file:///etc"):
            (checkout / "cluster.yaml").write_text(text + f"storage: {storage}\n")
            elsewhere = ran(capsys, monkeypatch, running, "bob", "plan", *folder)
            assert elsewhere.code == 1
            assert "ERROR invalid_storage_root storage: the declaration names other storage" in elsewhere.err
        (checkout / "cluster.yaml").write_text(text)
        assert "`--as` is not allowed" in ran(capsys, monkeypatch, running, "bob", "apply", "--as", "me", *folder).err
        refused = ran(capsys, monkeypatch, running, "bob", "refresh", *folder)
        assert refused.code == 2
        # Files of the server are never read for a declaration, however it names them.
        files = {"cluster.yaml": f"version: 1\ngraphs: {{ team: {{ schema: {cluster}/team.pg, queries: /etc/ }} }}\n"}
        answer = bob.post("/cluster/plan", json={"files": files}).json()
        assert [found["code"] for found in answer["diagnostics"] if found["severity"] == "error"] == [
            "schema_file_missing"
        ]
        assert bob.post("/cluster/plan", json={"files": {}}).json()["diagnostics"][0]["code"] == (
            "cluster_config_read_error"
        )
        wrong_bodies: list[dict[str, Any]] = [{}, {"files": []}, {"files": {"cluster.yaml": 1}}]
        for body in wrong_bodies:
            assert_error(bob.post("/cluster/apply", json=body), 400, "bad_request")
        laughs = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
            f"{name}: &{name} [{','.join([f'*{last}'] * 9)}]\n" for last, name in zip("abcdefg", "bcdefgh", strict=True)
        )
        for hostile in (laughs, "[" * 100_000, "version: 1\nversion: 1\n", "\0", "version: 1\n" + "x" * 900_000):
            told = bob.post("/cluster/apply", json={"files": {"cluster.yaml": hostile}}).json()
            assert [found["severity"] for found in told["diagnostics"]] == ["error"], hostile[:20]
        # Somebody holds the lock: the same diagnostic as beside the storage.
        lock = cluster / "__cluster" / "lock.json"
        lock.write_text('{"version":1,"lock_id":"L1","operation":"apply","created_at":"2026-01-01T00:00:00Z","pid":1}')
        held = ran(capsys, monkeypatch, running, "bob", "apply", *folder)
        assert (held.code, "force-unlock L1" in held.err) == (1, True)
        lock.unlink()
        # A deletion waits for an approval, which is given beside the storage.
        without_graph(checkout, "tasks")
        blocked = json.loads(ran(capsys, monkeypatch, running, "bob", "apply", *folder, "--json").out)
        assert (blocked["converged"], blocked["deferred_count"]) == (False, 2)
    resources = json.loads(before)["applied_revision"]
    assert json.loads(state_bytes(cluster))["applied_revision"] == resources


def test_an_apply_reaches_all_workers(
    cluster: Path, checkout: Path, tmp_path: Path, capsys: Capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMNIGRAPH_HOME", str(tmp_path / "home"))
    (checkout / "team.pg").write_text(WIDER)
    (checkout / "queries" / "mail.gq").write_text(MAIL)
    with served(cluster, tmp_path, "--workers", "2", "--drain-seconds", "1") as running:
        until(lambda: ready_for_reload(running) == 2)
        assert ran(capsys, monkeypatch, running, "bob", "apply", "--config", str(checkout)).code == 0
        until(lambda: sum(line["event"] == "revision 3 of the cluster is served" for line in running.log()) == 2)
        statuses = set()
        for _ in range(20):
            with running.client("t-bob") as fresh:
                statuses.add(fresh.post("/graphs/team/queries/mail").status_code)
        assert statuses == {200}


def test_two_applies_at_once(cluster: Path, checkout: Path, tmp_path: Path) -> None:
    """One of them holds the lock and the other is told so, or they come one after the other; nothing is half done."""
    (checkout / "team.pg").write_text(WIDER)
    files = {str(path.relative_to(checkout)): path.read_text() for path in checkout.rglob("*") if path.is_file()}
    answers: list[dict[str, Any]] = []
    with served(cluster, tmp_path) as running:

        def apply() -> None:
            with running.client("t-bob") as bob:
                answers.append(bob.post("/cluster/apply", json={"files": files}).json())

        threads = [threading.Thread(target=apply) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sum(answer.get("state_written", False) for answer in answers) == 1
        errors = {
            found["code"] for answer in answers for found in answer["diagnostics"] if found["severity"] == "error"
        }
        assert errors <= {"state_lock_held"}
        assert {answer["served_revision"] for answer in answers} <= {2, 3}
    assert not (cluster / "__cluster" / "lock.json").exists()
    replace_in(cluster / "team.pg", "age: I32? }", "age: I32?  email: String? }")
    assert commands.plan(cluster).data["changes"] == []
