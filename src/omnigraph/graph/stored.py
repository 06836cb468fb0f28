"""Stored queries, which are called by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from omnigraph.errors import BadRequest
from omnigraph.graph.graph import Graph
from omnigraph.language.query.ast import Query
from omnigraph.language.query.compile import compile_parsed
from omnigraph.language.query.parser import parse_query_file


@dataclass(frozen=True)
class StoredQuery:
    """A stored query: the text that contains it, and its declaration."""

    source: str
    query: Query


def read_stored(places: Sequence[str], graph: Graph) -> dict[str, StoredQuery]:
    """The queries, by name, of files and of the `.gq` files of folders; each must fit the graph's schema."""
    found: dict[str, StoredQuery] = {}
    catalog = graph.contract().catalog
    for path in _query_files(places):
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise BadRequest(f"cannot read the queries of '{path}': {error}") from None
        parsed = parse_query_file(text, str(path))
        for query in parsed.queries:
            if query.name in found:
                raise BadRequest(f"two stored queries are called '{query.name}', the second in '{path}'")
            compile_parsed(query, catalog, parsed.source)
            found[query.name] = StoredQuery(text, query)
    return found


def _query_files(places: Sequence[str]) -> list[Path]:
    files: list[Path] = []
    for place in map(Path, places):
        files += sorted(place.glob("*.gq")) if place.is_dir() else [place]
    return files
