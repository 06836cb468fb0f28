"""Text predicates on rows in memory: `search`, `match_text` and `fuzzy`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from lance.query import FullTextOperator, MatchQuery

from omnigraph.errors import BadRequest
from omnigraph.language.query.ir import AllTokens, AnyToken, FuzzyToken, Predicate, TextMatch
from omnigraph.query.rows import Mask, Rows
from omnigraph.query.run import Run
from omnigraph.query.scan.entities import Entities
from omnigraph.query.search.analyser import tokens, tokens_of_each
from omnigraph.storage.tables.lance_errors import translated
from omnigraph.storage.tables.table import Filter, Table, TableIndex
from omnigraph.values.columns import whole


def default_edits(token: str) -> int:
    """The default number of edits of a fuzzy token: 2 from 6 letters on, 1 from 3 letters on, else 0."""
    if len(token) >= 6:
        return 2
    return 1 if len(token) >= 3 else 0


def within(one: str, other: str, most: int) -> bool:
    """Whether two tokens are at most `most` edits (Levenshtein distance) apart."""
    if abs(len(one) - len(other)) > most:
        return False
    if one == other:
        return True
    previous = list(range(len(other) + 1))
    for row, letter in enumerate(one, 1):
        current = [row]
        for column, counterpart in enumerate(other, 1):
            change = previous[column - 1] + (letter != counterpart)
            current.append(min(change, previous[column] + 1, current[-1] + 1))
        if min(current) > most:
            return False
        previous = current
    return previous[-1] <= most


#: With more edits, a fuzzy search would match nearly everything.
MAX_EDITS = 2


def matches_text(predicate: TextMatch, rows: Rows, run: Run) -> Mask:
    """For each row whether its text matches."""
    column = rows.column(predicate.field.variable, predicate.field.property)
    return texts_match(predicate, whole(column), run)


def texts_match(predicate: TextMatch, texts: pa.Array, run: Run) -> Mask:
    """For each text whether it matches; equal texts are analysed once."""
    query = run.value(predicate.query)
    if query is None:
        return np.zeros(len(texts), np.bool_)
    assert isinstance(query, str)
    accepts = _acceptance(predicate, query, run)
    encoded = pc.dictionary_encode(texts)
    answers = [accepts(frozenset(found)) for found in tokens_of_each(encoded.dictionary, run.budget)]
    found = pa.array(answers, pa.bool_()).take(encoded.indices)
    return np.asarray(pc.fill_null(found, False).to_numpy(zero_copy_only=False), dtype=np.bool_)


def _acceptance(predicate: TextMatch, query: str, run: Run) -> Callable[[frozenset[str]], bool]:
    wanted = frozenset(tokens(query))
    match predicate:
        case AnyToken():
            return lambda found: not wanted.isdisjoint(found)
        case AllTokens():
            return lambda found: bool(wanted) and wanted <= found
        case FuzzyToken():
            limits = {token: max_edits(predicate, token, run) for token in wanted}
            return lambda found: any(
                within(word, token, most) for word in _in_time(found, run) for token, most in limits.items()
            )


def _in_time(words: frozenset[str], run: Run) -> Iterator[str]:
    for word in words:
        run.budget.check()
        yield word


def max_edits(predicate: FuzzyToken, token: str, run: Run) -> int:
    """The number of edits that a token of the query may be away from a matching word."""
    if predicate.max_edits is None:
        return default_edits(token)
    given = run.value(predicate.max_edits)
    if given is None:
        return default_edits(token)
    assert isinstance(given, int)
    if not 0 <= given <= MAX_EDITS:
        raise BadRequest(f"fuzzy allows 0 to {MAX_EDITS} edits, not {given}")
    return given


# The same predicates through an inverted index, for the part of a table that the index covers.


@dataclass(frozen=True, slots=True)
class IndexedText:
    """A text predicate that an index answers; `uncovered` are the fragments that the index does not cover."""

    predicate: AnyToken | AllTokens
    query: MatchQuery
    uncovered: tuple[int, ...]
    index: TableIndex


def indexed_text(predicates: Sequence[Predicate], entities: Entities, run: Run) -> IndexedText | None:
    """The first text predicate with an index, or None. `fuzzy` uses none: an index tries a bounded number of tokens only."""
    for predicate in predicates:
        if isinstance(predicate, AnyToken | AllTokens):
            found = _indexed(predicate, entities, run)
            if found is not None:
                return found
    return None


def _indexed(predicate: AnyToken | AllTokens, entities: Entities, run: Run) -> IndexedText | None:
    column = entities.stored[predicate.field.property]
    text = run.value(predicate.query)
    if column is None or not isinstance(text, str) or not tokens(text):
        return None
    for index in run.caches.indices(entities.table):
        if index.kind == "INVERTED" and index.columns == (column,):
            every = isinstance(predicate, AllTokens)
            operator = FullTextOperator.AND if every else FullTextOperator.OR
            uncovered = tuple(number for number in entities.table.fragment_ids if number not in index.fragments)
            return IndexedText(predicate, MatchQuery(text, column, operator=operator), uncovered, index)
    return None


def search_batches(
    table: Table, indexed: IndexedText, columns: Sequence[str], filter_: Filter | None, *, addresses: bool
) -> Iterator[pa.RecordBatch]:
    """The matching rows that the index covers, in no particular order."""
    with translated(str(table.location), "search"):
        scanner = table.dataset.scanner(
            columns=list(columns),
            filter=filter_,
            full_text_query=indexed.query,
            prefilter=True,
            fast_search=True,
            with_row_address=addresses,
            disable_scoring_autoprojection=True,
        )
        yield from scanner.to_batches()


def uncovered_batches(
    table: Table, indexed: IndexedText, columns: Sequence[str], filter_: Filter | None, *, addresses: bool
) -> Iterator[pa.RecordBatch]:
    """The rows that the index does not cover."""
    if not indexed.uncovered:
        return
    with translated(str(table.location), "read"):
        fragments = [part for part in table.dataset.get_fragments() if part.fragment_id in indexed.uncovered]
        scanner = table.dataset.scanner(
            columns=list(columns), filter=filter_, fragments=fragments, with_row_address=addresses
        )
        yield from scanner.to_batches()
