"""A real HTTP server that speaks the protocols of the embedding services, and fails as they do when told to."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

#: How long a slow answer takes at most: long enough that a client which does not give up gets it, and shows.
SLOW_SECONDS = 20.0


@dataclass(frozen=True)
class Asked:
    """One request as it came in."""

    path: str
    headers: dict[str, str]
    body: Any
    at: float

    @property
    def texts(self) -> list[str]:
        if "input" in self.body:
            return list(self.body["input"])
        return [request["content"]["parts"][0]["text"] for request in self.body["requests"]]


@dataclass(frozen=True)
class Answer:
    """What is answered instead of vectors. `slow` holds it back; `drip` sends it a byte at a time.

    `drip_headers` sends one header after the other for as long as a slow answer takes; `raw` is sent as it is.
    """

    status: int = 200
    body: bytes = b"{}"
    headers: dict[str, str] = field(default_factory=dict)
    slow: bool = False
    drip: bool = False
    hang_up: bool = False
    drip_headers: bool = False
    raw: bytes | None = None


def vector(text: str, dimension: int) -> list[float]:
    """What the server thinks a text is: not of length one, and different for different texts."""
    return [float(len(text) + place + 1) for place in range(dimension)]


class Service:
    """The script of a server: the next answers in order, then vectors; and what it was asked."""

    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self.answers: list[Answer] = []
        self.reverse = False
        self.released = threading.Event()
        #: Whether a client has waited for the last of many headers.
        self.waited_for = False
        self.url = ""

    def answer(self, asked: Asked) -> Answer:
        self.asked.append(asked)
        return self.answers.pop(0) if self.answers else Answer(body=json.dumps(self._vectors(asked)).encode())

    def _vectors(self, asked: Asked) -> dict[str, Any]:
        if asked.path.endswith("/embeddings"):
            dimension = asked.body["dimensions"]
            data = [{"index": place, "embedding": vector(text, dimension)} for place, text in enumerate(asked.texts)]
            return {"data": data[::-1] if self.reverse else data, "model": asked.body["model"]}
        dimension = asked.body["requests"][0]["outputDimensionality"]
        return {"embeddings": [{"values": vector(text, dimension)} for text in asked.texts]}


@contextmanager
def running_service(given: Service | None = None) -> Iterator[Service]:
    """A service on a free port of this machine, until the block ends; the given one, or a new one."""
    service = given or Service()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            answer = service.answer(Asked(self.path, dict(self.headers.items()), body, time.monotonic()))
            if answer.slow:
                service.released.wait(SLOW_SECONDS)
            if answer.hang_up:
                self.connection.close()
                return
            if answer.raw is not None:
                self.wfile.write(answer.raw)
                self.close_connection = True
                return
            if answer.drip_headers:
                self._drip_headers()
            self.send_response(answer.status)
            for name, value in {**answer.headers, "Content-Length": str(len(answer.body))}.items():
                self.send_header(name, value)
            self.end_headers()
            for start in range(0, len(answer.body), 1 if answer.drip else len(answer.body)):
                self.wfile.write(answer.body[start : start + 1] if answer.drip else answer.body)
                if answer.drip and service.released.wait(0.02):
                    return

        def _drip_headers(self) -> None:
            self.wfile.write(b"HTTP/1.1 200 OK\r\n")
            for number in range(int(SLOW_SECONDS / 0.02)):
                self.wfile.write(b"X-%d: y\r\n" % number)
                if service.released.wait(0.02):
                    return
            service.waited_for = True

        def log_message(self, format: str, *args: object) -> None:
            """Quiet: the tests look at what was asked."""

    class Quiet(ThreadingHTTPServer):
        def handle_error(self, request: object, client_address: object) -> None:
            """A client that gives up on a slow answer is what is being tested."""

    server = Quiet(("127.0.0.1", 0), Handler)
    service.url = f"http://127.0.0.1:{server.server_port}/v1"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield service
    finally:
        service.released.set()
        server.shutdown()
        thread.join()
        server.server_close()
