"""RankedScan: the nodes that can be among the best by vector distance or bm25 score."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.language.query.ir import Bm25, FusedScan, Nearest, NodePattern, Plan, RankedScan
from omnigraph.query.rows import Rows, concatenated
from omnigraph.query.run import Run
from omnigraph.query.scan.columns import Located
from omnigraph.query.scan.pushdown import push
from omnigraph.query.scan.read import Request, node_columns, read_parts, scan_nodes
from omnigraph.query.search.analyser import tokens
from omnigraph.query.search.bm25 import inverted_index
from omnigraph.query.search.fusion import Fusion, fuse_best
from omnigraph.query.search.ranked_text import best_by_index
from omnigraph.query.search.scores import is_scored, score_name, scores
from omnigraph.query.search.vectors import Vector, query_vector, vector_search
from omnigraph.storage.tables.lance_errors import translated
from omnigraph.storage.tables.table import ROW_ADDRESS
from omnigraph.storage.tables.unshared import ROW_ID

#: So many more rows than the limit are asked for, to see rows that tie with the last one.
_SPARE = 16


@dataclass(frozen=True, slots=True)
class Best:
    """The rows that a best-first scan found; `complete` when there are no other rows."""

    rows: Rows
    complete: bool
    fusion: Fusion | None = None

    def enough(self, found: Rows, limit: int, run: Run) -> Rows | None:
        """The surviving rows if they must contain the top `limit`, else None."""
        if self.fusion is not None:
            settled = self.fusion.settle(found, run)
            return None if settled is None else _with_ranks(settled, self.fusion.plan.node.distances, run)
        return found if self.complete or found.count >= limit else None


def best_first(scan: RankedScan | FusedScan, widening: int, steps: Sequence[Plan], run: Run) -> Best:
    """The rows that can be among the top rows after later steps drop some; a larger `widening` fetches more rows."""
    if isinstance(scan, RankedScan):
        return _ranked_scan(scan, scan.limit * widening, run, alone=not steps)
    fusion = fuse_best(scan, _columns(scan.node, run), steps, widening, run)
    if fusion is not None:
        return Best(fusion.rows, complete=False, fusion=fusion)
    ranks = (scan.ranking.left, scan.ranking.right)
    texts = (rank.field.property for rank in ranks if isinstance(rank, Bm25))
    near = (rank for rank in ranks if isinstance(rank, Nearest))
    node = replace(
        scan.node,
        columns=tuple(dict.fromkeys((*node_columns(scan.node, run), *texts))),
        distances=tuple(dict.fromkeys((*scan.node.distances, *near))),
    )
    return Best(scan_nodes(node, run), complete=True)


def _ranked_scan(asked: RankedScan, limit: int, run: Run, *, alone: bool) -> Best:
    """The best `limit` rows and all rows that tie with the last of them, each with its distance or score.
    `alone`: there is no operator between the scan and the order.
    """
    # Lance allocates space for as many rows as it is asked for, so the limit is at most the size of the table.
    limited = min(limit, run.nodes(asked.node.node_type).rows)
    plan = asked if limited == asked.limit else replace(asked, limit=limited)
    if isinstance(plan.ranking, Bm25):
        return _best_texts(plan, plan.ranking, run, alone)
    found = _best_vectors(plan, plan.ranking, run)
    # Fewer rows than asked for: these are all rows.
    return Best(found, complete=found.count < limit or limit >= run.nodes(plan.node.node_type).rows)


def _best_vectors(plan: RankedScan, ranking: Nearest, run: Run) -> Rows:
    columns = _columns(plan.node, run, ranking)
    node = replace(plan.node, columns=columns, distances=())
    vector = query_vector(ranking, run)
    if plan.limit and node.lookup is None and vector is not None:
        found = _searched(plan, columns, vector, ranking.metric, run)
        if found is not None:
            return found
    if node.lookup is not None:
        return _best([scan_nodes(node, run)], plan, run)
    return _best(
        read_parts(Request(run.nodes(node.node_type), node.variable, columns, node.predicates), run), plan, run
    )


def _best_texts(plan: RankedScan, ranking: Bm25, run: Run, alone: bool) -> Best:
    """The best rows by bm25.
    The index answers when enough rows contain a token of the query; all rows without a token tie. Without an index a score
    depends on all texts it is compared with: all texts are read, and scored only when no later step can drop any of them.
    """
    found = best_by_index(plan, ranking, _columns(plan.node, run), run)
    if found is not None:
        return Best(_scored(found, plan, run), complete=False)
    entities, text = run.nodes(plan.node.node_type), run.value(ranking.query)
    index = inverted_index(entities, ranking.field.property, run)
    known = index is not None and index.fragments.issuperset(entities.table.fragment_ids)
    # When the index covers all rows, scores are computed without the texts.
    texts = () if known and isinstance(text, str) and tokens(text) else (ranking,)
    everything = scan_nodes(replace(plan.node, columns=_columns(plan.node, run, *texts), distances=()), run)
    if not alone and index is None:
        return Best(_with_ranks(everything, plan.node.distances, run), complete=True)
    best = _nearest(_scored(everything, plan, run), plan, run)
    return Best(best, complete=best.count == everything.count)


def _columns(node: NodePattern, run: Run, *ranks: Nearest | Bm25) -> tuple[str, ...]:
    """The columns to read of the nodes: the plan's, and the properties from which rankings are computed."""
    asked = (rank.field.property for rank in (*ranks, *node.distances))
    return tuple(dict.fromkeys((*node_columns(node, run), *asked)))


def _best(parts: Iterator[Rows] | list[Rows], plan: RankedScan, run: Run) -> Rows:
    """The best rows of a stream: after each batch only the rows that can still be among the best are kept."""
    kept: Rows | None = None
    for part in parts:
        scored = _scored(part, plan, run)
        kept = scored if kept is None else concatenated([kept, scored])
        kept = _nearest(kept, plan, run)
    return kept if kept is not None else _scored(scan_nodes(plan.node, run, limit=0), plan, run)


def _scored(rows: Rows, plan: RankedScan, run: Run) -> Rows:
    """The rows with the score or distance of the plan's ranking, and all other distances that the plan asks for."""
    return _with_ranks(rows, (plan.ranking, *plan.node.distances), run)


def _with_ranks(rows: Rows, ranks: Iterable[Nearest | Bm25], run: Run) -> Rows:
    for rank in ranks:
        if not is_scored(rank, rows):
            found = scores(rank, rows, run) if rows.count else pa.array([], pa.float64())
            rows = rows.with_columns({score_name(rank): found})
    return rows


def _nearest(rows: Rows, plan: RankedScan, run: Run) -> Rows:
    values = _distances(rows, plan, run)
    if plan.limit >= len(values):
        return rows
    last = np.partition(values, plan.limit - 1)[plan.limit - 1] if plan.limit else -np.inf
    return rows.filter(values <= last)


def _distances(rows: Rows, plan: RankedScan, run: Run) -> npt.NDArray[np.float64]:
    """The distance of each row by the plan's ranking: infinite when it has none; a bm25 score counts negatively."""
    column = scores(plan.ranking, rows, run).to_numpy(zero_copy_only=False)
    values = -column if isinstance(plan.ranking, Bm25) else column
    return np.asarray(np.nan_to_num(values.astype(np.float64), nan=np.inf))


# --- Lance's own search -----------------------------------------------------------------------------------------------


def _searched(plan: RankedScan, columns: tuple[str, ...], vector: Vector, metric: str, run: Run) -> Rows | None:
    """The nearest rows by Lance's search; None when it can not apply all conditions or found too few rows."""
    entities = run.nodes(plan.node.node_type)
    column = entities.stored[plan.ranking.field.property]
    pushed = push(plan.node.predicates, entities, run)
    if column is None or pushed.rest or pushed.never:
        return None
    asked = plan.limit + _SPARE
    while True:
        search = vector_search(entities, column, vector, metric, asked, run)
        with translated(str(entities.table.location), "search"):
            found = entities.table.dataset.scanner(
                columns=["_distance"],
                filter=pushed.filter,
                nearest=search,
                prefilter=True,
                with_row_id=True,
                with_row_address=True,
                disable_scoring_autoprojection=True,
            ).to_table()
        # Reading vectors within the search takes Lance longer than reading them afterwards.
        located = Located(found[ROW_ID].to_numpy(), found[ROW_ADDRESS].to_numpy())
        rows = _scored(located.read(entities, plan.node.variable, columns, run), plan, run)
        if rows.count < asked:
            # Rows without a vector come last, and only a scan sees them.
            return _nearest(rows, plan, run) if rows.count >= plan.limit else None
        values = np.sort(_distances(rows, plan, run))
        if values[plan.limit - 1] < values[-1]:
            return _nearest(rows, plan, run)
        asked *= 4
