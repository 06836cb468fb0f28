"""The words of the query language, for who completes what somebody types."""

from __future__ import annotations

from omnigraph.language.query.functions import AGGREGATES, FUNCTIONS

_READING = ("query", "match", "return", "distinct", "having", "order", "limit", "offset", "asc", "desc", "nulls", "as")
_CONDITIONS = ("and", "or", "not", "in", "is", "null", "true", "false", "contains", "starts_with", "ends_with")
_BLOCKS = ("optional", "exists", "with", "union", "shortest(", "all_shortest(")
_CHOICES = ("case", "when", "then", "else", "end")
_WRITING = ("insert", "upsert", "update", "delete", "set", "where")
_RANKING = ("search(", "match_text(", "fuzzy(", "bm25(", "nearest(", "rrf(")
_FUNCTIONS = tuple(f"{name}(" for name in ("now", "duration", *FUNCTIONS, *AGGREGATES))
#: The words of the language; a function with its parenthesis.
WORDS = (*_READING, *_BLOCKS, *_CONDITIONS, *_CHOICES, *_WRITING, *_RANKING, *_FUNCTIONS)
