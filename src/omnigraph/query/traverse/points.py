"""The nodes from which a traversal starts, known by id, by position in a domain, or by row address."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from omnigraph.query.rows import Domain, Integers, Rows, Values
from omnigraph.query.run import Run
from omnigraph.query.scan.entities import Entities
from omnigraph.query.traverse.domain import FEW_IDS, SortedIds

#: For fewer rows, comparing ids is faster than reading the addresses of all nodes of a type.
_FEW = 2000


@dataclass(frozen=True)
class Points:
    """The nodes of one variable, one for each row, in row order."""

    count: int
    domain: Domain | None = None
    positions: Integers | None = None
    texts: Values | None = None

    @property
    def ids(self) -> Values:
        if self.texts is not None:
            return self.texts
        assert self.domain is not None
        return self.domain.ids.take(pa.array(self.positions))

    def within(self, target: SortedIds, run: Run) -> Integers:
        """The positions of these nodes in another domain; -1 for a node that is not there."""
        domain, positions = self.domain, self.positions
        if domain is None or positions is None:
            return target.positions(self.ids)
        if domain.key == target.key:
            return positions
        if self.count <= FEW_IDS and not run.caches.has_bridge(domain, target):
            return target.positions_of([domain.text(position) for position in positions.tolist()])
        if is_passing(domain) or is_passing(target) or not run.caches.is_bridge_worth(domain, target, self.count):
            return target.positions(self.ids)
        return run.caches.bridge(domain, target)[positions]


def is_passing(domain: Domain) -> bool:
    """Whether a domain was made for one traversal only, so that nothing about it is worth caching."""
    return domain.key[0] == "passing"


def points_of(rows: Rows, variable: str, nodes: Entities, run: Run) -> Points:
    """The nodes of a variable."""
    if variable in rows.domains:
        return Points(rows.count, rows.domains[variable], rows.positions(variable))
    texts = rows.column(variable, "id")
    addresses = rows.addresses(variable)
    if rows.count < _FEW or addresses is None:
        return Points(rows.count, texts=texts)
    ids = run.caches.table_ids(nodes.table, nodes.rows, run.budget)
    return Points(rows.count, ids, ids.positions_at(addresses), texts)


def points_at(domain: Domain, positions: Integers) -> Points:
    """The nodes at some positions of a domain."""
    return Points(len(positions), domain, np.asarray(positions, np.int64))
