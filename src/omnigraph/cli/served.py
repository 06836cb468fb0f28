"""What commands say that need a server, which this release does not have."""

from __future__ import annotations

from omnigraph.errors import BadRequest


def no_server(wanted: str) -> BadRequest:
    """No server can answer; `wanted` is what the command would have asked it for."""
    return BadRequest(f"{wanted} needs a server, and no server is configured: this release works on storage only")
