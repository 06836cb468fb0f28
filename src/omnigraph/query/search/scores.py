"""Scores of rows: distances of vectors, bm25 of texts, and the fusion of two rankings."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import BadRequest
from omnigraph.language.query.ir import Bm25, Column, Nearest, Ranking, Rrf, render_expr
from omnigraph.query.rows import Integers, Rows, Values
from omnigraph.query.run import Run
from omnigraph.query.search.bm25 import bm25, indexed_bm25
from omnigraph.query.search.vectors import distances, query_vector
from omnigraph.values.columns import whole

Scores = npt.NDArray[np.float64]


def score_name(ranking: Ranking) -> str:
    """The name under which rows hold the computed scores of a ranking: in `numbers`, or in `columns` when some are null."""
    return f"#{render_expr(ranking)}"


def is_scored(ranking: Ranking, rows: Rows) -> bool:
    """Whether the rows hold the scores of this ranking."""
    name = score_name(ranking)
    return name in rows.numbers or name in rows.columns


def scores(ranking: Ranking, rows: Rows, run: Run) -> pa.Array:
    """The score or distance of each row; null for a null vector."""
    name = score_name(ranking)
    if name in rows.numbers:
        return pa.array(rows.numbers[name])
    match ranking:
        case _ if name in rows.columns:
            return whole(rows.columns[name])
        case Rrf():
            return _fuse(ranking, rows, run)
        case Nearest():
            vector = query_vector(ranking, run)
            return distances(_field(ranking.field, rows), vector, ranking.metric)
        case Bm25():
            indexed = indexed_bm25(ranking, rows, run)
            return bm25(ranking, _field(ranking.field, rows), run) if indexed is None else indexed


def _field(field: Column, rows: Rows) -> pa.Array:
    return whole(rows.column(field.variable, field.property))


def fusion_k(fusion: Rrf, run: Run) -> int:
    """The constant k of the fused score 1 / (k + rank): the larger it is, the less the first ranks stand out."""
    k = run.value(fusion.k)
    if not isinstance(k, int) or k <= 0:
        raise BadRequest(f"the k of rrf must be a positive integer, not {k}")
    return k


def _fuse(fusion: Rrf, rows: Rows, run: Run) -> pa.Array:
    k = fusion_k(fusion, run)
    total = np.zeros(rows.count)
    for ranking in (fusion.left, fusion.right):
        ranks = _ranks(ranking, rows, run)
        total += np.where(ranks > 0, 1.0 / (k + np.maximum(ranks, 1)), 0.0)
    return pa.array(total)


def _ranks(ranking: Nearest | Bm25, rows: Rows, run: Run) -> Integers:
    """The rank of each row's node, 1 for the best; rows of the same node share its rank, and equal scores are ranked by id.
    0 for a node without a rank: its vector is null, or its text contains no token of the query.
    """
    column = scores(ranking, rows, run)
    values = column.to_numpy(zero_copy_only=False)
    ranked = np.isfinite(values) if isinstance(ranking, Nearest) else values > 0
    places = np.flatnonzero(ranked)
    best_first = values[places] if isinstance(ranking, Nearest) else -values[places]
    ordered = _in_order(places, best_first, rows.column(ranking.field.variable, "id"))
    ranks = np.zeros(rows.count, np.int64)
    codes = rows.codes(ranking.field.variable)[ordered]
    first = np.ones(len(codes), np.bool_)
    first[1:] = codes[1:] != codes[:-1]
    ranks[ordered] = np.cumsum(first)
    return ranks


def _in_order(places: Integers, values: Scores, ids: Values) -> Integers:
    """The places in ascending order of their values; equal values, which are rare, are ordered by id."""
    by_value = np.argsort(values, kind="stable")
    ordered, sorted_values = places[by_value], values[by_value]
    equal = np.zeros(len(ordered), np.bool_)
    equal[1:] = sorted_values[1:] == sorted_values[:-1]
    equal[:-1] |= equal[1:]
    tied = np.flatnonzero(equal)
    if len(tied):
        table = pa.table({"value": sorted_values[tied], "id": ids.take(pa.array(ordered[tied]))})
        keys = [("value", "ascending"), ("id", "ascending")]
        ordered[tied] = ordered[tied][pc.sort_indices(table, sort_keys=keys).to_numpy()]
    return ordered
