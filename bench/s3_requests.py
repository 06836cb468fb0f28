"""Every request a graph on S3 makes, Lance's and those of our object store: a recording proxy before the server."""

from __future__ import annotations

import http.client
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

from tests.s3 import S3Server

#: Every answer is held back this long while requests are recorded, so that requests sent together overlap.
LATENCY_SECONDS = 0.02
_HOP_BY_HOP = frozenset({"connection", "keep-alive", "transfer-encoding", "date", "server"})


@dataclass(frozen=True)
class Request:
    """One request as the proxy saw it; times in seconds of one clock."""

    verb: str
    path: str
    started: float
    ended: float


@dataclass(frozen=True)
class Recording:
    """The requests of one block of code, in the order they were sent."""

    requests: tuple[Request, ...]

    @property
    def total(self) -> int:
        return len(self.requests)

    @property
    def in_sequence(self) -> int:
        """How many round trips one after the other these requests took.

        A request can depend only on requests that were answered before it was sent. So this is the longest chain in
        which each request was sent after the one before was answered. It is never too small: independent requests
        that happen not to overlap count as two.
        """
        length, free_at = 0, float("-inf")
        for request in sorted(self.requests, key=lambda request: request.ended):
            if request.started >= free_at:
                length, free_at = length + 1, request.ended
        return length

    @property
    def verbs(self) -> Counter[str]:
        return Counter(request.verb for request in self.requests)

    def until(self, verb: str, path: str) -> Recording:
        """The part up to the answer to the first request with this verb whose path contains this text."""
        end = min(request.ended for request in self.requests if request.verb == verb and path in request.path)
        return Recording(tuple(request for request in self.requests if request.ended <= end))

    def __str__(self) -> str:
        begin = min((request.started for request in self.requests), default=0.0)
        return "\n".join(
            f"{1000 * (request.started - begin):6.0f} …{1000 * (request.ended - begin):6.0f} ms"
            f"  {request.verb:6} {request.path}"
            for request in self.requests
        )


class Recorder:
    """Collects the requests of the block that is being recorded, if any. `latency`: seconds added to each of the others."""

    def __init__(self, latency: float = 0.0) -> None:
        self._latency = latency
        self._requests: list[Request] | None = None
        self._lock = threading.Lock()

    @contextmanager
    def recording(self) -> Iterator[Callable[[], Recording]]:
        """Record the requests of a block; the function it gives returns those answered so far."""
        requests: list[Request] = []
        self._requests = requests
        try:
            yield lambda: Recording(tuple(sorted(requests, key=lambda request: request.started)))
        finally:
            self._requests = None

    @contextmanager
    def passing(self, verb: str, path: str) -> Iterator[None]:
        """One request on its way through the proxy."""
        requests, started = self._requests, time.monotonic()
        yield
        time.sleep(self._latency if requests is None else LATENCY_SECONDS)
        if requests is not None:
            with self._lock:
                requests.append(Request(verb, path, started, time.monotonic()))


@contextmanager
def recorded(server: S3Server, latency: float = 0.0) -> Iterator[tuple[S3Server, Recorder]]:
    """The same server, reached through a proxy that records; `latency`: seconds added to requests that it does not record."""
    recorder = Recorder(latency)
    proxy = ThreadingHTTPServer(("127.0.0.1", 0), _handler(recorder, urlsplit(server.endpoint).netloc))
    thread = threading.Thread(target=proxy.serve_forever, name="recording proxy", daemon=True)
    thread.start()
    try:
        yield S3Server(f"http://127.0.0.1:{proxy.server_port}"), recorder
    finally:
        proxy.shutdown()
        proxy.server_close()
        thread.join()


def _handler(recorder: Recorder, backend: str) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        """Passes a request on as it is."""

        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def forward(self) -> None:
            with recorder.passing(_verb(self.command, self.path), self.path):
                status, headers, body = self._ask_backend()
            self.send_response_only(status)
            for name, value in headers:
                if name.lower() not in _HOP_BY_HOP:
                    self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def _ask_backend(self) -> tuple[int, list[tuple[str, str]], bytes]:
            content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            connection = http.client.HTTPConnection(backend)
            try:
                connection.request(self.command, self.path, content, dict(self.headers))
                answer = connection.getresponse()
                return answer.status, answer.getheaders(), answer.read()
            finally:
                connection.close()

        do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = forward

    return Handler


def _verb(method: str, path: str) -> str:
    """The S3 operation: a GET of a listing is a LIST, a POST to delete several objects at once a DELETE."""
    query = urlsplit(path).query
    if method == "GET" and "list-type=" in query:
        return "LIST"
    return "DELETE" if method == "POST" and query.startswith("delete") else method
