"""A server in front of the S3 server that passes requests on and loses the answers of some."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

from omnigraph.storage.root import Root
from tests.s3 import S3Server


@dataclass
class LosingS3:
    """`loses(method, path)` decides whether an answer is lost; the request itself is always carried out."""

    root: Root
    loses: Callable[[str, str], bool] = lambda _method, _path: False
    lost: int = 0


@contextmanager
def losing_s3(behind: S3Server) -> Iterator[LosingS3]:
    """Run such a server for a block."""
    target = urlsplit(behind.endpoint).netloc

    class Handler(BaseHTTPRequestHandler):
        def pass_on(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            connection = HTTPConnection(target)
            connection.request(self.command, self.path, body, dict(self.headers))
            answer = connection.getresponse()
            content = answer.read()
            connection.close()
            if script.loses(self.command, self.path):
                script.lost += 1
                self.close_connection = True
                return
            self.send_response(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in ("transfer-encoding", "connection", "date", "server"):
                    self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = pass_on

        def log_message(self, format: str, *arguments: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    options = {
        **behind.options,
        "aws_endpoint": f"http://127.0.0.1:{server.server_address[1]}",
        "client_max_retries": "1",
    }
    script = LosingS3(Root.parse(f"s3://{behind.new_bucket()}/graph", options))
    yield script
    server.shutdown()
    server.server_close()
