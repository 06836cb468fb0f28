"""Requests that nobody sends by accident: numbers beyond 64 bits, senders that linger, answers in a form nobody likes."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

import omnigraph.server.routes.flat as flat
from omnigraph.server.process import Http
from omnigraph.server.settings import Limits
from tests.server.serving import ALL, TOKEN, Served, assert_error, serving, settings_of, without_id
from tests.server.test_limits import HEAVY, _raw, crowded

__all__ = ["crowded"]

HUGE = "9" * 23
MOST = 2**63 - 1


# --- numbers ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "start", "end"), [(f"{HUGE}-", MOST, 11), (f"{HUGE}-{HUGE}9", MOST, MOST), (f"12-{HUGE}", 12, MOST)]
)
def test_a_range_of_any_size(reading: Served, given: str, start: int, end: int) -> None:
    """A range beyond the value is told as such, however many digits it has."""
    selector = {"entity": "node", "type": "Doc", "id": "hello", "property": "content"}
    answer = reading.get("/blob", params=selector, headers={"Range": f"bytes={given}"})
    assert_error(answer, 416, "bad_request", None, blob_range={"start": start, "end": end, "length": 11})
    assert answer.headers["content-range"] == "bytes */11"


@pytest.mark.parametrize(
    "path",
    [
        f"/changes?limit={HUGE}",
        f"/changes?max_commits={HUGE}",
        f"/changes?limit=-{HUGE}",
        f"/commits?limit={HUGE}",
        f"/commits?since={HUGE}",
        f"/commits?until=-{HUGE}",
        f"/branches?limit={HUGE}",
        f"/neighbours?type=Person&id=ada&limit={HUGE}",
    ],
)
def test_parameters_of_any_size(reading: Served, path: str) -> None:
    answer = reading.get(path)
    assert answer.status_code == 400, answer.text
    assert without_id(answer)["code"] == "bad_request"


def test_an_error_that_nobody_foresaw(reading: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also what breaks while an answer, or the body of an error, is made is the one JSON error object."""

    def broken(*_: object, **__: object) -> Any:
        raise RuntimeError("/srv/secret")

    monkeypatch.setattr("omnigraph.server.dispatch.error_body", broken)
    answer = reading.post("/query", {"query": "x"})
    assert_error(answer, 500, "internal", "internal error")
    assert "secret" not in answer.text
    assert reading.http.get("/healthz").status_code == 200


# --- senders ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def hurried(graph_path: Path) -> Iterator[Served]:
    limits = replace(Limits(), receive_seconds=0.5, receive_rate=2000)
    with serving(settings_of(graph_path, limits=limits)) as served:
        yield served


def _dribbled(connection: socket.socket, seconds: float) -> tuple[bytes, float]:
    """What comes while a byte is sent ten times a second, until the connection is closed, and after how many seconds it is."""
    began = time.monotonic()
    connection.settimeout(0.1)
    got = b""
    while time.monotonic() - began < seconds:
        try:
            part = connection.recv(65536)
            if not part:
                return got, time.monotonic() - began
            got += part
        except TimeoutError:
            pass
        except ConnectionError:
            return got, time.monotonic() - began
        try:
            connection.sendall(b" ")
        except OSError:
            return got, time.monotonic() - began
    return got, seconds


def test_a_body_that_dribbles_in_is_cut_off(hurried: Served) -> None:
    """A byte now and then is no way to hold a connection: the body as a whole has a time, which grows with its size."""
    head = f"POST /graphs/people/query HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\nContent-Length: 900000\r\n\r\n"
    with _raw(hurried, head.encode()) as slow:
        slow.settimeout(0.1)
        got = b""
        for _ in range(100):
            slow.sendall(b" ")
            try:
                got += slow.recv(65536)
                break
            except TimeoutError:
                continue
    assert got.startswith(b"HTTP/1.1 408 ")
    assert b"slower than 2000 bytes a second" in got
    assert hurried.post("/query", {"query": ALL + " " * 500_000}).status_code == 200


def test_a_body_that_nobody_reads_does_not_hold_a_connection(hurried: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who was refused before its body was there has a moment to end it, and is not waited for any longer."""
    monkeypatch.setattr(Http, "head_seconds", 1.0)
    head = (
        b"POST /graphs/people/query HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer none\r\nContent-Length: 900000\r\n\r\n"
    )
    with _raw(hurried, head) as slow:
        got, seconds = _dribbled(slow, 10)
    assert got.startswith(b"HTTP/1.1 401 ")
    assert 0.5 < seconds < 5


def test_a_body_that_nobody_reads_may_still_end(hurried: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """The connection of a refused request is good for the next one, whatever time that takes to come."""
    monkeypatch.setattr(Http, "head_seconds", 0.5)
    head = b"POST /graphs/people/query HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer none\r\nContent-Length: 5\r\n\r\n"
    with _raw(hurried, head) as slow:
        slow.settimeout(10)
        assert slow.recv(65536).startswith(b"HTTP/1.1 401 ")
        slow.sendall(b"12345")
        time.sleep(1)
        slow.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        assert slow.recv(65536).startswith(b"HTTP/1.1 200 ")


# --- forms of answers -----------------------------------------------------------------------------------------------------

ARROW, LINES, JSON = "application/vnd.apache.arrow.stream", "application/x-ndjson", "application/json"


@pytest.mark.parametrize(
    ("accept", "given"),
    [
        ([LINES], LINES),
        ([LINES.upper()], LINES),
        ([f"{LINES};q=0"], JSON),
        ([f"{JSON}, {LINES};q=0.1"], JSON),
        ([f"{LINES};q=0.1, {JSON};q=0.2"], JSON),
        ([f"{LINES};q=0.5, {ARROW};q=0.9, {JSON};q=0.1"], ARROW),
        ([f"{JSON};q=0.2", f"{LINES};q=0.9"], LINES),
        ([f"{LINES}, {JSON}"], LINES),
        ([f"{ARROW} ; charset=x ; Q=0.3 , */*;q=0.1"], ARROW),
        ([f"*/*, {LINES};q=0.5"], JSON),
        ([f"{LINES};q=x"], JSON),
        (["text/html, application/xml;q=0.9, */*;q=0.8"], JSON),
        (["application/xml"], JSON),
        (["", ","], JSON),
    ],
)
def test_the_form_that_is_liked_best(reading: Served, accept: list[str], given: str) -> None:
    headers = [("Accept", text) for text in accept]
    with httpx.Client(base_url=reading.url) as http:
        http.headers = httpx.Headers({"Authorization": f"Bearer {TOKEN}"})
        answer = http.post("/graphs/people/query", json={"query": ALL}, headers=headers)
    assert answer.status_code == 200
    assert answer.headers["content-type"].partition(";")[0] == given
    assert answer.headers["vary"].startswith("Accept")


# --- deadlines ------------------------------------------------------------------------------------------------------------


def test_the_time_in_the_queue_counts(graph_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A request has its deadline from the moment it came, not from when a thread was free."""
    asked: list[float] = []
    release = threading.Event()

    def health(state: Any) -> str:
        release.wait(10)
        return "ready"

    monkeypatch.setattr(flat, "health_of", health)
    limits = replace(Limits(), read_threads=1)
    with serving(settings_of(graph_path, limits=limits)) as served:
        graph = served.state.graphs.healthy["people"].graph
        query = graph.query

        def watched(*given: Any, **named: Any) -> Any:
            asked.append(named["timeout"])
            return query(*given, **named)

        monkeypatch.setattr(graph, "query", watched)
        holder = threading.Thread(target=lambda: served.http.get("/readyz"))
        holder.start()
        while not served.state.readers.running:
            time.sleep(0.01)
        timer = threading.Timer(1.0, release.set)
        timer.start()
        answer = served.post("/query", {"query": ALL}, headers={"Omnigraph-Timeout-Ms": "5000"})
        holder.join()
    assert answer.status_code == 200
    assert len(asked) == 1
    assert 0 < asked[0] < 4.5


@pytest.mark.parametrize("milliseconds", ["300", "900"])
def test_a_deadline_is_kept(crowded: Served, milliseconds: str) -> None:
    began = time.monotonic()
    answer = crowded.post("/query", {"query": HEAVY}, headers={"Omnigraph-Timeout-Ms": milliseconds})
    took = time.monotonic() - began
    assert answer.status_code == 504
    assert took < int(milliseconds) / 1000 + 2
