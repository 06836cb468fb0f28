"""The nodes a traversal starts from, known by id, by position in a domain, or by where their rows lie."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from omnigraph.query.rows import Domain, Integers, Rows, Values
from omnigraph.query.run import Run
from omnigraph.query.scan.entities import Entities
from omnigraph.query.traverse.domain import FEW_IDS, SortedIds

#: Below, comparing texts is faster than reading where all the nodes of a type lie.
_FEW = 2000


@dataclass(frozen=True)
class Points:
    """Some nodes of one type, in the order of the rows they belong to; repeated as they are there."""

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
        """Where these nodes are in another domain; -1 for one that is not there."""
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
    """Whether a domain was made for one traversal only, so that nothing about it is worth keeping."""
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
