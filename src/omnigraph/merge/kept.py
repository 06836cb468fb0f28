"""Keeping a node keeps its edges: what a decision about a node means for the edges that the other side deleted with it.

Deleting a node deletes its edges. When a node that one side deleted stays, because of a strategy or a resolution, the edges
that went with it stay too, as long as both of their ends are in the merged graph:

    theirs deleted the node    its edges are in ours; the deletions of theirs are not carried out (`kept_ends`)
    ours deleted the node      its edges are in theirs, or in the base; they are written again (`restored_edges`)

A decision about an edge itself comes before all of this.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.language.schema.catalog import EdgeType
from omnigraph.merge.combine import flat
from omnigraph.merge.part import NO_IDS, Part
from omnigraph.merge.resolutions import Resolution
from omnigraph.merge.target import Target
from omnigraph.storage.tables.table import Table

Parts = Mapping[str, Part]


@dataclass(frozen=True)
class KeptEnd:
    """Nodes at one end (`column`: src or dst) of an edge type: ids that theirs deleted and that stay, and ids that go."""

    column: str
    stay: pa.Array
    go: pa.Array


def kept_ends(edge: EdgeType, nodes: Parts) -> tuple[KeptEnd, ...]:
    """The ends by which edges of a type are kept against a deletion of theirs; empty when no node is. `nodes`: by type key."""
    ends = [
        KeptEnd(column, part.kept, part.removed)
        for column, type_name in (("src", edge.from_type), ("dst", edge.to_type))
        for part in [nodes.get(f"node:{type_name}", Part())]
    ]
    return tuple(ends) if any(len(end.stay) for end in ends) else ()


def is_kept(ends: tuple[KeptEnd, ...], edges: pa.Table) -> pa.Array:
    """Which of some edges touch a node that is kept and no node that goes."""
    touching, whole = pa.scalar(False), pa.scalar(True)
    for end in ends:
        column = flat(edges[end.column])
        touching = pc.or_(touching, pc.is_in(column, value_set=end.stay))
        whole = pc.and_not(whole, pc.is_in(column, value_set=end.go))
    return pc.and_(touching, whole)


@dataclass(frozen=True)
class EdgeVersions:
    """The table of one edge type as base, ours and theirs have it."""

    base: Table
    ours: Table
    theirs: Table


def restored_edges(edge: EdgeType, nodes: Parts, target: Target, tables: EdgeVersions) -> dict[str, Resolution]:
    """The edges, by id, that come back with their node, each as a decision for the side its node is taken from."""
    found: dict[str, Resolution] = {}
    for version, table in (("base", tables.base), ("theirs", tables.theirs)):
        rows = _incident(edge, table, nodes, version)
        if rows.num_rows:
            # What theirs inserted comes anyway, and what ours has is there.
            rows = rows.filter(pc.is_in(rows["id"], value_set=_known(tables.base, rows)))
            rows = rows.filter(pc.invert(pc.is_in(rows["id"], value_set=_known(tables.ours, rows))))
        for column, type_name in (("src", edge.from_type), ("dst", edge.to_type)):
            rows = rows.filter(_in_merged_graph(f"node:{type_name}", flat(rows[column]), nodes, target))
        for edge_id in rows["id"].to_pylist():
            found[edge_id] = Resolution(edge.type_key, edge_id, version, implied=True)
    return found


def restores(edge: EdgeType, nodes: Parts) -> bool:
    """Whether a node comes back that edges of this type may touch."""
    parts = [nodes.get(f"node:{name}", Part()) for name in (edge.from_type, edge.to_type)]
    return any(len(ids) for part in parts for ids in part.restored.values())


def _incident(edge: EdgeType, table: Table, nodes: Parts, version: str) -> pa.Table:
    """The edges of one version of a table that touch a node which comes back as that version has it."""
    found = []
    for column, type_name in (("src", edge.from_type), ("dst", edge.to_type)):
        ids = nodes.get(f"node:{type_name}", Part()).restored.get(version, NO_IDS)
        found.append(table.take_by(column, ids, ["id", "src", "dst"]))
    return pa.concat_tables(found)


def _known(table: Table, rows: pa.Table) -> pa.Array:
    return flat(table.take_ids(flat(rows["id"]), ["id"])["id"])


def _in_merged_graph(node_key: str, ids: pa.Array, nodes: Parts, target: Target) -> pa.Array:
    """Which of some nodes the merged graph has."""
    part = nodes.get(node_key, Part())
    stored = flat(target.stored(node_key, ids, ["id"])["id"])
    remains = pc.and_not(pc.is_in(ids, value_set=stored), pc.is_in(ids, value_set=part.removed))
    if part.checked is None:
        return remains
    return pc.or_(remains, pc.is_in(ids, value_set=flat(part.checked["id"])))
