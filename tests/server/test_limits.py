"""Limits before parsing, admission per actor, hang-ups and deadlines."""

from __future__ import annotations

import asyncio
import gzip
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from omnigraph import failpoints
from omnigraph.errors import TooManyRequests
from omnigraph.server.admission import Admission, FailedTries, FairSlots
from omnigraph.server.process import Http
from omnigraph.server.settings import Limits
from tests.own_loop import run_alone
from tests.server.serving import ADD, ALL, TOKEN, Served, assert_error, serving, settings_of


@pytest.fixture
def small(graph_path: Path) -> Iterator[Served]:
    limits = replace(Limits(), body_bytes=2000, load_bytes=4000, receive_seconds=0.5, head_bytes=8192, actor_requests=1)
    with serving(settings_of(graph_path, limits=limits)) as served:
        yield served


def test_bodies(small: Served) -> None:
    announced = small.post("/query", {"query": ALL + " " * 3000})
    size = int(announced.request.headers["content-length"])
    limit = {"resource": "request_body_bytes", "limit": 2000, "actual": size}
    assert_error(announced, 413, "bad_request", "at most 2000 bytes", resource_limit=limit)

    def parts() -> Iterator[bytes]:
        for _ in range(5):
            yield b" " * 1000

    streamed = small.post("/query", content=parts())
    assert streamed.status_code == 413
    assert 2000 < streamed.json()["resource_limit"]["actual"] <= 5000
    lines = {"Content-Type": "application/x-ndjson"}
    assert small.post(
        "/load/ndjson", content=b"\n" * 3000 + b'{"type":"Person","data":{"name":"x"}}', headers=lines
    ).is_success
    over = small.post("/load/ndjson", content=b"\n" * 5000, headers=lines)
    limit = {"resource": "request_body_bytes", "limit": 4000, "actual": 5000}
    assert_error(over, 413, "bad_request", resource_limit=limit)
    assert small.post("/load", {"data": " " * 3000 + '{"type":"Person","data":{"name":"y"}}'}).is_success


def test_heads(small: Served) -> None:
    for answer in (
        small.get("/snapshot", headers={"X-Large": "x" * 20_000}),
        small.get("/snapshot", headers={"X-Large": "x" * 2_000_000}),
        small.get("/snapshot", params={"branch": "x" * 20_000}),
    ):
        assert_error(answer, 400, "bad_request", "its head is too large")
    with _raw(small, b"nonsense\r\n\r\n") as connection:
        assert connection.recv(4096).startswith(b"HTTP/1.1 400 ")
    assert small.get("/snapshot").status_code == 200
    many = "&".join(f"a{number}=1" for number in range(300))
    assert_error(small.get(f"/snapshot?{many}"), 400, "bad_request", "query parameters")


def _raw(served: Served, text: bytes) -> socket.socket:
    host, port = served.url.removeprefix("http://").split(":")
    connection = socket.create_connection((host, int(port)))
    connection.sendall(text)
    return connection


def test_a_slow_sender_is_cut_off(small: Served) -> None:
    head = (
        f"POST /graphs/people/query HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\nContent-Length: 100\r\n\r\n"
    )
    with _raw(small, head.encode() + b"{") as slow:
        slow.settimeout(30)
        assert small.get("/snapshot").status_code == 200
        answer = b"".join(iter(lambda: slow.recv(4096), b""))
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert b"connection: close" in answer.lower()
    assert b'"code":"bad_request"' in answer


def test_a_body_that_ends_early(small: Served) -> None:
    head = f"POST /graphs/people/mutate HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\nContent-Length: 100\r\n\r\n"
    _raw(small, head.encode() + b'{"query": "').close()
    assert small.get("/snapshot").status_code == 200


@pytest.mark.parametrize("before", [b"", b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"], ids=["first", "later"])
def test_a_head_that_dribbles_in_is_cut_off(small: Served, before: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not only silence: what counts is the time until the head is complete."""
    monkeypatch.setattr(Http, "head_seconds", 0.5)
    with _raw(small, before + b"GET /healthz HTTP/1.1\r\n") as slow:
        slow.settimeout(0.1)
        got = b""
        for _ in range(600):
            try:
                got += slow.recv(65536) or b"<closed>"
                slow.sendall(b"X-A: b\r\n")
            except TimeoutError:
                slow.sendall(b"X-A: b\r\n")
            except ConnectionError:
                got += b"<closed>"
            if got.endswith(b"<closed>"):
                break
    assert got.count(b"HTTP/1.1 200") == before.count(b"GET")
    assert got.endswith(b"<closed>")
    assert small.get("/snapshot").status_code == 200


def _answer(connection: socket.socket) -> bytes:
    """One whole answer with a JSON body; its head and its body may arrive apart."""
    answer = b""
    while not answer.endswith(b"}") and (part := connection.recv(65536)):
        answer += part
    return answer


def test_a_connection_stays_between_requests(small: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor is the time of a request, or of its answer, counted."""
    monkeypatch.setattr(Http, "head_seconds", 0.2)
    ask = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
    with _raw(small, ask) as connection:
        for _ in range(3):
            assert _answer(connection).startswith(b"HTTP/1.1 200")
            time.sleep(0.5)
            connection.sendall(ask)
        assert _answer(connection).startswith(b"HTTP/1.1 200")


def test_no_request_hides_in_the_body_of_another(small: Served) -> None:
    """A request with two lengths is refused, and what follows it on the connection is not answered."""
    head = f"POST /graphs/people/query HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\n"
    lengths = "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"
    hidden = "0\r\n\r\nGET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
    with _raw(small, (head + lengths + hidden).encode()) as connection:
        answer = b"".join(iter(lambda: connection.recv(65536), b""))
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b"Content-Length or Transfer-Encoding, not both" in answer
    assert answer.count(b"HTTP/1.1 ") == 1


@pytest.mark.parametrize("path", ["/query", "/load", "/load/ndjson"])
def test_compressed_bodies_are_refused(small: Served, path: str) -> None:
    """Whatever they would unfold to."""
    media = "application/x-ndjson" if path == "/load/ndjson" else "application/json"
    headers = {"Content-Encoding": "gzip", "Content-Type": media}
    answer = small.post(path, content=gzip.compress(b" " * 10_000), headers=headers)
    assert_error(answer, 400, "bad_request", "the body of a request is not compressed")


def test_admission_on_the_wire(small: Served) -> None:
    inside, go_on = threading.Event(), threading.Event()

    def wait() -> None:
        inside.set()
        go_on.wait()

    answers: list[httpx.Response] = []
    with failpoints.armed("mutation.prepared", wait):
        first = threading.Thread(
            target=lambda: answers.append(small.post("/mutate", {"query": ADD, "params": {"name": "eve"}}))
        )
        first.start()
        inside.wait()
        refused = small.post("/mutate", {"query": ADD, "params": {"name": "fay"}})
        assert_error(refused, 429, "too_many_requests", "try again later")
        assert refused.headers["retry-after"] == "60"
        # Reads need no admission, also those that are stored, and do not wait for writes.
        assert small.post("/queries/people").json()["row_count"] == 2
        assert small.post("/query", {"query": ALL}).json()["row_count"] == 2
        go_on.set()
        first.join()
    assert answers[0].status_code == 200
    assert small.post("/mutate", {"query": ADD, "params": {"name": "fay"}}).status_code == 200


def test_admission_counts_bytes() -> None:
    admission = Admission(replace(Limits(), actor_bytes=100))
    with admission.admit("a", 80):
        with pytest.raises(TooManyRequests), admission.admit("a", 30):
            pass
        with admission.admit("b", 80), admission.admit("a", 20):
            pass
    # One request alone is let in, however large it is: the limits of bodies bound it.
    with admission.admit("a", 1000):
        pass


def test_many_wrong_tokens_are_answered_slowly(graph_path: Path) -> None:
    limits = replace(Limits(), free_failures=2, failure_seconds=0.5)
    with serving(settings_of(graph_path, limits=limits)) as served:
        taken = []
        for _ in range(4):
            began = time.monotonic()
            assert served.get("/snapshot", headers={"Authorization": "Bearer wrong"}).status_code == 401
            taken.append(time.monotonic() - began)
        assert min(taken[2:]) >= 0.5
        assert served.get("/snapshot").status_code == 200


def test_failed_tries_are_forgotten() -> None:
    tries = FailedTries(replace(Limits(), free_failures=1))
    assert [tries.delay("a", now) for now in (0, 1, 2)] == [0.0, 1.0, 1.0]
    assert tries.delay("b", 2) == 0.0
    assert tries.delay("a", 100) == 0.0


def test_slots_are_given_in_turn() -> None:
    order: list[str] = []

    async def work(slots: FairSlots, actor: str) -> None:
        assert await slots.acquire(actor, 60)
        order.append(actor)
        await asyncio.sleep(0)
        slots.release()

    async def scenario() -> None:
        slots = FairSlots(1)
        assert await slots.acquire("x", 1)
        waiting = [asyncio.create_task(work(slots, actor)) for actor in ("a", "a", "a", "b", "c")]
        await asyncio.sleep(0)
        assert slots.waiting == 5
        assert not await slots.acquire("late", 0.01)
        slots.release()
        await asyncio.gather(*waiting)
        assert await slots.acquire("x", 1)

    run_alone(scenario())
    assert order == ["a", "b", "c", "a", "a"]


def test_a_request_does_not_wait_forever_for_a_thread(graph_path: Path) -> None:
    limits = replace(Limits(), write_threads=1, queue_seconds=0.2)
    inside, go_on = threading.Event(), threading.Event()

    def wait() -> None:
        inside.set()
        go_on.wait()

    with serving(settings_of(graph_path, limits=limits)) as served, failpoints.armed("mutation.prepared", wait):
        first = threading.Thread(target=lambda: served.post("/mutate", {"query": ADD, "params": {"name": "eve"}}))
        first.start()
        inside.wait()
        busy = served.post("/mutate", {"query": ADD, "params": {"name": "fay"}})
        assert_error(busy, 503, None, "the server is busy")
        assert busy.headers["retry-after"] == "1"
        go_on.set()
        first.join()


HEAVY = "query h() { match { $a: Person $a knows{1,9} $b $b knows{1,9} $c } return { $a.name, $b.name, $c.name } }"


@pytest.fixture
def crowded(served: Served) -> Served:
    """A graph in which a path query runs for a long time: 300 people who all know many others."""
    people = "".join(f'{{"type":"Person","data":{{"name":"p{number}"}}}}\n' for number in range(300))
    knows = "".join(
        f'{{"edge":"Knows","from":"p{a}","to":"p{(a * 7 + b * 13) % 300}","data":{{}}}}\n'
        for a in range(300)
        for b in range(30)
    )
    answer = served.post(
        "/load/ndjson", content=(people + knows).encode(), headers={"Content-Type": "application/x-ndjson"}
    )
    assert answer.status_code == 200, answer.text
    return served


def test_a_deadline_ends_a_query(crowded: Served) -> None:
    answer = crowded.post("/query", {"query": HEAVY}, headers={"Omnigraph-Timeout-Ms": "300"})
    if answer.status_code == 413:
        pytest.fail("the query met its memory limit before its deadline")
    assert_error(answer, 504, None, "did not end within 0.3 s", deadline_exceeded={"seconds": 0.3})


def test_a_memory_limit_ends_a_query(reading: Served) -> None:
    answer = reading.post("/query", {"query": ALL, "memory_limit": 1})
    assert answer.status_code == 413
    limit = answer.json()["resource_limit"]
    assert (limit["resource"], limit["limit"]) == ("query memory bytes", 1)
    assert_error(reading.post("/query", {"query": ALL, "memory_limit": 0}), 400, "bad_request", "memory_limit")


def test_a_hang_up_ends_a_query(crowded: Served) -> None:
    readers = crowded.state.readers
    with pytest.raises(httpx.ReadTimeout):
        crowded.post("/query", {"query": HEAVY}, timeout=0.5)
    while readers.running:
        time.sleep(0.01)
    # It ended because nobody listened, and not at its deadline, which would be status 504.
    text = crowded.http.get("/metrics").text
    assert 'omnigraph_requests_total{operation="query",status="499"} 1.0' in text
    assert 'operation="query",status="504"' not in text
    assert crowded.get("/snapshot").status_code == 200
