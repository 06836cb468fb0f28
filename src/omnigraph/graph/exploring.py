"""The verb for exploring: the neighbours of a node."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import BadRequest, EntityNotFound, NotFound
from omnigraph.graph.handle import NOW, Handle
from omnigraph.graph.snapshot import Reference, Snapshot
from omnigraph.graph.sources import id_column
from omnigraph.language.schema.catalog import Catalog, EdgeType, NodeType
from omnigraph.language.source import did_you_mean, nearest_name
from omnigraph.query.scan.entities import Entities, open_edges, open_nodes
from omnigraph.shown import Shown
from omnigraph.values.render import plain

Direction = Literal["out", "in"]
#: The most edges of one group that a call returns.
MOST_NEIGHBOURS = 1000
#: Texts are cut to so many characters; `entity` returns the whole text.
LONGEST_TEXT = 500


@dataclass(frozen=True, slots=True)
class Seen:
    """A node or an edge with its values; vectors and blobs are left out, and long texts are cut. Only edges have ends."""

    type: str
    id: str
    label: str
    properties: dict[str, Any]
    source: str | None = None
    target: str | None = None

    def to_dict(self) -> dict[str, Any]:
        told: dict[str, Any] = {"type": self.type, "id": self.id, "label": self.label, "properties": self.properties}
        return told if self.source is None else told | {"from": self.source, "to": self.target}


@dataclass(frozen=True, slots=True)
class NeighbourGroup:
    """The edges of one type and direction of a node: how many there are, and how many of them are part of the answer."""

    edge: str
    direction: Direction
    type: str
    total: int
    given: int

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Neighbours(Shown):
    """A node, the groups of its edges, and some of those edges with the nodes at their other ends, all of one commit."""

    commit: str
    node: Seen
    groups: tuple[NeighbourGroup, ...]
    nodes: tuple[Seen, ...]
    edges: tuple[Seen, ...]

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values, ready for JSON."""
        return {
            "graph_commit_id": self.commit,
            "node": self.node.to_dict(),
            "groups": [group.to_dict() for group in self.groups],
            "nodes": [node.to_dict() for node in self.nodes],
            "edges": [edge.to_dict() for edge in self.edges],
        }


class Exploring(Handle):
    """Looking around in a graph."""

    def neighbours(
        self,
        type: str,
        id: str,
        *,
        edge: str | None = None,
        direction: Direction | None = None,
        limit: int = 25,
        skip: int = 0,
        branch: str | None = None,
        snapshot: Reference = None,
    ) -> Neighbours:
        """A node with its edges and the nodes at their other ends, read from one snapshot.

        `edge` and `direction`: only edges of one type, or one way. Of each group `limit` edges are given, after `skip`.
        """
        if direction not in (None, "in", "out"):
            raise BadRequest(f'direction is "in" or "out", not {direction!r}')
        if not isinstance(limit, int) or not 0 <= limit <= MOST_NEIGHBOURS:
            raise BadRequest(f"limit is a number of edges from 0 to {MOST_NEIGHBOURS}, not {limit!r}")
        if not isinstance(skip, int) or skip < 0:
            raise BadRequest(f"skip is a number of edges from 0 on, not {skip!r}")
        contract, view = self._view(branch, snapshot, NOW)
        catalog = contract.catalog
        _known(type, catalog.nodes, "node")
        if edge is not None:
            _known(edge, catalog.edges, "edge")
        found = seen_nodes(catalog, view, {type: [id]})
        if not found:
            raise EntityNotFound(f"there is no {type} with the id '{id}'", type_key=f"node:{type}", entity_id=id)
        groups: list[NeighbourGroup] = []
        edges: list[Seen] = []
        wanted: dict[str, dict[str, None]] = {}
        for declared, way in _ways(catalog, type, edge, direction):
            own, other = ("src", "dst") if way == "out" else ("dst", "src")
            far = declared.to_type if way == "out" else declared.from_type
            entities = open_edges(view, catalog, declared.name)
            condition = pc.field(own) == id
            total = entities.table.count_rows(condition)
            shown = _edges(entities, condition, skip, limit) if total else []
            groups.append(NeighbourGroup(declared.name, way, far, total, len(shown)))
            edges += shown
            for line in shown:
                end = line.target if other == "dst" else line.source
                assert end is not None
                wanted.setdefault(far, {})[end] = None
        nodes = seen_nodes(catalog, view, {name: list(ids) for name, ids in wanted.items()})
        # A self-loop is in both groups, and is returned once.
        distinct = {(line.type, line.id): line for line in edges}
        return Neighbours(view.commit, found[0], tuple(groups), tuple(nodes), tuple(distinct.values()))


def _known(name: str, types: Iterable[str], kind: str) -> None:
    names = list(types)
    if name not in names:
        raise NotFound(f"the schema has no {kind} type '{name}'{did_you_mean(nearest_name(name, names))}")


def _ways(
    catalog: Catalog, type_name: str, edge: str | None, direction: Direction | None
) -> list[tuple[EdgeType, Direction]]:
    """The edge types that connect a node type, with the direction as seen from it."""
    found: list[tuple[EdgeType, Direction]] = []
    for declared in catalog.edges.values():
        if edge is not None and declared.name != edge:
            continue
        if declared.from_type == type_name and direction in (None, "out"):
            found.append((declared, "out"))
        if declared.to_type == type_name and direction in (None, "in"):
            found.append((declared, "in"))
    return found


def _edges(entities: Entities, condition: pc.Expression, skip: int, limit: int) -> list[Seen]:
    """At most `limit` edges that satisfy a condition, after `skip`, in the order in which they are stored."""
    shown, columns = _shown(entities)
    rows: list[pa.RecordBatch] = []
    seen = 0
    for batch in entities.table.scan(["id", "src", "dst", *columns], condition, batch_size=skip + limit or 1):
        rows.append(batch)
        seen += batch.num_rows
        if seen >= skip + limit:
            break
    if not rows:
        return []
    table = pa.Table.from_batches(rows).slice(skip, limit)
    values = _values(entities, table, shown, columns)
    ends = zip(*(table.column(name).to_pylist() for name in ("id", "src", "dst")), strict=True)
    return [
        Seen(entities.entity.name, found, entities.entity.name, values[place], source, target)
        for place, (found, source, target) in enumerate(ends)
    ]


def seen_nodes(catalog: Catalog, view: Snapshot, wanted: dict[str, list[str]]) -> list[Seen]:
    """The nodes with these types and ids, if they exist, with their values."""
    found: list[Seen] = []
    for name, ids in wanted.items():
        entities = open_nodes(view, catalog, name)
        shown, columns = _shown(entities)
        table = entities.table.take_ids(id_column(ids), ["id", *columns])
        values = _values(entities, table, shown, columns)
        for node_id, row in zip(table.column("id").to_pylist(), values, strict=True):
            found.append(Seen(name, node_id, label_of(entities.entity, node_id, row), row))
    return found


def label_of(entity: NodeType | EdgeType, node_id: str, row: dict[str, Any]) -> str:
    """The label of a node: its key, else its first text, else its first date or time, else its id."""
    if entity.key is not None:
        return node_id
    texts = {name: value for name, value in row.items() if isinstance(value, str) and value}
    own = (value for name, value in texts.items() if entity.properties[name].type.is_text)
    return next(own, next(iter(texts.values()), node_id))


def _shown(entities: Entities) -> tuple[list[str], list[str]]:
    """The returned properties, by their current names and by the names of their columns."""
    names = [
        name
        for name, declared in entities.entity.properties.items()
        if not declared.type.is_vector and not declared.type.is_blob and entities.stored[name]
    ]
    return names, [entities.stored[name] or name for name in names]


def _values(entities: Entities, table: pa.Table, shown: list[str], columns: list[str]) -> list[dict[str, Any]]:
    values = [
        plain(table.column(column), entities.entity.properties[name].type)
        for name, column in zip(shown, columns, strict=True)
    ]
    rows = zip(*values, strict=True) if values else [()] * table.num_rows
    return [{name: _cut(value) for name, value in zip(shown, row, strict=True)} for row in rows]


def _cut(value: Any) -> Any:
    return value[: LONGEST_TEXT - 1] + "…" if isinstance(value, str) and len(value) > LONGEST_TEXT else value
