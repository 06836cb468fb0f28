"""Scores of rows: distances of vectors, bm25 of texts, and the fusion of two rankings."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.errors import BadRequest
from omnigraph.language.query.ir import Bm25, Column, Nearest, Ranking, Rrf, render_expr
from omnigraph.query.rows import Integers, Rows
from omnigraph.query.run import Run
from omnigraph.query.search.bm25 import bm25
from omnigraph.query.search.bm25_index import indexed_bm25
from omnigraph.query.search.vectors import distances, query_vector

Scores = npt.NDArray[np.float64]


def score_name(ranking: Nearest | Bm25) -> str:
    """The column in which a scan hands up the scores it has computed."""
    return f"#{render_expr(ranking)}"


def scores(ranking: Ranking, rows: Rows, run: Run) -> pa.Array:
    """The score of each row; null for a vector that is null."""
    match ranking:
        case Rrf():
            return _fuse(ranking, rows, run)
        case _ if score_name(ranking) in rows.table.column_names:
            return rows.table[score_name(ranking)].combine_chunks()
        case Nearest():
            vector = query_vector(ranking, run)
            return distances(_field(ranking.field, rows), vector, ranking.metric)
        case Bm25():
            indexed = indexed_bm25(ranking, rows, run)
            return bm25(ranking, _field(ranking.field, rows), run) if indexed is None else indexed


def _field(field: Column, rows: Rows) -> pa.Array:
    return rows.column(field.variable, field.property).combine_chunks()


def _fuse(fusion: Rrf, rows: Rows, run: Run) -> pa.Array:
    k = run.value(fusion.k)
    if not isinstance(k, int) or k <= 0:
        raise BadRequest(f"the k of rrf must be a positive integer, not {k}")
    total = np.zeros(rows.count)
    for ranking in (fusion.left, fusion.right):
        ranks = _ranks(ranking, rows, run)
        total += np.where(ranks > 0, 1.0 / (k + np.maximum(ranks, 1)), 0.0)
    return pa.array(total)


def _ranks(ranking: Nearest | Bm25, rows: Rows, run: Run) -> Integers:
    """From 1 for the best node; rows of one node share its rank, and equal scores are ranked by id.

    0 for a node without a rank: its vector is null, or its text holds no token of the query.
    """
    column = scores(ranking, rows, run)
    values = column.to_numpy(zero_copy_only=False)
    ids = rows.column(ranking.field.variable, "id").combine_chunks()
    order_of_ids = np.empty(rows.count, np.int64)
    order_of_ids[np.argsort(np.array(ids.to_pylist(), object), kind="stable")] = np.arange(rows.count)
    ranked = np.isfinite(values) if isinstance(ranking, Nearest) else values > 0
    places = np.flatnonzero(ranked)
    best_first = values[places] if isinstance(ranking, Nearest) else -values[places]
    ordered = places[np.lexsort((order_of_ids[places], best_first))]
    ranks = np.zeros(rows.count, np.int64)
    codes = rows.codes(ranking.field.variable)[ordered]
    first = np.ones(len(codes), np.bool_)
    first[1:] = codes[1:] != codes[:-1]
    ranks[ordered] = np.cumsum(first)
    return ranks
