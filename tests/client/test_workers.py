"""The same calls through two worker processes, and what acknowledged writes are worth when workers are killed."""

from __future__ import annotations

import os
import shutil
import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from tests.client.outcomes import outcome
from tests.client.scenarios import READS, WRITES
from tests.client.test_conformance import _without_actor
from tests.server.serving import ADD, ALL
from tests.server.test_process import _children, started


@pytest.mark.long
@pytest.mark.parametrize("workers", ["1", "2"])
def test_every_scenario_through_workers(graph_template: Path, tmp_path: Path, workers: str) -> None:
    embedded_path = Path(shutil.copytree(graph_template, tmp_path / "embedded" / "people.omni"))
    served_path = Path(shutil.copytree(graph_template, tmp_path / "served" / "people.omni"))
    with (
        started(tmp_path, str(served_path), "--workers", workers) as server,
        og.open(embedded_path) as embedded,
        og.connect(server.url, graph="people", token=server.token()) as remote,
    ):
        for name, scenario in READS.items():
            assert outcome(scenario, remote) == outcome(scenario, embedded), name
    for number, (name, scenario) in enumerate(list(WRITES.items())[::10]):
        first = Path(shutil.copytree(graph_template, tmp_path / f"a{number}" / "people.omni"))
        second = Path(shutil.copytree(graph_template, tmp_path / f"b{number}" / "people.omni"))
        with og.open(first) as embedded:
            expected = outcome(scenario, embedded)
        folder = tmp_path / f"log{number}"
        folder.mkdir()
        with (
            started(folder, str(second), "--workers", workers, OMNIGRAPH_INLINE_LOAD_BYTES="1000000000") as server,
            og.connect(server.url, graph="people", token=server.token()) as remote,
        ):
            assert _without_actor(outcome(scenario, remote)) == expected, name


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
        os.kill(_children(server.process.pid)[0], signal.SIGKILL)
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
