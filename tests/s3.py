"""A real S3-speaking server for tests: moto in a process of its own. `python -m tests.s3` runs one until stdin ends."""

from __future__ import annotations

import io
import itertools
import os
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import boto3

from omnigraph.storage.root import Root

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

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
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import make_server

    app = _one_at_a_time(DomainDispatcherApplication(create_backend_app))
    server = make_server("127.0.0.1", 0, app, threaded=True)
    print(server.port, flush=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    sys.stdin.read()


def _one_at_a_time(app: WSGIApplication) -> WSGIApplication:
    """What S3 does and moto does not: a condition and its write are one step, and a body that breaks off is refused."""
    turn = threading.Lock()

    def handle(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        length = int(environ.get("CONTENT_LENGTH") or 0)
        body = environ["wsgi.input"].read(length)
        if len(body) < length:
            start_response("400 Bad Request", [])
            return [b"<Error><Code>IncompleteBody</Code></Error>"]
        with turn:
            return app({**environ, "wsgi.input": io.BytesIO(body)}, start_response)

    return handle


if __name__ == "__main__":
    _serve()
