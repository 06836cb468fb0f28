"""Random graphs of every shape that an algorithm may meet, in our database and in NetworkX."""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path

import networkx as nx

import omnigraph as og

SCHEMA = """
node Person { name: String @key
  rank: F64?  component: I64?  core: I32?  distance: F64? }
node Place { name: String @key }
edge Knows: Person -> Person { cost: F64  note: String? }
edge Visits: Person -> Place { cost: F64 }
"""


@dataclass(frozen=True)
class Made:
    """A graph and the same graph as NetworkX sees it; its nodes are pairs of type and id."""

    graph: og.Graph
    expected: nx.MultiDiGraph

    @property
    def both_ways(self) -> nx.MultiGraph:
        """Without directions. (`to_undirected` would take an edge and one that leads back for the same edge.)"""
        turned = nx.MultiGraph()
        turned.add_nodes_from(self.expected.nodes)
        turned.add_edges_from((tail, head, values) for tail, head, values in self.expected.edges(data=True))
        return turned

    @property
    def undirected(self) -> nx.Graph:
        """Without directions, parallel edges and loops."""
        simple = nx.Graph(self.both_ways)
        simple.remove_edges_from(nx.selfloop_edges(simple))
        return simple


def random_graph(path: Path, seed: int) -> Made:
    """A graph with loops, parallel edges, single nodes and two types; the first is empty, the second has no edges."""
    chance = random.Random(seed)
    people = 0 if seed == 0 else chance.randint(1, 40)
    places = chance.randint(0, 8) if seed > 1 else 0
    drawn = 0 if seed <= 1 else chance.randint(0, 4 * people)
    expected = nx.MultiDiGraph()
    rows: list[dict[str, object]] = []
    for kind, count in (("Person", people), ("Place", places)):
        for number in range(count):
            expected.add_node((kind, f"{kind[0]}{number:02}"))
            rows.append({"type": kind, "data": {"name": f"{kind[0]}{number:02}"}})
    named = [node for node in expected.nodes if node[0] == "Person"]
    sites = [node for node in expected.nodes if node[0] == "Place"]
    for _ in range(drawn):
        tail = chance.choice(named)
        leads_out = sites and chance.random() < 0.2
        head = chance.choice(sites if leads_out else named)
        cost = chance.choice([0.0, 0.5, 1.0, 2.25, 7.0])
        expected.add_edge(tail, head, cost=cost)
        rows.append(
            {"edge": "Visits" if leads_out else "Knows", "from": tail[1], "to": head[1], "data": {"cost": cost}}
        )
    graph = og.init(path, SCHEMA)
    if rows:
        graph.load(rows, engine="local")
    return Made(graph, expected)
