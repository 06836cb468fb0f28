"""The best nodes of one ranking as an index returns them: row ids, addresses and ties, no other columns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from omnigraph.language.query.ir import Bm25, Nearest, NodePattern
from omnigraph.query.rows import Addresses
from omnigraph.query.run import Run
from omnigraph.query.scan.entities import Entities
from omnigraph.query.scan.pushdown import push
from omnigraph.query.search.bm25 import inverted_index
from omnigraph.query.search.ranked_text import search_texts, text_matches
from omnigraph.query.search.vectors import distances, overlooks, query_vector, vector_index, vector_search
from omnigraph.storage.tables.lance_errors import translated
from omnigraph.storage.tables.table import ROW_ADDRESS, Filter
from omnigraph.storage.tables.unshared import ROW_ID

#: For some rows, numbers that sort as the ids of their nodes do.
IdOrder = Callable[[Addresses], npt.NDArray[np.int64]]


@dataclass(frozen=True, slots=True)
class RankList:
    """Nodes by row id and row address, best first. Nodes with equal numbers in `groups` tie.
    `complete`: no other node has a rank; otherwise other nodes may tie with the last nodes of the list. `most`: how many nodes
    the table has. `present(nodes)`: for each node outside of the list whether it has a rank; `everywhere`: all nodes have one.
    """

    rows: Addresses
    addresses: Addresses
    groups: npt.NDArray[np.int64]
    complete: bool
    most: int
    present: Callable[[Addresses], npt.NDArray[np.bool_]]
    everywhere: bool = False

    def bounds(self, nodes: Addresses, id_order: IdOrder, resolved: float) -> Bounds:
        """The bounds of the ranks of `nodes` (ascending row ids), when only these nodes are compared with each other.
        Ties are resolved by id for nodes that can have one of the first `resolved` ranks.
        """
        places = np.searchsorted(nodes, self.rows)
        there = nodes[np.minimum(places, len(nodes) - 1)] == self.rows if len(nodes) else np.zeros(0, np.bool_)
        kept, groups = places[there], self.groups[there]
        _, starts, sizes = np.unique(groups, return_index=True, return_counts=True)
        low, high = np.repeat(starts + 1.0, sizes), np.repeat(starts + sizes + 0.0, sizes)
        open_from = len(groups)
        if not self.complete and len(self.groups):
            open_from = int(np.searchsorted(groups, self.groups[-1]))
        tied = np.flatnonzero((low < high) & (low <= resolved) & (np.arange(len(low)) < open_from))
        if len(tied):
            by_id = tied[np.lexsort((id_order(nodes[kept[tied]]), groups[tied]))]
            kept = kept.copy()
            kept[tied] = kept[by_id]
            low[tied] = high[tied] = tied + 1.0
        high[open_from:] = self.most
        unseen = np.inf if self.complete else open_from + 1.0
        best, worst = np.full(len(nodes), unseen), np.full(len(nodes), np.inf)
        best[kept], worst[kept] = low, high
        return Bounds(best, worst, unseen)


def is_approximate(node: NodePattern, ranking: Nearest | Bm25, run: Run) -> bool:
    """Whether the list of a ranking may miss nodes that are among the best."""
    entities = run.nodes(node.node_type)
    column = entities.stored[ranking.field.property]
    index = None if column is None or isinstance(ranking, Bm25) else vector_index(entities, column, run)
    return index is not None and overlooks(entities, index)


def rank_list(node: NodePattern, ranking: Nearest | Bm25, count: int, exact: int, run: Run) -> RankList | None:
    """The best `count` nodes of a ranking; None without an index, or with a condition that Lance's search can not apply.
    The first `exact` nodes of an index with inexact distances are put in the order of their true distances.
    """
    entities = run.nodes(node.node_type)
    pushed = push(node.predicates, entities, run)
    if pushed.rest or pushed.never or node.lookup is not None or not entities.rows:
        return None
    if isinstance(ranking, Bm25):
        return _best_texts(ranking, entities, pushed.filter, count, run)
    return _best_vectors(ranking, entities, pushed.filter, count, exact, run)


# --- vectors ----------------------------------------------------------------------------------------------------------


def _best_vectors(
    ranking: Nearest, entities: Entities, filter_: Filter | None, count: int, exact: int, run: Run
) -> RankList | None:
    vector, column = query_vector(ranking, run), entities.stored[ranking.field.property]
    index = None if column is None else vector_index(entities, column, run)
    if vector is None or column is None or index is None:
        return None
    with translated(str(entities.table.location), "search"):
        found = entities.table.dataset.scanner(
            columns=["_distance"],
            filter=filter_,
            nearest=vector_search(entities, column, vector, ranking.metric, count, run),
            prefilter=True,
            with_row_id=True,
            with_row_address=True,
            disable_scoring_autoprojection=True,
        ).to_table()
    values = found["_distance"].to_numpy()
    if ranking.metric == "cosine" and not (values < 1.0).all():
        # A zero vector is in no cosine index, and has the distance 1 to every vector: farther nodes could come after it.
        return None
    order = np.argsort(values, kind="stable")
    order = order[np.isfinite(values[order])]
    rows, groups = found[ROW_ID].to_numpy()[order], _groups(values[order])
    if len(groups) and (index.kind != "IVF_FLAT" or ranking.metric == "cosine"):
        # Such an index has distances of compressed vectors, or rounding errors that break ties of equal directions.
        head = int(np.searchsorted(groups, groups[min(exact, len(groups)) - 1], side="right"))
        vectors = entities.table.take_row_ids(rows[:head], [column])[column].combine_chunks()
        measured = distances(vectors, vector, ranking.metric).to_numpy(zero_copy_only=False)
        nearest_first = np.argsort(measured, kind="stable")
        order[:head], rows[:head] = order[:head][nearest_first], rows[:head][nearest_first]
        inside = _groups(measured[nearest_first])
        groups = np.concatenate([inside, groups[head:] - groups[head - 1] + inside[-1]])

    def present(nodes: Addresses) -> npt.NDArray[np.bool_]:
        return np.asarray(entities.table.take_row_ids(nodes, [column])[column].is_valid())

    complete = len(values) < count and ranking.metric != "cosine"
    addresses, everywhere = found[ROW_ADDRESS].to_numpy()[order], not ranking.type.nullable
    return RankList(rows, addresses, groups, complete, entities.rows, present, everywhere)


# --- texts ------------------------------------------------------------------------------------------------------------


def _best_texts(ranking: Bm25, entities: Entities, filter_: Filter | None, count: int, run: Run) -> RankList | None:
    found, text = text_matches(ranking, entities, filter_, count, run), run.value(ranking.query)
    index = inverted_index(entities, ranking.field.property, run)
    if found is None or index is None:
        return None

    def present(nodes: Addresses) -> npt.NDArray[np.bool_]:
        known = search_texts(entities, index, str(text), among_rows(nodes), None)[ROW_ID].to_numpy()
        return np.isin(nodes, known) | np.isin(nodes, found.newer)

    groups = _groups(found.scores)
    return RankList(found.rows, found.addresses, groups, found.complete, entities.rows, present)


# --- rows -------------------------------------------------------------------------------------------------------------


def _groups(values: npt.NDArray[np.floating]) -> npt.NDArray[np.int64]:
    """The number of each run of equal values, from 0 upwards."""
    if not len(values):
        return np.zeros(0, np.int64)
    return np.cumsum(np.concatenate([[False], values[1:] != values[:-1]]), dtype=np.int64)


def among_rows(rows: Addresses) -> str:
    """A Lance condition that selects these row ids; Lance reads them directly, without a scan."""
    return f"{ROW_ID} in ({', '.join(map(str, rows.tolist()))})"


# Bounds of fused scores when only the best nodes of two rankings are known.


Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Bounds:
    """The best and the worst rank that each of some nodes can have in one ranking; infinite when it has no rank.
    `unseen` is the best rank that any other node can have.
    """

    best: Numbers
    worst: Numbers
    unseen: float

    def with_worst(self, nodes: npt.NDArray[np.int64], worst: float) -> Bounds:
        """The same bounds with a new worst rank for some nodes; infinite means that they have no rank at all."""
        best, last = self.best.copy(), self.worst.copy()
        last[nodes] = worst
        if np.isinf(worst):
            best[nodes] = np.inf
        return Bounds(best, last, self.unseen)


def fused(left: Bounds, right: Bounds, k: int) -> tuple[Numbers, Numbers, float]:
    """The least and the largest possible score of each node, and the largest possible score of any other node."""
    least = 1.0 / (k + left.worst) + 1.0 / (k + right.worst)
    largest = 1.0 / (k + left.best) + 1.0 / (k + right.best)
    return least, largest, 1.0 / (k + left.unseen) + 1.0 / (k + right.unseen)


def expected(left: Bounds, right: Bounds, k: int) -> Numbers:
    """The expected score of each node, with all ranks between its bounds equally likely."""
    return _expected(left, k) + _expected(right, k)


def _expected(bounds: Bounds, k: int) -> Numbers:
    open_ = np.isfinite(bounds.worst) & (bounds.worst > bounds.best)
    values = 1.0 / (k + bounds.worst)
    low, width = k + bounds.best[open_], bounds.worst[open_] - bounds.best[open_]
    values[open_] = np.log1p(width / low) / width
    return values


def contenders(least: Numbers, largest: Numbers, limit: int) -> npt.NDArray[np.bool_]:
    """A mask of the nodes that can be among the top `limit`."""
    if len(least) <= limit:
        return np.ones(len(least), np.bool_)
    return np.asarray(largest >= _nth_largest(least, limit))


def settled(least: Numbers, largest: Numbers, unseen: float, limit: int) -> npt.NDArray[np.bool_] | None:
    """A mask of the top `limit` nodes by least score, including ties with the last; None when they are not certain yet.
    Equal scores are allowed between nodes whose scores are known exactly; all other scores must not overlap.
    """
    if len(least) < limit:
        return None
    order = np.argsort(-least, kind="stable")
    low, high = least[order], largest[order]
    exact = low == high
    after_open = _largest_after(np.where(exact, 0.0, high), unseen)
    after_any = _largest_after(high, unseen)
    ahead = low > np.where(exact, after_open, after_any)
    return least >= low[limit - 1] if ahead[:limit].all() else None


def likely(values: Numbers, least: Numbers, unseen: float, limit: int) -> npt.NDArray[np.bool_] | None:
    """A mask of the top `limit` nodes by `values`; None when there are too few, or an unseen node may be better."""
    if len(values) < limit or _nth_largest(least, limit) <= unseen:
        return None
    return np.asarray(values >= _nth_largest(values, limit))


def _nth_largest(values: Numbers, number: int) -> float:
    return float(np.partition(values, len(values) - number)[len(values) - number])


def _largest_after(values: Numbers, last: float) -> Numbers:
    """For each place the largest value after it, with `last` following the last value."""
    behind = np.append(values[1:], last)
    return np.maximum.accumulate(behind[::-1])[::-1]
