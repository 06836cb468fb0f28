"""Text predicates through an inverted index, for the part of a table that the index covers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from lance.query import FullTextOperator, MatchQuery

from omnigraph.language.query.ir import AllTokens, AnyToken, Predicate
from omnigraph.query.run import Run
from omnigraph.query.scan.entities import Entities
from omnigraph.query.search.analyser import tokens
from omnigraph.storage.tables.lance_errors import translated
from omnigraph.storage.tables.table import Filter, Table, TableIndex


@dataclass(frozen=True, slots=True)
class IndexedText:
    """A predicate that an index answers; `uncovered` are the fragments it does not know yet."""

    predicate: AnyToken | AllTokens
    query: MatchQuery
    uncovered: tuple[int, ...]
    index: TableIndex


def indexed_text(predicates: Sequence[Predicate], entities: Entities, run: Run) -> IndexedText | None:
    """The first text predicate that has an index. `fuzzy` has none: an index looks at a bounded number of tokens only."""
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
    """The covered rows that match, in no particular order."""
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
    """The rows the index does not know yet."""
    if not indexed.uncovered:
        return
    with translated(str(table.location), "read"):
        fragments = [part for part in table.dataset.get_fragments() if part.fragment_id in indexed.uncovered]
        scanner = table.dataset.scanner(
            columns=list(columns), filter=filter_, fragments=fragments, with_row_address=addresses
        )
        yield from scanner.to_batches()
