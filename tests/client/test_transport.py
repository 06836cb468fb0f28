"""What a connection to a server costs before the first request."""

from __future__ import annotations

import ssl
from typing import Any

import pytest

from omnigraph.client.requests import Ask, Request
from omnigraph.client.transport import Blocking
from omnigraph.errors import OmnigraphError
from omnigraph.query.limits import Cancel


def test_authorities_are_read_once_for_https_and_never_for_http(monkeypatch: pytest.MonkeyPatch) -> None:
    """They take 30 ms of processor time, also for a request that can be cancelled and has a connection of its own."""
    reads: list[ssl.SSLContext] = []
    read = ssl.SSLContext.load_verify_locations

    def counted(self: ssl.SSLContext, *arguments: Any, **named: Any) -> None:
        reads.append(self)
        read(self, *arguments, **named)

    monkeypatch.setattr("omnigraph.client.requests.WAITS", ())
    monkeypatch.setattr(ssl.SSLContext, "load_verify_locations", counted)
    for scheme, expected in (("http", 0), ("https", 1)):
        server = Blocking(f"{scheme}://127.0.0.1:1", "g", None)
        with pytest.raises(OmnigraphError):
            server.run(_ask())
        server.close()
        assert len(reads) == expected, scheme


def _ask() -> Ask[object]:
    """A request that can be cancelled; nobody listens."""
    return (yield Request("GET", "/snapshot", cancel=Cancel()))
