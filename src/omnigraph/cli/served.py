"""What commands say that need a server or a cluster, which this release does not have."""

from __future__ import annotations

from omnigraph.errors import BadRequest


def no_server(wanted: str) -> BadRequest:
    """No server can answer; `wanted` is what the command would have asked it for."""
    return BadRequest(f"{wanted} needs a server, and no server is configured: this release works on storage only")


def no_cluster(command: str) -> BadRequest:
    """No cluster can be worked on."""
    return BadRequest(
        f"`{command}` needs a cluster, and no cluster is configured: this release works on the storage of one graph"
    )
