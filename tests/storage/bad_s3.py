"""An HTTP server that answers every request in one bad way, for what a good S3 server will not do on demand."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from omnigraph.storage.root import Root

#: An answer is a status, or what the server does instead of answering.
Answer = int | str
HANG_UP = "hang up"


@dataclass
class BadS3:
    """The server's script and what it was asked. `answers` are given in turn, the last one for ever."""

    endpoint: str = ""
    answers: list[Answer] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    @property
    def options(self) -> dict[str, str]:
        """Storage options that lead here."""
        return {
            "aws_access_key_id": "test",
            "aws_secret_access_key": "test",
            "aws_region": "us-east-1",
            "aws_endpoint": self.endpoint,
            "allow_http": "true",
        }

    @property
    def root(self) -> Root:
        """A graph on this server."""
        return Root.parse("s3://bucket/graph", self.options, {})

    def next_answer(self, method: str) -> Answer:
        """Record a request and choose its answer."""
        self.asked.append(method)
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


@contextmanager
def bad_s3() -> Iterator[BadS3]:
    """Run a bad server for a block."""
    script = BadS3()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            self.rfile.read(int(self.headers.get("content-length") or 0))
            answer = script.next_answer(self.command)
            if isinstance(answer, str):
                self.close_connection = True
                self.connection.shutdown(socket.SHUT_RDWR)
                return
            body = b"" if self.command == "HEAD" else b"<Error><Code>Bad</Code><Message>bad</Message></Error>"
            self.send_response(answer)
            self.send_header("ETag", '"tag"')
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_PUT = do_HEAD = do_POST = do_DELETE = answer

        def log_message(self, format: str, *arguments: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        script.endpoint = f"http://127.0.0.1:{server.server_port}"
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield script
        server.shutdown()
