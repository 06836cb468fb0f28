"""Completion at the cursor: types, edges, properties, words of the language, commands of the shell. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from omnigraph.language.query.functions import AGGREGATES, FUNCTIONS
from omnigraph.language.schema.catalog import Catalog, EntityType

_READING = ("query", "match", "return", "distinct", "having", "order", "limit", "offset", "asc", "desc", "nulls", "as")
_CONDITIONS = ("and", "or", "not", "in", "is", "null", "true", "false", "contains", "starts_with", "ends_with")
_BLOCKS = ("optional", "exists", "with", "union", "shortest(", "all_shortest(")
_CHOICES = ("case", "when", "then", "else", "end")
_WRITING = ("insert", "upsert", "update", "delete", "set", "where")
_RANKING = ("search(", "match_text(", "fuzzy(", "bm25(", "nearest(", "rrf(")
_FUNCTIONS = tuple(f"{name}(" for name in ("now", "duration", *FUNCTIONS, *AGGREGATES))
#: The words of the language; a function with its parenthesis.
WORDS = (*_READING, *_BLOCKS, *_CONDITIONS, *_CHOICES, *_WRITING, *_RANKING, *_FUNCTIONS)

_WORD = re.compile(r"[$:.]?\w*\Z")
_BOUND = re.compile(r"\$([a-z_]\w*)\s*:\s*([A-Z]\w*)")
_TRAVERSED = re.compile(r"\$([a-z_]\w*)\s+(?:\$([a-z_]\w*)\s*:\s*)?<?([a-z_]\w*)>?\s*(?:\{[^}]*\})?\s*\$([a-z_]\w*)")
_MEMBER = re.compile(r"\$([a-z_]\w*)\.\w*\Z")
_INSIDE = re.compile(r"(?:\b(?:insert|upsert|update)\s+|:\s*)([A-Z]\w*)\s*(?:set\s*)?\{[^{}]*\Z")
_FILTERED = re.compile(r"\b(?:update|delete)\s+([A-Z]\w*)\b[^{}]*(?:\{[^{}]*\}\s*)?where\s+\w*\Z")


def word_before(text: str) -> str:
    """The part of a word before the cursor, with a leading `$`, `.` or `:`."""
    found = _WORD.search(text)
    return found.group() if found else ""


def candidates(catalog: Catalog, commands: Sequence[str], branches: Sequence[str], text: str) -> list[str]:
    """The words that could replace the word before the cursor, given all text before the cursor."""
    word = word_before(text)
    return sorted({name for name in _possible(catalog, commands, branches, text, word) if name.startswith(word)})


def _possible(
    catalog: Catalog, commands: Sequence[str], branches: Sequence[str], text: str, word: str
) -> Iterable[str]:
    stripped = text.lstrip()
    if stripped.startswith(":") and not stripped.startswith(":explain "):
        if " " not in stripped:
            return commands
        return branches if stripped.startswith(":branch ") else (*catalog.nodes, *catalog.edges)
    types = _types_of_variables(catalog, text)
    member = _MEMBER.search(text)
    if member is not None:
        return [f".{name}" for name in _properties(types.get(member[1]))]
    if word.startswith("$"):
        return [f"${name}" for name in types]
    inside = _INSIDE.search(text) or _FILTERED.search(text)
    if inside is not None:
        found = catalog.nodes.get(inside[1]) or catalog.edges.get(inside[1])
        ends = ("from", "to") if inside[1] in catalog.edges and inside[1] not in catalog.nodes else ()
        return (*_properties(found), *ends)
    edges = [_spelt(name) for name in catalog.edges]
    return (*catalog.nodes, *catalog.edges, *edges, *WORDS)


def _spelt(edge: str) -> str:
    """The name of an edge type as it is written in a traversal."""
    return edge[:1].lower() + edge[1:]


def _properties(entity: EntityType | None) -> tuple[str, ...]:
    return () if entity is None else ("id", *entity.properties)


def _types_of_variables(catalog: Catalog, text: str) -> dict[str, EntityType | None]:
    """The variables that the text binds, with their types (None when a type is unknown)."""
    found: dict[str, EntityType | None] = {name: catalog.nodes.get(kind) for name, kind in _BOUND.findall(text)}
    for source, bound, word, target in _TRAVERSED.findall(text):
        edge = catalog.edge(word)
        if edge is None:
            continue
        start, end = catalog.nodes.get(edge.from_type), catalog.nodes.get(edge.to_type)
        if found.get(source) is end and start is not end:
            start, end = end, start
        found.setdefault(source, start)
        found.setdefault(target, end)
        if bound:
            found[bound] = edge
    return found
