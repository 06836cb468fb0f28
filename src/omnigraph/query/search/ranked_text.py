"""The rows that match a text best, from an inverted index: a bounded number is searched, and only the best are read."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from lance.query import MatchQuery

from omnigraph.language.query.ir import Bm25, RankedScan
from omnigraph.query.rows import Addresses, Rows
from omnigraph.query.run import Run
from omnigraph.query.scan.columns import Located
from omnigraph.query.scan.entities import Entities
from omnigraph.query.scan.pushdown import push
from omnigraph.query.search.analyser import tokens
from omnigraph.query.search.bm25 import bm25, inverted_index
from omnigraph.query.search.scores import score_name
from omnigraph.storage.tables.lance_errors import translated
from omnigraph.storage.tables.table import ROW_ADDRESS, Filter, TableIndex
from omnigraph.storage.tables.unshared import ROW_ID

#: So many more rows than the limit are asked for, to see rows that tie with the last one.
_SPARE = 16
#: When many rows tie, at least so many are asked for next; a search costs little more for them.
_MANY = 2048


@dataclass(frozen=True, slots=True)
class TextMatches:
    """The rows that match a text best, best first, by row id and address.
    `complete`: no other row contains a token of the query; otherwise other rows may tie with the last rows.
    `newer`: the row ids of all matching rows that the index does not cover, in no particular order.
    """

    rows: Addresses
    addresses: Addresses
    scores: npt.NDArray[np.float64]
    complete: bool
    newer: Addresses


def best_by_index(plan: RankedScan, ranking: Bm25, columns: tuple[str, ...], run: Run) -> Rows | None:
    """The best rows with their scores; None when the index can not decide: too few rows contain a token of the query."""
    entities = run.nodes(plan.node.node_type)
    pushed = push(plan.node.predicates, entities, run)
    if not plan.limit or plan.node.lookup is not None or pushed.rest or pushed.never:
        return None
    asked = plan.limit + _SPARE
    while True:
        found = text_matches(ranking, entities, pushed.filter, asked, run)
        if found is None or len(found.scores) < plan.limit:
            return None
        last = found.scores[plan.limit - 1]
        if found.complete or last > found.scores[-1]:
            break
        asked = max(_MANY, 4 * asked)
    count = int(np.searchsorted(-found.scores, -last, side="right"))
    rows = Located(found.rows[:count], found.addresses[:count]).read(entities, plan.node.variable, columns, run)
    return rows.with_numbers(score_name(ranking), found.scores[:count])


def text_matches(ranking: Bm25, entities: Entities, filter_: Filter | None, count: int, run: Run) -> TextMatches | None:
    """The best rows that pass a filter; None without an index, or when the query has no token."""
    index, text = inverted_index(entities, ranking.field.property, run), run.value(ranking.query)
    if index is None or not isinstance(text, str) or not tokens(text):
        return None
    run.note(f"index: {index.name} ({index.kind})")
    found = search_texts(entities, index, text, filter_, count)
    scores = found["_score"].to_numpy().astype(np.float64)
    rows, addresses = found[ROW_ID].to_numpy(), found[ROW_ADDRESS].to_numpy()
    complete, newer = len(scores) < count, np.zeros(0, np.uint64)
    read = _newer_texts(entities, index, filter_)
    if read is not None:
        later = bm25(ranking, read[index.columns[0]].combine_chunks(), run).to_numpy()
        newer = read[ROW_ID].to_numpy()[later > 0]
        # Behind the end of an incomplete list the index may have better rows, so newer rows with lower scores are left out.
        listed = later > 0 if complete else later >= scores.min()
        scores = np.concatenate([scores, later[listed]])
        rows = np.concatenate([rows, read[ROW_ID].to_numpy()[listed]])
        addresses = np.concatenate([addresses, read[ROW_ADDRESS].to_numpy()[listed]])
    order = np.argsort(-scores, kind="stable")
    return TextMatches(rows[order], addresses[order], scores[order], complete, newer)


def search_texts(
    entities: Entities, index: TableIndex, text: str, filter_: Filter | None, limit: int | None
) -> pa.Table:
    """The scores, row ids and addresses of the best `limit` rows that the index covers; `limit` None: all that match."""
    with translated(str(entities.table.location), "search"):
        return entities.table.dataset.scanner(
            columns=["_score"],
            filter=filter_,
            full_text_query=MatchQuery(text, index.columns[0]),
            prefilter=True,
            fast_search=True,
            limit=limit,
            with_row_id=True,
            with_row_address=True,
            disable_scoring_autoprojection=True,
        ).to_table()


def _newer_texts(entities: Entities, index: TableIndex, filter_: Filter | None) -> pa.Table | None:
    """The texts that the index does not cover, with row ids and addresses; None when it covers all fragments."""
    table = entities.table
    if index.fragments.issuperset(table.fragment_ids):
        return None
    newer = [part for part in table.dataset.get_fragments() if part.fragment_id not in index.fragments]
    with translated(str(table.location), "read"):
        return table.dataset.scanner(
            columns=[index.columns[0]], filter=filter_, fragments=newer, with_row_id=True, with_row_address=True
        ).to_table()
