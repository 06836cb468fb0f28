"""The caches of one handle."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from omnigraph.language.query.ir import Plan
from omnigraph.query.cache import Bounded, Spending
from omnigraph.query.facts import Facts, facts_of
from omnigraph.query.limits import Budget
from omnigraph.query.rows import Domain, Integers
from omnigraph.query.scan.table_columns import TableColumn, read_table_columns
from omnigraph.query.traverse.csr import EdgeGraph, MixedGraph, read_edge_graph
from omnigraph.query.traverse.domain import FEW_IDS, NodeIndex, TableIds, make_bridge, read_table_ids
from omnigraph.storage.tables.table import Table, TableIndex

MOST_GRAPHS = 32
MOST_COMPACT = 4
MOST_DOMAINS = 32
MOST_BRIDGES = 64
MOST_COLUMNS = 256
#: The most bytes of each cache of adjacency, and of each other cache.
MOST_GRAPH_BYTES = 2**30
MOST_BYTES = 2**28
MOST_LISTED = 256
MOST_SPENDING = 256
MOST_PLANS = 256
#: Making a bridge looks up all ids of a domain by hash: about so many times as fast per id as single look-ups.
_A_PART = 200
#: Reading a row takes about as long as so many steps of a loop.
_STEPS_PER_ROW = 40

Value = TypeVar("Value")


class _Sized(Protocol):
    @property
    def nbytes(self) -> int: ...


def _nbytes(value: _Sized) -> int:
    return value.nbytes


@dataclass(frozen=True)
class Caches:
    """Adjacency, ids, bridges and columns, by the physical identity of the tables they come from."""

    graphs: Bounded[EdgeGraph] = field(default_factory=lambda: Bounded(MOST_GRAPHS, MOST_GRAPH_BYTES, _nbytes))
    mixed: Bounded[MixedGraph] = field(default_factory=lambda: Bounded(MOST_GRAPHS, MOST_GRAPH_BYTES, _nbytes))
    domains: Bounded[TableIds] = field(default_factory=lambda: Bounded(MOST_DOMAINS, MOST_BYTES, _nbytes))
    listed: Bounded[tuple[TableIndex, ...]] = field(default_factory=lambda: Bounded(MOST_LISTED))
    bridges: Bounded[Integers] = field(default_factory=lambda: Bounded(MOST_BRIDGES, MOST_BYTES, _nbytes))
    by_id: Bounded[NodeIndex] = field(default_factory=lambda: Bounded(MOST_DOMAINS, MOST_BYTES, _nbytes))
    columns: Bounded[TableColumn] = field(default_factory=lambda: Bounded(MOST_COLUMNS, MOST_BYTES, _nbytes))
    #: Whole graphs as arrays, for algorithms.
    compact: Bounded[_Sized] = field(default_factory=lambda: Bounded(MOST_COMPACT, MOST_GRAPH_BYTES, _nbytes))
    plans: Bounded[Facts] = field(default_factory=lambda: Bounded(MOST_PLANS))
    #: What following indexes of edge tables and looking nodes up by id has cost so far.
    spending: Spending = field(default_factory=lambda: Spending(MOST_SPENDING))

    def sizes(self) -> tuple[int, int]:
        """The number of kept values, and the bytes of the values whose size is known."""
        kept: tuple[Bounded[Any], ...] = (
            self.graphs,
            self.mixed,
            self.domains,
            self.listed,
            self.bridges,
            self.by_id,
            self.columns,
            self.compact,
            self.plans,
        )
        return sum(map(len, kept)), sum(cache.nbytes for cache in kept)

    def facts(self, plan: Plan) -> Facts:
        """The facts of a plan. Plans are told apart by Python identity, which is cheaper than comparing them."""
        # The facts hold a reference to their plan, so that no other plan can get the same id() while they are cached.
        return self.plans.get_or_make((id(plan),), lambda: facts_of(plan))

    def known_edge_graph(self, table: Table) -> EdgeGraph | None:
        """The adjacency of an edge table if it is cached, else None."""
        return self.graphs.get(table.identity)

    def edge_graph(self, table: Table, same_type: bool, rows: int, budget: Budget) -> EdgeGraph:
        """The adjacency of an edge table of so many rows."""
        return self._made(self.graphs, table, rows, budget, lambda: read_edge_graph(table, same_type))

    def table_ids(self, table: Table, rows: int, budget: Budget) -> TableIds:
        """The ids of a node table of so many rows."""
        return self._made(self.domains, table, rows, budget, lambda: read_table_ids(table))

    def node_index(self, table: Table, rows: int, budget: Budget) -> NodeIndex:
        """The rows of a node table by id."""
        ids = self.table_ids(table, rows, budget)
        return self._made(self.by_id, table, rows, budget, lambda: NodeIndex(ids))

    def _made(self, kept: Bounded[Value], table: Table, rows: int, budget: Budget, make: Callable[[], Value]) -> Value:
        """The cached value of a table, made when it is missing; a run that ends early does not wait until it is made."""
        found = kept.get(table.identity)
        if found is not None:
            return found
        steps = _STEPS_PER_ROW * rows
        return kept.get_or_make(table.identity, lambda: budget.patiently(make, steps))

    def table_columns(self, table: Table, names: Sequence[str], rows: int, budget: Budget) -> list[TableColumn]:
        """Columns of a node table; columns that are not in memory yet are read together."""
        key = table.identity
        known = {name: column for name in names if (column := self.columns.get((*key, name))) is not None}
        missing = [name for name in dict.fromkeys(names) if name not in known]
        made: dict[str, TableColumn] = {}
        if missing:
            made = budget.patiently(lambda: read_table_columns(table, missing), _STEPS_PER_ROW * rows)
        for name, column in made.items():
            self.columns.put((*key, name), column)
        return [known.get(name) or made[name] for name in names]

    def is_bridge_worth(self, source: Domain, target: Domain, count: int) -> bool:
        """Whether to map `count` positions by a bridge: it is cached, or single look-ups would cost as much as making it."""
        return self.has_bridge(source, target) or (count > FEW_IDS and count * _A_PART > len(source.ids))

    def has_bridge(self, source: Domain, target: Domain) -> bool:
        """Whether the bridge is cached."""
        return self.bridges.get((source.key, target.key)) is not None

    def bridge(self, source: Domain, target: Domain) -> Integers:
        """The bridge: for each position of `source` the position of the same id in `target`, -1 where there is none."""
        return self.bridges.get_or_make((source.key, target.key), lambda: make_bridge(source, target))

    def indices(self, table: Table) -> tuple[TableIndex, ...]:
        """The indexes of a table version."""
        return self.listed.get_or_make(table.identity, table.indices)
