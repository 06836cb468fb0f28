"""The rows that answer a text best, as an inverted index gives them: only so many are read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa
from lance.fragment import LanceFragment
from lance.query import MatchQuery

from omnigraph.language.query.ir import Bm25, RankedScan
from omnigraph.query.pushdown import push
from omnigraph.query.rows import Rows
from omnigraph.query.run import Run
from omnigraph.query.scan import Request, name_batch
from omnigraph.query.search.analyser import tokens
from omnigraph.query.search.bm25 import bm25
from omnigraph.query.search.bm25_index import inverted_index
from omnigraph.query.search.scores import score_name
from omnigraph.storage.tables.lance_errors import translated
from omnigraph.storage.tables.table import Filter, Table

_SCORE = "_score"
#: Asked for beyond the limit, so that rows which tie with the last one are seen.
_SPARE = 16


def best_by_index(plan: RankedScan, ranking: Bm25, columns: tuple[str, ...], run: Run) -> Rows | None:
    """The best rows with their scores; None when the index can not tell: too few rows hold a token of the query."""
    entities = run.nodes(plan.node.node_type)
    index, text = inverted_index(entities, ranking.field.property, run), run.value(ranking.query)
    if index is None or not isinstance(text, str) or not tokens(text):
        return None
    if not plan.limit or plan.node.lookup is not None:
        return None
    pushed = push(plan.node.predicates, entities, run)
    if pushed.rest or pushed.never:
        return None
    run.note(f"index: {index.name} ({index.kind})")
    table, request = entities.table, Request(entities, plan.node.variable, columns, plan.node.predicates)
    stored = [name for name in map(entities.stored.__getitem__, columns) if name is not None]
    known = _matching(table, MatchQuery(text, index.columns[0]), stored, pushed.filter, plan.limit)
    parts, scores = [known], known[_SCORE].to_numpy().astype(np.float64)
    newer = [fragment for fragment in table.dataset.get_fragments() if fragment.fragment_id not in index.fragments]
    if newer:
        # Of the rows the index knows, the text itself is not needed.
        parts.append(_read(table, newer, dict.fromkeys((*stored, index.columns[0])), pushed.filter))
        texts = parts[1][index.columns[0]].combine_chunks()
        scores = np.concatenate([scores, bm25(ranking, texts, run).to_numpy()])
    if np.count_nonzero(scores > 0) < plan.limit:
        return None
    rows = pa.concat_tables(name_batch(part, request, columns, request.addresses) for part in parts)
    return Rows(rows).with_columns({score_name(ranking): scores})


def _matching(table: Table, query: MatchQuery, columns: Sequence[str], filter_: Filter | None, limit: int) -> pa.Table:
    """The best `limit` rows of those the index covers, and all that tie with the last of them."""
    asked = limit + _SPARE
    while True:
        with translated(str(table.location), "search"):
            found = table.dataset.scanner(
                columns=[*columns, _SCORE],
                filter=filter_,
                full_text_query=query,
                prefilter=True,
                fast_search=True,
                limit=asked,
                with_row_address=True,
                disable_scoring_autoprojection=True,
            ).to_table()
        best_first = np.sort(found[_SCORE].to_numpy())[::-1]
        if len(best_first) < asked or best_first[limit - 1] > best_first[-1]:
            return found
        asked *= 4


def _read(table: Table, fragments: Sequence[LanceFragment], columns: Iterable[str], filter_: Filter | None) -> pa.Table:
    """The rows of some fragments."""
    with translated(str(table.location), "read"):
        return table.dataset.scanner(
            columns=list(columns), filter=filter_, fragments=list(fragments), with_row_address=True
        ).to_table()
