"""Cursors and page tokens: opaque texts that only their own graph accepts, and that can not be altered.

A token is a URL-safe base64 text of: format, fingerprint of the graph, checksum over the rest, JSON payload. The checksum is
keyed with the graph's identity. That is no secret; it only detects damaged or invented tokens.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson
import pyarrow.compute as pc

from omnigraph.changes.delta import Delta
from omnigraph.changes.model import Change, Kind
from omnigraph.commit.model import Identity
from omnigraph.errors import ChangeCursorRejected

LONGEST_TOKEN = 4096
_FORMAT = b"\x01"
_GRAPH_BYTES = 8
_SUM_BYTES = 16

Payload = Mapping[str, Any]


def seal(identity_domain: str, payload: Payload) -> str:
    """A token of a graph with this payload."""
    body = orjson.dumps(payload, option=orjson.OPT_SORT_KEYS)
    sealed = _FORMAT + _graph(identity_domain) + _check_sum(identity_domain, body) + body
    return _encoded(sealed)


def unseal(identities: Sequence[str], token: str, purpose: str) -> dict[str, Any]:
    """The payload of a token that this graph made, under any of its identities, for this purpose (its entry `for`)."""
    sealed = _decoded(token)
    start = len(_FORMAT) + _GRAPH_BYTES
    made_by = sealed[len(_FORMAT) : start]
    identity_domain = next((identity for identity in identities if _graph(identity) == made_by), None)
    if identity_domain is None:
        raise rejected("other_graph", "it belongs to another graph")
    given, body = sealed[start : start + _SUM_BYTES], sealed[start + _SUM_BYTES :]
    if not hmac.compare_digest(given, _check_sum(identity_domain, body)):
        raise rejected("tampered", "it was altered or damaged")
    payload: dict[str, Any] = orjson.loads(body)
    if payload["for"] != purpose:
        raise rejected("wrong_kind", f"it is a {payload['for']}, not a {purpose}")
    return payload


def rejected(reason: str, why: str) -> ChangeCursorRejected:
    """The error for all invalid tokens."""
    return ChangeCursorRejected(f"change cursor rejected: {why}", reason=reason)


def _encoded(sealed: bytes) -> str:
    return base64.urlsafe_b64encode(sealed).decode().rstrip("=")


def _decoded(token: str) -> bytes:
    # Longer texts are not decoded at all.
    if isinstance(token, str) and 0 < len(token) <= LONGEST_TOKEN:
        try:
            padded = token + "=" * (-len(token) % 4)
            sealed = base64.b64decode(padded.encode("ascii"), altchars=b"-_", validate=True)
        except (UnicodeEncodeError, binascii.Error):
            sealed = b""
        # Base64 can encode the same bytes in several ways; only the encoding of `_encoded` is accepted.
        long_enough = len(sealed) > len(_FORMAT) + _GRAPH_BYTES + _SUM_BYTES
        if sealed.startswith(_FORMAT) and long_enough and _encoded(sealed) == token:
            return sealed
    raise rejected("malformed", "it is no cursor or page token of OmniGraph")


def _graph(identity_domain: str) -> bytes:
    return hashlib.sha256(b"graph\0" + identity_domain.encode()).digest()[:_GRAPH_BYTES]


def _check_sum(identity_domain: str, body: bytes) -> bytes:
    return hmac.digest(b"changes\0" + identity_domain.encode(), body, "sha256")[:_SUM_BYTES]


#: Longer ids, in characters, are not stored whole; a prefix narrows the search for them.
LONGEST_ID = 256
_PREFIX = 128


@dataclass(frozen=True, slots=True)
class Position:
    """The last entity of a page; the next page starts after it."""

    kind: Kind
    identity: Identity
    id_prefix: str
    #: The digest of the whole id; None when `id_prefix` is the whole id.
    digest: str | None = None

    def payload(self) -> list[Any]:
        return [self.kind, *self.identity, self.id_prefix, self.digest]

    @property
    def order(self) -> tuple[bool, Identity]:
        """The place of its table in the order of a commit's changes."""
        return (self.kind != "node", self.identity)

    def last_id(self, delta: Delta) -> str:
        """The whole id. It comes from this delta, so it is among the candidates."""
        if self.digest is None:
            return self.id_prefix
        for ids in delta.candidate_ids():
            for found in ids.filter(pc.starts_with(ids, self.id_prefix)).to_pylist():
                if _digest(found) == self.digest:
                    return str(found)
        raise AssertionError("a sealed position names an entity of its commit")


def position_of(change: Change, identity: Identity) -> Position:
    """The position of a change."""
    if len(change.id) <= LONGEST_ID:
        return Position(change.kind, identity, change.id)
    return Position(change.kind, identity, change.id[:_PREFIX], _digest(change.id))


def read_position(payload: list[Any] | None) -> Position | None:
    if payload is None:
        return None
    kind, type_id, incarnation, prefix, digest = payload
    return Position(kind, (type_id, incarnation), prefix, digest)


def _digest(entity_id: str) -> str:
    return hashlib.sha256(entity_id.encode()).hexdigest()
