"""Where names stand in a text, in both languages: what editors jump to, explain and rename."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from omnigraph.language.source import NOWHERE, Span
from omnigraph.language.written import Token

#: An interface counts as a node. An alias is a name that `as` gives, or a use of it.
Kind = Literal["variable", "alias", "query", "node", "edge", "property", "function"]

#: What a name may follow without a blank.
_KEYWORDS = ("query", "node", "edge", "interface", "implements", "insert", "upsert", "update", "delete")


@dataclass(frozen=True, slots=True)
class Occurrence:
    """One name in a text; the `$` of a variable belongs to its span.

    `name` of a type is the declared one, however it is spelt. `owners` are the types that a property belongs to
    (`node:Staff`), as far as they are known. `scope` is the query that a variable or an alias belongs to.
    """

    kind: Kind
    name: str
    span: Span
    declares: bool = False
    owners: tuple[str, ...] = ()
    scope: Span = NOWHERE


def named(tokens: Iterable[Token], name: str) -> Span | None:
    """Where a name stands among tokens; a word without blanks may begin with a keyword (`nodeStaff`)."""
    for token in tokens:
        if token.text == name or (token.text.endswith(name) and token.text[: -len(name)] in _KEYWORDS):
            return Span(token.span.end - len(name), token.span.end)
    return None


def at_offset(occurrences: Iterable[Occurrence], offset: int) -> Occurrence | None:
    """The name that stands at an offset, or directly before it."""
    touching = [found for found in occurrences if found.span.start <= offset <= found.span.end]
    return min(touching, key=lambda found: (found.span.end == offset, found.span.end - found.span.start), default=None)
