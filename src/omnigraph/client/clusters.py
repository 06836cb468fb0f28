"""The cluster of a server: a declaration is sent, and the server plans or applies it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from omnigraph.client.requests import Ask, post
from omnigraph.client.transport import Blocking


def ask_cluster(
    url: str, token: str | None, verb: Literal["plan", "apply"], files: Mapping[str, bytes]
) -> dict[str, Any]:
    """What a server says to a declaration, whose files are given by the names that cluster.yaml has for them."""
    server = Blocking(url, "", token)
    try:
        return server.run(_asked(verb, files))
    finally:
        server.close()


def _asked(verb: str, files: Mapping[str, bytes]) -> Ask[dict[str, Any]]:
    body = {"files": {name: content.decode() for name, content in files.items()}}
    # An apply whose answer was lost may still be running, so it is not sent again.
    answer = yield post(f"/cluster/{verb}", body, flat=True, safe=verb == "plan")
    told: dict[str, Any] = answer.json
    return told
