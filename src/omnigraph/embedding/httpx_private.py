"""What is used of httpx beyond its public API: the network backend of a client's connections.

Why: httpx bounds every single read, and a service may send its headers byte by byte for ever. A deadline for a whole exchange has
to be looked at by each read and write, below the layer that httpx lets callers replace.
What would replace it: a timeout of httpx for whole requests, or a public argument for the network backend.
`tests/substrate/test_httpx_private.py` fails when the attributes move.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import httpx

#: What is left to a read when the time is up: it fails at once unless its bytes are there already.
_NOTHING = 0.001


class Deadlines:
    """When the exchange of each thread is given up."""

    def __init__(self) -> None:
        self._local = threading.local()

    @contextmanager
    def until(self, moment: float) -> Iterator[None]:
        """Inside, no read or write of this thread waits past a moment of the monotonic clock."""
        self._local.moment = moment
        try:
            yield
        finally:
            del self._local.moment

    def left(self, timeout: float | None) -> float | None:
        """How long one read or write may take."""
        moment: float | None = getattr(self._local, "moment", None)
        if moment is None:
            return timeout
        left = max(_NOTHING, moment - time.monotonic())
        return left if timeout is None else min(timeout, left)

    def bind(self, client: httpx.Client) -> httpx.Client:
        """The same client, with connections that keep the deadlines of this object."""
        transports: list[Any] = [client._transport, *client._mounts.values()]
        for transport in transports:
            if transport is not None:
                transport._pool._network_backend = _Backend(transport._pool._network_backend, self)
        return client


class _Backend:
    """Connects as another backend does."""

    def __init__(self, inner: Any, deadlines: Deadlines) -> None:
        self._inner, self._deadlines = inner, deadlines

    def connect_tcp(self, host: str, port: int, timeout: float | None = None, **options: Any) -> _Stream:
        left = self._deadlines.left(timeout)
        return _Stream(self._inner.connect_tcp(host, port, timeout=left, **options), self._deadlines)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


class _Stream:
    """Reads and writes as another stream does, as long as there is time."""

    def __init__(self, inner: Any, deadlines: Deadlines) -> None:
        self._inner, self._deadlines = inner, deadlines

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        found: bytes = self._inner.read(max_bytes, timeout=self._deadlines.left(timeout))
        return found

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._inner.write(buffer, timeout=self._deadlines.left(timeout))

    def start_tls(self, *args: Any, timeout: float | None = None, **options: Any) -> _Stream:
        left = self._deadlines.left(timeout)
        return _Stream(self._inner.start_tls(*args, timeout=left, **options), self._deadlines)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)
