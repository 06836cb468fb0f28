"""A place in the changes of a commit: the last entity that was told. Long ids are kept as a prefix and a digest."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import pyarrow.compute as pc

from omnigraph.changes.delta import Delta
from omnigraph.changes.model import Change, Kind
from omnigraph.commit.model import Identity

#: Ids of more characters are not kept whole; a prefix of this length narrows the search for them.
LONGEST_ID = 256
_PREFIX = 128


@dataclass(frozen=True, slots=True)
class Position:
    """Behind which entity to go on."""

    kind: Kind
    identity: Identity
    id_prefix: str
    #: Of the whole id, when it is longer than the prefix.
    digest: str | None = None

    def payload(self) -> list[Any]:
        return [self.kind, *self.identity, self.id_prefix, self.digest]

    @property
    def order(self) -> tuple[bool, Identity]:
        """Where its table is in the order of a commit's changes."""
        return (self.kind != "node", self.identity)

    def last_id(self, delta: Delta) -> str:
        """The whole id. It was told from this very delta, so it is among its candidates."""
        if self.digest is None:
            return self.id_prefix
        for ids in delta.candidate_ids():
            for found in ids.filter(pc.starts_with(ids, self.id_prefix)).to_pylist():
                if _digest(found) == self.digest:
                    return str(found)
        raise AssertionError("a sealed position names an entity of its commit")


def position_of(change: Change, identity: Identity) -> Position:
    """The place behind a change."""
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
