"""What `embedding/httpx_private.py` relies on: the pool of a client's transport has a network backend that connects."""

from __future__ import annotations

import socket
import threading
import time

import httpx
import pytest

from omnigraph.embedding.httpx_private import Deadlines


def test_a_client_has_a_pool_with_a_network_backend() -> None:
    with httpx.Client() as client:
        backend = client._transport._pool._network_backend  # type: ignore[attr-defined]
        assert callable(backend.connect_tcp)
        assert isinstance(client._mounts, dict)


def test_bytes_that_come_one_by_one_do_not_outlast_the_deadline() -> None:
    """Each byte comes well within the timeout of a read; the exchange is given up all the same."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        done = threading.Event()

        def drip() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(65536)
                for byte in b"HTTP/1.1 200 OK\r\nX-Endless: " + b"x" * 10_000:
                    if done.wait(0.01):
                        return
                    connection.sendall(bytes([byte]))

        thread = threading.Thread(target=drip, daemon=True)
        thread.start()
        deadlines = Deadlines()
        try:
            with (
                deadlines.bind(httpx.Client(timeout=30)) as client,
                deadlines.until(time.monotonic() + 0.3),
                pytest.raises(httpx.ReadTimeout),
            ):
                client.get(f"http://127.0.0.1:{server.getsockname()[1]}/")
        finally:
            done.set()
            thread.join()
