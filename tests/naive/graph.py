"""A graph in memory, and where steps and paths lead in it; everything by looking at every edge."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import pairwise
from typing import Any

from omnigraph.language.schema.catalog import Catalog, EdgeType
from omnigraph.language.types import PropType, Scalar
from tests.naive.values import EPOCH, to_date, to_datetime


@dataclass(frozen=True)
class Entity:
    """A node or an edge; it is told from others by its kind, type and id."""

    kind: str
    type: str
    id: str
    properties: Mapping[str, Any] = field(compare=False, hash=False)
    src: str | None = field(default=None, compare=False)
    dst: str | None = field(default=None, compare=False)

    def read(self, name: str) -> Any:
        """A property; `@id`, `@type`, `@src` and `@dst`, and `id`, `src` and `dst` where no property is called so."""
        if name in self.properties:
            return self.properties[name]
        return getattr(self, name.removeprefix("@"))


@dataclass(frozen=True)
class Path:
    """The nodes and edges of a path, in its order."""

    nodes: tuple[Entity, ...]
    edges: tuple[Entity, ...]


@dataclass
class World:
    """All entities of a graph and the schema they follow."""

    catalog: Catalog
    nodes: dict[str, dict[str, Entity]]
    edges: dict[str, dict[str, Entity]]

    def of_types(self, types: Iterable[str]) -> list[Entity]:
        """The nodes of some types."""
        return [node for name in types for node in self.nodes[name].values()]

    def following(self, edge: EdgeType, node: Entity, way: str) -> Iterator[tuple[Entity, Entity]]:
        """Each edge of a type at a node with the node at its other end; `way` is out, in or both, a self-loop is one edge."""
        for row in self.edges[edge.name].values():
            if way != "in" and (edge.from_type, row.src) == (node.type, node.id):
                yield row, self.nodes[edge.to_type][row.dst or ""]
            elif way != "out" and (edge.to_type, row.dst) == (node.type, node.id):
                yield row, self.nodes[edge.from_type][row.src or ""]

    def step(self, edges: list[EdgeType], node: Entity, *, undirected: bool) -> Iterator[tuple[Entity, Entity]]:
        """What one step leads to: the type of the node says which way an edge is followed."""
        for edge in edges:
            if edge.from_type == edge.to_type:
                yield from self.following(edge, node, "both" if undirected else "out")
            else:
                yield from self.following(edge, node, "out" if edge.from_type == node.type else "in")

    def hop(self, edges: list[EdgeType], start: Entity, *, undirected: bool) -> str:
        """The way all hops of a step go: along the edges when one of them may begin at the start, else against them."""
        if undirected:
            return "both"
        return "out" if any(edge.from_type == start.type for edge in edges) else "in"

    def distances(self, edges: list[EdgeType], start: Entity, *, undirected: bool) -> dict[Entity, int]:
        """How many hops each node is away."""
        way = self.hop(edges, start, undirected=undirected)
        found = {start: 0}
        frontier = [start]
        while frontier:
            reached = [end for node in frontier for edge in edges for _, end in self.following(edge, node, way)]
            frontier = [node for node in dict.fromkeys(reached) if node not in found]
            found |= dict.fromkeys(frontier, max(found.values()) + 1)
        return found

    def reached(
        self, edges: list[EdgeType], start: Entity, least: int, most: int | None, *, undirected: bool
    ) -> list[Entity]:
        """The nodes whose distance lies within the bounds; the start at distance 0, or 1 when an edge leads to itself."""
        way = self.hop(edges, start, undirected=undirected)
        loops = any(end == start for edge in edges for _, end in self.following(edge, start, way))
        found = self.distances(edges, start, undirected=undirected)
        if loops and least == 1:
            found[start] = 1
        return [node for node, far in found.items() if least <= far and (most is None or far <= most)]

    def paths(
        self, edge: EdgeType, ends: tuple[Entity, Entity], least: int, most: int | None, way: str, weight: str | None
    ) -> list[Path]:
        """The shortest paths between two nodes, the smallest by ids first; by weight when there is one.

        All paths without a repeated node are tried; of parallel edges the lightest is taken, then the smallest by id.
        """
        source, target = ends
        if source == target and least == 0:
            return [Path((source,), ())]
        found: list[tuple[float, tuple[str, ...], Path]] = []

        def follow(nodes: tuple[Entity, ...]) -> None:
            if len(nodes) > 1 and nodes[-1] == target:
                steps = tuple(self._lightest(edge, pair, way, weight) for pair in pairwise(nodes))
                length = len(steps) if weight is None else sum(step.read(weight) for step in steps)
                found.append((length, tuple(node.id for node in nodes), Path(nodes, steps)))
                return
            if most is not None and len(nodes) > most:
                return
            nexts = [end for step, end in self.following(edge, nodes[-1], way) if self._counts(step, weight)]
            for end in dict.fromkeys(nexts):
                if end not in nodes or (end == target and source == target and len(nodes) == 1):
                    follow((*nodes, end))

        follow((source,))
        if not found:
            return []
        best = min(length for length, _, _ in found)
        paths = [path for length, _, path in sorted(found, key=lambda each: each[:2]) if length == best]
        return [path for path in paths if len(path.edges) >= least]

    @staticmethod
    def _counts(edge: Entity, weight: str | None) -> bool:
        return weight is None or edge.read(weight) is not None

    def _lightest(self, edge: EdgeType, pair: tuple[Entity, Entity], way: str, weight: str | None) -> Entity:
        steps = [step for step, end in self.following(edge, pair[0], way) if end == pair[1]]
        steps = [step for step in steps if self._counts(step, weight)]
        return min(steps, key=lambda step: (0 if weight is None else step.read(weight), step.id))


def make_world(catalog: Catalog, documents: Iterable[Mapping[str, Any]]) -> World:
    """A world of documents: `{"type": …, "id": …, "data": {…}}` and `{"edge": …, "id": …, "from": …, "to": …, "data": {…}}`.

    Dates are texts, or numbers since the epoch as the storage has them.
    """
    world = World(catalog, {name: {} for name in catalog.nodes}, {name: {} for name in catalog.edges})
    for number, document in enumerate(documents):
        add(world, document, f"e{number}")
    return world


def add(world: World, document: Mapping[str, Any], new_id: str) -> None:
    """One more entity; the id of a node is its key, which is one text, unless it is given."""
    data = document.get("data", {})
    if "type" in document:
        kind = world.catalog.nodes[document["type"]]
        id_ = document.get("id") or (data[kind.key[0]] if kind.key else new_id)
        world.nodes[kind.name][id_] = Entity("node", kind.name, id_, stored(kind.properties, data))
    else:
        edge = world.catalog.edges[document["edge"]]
        id_ = document.get("id") or new_id
        properties = stored(edge.properties, data)
        world.edges[edge.name][id_] = Entity("edge", edge.name, id_, properties, document["from"], document["to"])


def stored(declared: Mapping[str, Any], data: Mapping[str, Any]) -> dict[str, Any]:
    """All properties of an entity; what is not given is null."""
    return {name: plain(data.get(name), kind.type) for name, kind in declared.items()}


def plain(value: Any, kind: PropType) -> Any:
    """A value as conditions compare it."""
    if isinstance(value, list | tuple):
        return tuple(plain(item, kind.element()) for item in value)
    if kind.scalar is Scalar.DATE and isinstance(value, str):
        return to_date(value)
    if kind.scalar is Scalar.DATETIME and isinstance(value, str):
        return to_datetime(value)
    if kind.scalar is Scalar.DATE and isinstance(value, int):
        return (EPOCH + timedelta(days=value)).date()
    if kind.scalar is Scalar.DATETIME and isinstance(value, int):
        return EPOCH + timedelta(milliseconds=value)
    return (
        float(value) if kind.scalar in (Scalar.F32, Scalar.F64) and value is not None and not kind.is_vector else value
    )
