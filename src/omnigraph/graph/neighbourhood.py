"""The neighbourhood of some nodes: the nodes and edges that a picture shows, bounded in number."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.drawing.picture import Line, Mark
from omnigraph.errors import EntityNotFound, NotFound
from omnigraph.graph.exploring import label_of
from omnigraph.graph.snapshot import Snapshot
from omnigraph.language.schema.catalog import Catalog, EdgeType, NodeType, Property
from omnigraph.language.source import did_you_mean, nearest_name
from omnigraph.query.scan.entities import Entities, open_edges, open_nodes
from omnigraph.values.render import plain

#: The most edges that are read for each node of the picture, since a node may have millions.
EDGES_FOR_EACH = 20
_LONGEST_DETAIL = 120


@dataclass
class Neighbourhood:
    """Nodes by type and the edges between them; it grows up to `limit` nodes."""

    catalog: Catalog
    view: Snapshot
    limit: int
    ids: dict[str, dict[str, None]] = field(default_factory=dict)
    edges: dict[tuple[str, str, str, str], None] = field(default_factory=dict)
    is_complete: bool = True

    @property
    def size(self) -> int:
        return sum(map(len, self.ids.values()))

    def start(self, type_name: str, node_id: str | None) -> None:
        """Begin with one node, or with the first nodes of a type."""
        if type_name not in self.catalog.nodes:
            raise NotFound(
                f"the schema has no node type '{type_name}'{did_you_mean(nearest_name(type_name, self.catalog.nodes))}"
            )
        nodes = open_nodes(self.view, self.catalog, type_name)
        if node_id is not None:
            if not nodes.table.take_ids(pa.array([node_id], pa.string()), ["id"]).num_rows:
                raise EntityNotFound(
                    f"there is no {type_name} with the id '{node_id}'", type_key=f"node:{type_name}", entity_id=node_id
                )
            self._add(type_name, node_id)
            return
        for batch in nodes.table.scan(["id"], batch_size=self.limit + 1):
            for found in batch.column("id").to_pylist():
                self._add(type_name, found)
            if not self.is_complete:
                return

    def grow(self) -> None:
        """Add the nodes one step away from the present nodes, with their edges."""
        known = {name: list(ids) for name, ids in self.ids.items()}
        for edge in self.catalog.edges.values():
            for end, type_name in (("src", edge.from_type), ("dst", edge.to_type)):
                if known.get(type_name):
                    self._follow(edge, end, known[type_name], grows=True)

    def join(self) -> None:
        """Add the edges between the present nodes."""
        for edge in self.catalog.edges.values():
            if self.ids.get(edge.from_type) and self.ids.get(edge.to_type):
                self._follow(edge, "src", list(self.ids[edge.from_type]), grows=False)

    def marks(self) -> tuple[Mark, ...]:
        """The nodes as marks, with their values."""
        return tuple(mark for name, ids in self.ids.items() for mark in _marks(self._nodes(name), list(ids)))

    def lines(self) -> tuple[Line, ...]:
        """The edges as lines."""
        found = [
            Line(_key(edge.from_type, source), _key(edge.to_type, target), edge.name)
            for name, source, target, _ in self.edges
            for edge in (self.catalog.edges[name],)
        ]
        return tuple(found)

    def _nodes(self, name: str) -> Entities:
        return open_nodes(self.view, self.catalog, name)

    def _add(self, type_name: str, node_id: str) -> bool:
        """Add a node; returns whether it is in the picture, which it is not when the limit is reached."""
        ids = self.ids.setdefault(type_name, {})
        if node_id in ids:
            return True
        if self.size >= self.limit:
            self.is_complete = False
            return False
        ids[node_id] = None
        return True

    def _follow(self, edge: EdgeType, end: str, ids: list[str], *, grows: bool) -> None:
        seen = 0
        table = open_edges(self.view, self.catalog, edge.name).table
        for batch in table.scan(["id", "src", "dst"], pc.field(end).isin(pa.array(ids, pa.string()))):
            for edge_id, source, target in zip(*(batch.column(at).to_pylist() for at in range(3)), strict=True):
                self._connect(edge, source, target, edge_id, grows)
            seen += batch.num_rows
            if seen >= self.limit * EDGES_FOR_EACH:
                self.is_complete = False
                return

    def _connect(self, edge: EdgeType, source: str, target: str, edge_id: str, grows: bool) -> None:
        ends = ((edge.from_type, source), (edge.to_type, target))
        if grows:
            inside = all(self._add(*end) for end in ends)
        else:
            inside = all(node_id in self.ids.get(name, {}) for name, node_id in ends)
        if inside:
            self.edges[(edge.name, source, target, edge_id)] = None


def _key(type_name: str, node_id: str) -> str:
    return f"{type_name}:{node_id}"


def _marks(nodes: Entities, ids: list[str]) -> Iterator[Mark]:
    entity = nodes.entity
    assert isinstance(entity, NodeType)
    shown = [name for name in entity.properties if _is_shown(entity.properties[name]) and nodes.stored[name]]
    columns = {name: nodes.stored[name] or name for name in shown}
    found = nodes.table.take_ids(pa.array(ids, pa.string()), ["id", *columns.values()])
    values = [plain(found.column(stored), entity.properties[name].type) for name, stored in columns.items()]
    rows = dict(
        zip(found.column("id").to_pylist(), zip(*values, strict=True) if values else ((),) * len(ids), strict=True)
    )
    for node_id in ids:
        row = dict(zip(shown, rows[node_id], strict=True))
        detail = "\n".join(_detail(name, value) for name, value in row.items() if value is not None)
        yield Mark(_key(entity.name, node_id), label_of(entity, node_id, row), entity.name, detail)


def _is_shown(declared: Property) -> bool:
    return not declared.type.is_vector and not declared.type.is_blob


def _detail(name: str, value: object) -> str:
    text = f"{name}: {value}"
    return text if len(text) <= _LONGEST_DETAIL else text[: _LONGEST_DETAIL - 1] + "…"
