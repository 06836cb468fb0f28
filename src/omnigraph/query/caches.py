"""The caches of one handle."""

from __future__ import annotations

from dataclasses import dataclass, field

from omnigraph.query.cache import Bounded, Spending, identity_of
from omnigraph.query.csr import EdgeGraph, read_edge_graph
from omnigraph.query.domain import NodeIndex, TableIds, make_bridge, read_table_ids
from omnigraph.query.rows import Domain, Integers
from omnigraph.storage.tables.table import Table, TableIndex

MOST_GRAPHS = 32
MOST_DOMAINS = 32
MOST_BRIDGES = 64
MOST_LISTED = 256
MOST_SPENDING = 256


@dataclass(frozen=True)
class Caches:
    """Adjacency, ids and the ways between them, by the physical identity of the tables they come from."""

    graphs: Bounded[EdgeGraph] = field(default_factory=lambda: Bounded(MOST_GRAPHS))
    domains: Bounded[TableIds] = field(default_factory=lambda: Bounded(MOST_DOMAINS))
    listed: Bounded[tuple[TableIndex, ...]] = field(default_factory=lambda: Bounded(MOST_LISTED))
    bridges: Bounded[Integers] = field(default_factory=lambda: Bounded(MOST_BRIDGES))
    by_id: Bounded[NodeIndex] = field(default_factory=lambda: Bounded(MOST_DOMAINS))
    #: What following indexes of edge tables and looking nodes up by id has cost so far.
    spending: Spending = field(default_factory=lambda: Spending(MOST_SPENDING))

    def has_edge_graph(self, table: Table) -> bool:
        """Whether the adjacency of a table is there already."""
        return self.graphs.get(identity_of(table)) is not None

    def edge_graph(self, table: Table, same_type: bool) -> EdgeGraph:
        """The adjacency of an edge table."""
        return self.graphs.get_or_make(identity_of(table), lambda: read_edge_graph(table, same_type))

    def table_ids(self, table: Table) -> TableIds:
        """The ids of a node table."""
        return self.domains.get_or_make(identity_of(table), lambda: read_table_ids(table))

    def node_index(self, table: Table) -> NodeIndex:
        """The rows of a node table by id."""
        return self.by_id.get_or_make(identity_of(table), lambda: NodeIndex(self.table_ids(table)))

    def bridge(self, source: Domain, target: Domain) -> Integers:
        """From positions in one domain to positions in another."""
        return self.bridges.get_or_make((source.key, target.key), lambda: make_bridge(source, target))

    def indices(self, table: Table) -> tuple[TableIndex, ...]:
        """The indexes of a table version."""
        return self.listed.get_or_make(identity_of(table), table.indices)
