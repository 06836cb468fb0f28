"""The best rows of two fused rankings: the best nodes of each are fetched, and more of them until the top rows are settled.
The fused score uses the ranks among all matching rows. The rank of a node outside of a fetched list is known only within
bounds. Where the bounds leave the order of the top rows open, longer lists are fetched. An approximate index may overlook rows
anyway and is not asked again: the order that it leaves open is decided by expected scores, always in the same way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.language.query.ir import Expand, FusedScan, Plan
from omnigraph.query.rows import Addresses, Rows, address_name, column_name
from omnigraph.query.run import Run
from omnigraph.query.scan.columns import Located
from omnigraph.query.search.rank_lists import (
    Bounds,
    IdOrder,
    RankList,
    contenders,
    expected,
    fused,
    is_approximate,
    likely,
    rank_list,
    settled,
)
from omnigraph.query.search.scores import fusion_k, score_name

#: The shortest list that is fetched; a shorter one costs as much. Also the most nodes that are looked up one by one.
_FEWEST = 1024
#: When a list would have at least 1/_PART of the nodes, all nodes are compared instead.
_PART = 2
#: An index with inexact distances: the true distances of so many times `limit` nodes are computed.
_HEAD = 4


@dataclass(frozen=True)
class Fusion:
    """The best nodes of two rankings, as rows without the columns that are read only for the final rows (`columns`)."""

    plan: FusedScan
    k: int
    lists: tuple[RankList, RankList]
    columns: tuple[str, ...]
    #: Whether an index may have overlooked nodes.
    approximate: bool
    #: Ties are resolved by id up to this rank.
    resolved: float
    rows: Rows

    def settle(self, found: Rows, run: Run) -> Rows | None:
        """The top rows of `found`, the rows left by later steps, with their scores; None when longer lists are needed."""
        listed = found.numbers[_row_name(self.plan)]
        nodes, first_rows, inverse = np.unique(listed, return_index=True, return_inverse=True)
        limit = self.plan.limit
        if len(nodes) < limit:
            return None
        order = self._id_order(found, nodes, first_rows, run)
        left, right = (ranks.bounds(nodes, order, self.resolved) for ranks in self.lists)
        least, largest, _ = fused(left, right, self.k)
        chosen = contenders(least, largest, limit)
        left = _looked_up(left, self.lists[0], nodes, chosen, self.approximate)
        right = _looked_up(right, self.lists[1], nodes, chosen, self.approximate)
        score, largest, unseen = fused(left, right, self.k)
        first = settled(score, largest, unseen, limit)
        if first is None and self.approximate:
            # Longer lists of an approximate index would be no more exact.
            least, score = score, expected(left, right, self.k)
            first = likely(score, least, unseen, limit)
        if first is None:
            return None
        rows = found.filter(first[inverse])
        scores = score[inverse][first[inverse]]
        return self._read(rows.with_numbers(score_name(self.plan.ranking), scores), run)

    def _id_order(self, found: Rows, nodes: Addresses, first_rows: npt.NDArray[np.int64], run: Run) -> IdOrder:
        """A function that orders nodes of the found rows by id; ids that were not read are looked up."""
        entities, variable = run.nodes(self.plan.node.node_type), self.plan.node.variable

        def order(rows: Addresses) -> npt.NDArray[np.int64]:
            places = pa.array(first_rows[np.searchsorted(nodes, rows)])
            if found.has(variable, "id"):
                return _order(found.column(variable, "id").take(places))
            if len(rows) > _FEWEST:
                ids = run.caches.table_ids(entities.table, entities.rows, run.budget)
                addresses = found.numbers[address_name(variable)][first_rows[np.searchsorted(nodes, rows)]]
                return _order(ids.ids.take(pa.array(ids.positions_at(addresses))))
            return _order(entities.table.take_row_ids(rows, ["id"])["id"])

        return order

    def _read(self, rows: Rows, run: Run) -> Rows:
        """The rows with the columns that were not read yet."""
        entities, variable = run.nodes(self.plan.node.node_type), self.plan.node.variable
        late = tuple(name for name in self.columns if not rows.has(variable, name))
        if not late:
            return rows
        nodes, first, inverse = np.unique(rows.numbers[_row_name(self.plan)], return_index=True, return_inverse=True)
        read = Located(nodes, rows.numbers[address_name(variable)][first]).read(entities, variable, late, run)
        return rows.beside(read.take(inverse))


def fuse_best(
    plan: FusedScan, columns: tuple[str, ...], steps: Sequence[Plan], widening: int, run: Run
) -> Fusion | None:
    """The best of two rankings; None when all nodes must be compared: without an index, or when the lists would be too long."""
    entities, k = run.nodes(plan.node.node_type), fusion_k(plan.ranking, run)
    if not plan.limit:
        return None
    approximate = any(is_approximate(plan.node, rank, run) for rank in (plan.ranking.left, plan.ranking.right))
    # So long that the unknown rank in one list can not reverse the order of two neighbours at the top of the other list.
    enough = _PART * plan.limit if approximate else (k + plan.limit) ** 2
    count = max(_FEWEST, enough) * widening
    if count * _PART > entities.rows:
        return None
    left = rank_list(plan.node, plan.ranking.left, count, _HEAD * plan.limit, run)
    right = rank_list(plan.node, plan.ranking.right, count, _HEAD * plan.limit, run) if left is not None else None
    if left is None or right is None or (widening > 1 and left.complete and right.complete):
        return None
    nodes, places = np.unique(np.concatenate([left.rows, right.rows]), return_index=True)
    addresses = np.concatenate([left.addresses, right.addresses])[places]
    variable = plan.node.variable
    rows = Rows(len(nodes), numbers={_row_name(plan): nodes, address_name(variable): addresses})
    fusion = Fusion(plan, k, (left, right), columns, approximate, plan.limit if widening == 1 else np.inf, rows)
    if not steps:
        return fusion
    if all(isinstance(step, Expand) for step in steps):
        # Steps along edges need positions.
        ids = run.caches.table_ids(entities.table, entities.rows, run.budget)
        return replace(fusion, rows=rows.with_positions(variable, ids, ids.positions_at(addresses)))
    return replace(fusion, rows=fusion._read(rows, run))


def _looked_up(
    bounds: Bounds, ranks: RankList, nodes: Addresses, chosen: npt.NDArray[np.bool_], approximate: bool
) -> Bounds:
    """The bounds, tightened for chosen nodes outside of the list by looking up whether they have a rank at all."""
    open_ = np.flatnonzero(chosen & np.isinf(bounds.worst) & np.isfinite(bounds.best))
    if not len(open_) or len(open_) > _FEWEST or (approximate and not ranks.everywhere):
        return bounds
    there = np.ones(len(open_), np.bool_) if ranks.everywhere else ranks.present(nodes[open_])
    return bounds.with_worst(open_[there], float(ranks.most)).with_worst(open_[~there], np.inf)


def _row_name(plan: FusedScan) -> str:
    return column_name(plan.node.variable, "#row")


def _order(ids: pa.Array | pa.ChunkedArray) -> npt.NDArray[np.int64]:
    """The place of each id when they are sorted."""
    order = np.empty(len(ids), np.int64)
    order[pc.sort_indices(ids).to_numpy()] = np.arange(len(ids))
    return order
