"""A real S3-speaking server for tests: moto in a process of its own. `python -m tests.s3` runs one until stdin ends."""

from __future__ import annotations

import io
import itertools
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import boto3

from omnigraph.storage.root import Root

_PROJECT = Path(__file__).resolve().parent.parent
_names = itertools.count(1)


@dataclass(frozen=True)
class S3Server:
    """A running server and how to reach it."""

    endpoint: str

    @property
    def options(self) -> dict[str, str]:
        """Storage options that obstore and Lance both take."""
        return {
            "aws_access_key_id": "test",
            "aws_secret_access_key": "test",
            "aws_region": "us-east-1",
            "aws_endpoint": self.endpoint,
            "allow_http": "true",
            "aws_virtual_hosted_style_request": "false",
        }

    def new_root(self) -> Root:
        """A prefix in a bucket of its own."""
        return Root.parse(f"s3://{self.new_bucket()}/graphs/one", self.options)

    def new_bucket(self) -> str:
        """A fresh bucket."""
        name = f"bucket-{os.getpid()}-{next(_names)}"
        client = boto3.client(
            "s3",
            endpoint_url=self.endpoint,
            aws_access_key_id="test",
            aws_secret_access_key="test",
            region_name="us-east-1",
        )
        client.create_bucket(Bucket=name)
        return name


@contextmanager
def running_server() -> Iterator[S3Server]:
    """Start a server on a free port and stop it after the block; it also stops when this process dies."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.s3"],
        cwd=_PROJECT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdin is not None
    with process:
        port = process.stdout.readline().strip()
        assert port, "the S3 server did not start; run `python -m tests.s3` to see why"
        yield S3Server(f"http://127.0.0.1:{port}")
        process.stdin.close()


def _serve() -> None:
    # The app of S3 alone: moto's choice among the apps of all services looks through its folders at every request.
    from moto.moto_server.werkzeug_app import create_backend_app
    from werkzeug.serving import WSGIRequestHandler, make_server

    class Handler(WSGIRequestHandler):
        """Whole bodies in, whole answers out, many requests per connection: werkzeug's own closes it after each."""

        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True
        wbufsize = -1

        def run_wsgi(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = self.rfile.read(length)
            if len(body) < length:  # S3 refuses a body that breaks off; moto would keep what it has
                self.close_connection = True
                return self._answer("400 Bad Request", [], b"<Error><Code>IncompleteBody</Code></Error>")
            answered: list[tuple[str, list[tuple[str, str]]]] = []
            content: list[bytes] = []

            def start_response(
                status: str, headers: list[tuple[str, str]], _error: object = None, /
            ) -> Callable[[bytes], object]:
                answered.append((status, headers))
                return content.append

            with turn:  # a condition and its write are one step at S3, which moto does not see to
                content += app({**self.make_environ(), "wsgi.input": io.BytesIO(body)}, start_response)
            return self._answer(*answered[-1], b"".join(content))

        def _answer(self, status: str, headers: list[tuple[str, str]], content: bytes) -> None:
            code, _, reason = status.partition(" ")
            self.send_response_only(int(code), reason)
            self.send_header("Date", self.date_time_string())
            for name, value in headers:
                if name.lower() not in ("content-length", "transfer-encoding", "connection") or self.command == "HEAD":
                    self.send_header(name, value)
            if self.command != "HEAD" and code not in ("204", "304"):
                self.send_header("Content-Length", str(len(content)))
            if self.close_connection:
                self.send_header("Connection", "close")
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(content)
            self.wfile.flush()

    app, turn = create_backend_app("s3"), threading.Lock()
    server = make_server("127.0.0.1", 0, app, threaded=True, request_handler=Handler)
    print(server.port, flush=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    sys.stdin.read()


if __name__ == "__main__":
    _serve()
