"""The server as a process: how it starts, what it refuses, its signals and its workers."""

from __future__ import annotations

import json
import os
import signal
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

import omnigraph as og
from tests import warm
from tests.cli.calling import call, spawn
from tests.server.serving import ADD, ALL, assert_error

TOKENS = {"act-a": "token-a", "act-b": "token-b"}


@dataclass
class Process:
    """A running `omnigraph serve`."""

    process: subprocess.Popen[str]
    url: str
    err: Path

    def client(self, token: str | None = None, **options: Any) -> httpx.Client:
        headers = {"Authorization": f"Bearer {token or self.token()}"}
        return httpx.Client(base_url=self.url, headers=headers, timeout=60, **{"verify": False, **options})

    def token(self) -> str:
        """The token that was printed."""
        return self.err.read_text().partition("OMNIGRAPH_BEARER_TOKEN=")[2].split()[0]

    def log(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.err.read_text().splitlines() if line.startswith("{")]


def environment(**changes: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("OMNIGRAPH_")}
    return kept | changes


@contextmanager
def started(tmp_path: Path, *arguments: str, **variables: str) -> Iterator[Process]:
    """`omnigraph serve` with arguments, on a free port, until the block ends."""
    err = tmp_path / "serve.err"
    with err.open("w") as log:
        process = warm.Popen(
            [sys.executable, "-m", "omnigraph", "serve", "--bind", "127.0.0.1:0", *arguments],
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            env=environment(**variables),
        )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith("OMNIGRAPH_LISTEN_ADDR=127.0.0.1:"), err.read_text()
        scheme = "https" if "--tls-cert" in arguments else "http"
        yield Process(process, f"{scheme}://{line.strip().partition('=')[2]}", err)
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        process.wait(60)


Refused = Callable[..., str]


@pytest.fixture
def refused(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Refused:
    """What a server says that does not start; nothing is served, so no process of its own is needed."""

    def start(*arguments: str, **variables: str) -> str:
        with monkeypatch.context() as patch:
            for name in [name for name in os.environ if name.startswith("OMNIGRAPH_")]:
                patch.delenv(name)
            for name, value in variables.items():
                patch.setenv(name, value)
            outcome = call(capsys, "serve", *arguments)
        assert outcome.code == 1, outcome.err
        assert outcome.err.splitlines()[-1].startswith("Error: "), outcome.err
        assert outcome.out == ""
        return outcome.err

    return start


def test_a_server_of_one_machine(graph_path: Path, tmp_path: Path) -> None:
    """A printed token may do everything; SIGTERM ends it in order."""
    with started(tmp_path, str(graph_path), f"second={graph_path}") as server:
        with server.client() as http:
            ids = [graph["graph_id"] for graph in http.get("/graphs").json()["graphs"]]
            assert ids == ["people", "second"]
            body = {"query": ADD, "params": {"name": "eve"}}
            assert http.post("/graphs/people/mutate", json=body, headers={"X-Request-Id": "r1"}).status_code == 200
            assert http.post("/graphs/second/query", json={"query": ALL}).json()["row_count"] == 3
            assert http.get("/graphs/people/snapshot", headers={"Authorization": "Bearer x"}).status_code == 401
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(60) == 0
    line = next(line for line in server.log() if line.get("request_id") == "r1")
    assert (line["operation"], line["graph"], line["actor"], line["status"]) == ("mutate", "people", "default", 200)
    assert server.token() not in "".join(map(json.dumps, server.log()))


def test_tokens_of_the_environment_and_their_reload(graph_path: Path, tmp_path: Path) -> None:
    file = tmp_path / "tokens.json"
    file.write_text(json.dumps(TOKENS))
    variables = {"OMNIGRAPH_SERVER_BEARER_TOKENS_FILE": str(file), "OMNIGRAPH_SERVER_BEARER_TOKENS_JSON": "broken"}
    with started(tmp_path, str(graph_path), "--full-access", **variables) as server:
        with server.client("token-b") as http:
            body = {"query": ADD, "params": {"name": "eve"}}
            assert http.post("/graphs/people/mutate", json=body).json()["actor_id"] == "act-b"
        file.write_text(json.dumps({"act-c": "token-c"}))
        server.process.send_signal(signal.SIGHUP)
        with server.client("token-c") as new, server.client("token-b") as old:
            _eventually(lambda: new.get("/graphs/people/snapshot").status_code == 200)
            assert old.get("/graphs/people/snapshot").status_code == 401
            file.write_text("broken")
            server.process.send_signal(signal.SIGHUP)
            _eventually(lambda: any("not reloaded" in line["event"] for line in server.log()))
            assert new.get("/graphs/people/snapshot").status_code == 200
    assert "token-c" not in server.err.read_text()


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_reload_while_processes_start(graph_path: Path, tmp_path: Path, workers: str) -> None:
    """Who is told to reload before it can do so does it later, and does not die of it."""
    file = tmp_path / "tokens.json"
    file.write_text(json.dumps({"act-a": "token-a"}))
    variables = {"OMNIGRAPH_SERVER_BEARER_TOKENS_FILE": str(file)}
    with started(tmp_path, str(graph_path), "--workers", workers, **variables) as server:
        for _ in range(20):
            server.process.send_signal(signal.SIGHUP)
            time.sleep(0.05)
        with server.client("token-a") as http:
            assert http.get("/graphs/people/snapshot").status_code == 200
        _eventually(lambda: any(line["event"] == "the tokens were reloaded" for line in server.log()))
        assert not [line for line in server.log() if "has ended" in line["event"]]


def _eventually(holds: Any) -> None:
    """Wait until something holds; the limit of the suite ends a wait that is in vain."""
    while not holds():
        time.sleep(0.05)


@pytest.mark.parametrize(
    ("variables", "error"),
    [
        ({"OMNIGRAPH_SERVER_BEARER_TOKENS_JSON": "[]"}, "must be a JSON object"),
        ({"OMNIGRAPH_SERVER_BEARER_TOKENS_JSON": "{}"}, "holds no token"),
        ({"OMNIGRAPH_SERVER_BEARER_TOKENS_JSON": '{"a":" "}'}, "token of actor 'a' is blank"),
        ({"OMNIGRAPH_SERVER_BEARER_TOKENS_JSON": '{" ":"x"}'}, "an actor is blank"),
        ({"OMNIGRAPH_SERVER_BEARER_TOKENS_JSON": '{"a":"x","b":"x"}'}, "have the same token"),
        ({"OMNIGRAPH_SERVER_BEARER_TOKENS_JSON": '{"a":"x","a":"y"}'}, "actor 'a' is there twice"),
        ({"OMNIGRAPH_SERVER_BEARER_TOKEN": " "}, "token of actor 'default' is blank"),
        ({"OMNIGRAPH_SERVER_BEARER_TOKENS_FILE": "/none/tokens"}, "cannot read"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_refused_tokens(refused: Refused, graph_path: Path, variables: dict[str, str], error: str) -> None:
    told = refused(str(graph_path), "--bind", "127.0.0.1:0", **variables)
    assert error in told
    assert '"x"' not in told


def test_refused_addresses_and_graphs(refused: Refused, graph_path: Path, tmp_path: Path) -> None:
    free = ("--bind", "127.0.0.1:0")
    assert "is reached from other machines" in refused(str(graph_path), "--bind", "0.0.0.0:0")
    assert "an address is host:port" in refused(str(graph_path), "--bind", "8080")
    assert "name a graph to serve" in refused(*free)
    assert "can not be the id of a graph" in refused(f"{tmp_path}/a_b.omni", *free)
    assert "two graphs have the id 'people'" in refused(str(graph_path), str(graph_path), *free)
    assert "belong together" in refused(str(graph_path), "--tls-cert", "x", *free)
    config = tmp_path / "server.yaml"
    config.write_text("graph: x\n")
    assert "unknown key 'graph'" in refused("--config", str(config), *free)


def test_a_server_without_a_graph_does_not_start(tmp_path: Path) -> None:
    outcome = spawn("serve", str(tmp_path / "none.omni"), "--bind", "127.0.0.1:0", env=environment())
    assert (outcome.returncode, outcome.stdout) == (1, "")
    assert outcome.stderr.splitlines()[-1].startswith("Error: no graph can be served (none: there is no graph at ")


@pytest.mark.long
@pytest.mark.parametrize("more", [("--workers", "2"), ("--require-all-graphs",)])
def test_other_servers_that_can_not_start(graph_path: Path, tmp_path: Path, more: tuple[str, ...]) -> None:
    graphs = [str(tmp_path / "none.omni")] + [str(graph_path)] * ("--require-all-graphs" in more)
    outcome = spawn("serve", *graphs, *more, "--bind", "127.0.0.1:0", env=environment())
    assert outcome.returncode == 1
    assert "there is no graph at" in outcome.stderr
    assert outcome.stderr.splitlines()[-1].startswith("Error: ")


def test_a_configuration_file(graph_path: Path, tmp_path: Path) -> None:
    queries = tmp_path / "q"
    queries.mkdir()
    (queries / "a.gq").write_text(ALL)
    config = tmp_path / "server.yaml"
    config.write_text(
        f"unauthenticated: true\nread-only: true\ngraphs:\n  one: {{uri: {graph_path.name}, queries: q}}\n"
        "limits: {body_bytes: 200}\n"
    )
    with started(tmp_path, "--config", str(config)) as server, httpx.Client(base_url=server.url) as http:
        assert http.post("/graphs/one/queries/q").json()["row_count"] == 2
        assert http.post("/graphs/one/mutate", json={"query": ADD}).status_code == 403
        assert http.post("/graphs/one/query", json={"query": ALL + " " * 200}).status_code == 413
        assert http.get("/graphs").status_code == 403


def test_tls(graph_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    wanted = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    wanted += ["-addext", "subjectAltName=IP:127.0.0.1"]
    made = ["openssl", *wanted, "-keyout", str(key), "-out", str(certificate)]
    subprocess.run(made, check=True, capture_output=True)
    trusted = ssl.create_default_context(cafile=str(certificate))
    arguments = (str(graph_path), "--tls-cert", str(certificate), "--tls-key", str(key))
    with started(tmp_path, *arguments) as server, server.client(verify=trusted) as http:
        assert http.get("/graphs/people/snapshot").status_code == 200
        with pytest.raises(og.errors.Unavailable, match="CERTIFICATE_VERIFY_FAILED.*; set SSL_CERT_FILE to a file"):
            og.connect(server.url, graph="people", token=server.token()).branches()
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        with og.connect(server.url, graph="people", token=server.token()) as remote:
            assert remote.branches() == ["main"]


def test_a_running_request_is_finished(graph_path: Path, tmp_path: Path) -> None:
    variables = {"OMNIGRAPH_FAILPOINTS": "mutation.prepared=delay:1500"}
    answers: list[int] = []
    with started(tmp_path, str(graph_path), **variables) as server, server.client() as http:
        body = {"query": ADD, "params": {"name": "eve"}}
        http.get("/graphs/people/snapshot")
        slow = threading.Thread(
            target=lambda: answers.append(http.post("/graphs/people/mutate", json=body).status_code)
        )
        slow.start()
        time.sleep(0.5)
        server.process.send_signal(signal.SIGTERM)
        slow.join()
        assert server.process.wait(60) == 0
    assert answers == [200]


@pytest.mark.long
def test_a_request_that_takes_too_long_does_not_hold_up_the_end(graph_path: Path, tmp_path: Path) -> None:
    variables = {"OMNIGRAPH_FAILPOINTS": "mutation.prepared=delay:600000"}
    with started(tmp_path, str(graph_path), "--drain-seconds", "1", **variables) as server, server.client() as http:
        http.get("/graphs/people/snapshot")
        body = {"query": ADD, "params": {"name": "eve"}}

        answers: list[httpx.Response] = []
        slow = threading.Thread(target=lambda: answers.append(http.post("/graphs/people/mutate", json=body)))
        slow.start()
        time.sleep(0.5)
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(60) == 0
        slow.join()
    assert_error(answers[0], 503, None, "the server is stopping")


@pytest.mark.long
def test_a_followed_feed_does_not_hold_up_the_end(graph_path: Path, tmp_path: Path) -> None:
    with started(tmp_path, str(graph_path), "--drain-seconds", "600") as server, server.client() as http:
        with http.stream("GET", "/graphs/people/changes/stream") as answer:
            lines = answer.iter_lines()
            next(lines)
            server.process.send_signal(signal.SIGTERM)
            list(lines)
        assert server.process.wait(60) == 0


def test_two_workers_see_each_other_at_once(graph_path: Path, tmp_path: Path) -> None:
    with started(tmp_path, str(graph_path), "--workers", "2") as server:
        first, second = server.client(), server.client()
        first.get("/healthz")
        for number in range(6):
            body = {"query": ADD, "params": {"name": f"p{number}"}}
            made = first.post("/graphs/people/mutate", json=body).json()["commit"]["graph_commit_id"]
            for _ in range(3):
                with server.client() as fresh:
                    assert fresh.post("/graphs/people/query", json={"query": ALL}).json()["graph_commit_id"] == made
            assert second.post("/graphs/people/query", json={"query": ALL}).json()["row_count"] == 3 + number
        text = first.get("/metrics").text
        assert 'omnigraph_commits_total{graph="people"} 6.0' in text
        first.close()
        second.close()


@pytest.mark.long
def test_a_killed_worker_is_replaced(graph_path: Path, tmp_path: Path) -> None:
    with started(tmp_path, str(graph_path), "--workers", "2") as server:
        with server.client() as http:
            assert http.get("/graphs/people/snapshot").status_code == 200
        workers = children(server.process.pid)
        os.kill(workers[0], signal.SIGKILL)
        for number in range(20):
            with server.client(transport=httpx.HTTPTransport(retries=3)) as http:
                body = {"query": ADD, "params": {"name": f"p{number}"}}
                assert http.post("/graphs/people/mutate", json=body).status_code == 200
        _eventually(lambda: len(children(server.process.pid)) >= len(workers))


def _gauges(server: Process) -> dict[str, float]:
    """What is under way in all workers, as one of them tells it on a connection of its own."""
    with server.client() as http:
        lines = http.get("/metrics").text.splitlines()
    names = ("omnigraph_requests_in_flight", "omnigraph_pool_running", "omnigraph_pool_waiting")
    return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines if line.startswith(names)}


def test_metrics_of_all_workers(graph_path: Path, tmp_path: Path) -> None:
    """Whichever worker is asked, it tells what the others do now, and not what those did that are dead."""
    idle = {
        "omnigraph_requests_in_flight": 1.0,
        'omnigraph_pool_running{pool="reader"}': 1.0,
        'omnigraph_pool_running{pool="writer"}': 0.0,
        'omnigraph_pool_waiting{pool="reader"}': 0.0,
        'omnigraph_pool_waiting{pool="writer"}': 0.0,
    }
    with started(tmp_path, str(graph_path), "--workers", "2") as server:
        _eventually(lambda: len(children(server.process.pid)) == 2)
        for _ in range(20):
            assert _gauges(server) == idle
        with server.client() as http, http.stream("GET", "/graphs/people/changes/stream") as stream:
            # Kept: the response is closed with the iterator.
            pieces = stream.iter_bytes()
            next(pieces)
            assert {_gauges(server)["omnigraph_requests_in_flight"] for _ in range(10)} == {2.0}
            for worker in children(server.process.pid):
                os.kill(worker, signal.SIGKILL)
            with suppress(httpx.HTTPError):
                for _ in pieces:
                    pass
        _eventually(lambda: _tells(server, idle))


def _tells(server: Process, expected: dict[str, float]) -> bool:
    try:
        return _gauges(server) == expected
    except httpx.HTTPError:
        return False


@pytest.mark.long
def test_workers_end_with_their_parent(graph_path: Path, tmp_path: Path) -> None:
    with started(tmp_path, str(graph_path), "--workers", "2") as server:
        with server.client() as http:
            assert http.get("/graphs/people/snapshot").status_code == 200
        workers = children(server.process.pid)
        assert len(workers) >= 2
        server.process.kill()
        _eventually(lambda: not any(map(_is_alive, workers)))


def children(parent: int) -> list[int]:
    """The server processes below another one; Python's resource tracker is none."""
    listed = subprocess.run(
        ["ps", "-ww", "--ppid", str(parent), "-o", "pid=,args="], capture_output=True, text=True
    ).stdout
    return [int(line.split()[0]) for line in listed.splitlines() if "spawn_main" in line]


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    state = (
        Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] if Path(f"/proc/{pid}").exists() else "Z"
    )
    return state != "Z"
