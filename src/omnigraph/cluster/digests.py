"""Digests of resources: SHA-256 in lower-case hex over bytes that are the same on every machine."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

import orjson


def file_digest(content: bytes) -> str:
    """The digest of the bytes of a schema, a query file or a policy."""
    return hashlib.sha256(content).hexdigest()


def state_cas(content: bytes) -> str:
    """The comparison value (compare-and-swap) of a state file."""
    return f"sha256:{file_digest(content)}"


def provider_digest(profile: Mapping[str, str]) -> str:
    """The digest of an embedding provider; `profile` has kind, base_url, model and api_key in this order."""
    return hashlib.sha256(b"embedding-provider\0" + orjson.dumps(profile)).hexdigest()


def graph_digest(
    graph_id: str,
    schema: str | None,
    queries: Mapping[str, str],
    provider: tuple[str, str] | None,
    external_blobs: object,
) -> str:
    """The digest of a graph as a whole: over the digests of its schema and queries (by name), and its bindings.
    `provider`: the address and digest of its embedding provider. `external_blobs`: its allow list, or None.
    """
    parts = ["graph", graph_id, "schema", schema or ""]
    for name in sorted(queries):
        parts += ["query", name, queries[name]]
    if provider is not None:
        parts += ["embedding_provider", *provider]
    if external_blobs is not None:
        parts += ["external_blob_policy", orjson.dumps(external_blobs).decode()]
    return hashlib.sha256(_joined(parts)).hexdigest()


def config_digest(config: Mapping[str, Any], resources: Iterable[tuple[str, str]]) -> str:
    """The digest of a declaration: over its content (not its comments and layout) and the digests of all resources."""
    content = orjson.dumps(config, option=orjson.OPT_SORT_KEYS)
    named = [part for address, digest in sorted(resources) for part in (address, digest)]
    return hashlib.sha256(b"cluster-config\0" + content + b"\0" + _joined(named)).hexdigest()


def _joined(parts: Iterable[str]) -> bytes:
    return b"".join(part.encode() + b"\0" for part in parts)
