"""The same calls through two worker processes, and what acknowledged writes are worth when workers are killed."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from tests.client.on_loop import connected_on_loop
from tests.client.outcomes import outcome
from tests.client.scenarios import READS, WRITES, Scenario
from tests.client.test_command_line import over, stored, typed_outcome
from tests.client.test_conformance import _without_actor
from tests.server.serving import ADD, ALL
from tests.server.test_process import Process, children, started

KINDS = ["connect", "connect_async", "command line"]
#: Loads run in the process that they are asked of, however large.
INLINE = {"OMNIGRAPH_INLINE_LOAD_BYTES": "1000000000"}


@contextmanager
def embedded_handle(kind: str, path: Path) -> Iterator[Any]:
    """What a served graph is compared with: the library on the storage, or commands on it."""
    if kind == "command line":
        yield stored(path)
    else:
        with og.open(path) as graph:
            yield graph


@contextmanager
def served_handle(kind: str, server: Process, graph: str) -> Iterator[Any]:
    """A graph of a server, through one of the three ways."""
    if kind == "connect":
        with og.connect(server.url, graph=graph, token=server.token()) as remote:
            yield remote
    elif kind == "connect_async":
        with connected_on_loop(server.url, graph, server.token()) as awaited:
            yield awaited
    else:
        yield over(server.url, graph)


def compared(scenario: Scenario, kind: str, embedded: Any, remote: Any) -> None:
    """A scenario comes to the same on both handles."""
    if kind == "command line":
        expected = typed_outcome(scenario, embedded)
        assert expected is None or typed_outcome(scenario, remote) == expected
    else:
        assert _without_actor(outcome(scenario, remote)) == _without_actor(outcome(scenario, embedded))


def run_through_workers(
    kind: str, workers: str, template: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, *, every: int
) -> None:
    """Run every n-th scenario against worker processes; those that write have a graph each, all on one server."""
    monkeypatch.setenv("OMNIGRAPH_HOME", str(folder / "home"))
    monkeypatch.setenv("OMNIGRAPH_INLINE_LOAD_BYTES", INLINE["OMNIGRAPH_INLINE_LOAD_BYTES"])
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    reads, writes = list(READS.items())[::every], list(WRITES.items())[::every]

    def copy(name: str) -> Path:
        return Path(shutil.copytree(template, folder / name / "people.omni"))

    graphs = {f"w{number}": copy(f"served{number}") for number in range(len(writes))} | {"read": copy("served")}
    listed = [f"{graph}={path}" for graph, path in graphs.items()]
    with started(folder, *listed, "--workers", workers, **INLINE) as server:
        monkeypatch.setenv("OMNIGRAPH_BEARER_TOKEN", server.token())
        with embedded_handle(kind, copy("embedded")) as embedded, served_handle(kind, server, "read") as remote:
            for name, scenario in reads:
                with naming(name):
                    compared(scenario, kind, embedded, remote)
        for number, (name, scenario) in enumerate(writes):
            path = copy(f"embedded{number}")
            with (
                naming(name),
                embedded_handle(kind, path) as embedded,
                served_handle(kind, server, f"w{number}") as remote,
            ):
                compared(scenario, kind, embedded, remote)


@contextmanager
def naming(scenario: str) -> Iterator[None]:
    try:
        yield
    except BaseException as error:
        error.add_note(f"scenario: {scenario}")
        raise


@pytest.mark.long
@pytest.mark.parametrize("workers", ["1", "2"])
@pytest.mark.parametrize("kind", KINDS)
def test_every_scenario_through_workers(
    graph_template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, workers: str
) -> None:
    run_through_workers(kind, workers, graph_template, tmp_path, monkeypatch, every=1)


@pytest.mark.parametrize("kind", KINDS)
def test_some_scenarios_through_two_workers(
    graph_template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    run_through_workers(kind, "2", graph_template, tmp_path, monkeypatch, every=25)


def test_nothing_acknowledged_is_lost_when_a_worker_is_killed(graph_path: Path, tmp_path: Path) -> None:
    """Clients write while workers die. A repeat of a cut request with its key finds out how it ended."""
    acknowledged: set[str] = set()
    failures: list[BaseException] = []
    with started(tmp_path, str(graph_path), "--workers", "2") as server:
        token = server.token()
        with og.connect(server.url, graph="people", token=token):
            pass

        def write(client: int) -> None:
            try:
                with og.connect(server.url, graph="people", token=token) as graph:
                    for number in range(6):
                        name = f"c{client}-{number}"
                        graph.mutate(ADD, params={"name": name})
                        acknowledged.add(name)
            except BaseException as error:
                failures.append(error)

        clients = [threading.Thread(target=write, args=(number,)) for number in range(3)]
        for client in clients:
            client.start()
        while len(acknowledged) < 3 and not failures:
            time.sleep(0.01)
        os.kill(children(server.process.pid)[0], signal.SIGKILL)
        for client in clients:
            client.join()
        with og.connect(server.url, graph="people", token=token) as graph:
            rows: list[Any] = graph.query(ALL).rows
    assert failures == []
    assert len(acknowledged) == 18
    names = [row["p.name"] for row in rows]
    assert sorted(names) == sorted(acknowledged | {"ada", "ben"})
    with og.open(graph_path) as again:
        assert len(again.query(ALL)) == 20
        assert again.pending_operations() == []
