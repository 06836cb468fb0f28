"""Serving a cluster: who gets in, graphs that are quarantined, stored queries, and a newer revision without a restart."""

from __future__ import annotations

import asyncio
import json
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from omnigraph.cluster.applied import AppliedCluster, ClusterError
from omnigraph.errors import GraphNotFound
from omnigraph.server.graphs import ServedGraphs, open_cluster
from omnigraph.server.settings import Settings
from omnigraph.server.state import ServerState, open_state
from tests.cli.calling import spawn
from tests.clusters.declaring import WIDER, applied, declare, replace_in, started
from tests.own_loop import run_alone
from tests.server.serving import assert_error
from tests.server.test_process import Process, children, environment
from tests.server.test_process import started as process

TOKENS = json.dumps({"ann": "t-ann", "bob": "t-bob", "eve": "t-eve"})
ADD = {"query": "query add($name: String) { insert Person { name: $name } }", "params": {"name": "x"}}
ALL = {"query": "query q() { match { $p: Person } return { $p.name } order { $p.name } }"}


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return started(declare(tmp_path_factory.mktemp("served") / "c"))


@pytest.fixture
def cluster(template: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(template, tmp_path / "c"))


@contextmanager
def opened(cluster: Path, **changes: Any) -> Iterator[ServerState]:
    state = open_state(Settings(cluster=str(cluster), **{"rights": "default-deny", "one_time_token": "t"} | changes))
    try:
        yield state
    finally:
        state.close()


def until(true: Callable[[], bool]) -> None:
    """Wait for something that another process does; the limit of the test run ends an endless wait."""
    while not true():
        time.sleep(0.05)


def test_the_life_of_a_served_cluster(cluster: Path, tmp_path: Path) -> None:
    arguments = ("--cluster", str(cluster))
    with (
        process(tmp_path, *arguments, OMNIGRAPH_SERVER_BEARER_TOKENS_JSON=TOKENS) as running,
        running.client("t-ann") as ann,
        running.client("t-bob") as bob,
        running.client("t-eve") as eve,
    ):
        _policies(ann, bob, eve)
        _stored_queries(ann, bob)
        _reload(cluster, running, bob)


def _policies(ann: httpx.Client, bob: httpx.Client, eve: httpx.Client) -> None:
    assert [graph["graph_id"] for graph in ann.get("/graphs").json()["graphs"]] == ["tasks", "team"]
    assert_error(bob.get("/graphs"), 403, "forbidden", "policy denied action 'graph_list' for unknown actor 'bob'")
    denied = "policy denied action 'change' on branch 'main' for actor 'ann'"
    assert_error(ann.post("/graphs/team/mutate", json=ADD), 403, "forbidden", denied)
    assert bob.post("/graphs/team/mutate", json=ADD).json()["actor_id"] == "bob"
    assert ann.post("/graphs/team/query", json=ALL).json()["row_count"] == 1
    assert_error(eve.post("/graphs/team/query", json=ALL), 403, "forbidden", "for unknown actor 'eve'")
    # A graph without a policy of its own: whoever has a token reads, and no more.
    assert eve.get("/graphs/tasks/schema").status_code == 200
    load = {"data": '{"type":"Task","data":{"title":"a"}}'}
    assert_error(bob.post("/graphs/tasks/load", json=load), 403, "forbidden", "default-deny")
    assert_error(bob.post("/graphs/tasks/queries/x"), 404, "not_found", "stored query not found")
    # Schemas are declared, so nobody changes one over HTTP.
    assert_error(bob.post("/graphs/team/schema/apply", json={"schema_source": WIDER}), 403, "forbidden")


def _stored_queries(ann: httpx.Client, bob: httpx.Client) -> None:
    listed = {query["name"]: query for query in ann.get("/graphs/team/queries").json()["queries"]}
    assert listed["add_person"]["params"] == [{"name": "name", "kind": "string", "nullable": False}]
    assert (listed["add_person"]["mutation"], listed["people"]["mutation"]) == (True, False)
    assert ann.post("/graphs/team/queries/people").json()["row_count"] == 1
    assert bob.post("/graphs/team/queries/add_person", json={"params": {"name": "y"}}).json()["affected_nodes"] == 1
    # The inner gate of a stored mutation is `change`.
    assert_error(ann.post("/graphs/team/queries/add_person", json={"params": {"name": "z"}}), 403, "forbidden")
    assert_error(bob.post("/graphs/team/queries/add_person", json={"params": {"name": 3}}), 400, "bad_request", "name")
    assert_error(bob.post("/graphs/team/queries/add_person"), 400, "bad_request", "parameter 'name' not provided")


def _reload(cluster: Path, running: Process, bob: httpx.Client) -> None:
    (cluster / "team.pg").write_text(WIDER)
    (cluster / "queries" / "mail.gq").write_text("query mail() { match { $p: Person } return { $p.email } }\n")
    replace_in(cluster / "base.policy.yaml", "readers: [ann]", "readers: [ann, eve]")
    assert applied(cluster)["converged"]
    assert_error(bob.post("/graphs/team/queries/mail"), 404, "not_found")
    running.process.send_signal(signal.SIGHUP)
    until(lambda: bob.post("/graphs/team/queries/mail").status_code == 200)
    with running.client("t-eve") as eve:
        assert eve.post("/graphs/team/query", json=ALL).json()["row_count"] == 2
    # A revision that can not be read changes nothing.
    state = cluster / "__cluster" / "state.json"
    whole = state.read_text()
    state.write_text(whole[:100])
    running.process.send_signal(signal.SIGHUP)
    until(lambda: "the cluster was not reloaded" in running.err.read_text())
    assert bob.post("/graphs/team/queries/mail").status_code == 200
    state.write_text(whole)


def test_all_workers_serve_a_newer_revision_and_no_request_fails(cluster: Path, tmp_path: Path) -> None:
    """Clients go on through an apply and a reload of two workers; a request that began before the reload ends after it."""
    arguments = ("--cluster", str(cluster), "--workers", "2", "--drain-seconds", "1")
    reloaded, is_over = threading.Event(), threading.Event()
    with (
        process(tmp_path, *arguments, OMNIGRAPH_SERVER_BEARER_TOKENS_JSON=TOKENS) as running,
        running.client("t-ann") as following,
        ThreadPoolExecutor() as threads,
    ):
        until(lambda: ready_for_reload(running) == 2)
        with following.stream("GET", "/graphs/team/changes/stream") as stream:
            events = stream.iter_lines()
            next(events)
            reader = threads.submit(_called, running, "t-ann", "people", is_over)
            writer = threads.submit(_called, running, "t-bob", "add_person", is_over)
            slow = threads.submit(_slow_write, running, reloaded)
            try:
                (cluster / "queries" / "mail.gq").write_text(
                    "query mail() { match { $p: Person } return { $p.name } }\n"
                )
                revision = applied(cluster)["state_observations"]["state_revision"]
                assert {_mail(running) for _ in range(10)} == {404}
                running.process.send_signal(signal.SIGHUP)
                until(lambda: _told(running, f"revision {revision} of the cluster is served") == 2)
                assert {_mail(running) for _ in range(30)} == {200}
                # The stream ends in order, so that its client asks anew with the rights it has now.
                list(events)
            finally:
                time.sleep(1.5)
                reloaded.set()
                is_over.set()
        assert slow.result() == 200
        assert set(reader.result()) == {200}
        written = writer.result()
        assert set(written) == {200}
        with running.client("t-ann") as ann:
            assert ann.post("/graphs/team/query", json=ALL).json()["row_count"] == len(written) + 1
        assert not _told(running, "has ended with code")


def ready_for_reload(running: Process) -> int:
    """How many workers have taken SIGHUP over; one that still starts would be ended by it."""
    caught = [
        Path(f"/proc/{pid}/status").read_text().partition("SigCgt:")[2].split()[0]
        for pid in children(running.process.pid)
    ]
    return sum(int(mask, 16) & 1 for mask in caught)


def _told(running: Process, text: str) -> int:
    """How many events of the log say something."""
    return sum(text in line["event"] for line in running.log())


def _mail(running: Process) -> int:
    """The status of a stored query of the newer revision, asked over a connection of its own."""
    with running.client("t-bob") as fresh:
        return fresh.post("/graphs/team/queries/mail").status_code


def _called(running: Process, token: str, query: str, is_over: threading.Event) -> list[int]:
    """The statuses of calls of a stored query, over old and new connections in turn, until it is over."""
    statuses: list[int] = []
    with running.client(token) as kept:
        while not is_over.is_set():
            body = {"params": {"name": f"p{len(statuses)}"}} if query == "add_person" else {}
            with running.client(token) as fresh:
                http = fresh if len(statuses) % 2 else kept
                statuses.append(http.post(f"/graphs/team/queries/{query}", json=body).status_code)
    return statuses


def _slow_write(running: Process, reloaded: threading.Event) -> int:
    """The status of a write whose body is sent to its end only after the reload."""
    whole = json.dumps(ADD).encode()

    def body() -> Iterator[bytes]:
        yield whole[:10]
        reloaded.wait()
        yield whole[10:]

    with running.client("t-bob") as http:
        headers = {"Content-Type": "application/json"}
        return http.post("/graphs/team/mutate", content=body(), headers=headers).status_code


def test_reloads_that_overlap_end_with_the_newest_revision(cluster: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    began, second_asked = threading.Event(), threading.Event()

    def slow_at_first(settings: Settings, found: AppliedCluster) -> ServedGraphs:
        if not began.is_set():
            began.set()
            second_asked.wait()
            time.sleep(1)
        return open_cluster(settings, found)

    def renamed(old: str, new: str) -> int:
        replace_in(cluster / "base.policy.yaml", old, new)
        return int(applied(cluster)["state_observations"]["state_revision"])

    async def both(state: ServerState) -> int:
        await asyncio.to_thread(renamed, "all-read", "readers")
        state.reload()
        await asyncio.to_thread(began.wait)
        newest = await asyncio.to_thread(renamed, "id: writers", "id: all-write")
        state.reload()
        second_asked.set()
        await asyncio.gather(*state.running_jobs)
        return newest

    monkeypatch.setattr("omnigraph.server.state.open_cluster", slow_at_first)
    with opened(cluster) as state:
        assert run_alone(both(state)) == state.graphs.revision


def test_schema_apply_is_always_a_conflict(cluster: Path, tmp_path: Path) -> None:
    (cluster / "base.policy.yaml").write_text(
        "version: 1\ngroups: { all: [ann] }\nrules:\n"
        "  - { id: s, allow: { actors: { group: all }, actions: [schema_apply] } }\n"
    )
    applied(cluster)
    arguments = ("--cluster", str(cluster))
    with (
        process(tmp_path, *arguments, OMNIGRAPH_SERVER_BEARER_TOKENS_JSON=TOKENS) as running,
        running.client("t-ann") as ann,
    ):
        answer = ann.post("/graphs/team/schema/apply", json={"schema_source": WIDER})
        assert_error(answer, 409, "conflict", "omnigraph cluster apply")


# --- starting ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "served to callers with tokens"),
        (("--unauthenticated",), "a policy needs to know who asks"),
        (("--full-access",), "declared in its policies"),
        (("x.omni",), "give --cluster, or graphs"),
    ],
)
def test_who_does_not_get_in(cluster: Path, arguments: tuple[str, ...], message: str) -> None:
    refused = spawn("serve", "--cluster", str(cluster), "--bind", "127.0.0.1:0", *arguments, env=environment())
    assert refused.returncode == 1
    assert message in refused.stderr
    assert refused.stderr.startswith("Error: ")


def test_open_without_policies(tmp_path: Path) -> None:
    folder = declare(tmp_path / "c")
    text = (folder / "cluster.yaml").read_text()
    (folder / "cluster.yaml").write_text(text[: text.index("policies:")])
    started(folder)
    with (
        process(tmp_path, "--cluster", str(folder), "--unauthenticated") as running,
        httpx.Client(base_url=running.url, timeout=60) as anybody,
    ):
        assert anybody.post("/graphs/team/mutate", json=ADD).json()["actor_id"] is None
        assert anybody.post("/graphs/team/queries/people").status_code == 200
        assert_error(anybody.get("/graphs"), 403, "forbidden")


def test_a_broken_graph_is_quarantined(cluster: Path) -> None:
    shutil.rmtree(cluster / "graphs" / "team.omni" / "__manifest")
    with opened(cluster) as state:
        assert list(state.graphs.healthy) == ["tasks"]
        assert "holds parts of a graph" in state.graphs.quarantined["team"]
    with pytest.raises(GraphNotFound, match="holds parts of a graph"):
        open_state(Settings(cluster=str(cluster), rights="default-deny", one_time_token="t", require_all_graphs=True))


def test_a_query_that_no_longer_fits_quarantines_its_graph(cluster: Path) -> None:
    import omnigraph as og

    with og.open(cluster / "graphs" / "team.omni") as graph:
        graph.apply_schema(WIDER.replace("name: String @key", "label: String @key @rename_from(name)"))
    with opened(cluster) as state:
        assert "name" in state.graphs.quarantined["team"]
    shutil.rmtree(cluster / "graphs" / "tasks.omni")
    with pytest.raises(ClusterError, match="no graph can be served") as refused:
        open_state(Settings(cluster=str(cluster), rights="default-deny", one_time_token="t"))
    assert refused.value.code == "cluster_no_healthy_graphs"


def test_a_graph_whose_id_can_not_be_addressed(tmp_path: Path) -> None:
    folder = declare(tmp_path / "c")
    replace_in(folder / "cluster.yaml", "  tasks:\n", "  my_tasks:\n")
    started(folder)
    with opened(folder) as state:
        assert "can not be the id of a graph" in state.graphs.quarantined["my_tasks"]


def test_a_held_lock_does_not_matter(cluster: Path) -> None:
    (cluster / "__cluster" / "lock.json").write_text("{")
    with opened(cluster) as state:
        assert len(state.graphs.healthy) == 2


def test_the_engine_has_the_policy_too(cluster: Path) -> None:
    from omnigraph.errors import Denied

    with opened(cluster) as state:
        graph = state.graphs.healthy["team"].graph
        with pytest.raises(Denied, match="policy denied action 'change' on branch 'main' for actor 'ann'"):
            graph.mutate(ADD["query"], params={"name": "x"}, actor="ann")  # type: ignore[arg-type]
        assert graph.mutate(ADD["query"], params={"name": "x"}, actor="bob").commit is not None  # type: ignore[arg-type]


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGINT])
def test_the_command_omnigraph_server(cluster: Path, tmp_path: Path, ending: signal.Signals) -> None:
    command = [sys.executable, "-c", "from omnigraph.cli.serve import main; main()"]
    refused = subprocess.run([*command, "graph.omni"], capture_output=True, text=True, env=environment(), check=False)
    assert refused.returncode == 2
    running = subprocess.Popen(
        [*command, "--cluster", str(cluster), "--bind", "127.0.0.1:0"],
        stdout=subprocess.PIPE,
        stderr=(tmp_path / "err").open("w"),
        text=True,
        env=environment(OMNIGRAPH_SERVER_BEARER_TOKENS_JSON=TOKENS),
    )
    try:
        assert running.stdout is not None
        line = running.stdout.readline()
        assert line.startswith("OMNIGRAPH_LISTEN_ADDR=127.0.0.1:"), (tmp_path / "err").read_text()
        url = f"http://{line.strip().partition('=')[2]}/graphs/team/queries/people"
        assert httpx.post(url, headers={"Authorization": "Bearer t-ann"}, timeout=60).status_code == 200
    finally:
        running.send_signal(ending)
        assert running.wait(60) == 0
    assert running.stdout.read() == ""
