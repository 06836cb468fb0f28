"""Which changes are wanted: by kind, type and operation."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable
from dataclasses import dataclass

import orjson

from omnigraph.changes.model import KINDS, OPS, Change
from omnigraph.commit.model import ManifestState
from omnigraph.errors import BadRequest

Names = str | Collection[str] | None


@dataclass(frozen=True, slots=True)
class Filter:
    """The wanted changes; None means all. Types are given by name, which can match a node type and an edge type."""

    kinds: frozenset[str] | None = None
    types: frozenset[str] | None = None
    ops: frozenset[str] | None = None

    def wants_type(self, kind: str, names: Iterable[str]) -> bool:
        """Whether changes of a type with these names can be wanted."""
        if self.kinds is not None and kind not in self.kinds:
            return False
        return self.types is None or any(name in self.types or f"{kind}:{name}" in self.types for name in names)

    def wants(self, change: Change) -> bool:
        """Whether a change of a wanted type is wanted."""
        return self.ops is None or change.op in self.ops

    def fingerprint(self) -> str:
        """A digest of the filter, to recognise cursors of other filters."""
        asked = [None if part is None else sorted(part) for part in (self.kinds, self.types, self.ops)]
        return hashlib.sha256(orjson.dumps(asked)).hexdigest()[:16]

    def unknown_types(self, *states: ManifestState) -> list[str]:
        """The wanted types that are in none of these states."""
        known = {key for state in states for key in state.by_key}
        return sorted((self.types or frozenset()) - known - {key.partition(":")[2] for key in known})

    def refuse_unknown_types(self, *states: ManifestState) -> None:
        """Raise for a wanted type that is in none of these states."""
        unknown = self.unknown_types(*states)
        if unknown:
            known = {key for state in states for key in state.by_key}
            raise BadRequest(f"unknown type '{unknown[0]}'; the types are {', '.join(sorted(known))}")


def read_filter(kinds: Names = None, types: Names = None, ops: Names = None) -> Filter:
    """A filter from the caller's words: each part is one word, several, or None."""
    return Filter(_words(kinds, "kind", KINDS), _words(types, "type"), _words(ops, "op", OPS))


def _words(given: Names, what: str, allowed: Collection[str] | None = None) -> frozenset[str] | None:
    if given is None:
        return None
    if not isinstance(given, Iterable):
        raise BadRequest(f"{given!r} is no {what} of change; give one word or a list of them")
    words = frozenset([given] if isinstance(given, str) else given)
    for word in sorted(words, key=str):
        if not isinstance(word, str) or (allowed is not None and word not in allowed):
            hint = f"; it is one of {', '.join(allowed)}" if allowed is not None else ""
            raise BadRequest(f"{word!r} is no {what} of change{hint}")
    # An empty collection means no filter.
    return words or None
