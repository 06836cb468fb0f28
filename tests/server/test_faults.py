"""Servers that are killed and storage that goes away, under load: nothing acknowledged is lost, and no restart is needed."""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

import omnigraph as og
from tests.s3 import S3Server, running_server
from tests.server.serving import ADD, ALL, ROWS, SCHEMA
from tests.server.test_process import Process, _eventually, children, started

TOKEN = "ogt_faults"
VARIABLES = {"OMNIGRAPH_SERVER_BEARER_TOKEN": TOKEN}
HEADERS = {"Authorization": f"Bearer {TOKEN}"}


class Clients:
    """Programs that insert persons one by one. A request whose end is unknown is repeated with its key until it is answered."""

    def __init__(self, url: str, clients: int) -> None:
        self.url = url
        #: The commit of each insert that was acknowledged, by the name of the person.
        self.acknowledged: dict[str, str] = {}
        #: How often a request had to be repeated, by what was told: a status, or the kind of a broken connection.
        self.repeated: dict[str, int] = {}
        self._pool = ThreadPoolExecutor(clients)
        self._stop = threading.Event()
        self._running = [self._pool.submit(self._insert, number) for number in range(clients)]

    def wait_for(self, more: int) -> None:
        """Wait until so many further inserts were acknowledged."""
        wanted = len(self.acknowledged) + more
        _eventually(lambda: len(self.acknowledged) >= wanted or any(client.done() for client in self._running))

    def finish(self) -> None:
        """Let each client end the insert it is at; what one of them raised is raised here."""
        self._stop.set()
        for client in self._running:
            client.result()
        self._pool.shutdown()

    def _insert(self, client: int) -> None:
        for number in range(100_000):
            if self._stop.is_set():
                return
            name = f"c{client}-{number}"
            self.acknowledged[name] = self._until_answered(name)

    def _until_answered(self, name: str) -> str:
        body = {"query": ADD, "params": {"name": name}}
        while True:
            told = self._ask(body, name)
            if isinstance(told, httpx.Response):
                return str(told.json()["commit"]["graph_commit_id"])
            self.repeated[told] = self.repeated.get(told, 0) + 1
            time.sleep(0.05)

    def _ask(self, body: Any, key: str) -> httpx.Response | str:
        """The answer, or why the request must be repeated."""
        try:
            with httpx.Client(base_url=self.url, headers=HEADERS, timeout=120, verify=False) as http:
                answer = http.post("/graphs/people/mutate", json=body, headers={"Idempotency-Key": key})
        except httpx.TransportError as error:
            return type(error).__name__
        if answer.status_code == 200:
            return answer
        assert answer.status_code in (500, 503), answer.text
        assert set(answer.json()) >= {"error", "request_id"}, answer.text
        return str(answer.status_code)


def check(graph: og.Graph, clients: Clients) -> None:
    """Everybody who was told so is there, and each insert is one commit."""
    names = {row["p.name"] for row in graph.query(ALL).rows}
    assert names == clients.acknowledged.keys() | {"ada", "ben"}
    assert len(set(clients.acknowledged.values())) == len(clients.acknowledged)
    commits = {commit.id for commit in graph.commits()}
    assert commits >= set(clients.acknowledged.values())
    # The graph itself, and the load of its first rows.
    assert len(commits) == len(clients.acknowledged) + 2
    assert graph.pending_operations() == []


def free_address() -> str:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{free.getsockname()[1]}"


def kill(server: Process) -> None:
    """SIGKILL for all processes of a server."""
    workers = children(server.process.pid)
    server.process.kill()
    for worker in workers:
        with suppress(ProcessLookupError):
            os.kill(worker, signal.SIGKILL)
    server.process.wait()


@pytest.mark.parametrize("workers", ["1", pytest.param("2", marks=pytest.mark.long)])
def test_a_server_that_is_killed_again_and_again(graph_path: Path, tmp_path: Path, workers: str) -> None:
    address = free_address()
    arguments = (str(graph_path), "--full-access", "--workers", workers, "--bind", address)
    clients = Clients(f"http://{address}", 3)
    for _ in range(3):
        with started(tmp_path, *arguments, **VARIABLES) as server:
            clients.wait_for(4)
            kill(server)
    with started(tmp_path, *arguments, **VARIABLES):
        clients.wait_for(4)
        clients.finish()
    assert clients.repeated
    with og.open(graph_path) as graph:
        check(graph, clients)


class Switch:
    """A way to a server that can be interrupted: connections are reset while it is, also those that are open."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._broken = False
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self.listening = socket.create_server(("127.0.0.1", 0), backlog=256)
        threading.Thread(target=self._accept, daemon=True).start()

    @contextmanager
    def interrupted(self) -> Iterator[None]:
        with self._lock:
            self._broken = True
            for one in self._open:
                with suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)
            self._open.clear()
        try:
            yield
        finally:
            self._broken = False

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self.listening.accept()
                threading.Thread(target=self._connect, args=(client,), daemon=True).start()

    def _connect(self, client: socket.socket) -> None:
        with client, socket.create_connection(("127.0.0.1", self._port)) as server:
            with self._lock:
                if self._broken:
                    return
                self._open |= {client, server}
            back = threading.Thread(target=self._copy, args=(server, client), daemon=True)
            back.start()
            self._copy(client, server)
            back.join()
            with self._lock:
                self._open -= {client, server}

    def _copy(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(1 << 16):
                target.sendall(data)
        for one in (source, target):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)


@contextmanager
def interruptible(server: S3Server) -> Iterator[tuple[S3Server, Switch]]:
    """An S3 server behind a switch."""
    switch = Switch(int(server.endpoint.rpartition(":")[2]))
    host, port = switch.listening.getsockname()
    with switch.listening:
        yield S3Server(f"http://{host}:{port}"), switch


def test_storage_that_fails_and_comes_back(tmp_path: Path) -> None:
    """The same server serves on; what it was doing heals at a later request."""
    with running_server() as s3, interruptible(s3) as (behind, switch):
        uri = f"s3://{s3.new_bucket()}/people"
        with og.init(uri, SCHEMA, storage_options=s3.options) as graph:
            graph.load(ROWS.encode())
        variables = {
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_REGION": "us-east-1",
            "AWS_ENDPOINT": behind.endpoint,
            "AWS_ALLOW_HTTP": "true",
            "AWS_VIRTUAL_HOSTED_STYLE_REQUEST": "false",
            **VARIABLES,
        }
        with started(tmp_path, f"people={uri}", "--full-access", **variables) as server:
            clients = Clients(server.url, 3)
            clients.wait_for(3)
            for _ in range(3):
                with (
                    switch.interrupted(),
                    httpx.Client(base_url=server.url, headers=HEADERS, timeout=120, verify=False) as http,
                ):
                    assert http.get("/healthz").status_code == 200
                    assert http.get("/readyz").status_code == 503
                    assert http.post("/graphs/people/query", json={"query": ALL}).status_code in (200, 500, 503)
                clients.wait_for(3)
            clients.finish()
            with httpx.Client(base_url=server.url, headers=HEADERS, timeout=60, verify=False) as http:
                assert http.get("/readyz").status_code == 200
        with og.open(uri, storage_options=s3.options) as graph:
            check(graph, clients)


@pytest.mark.parametrize("count", [500, pytest.param(10_000, marks=pytest.mark.long)])
def test_many_connections_that_say_nothing(graph_path: Path, tmp_path: Path, count: int) -> None:
    with started(tmp_path, str(graph_path), "--full-access", **VARIABLES) as server:
        host, port = server.url.removeprefix("http://").split(":")
        silent = []
        try:
            for _ in range(count):
                silent.append(socket.create_connection((host, int(port))))
            with httpx.Client(base_url=server.url, headers=HEADERS, timeout=60, verify=False) as http:
                body = {"query": ADD, "params": {"name": "eve"}}
                assert http.post("/graphs/people/mutate", json=body).status_code == 200
                assert http.post("/graphs/people/query", json={"query": ALL}).json()["row_count"] == 3
        finally:
            for one in silent:
                one.close()
