"""Limits that hold for all worker processes of a server together."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from omnigraph.errors import ResourceLimit, TooManyRequests
from omnigraph.server.admission import Admission, ExportSlots
from omnigraph.server.settings import Limits
from omnigraph.server.shares import Shares
from tests.own_loop import run_alone
from tests.server.serving import ADD, assert_error
from tests.server.test_process import _eventually, children, started


def test_requests_of_all_workers_count(tmp_path: Path) -> None:
    limits = replace(Limits(), actor_requests=2, actor_bytes=100)
    first, second = (Admission(limits, Shares(tmp_path)) for _ in range(2))
    with first.admit("a", 10), second.admit("a", 10):
        for worker in (first, second):
            with pytest.raises(TooManyRequests, match="2 writing requests"), worker.admit("a", 1):
                pass
            with worker.admit("b", 1):
                pass
    with first.admit("a", 60):
        with pytest.raises(TooManyRequests, match="100 bytes"), second.admit("a", 60):
            pass
        with second.admit("a", 40):
            pass
    with second.admit("a", 1000):
        pass


def test_a_killed_worker_counts_no_more(tmp_path: Path) -> None:
    limits = replace(Limits(), actor_requests=1)
    program = (
        "import sys, time; from pathlib import Path\n"
        "from omnigraph.server.shares import Shares\n"
        "shares = Shares(Path(sys.argv[1])); shares.tell({'a': (1, 1)}); print('told', flush=True); time.sleep(600)"
    )
    with subprocess.Popen([sys.executable, "-c", program, str(tmp_path)], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        admission = Admission(limits, Shares(tmp_path))
        with pytest.raises(TooManyRequests), admission.admit("a", 1):
            pass
        child.kill()
    with admission.admit("a", 1):
        pass
    assert len(list(tmp_path.glob("admission-*"))) == 1, "the file of the dead worker is gone"


def test_a_worker_that_is_stopped_does_not_stop_others(tmp_path: Path) -> None:
    first, second = Shares(tmp_path), Admission(replace(Limits(), actor_requests=1), Shares(tmp_path))
    with first.turn(), second.admit("a", 1):
        pass


def test_one_export_of_a_graph_in_all_workers(tmp_path: Path) -> None:
    async def run() -> None:
        first, second = (ExportSlots(Limits(), Shares(tmp_path)) for _ in range(2))
        async with first.taken("g"), second.taken("h"):
            with pytest.raises(ResourceLimit, match="1 export of this graph"):
                async with second.taken("g"):
                    pass
        async with second.taken("g"):
            pass

    run_alone(run())


def test_admission_of_two_workers_on_the_wire(graph_path: Path, tmp_path: Path) -> None:
    """One load under way in one worker is enough: no worker takes another write of its actor, until the worker dies."""
    arguments = (str(graph_path), "--workers", "2")
    with started(tmp_path, *arguments, OMNIGRAPH_PER_ACTOR_INFLIGHT_MAX="1") as server, ExitStack() as held:
        host, _, port = server.url.removeprefix("http://").rpartition(":")
        with server.client() as http:
            http.get("/readyz")
        load = held.enter_context(socket.create_connection((host, int(port))))
        load.sendall(
            f"POST /graphs/people/load/ndjson HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {server.token()}\r\n"
            "Content-Type: application/x-ndjson\r\nContent-Length: 100\r\n\r\n".encode()
        )

        def answers(count: int) -> list[int]:
            statuses = []
            for number in range(count):
                with server.client() as http:
                    body = {"query": ADD, "params": {"name": f"p{number}"}}
                    answer = http.post("/graphs/people/mutate", json=body)
                    statuses.append(answer.status_code)
                    if answer.status_code == 429:
                        assert_error(answer, 429, "too_many_requests", "1 writing requests of this actor")
            return statuses

        _eventually(lambda: answers(1) == [429])
        assert answers(12) == [429] * 12
        for worker in children(server.process.pid):
            os.kill(worker, signal.SIGKILL)
        _eventually(lambda: server.client().get("/healthz").status_code == 200)
        assert 200 in answers(3)
