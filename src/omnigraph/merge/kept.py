"""Keeping a node keeps its edges: how a decision about a node applies to the edges that the other side deleted with it.

Deleting a node deletes its edges. If a node that one side deleted stays, because of a strategy or a resolution, its edges
stay too, as long as both of their ends are in the merged graph:

    theirs deleted the node    its edges are in ours; the deletions of theirs are not carried out (`kept_ends`)
    ours deleted the node      its edges are in theirs, or in the base; they are written again (`restored_edges`)

A decision about an edge itself takes precedence.
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
    """Nodes at one end of an edge type (`column`: src or dst): ids that theirs deleted but that stay, and removed ids."""

    column: str
    stay: pa.Array
    go: pa.Array


def kept_ends(edge: EdgeType, nodes: Parts) -> tuple[KeptEnd, ...]:
    """The ends whose kept nodes keep edges of this type that theirs deleted, else empty. `nodes`: the parts by type key."""
    ends = [
        KeptEnd(column, part.kept, part.removed)
        for column, type_name in (("src", edge.from_type), ("dst", edge.to_type))
        for part in [nodes.get(f"node:{type_name}", Part())]
    ]
    return tuple(ends) if any(len(end.stay) for end in ends) else ()


def is_kept(ends: tuple[KeptEnd, ...], edges: pa.Table) -> pa.Array:
    """Which edges touch a kept node and no removed node."""
    touching, whole = pa.scalar(False), pa.scalar(True)
    for end in ends:
        column = flat(edges[end.column])
        touching = pc.or_(touching, pc.is_in(column, value_set=end.stay))
        whole = pc.and_not(whole, pc.is_in(column, value_set=end.go))
    return pc.and_(touching, whole)


@dataclass(frozen=True)
class EdgeVersions:
    """The table of one edge type in base, ours and theirs."""

    base: Table
    ours: Table
    theirs: Table


def restored_edges(edge: EdgeType, nodes: Parts, target: Target, tables: EdgeVersions) -> dict[str, Resolution]:
    """The edges, by id, that are restored with their node, each as a decision for the version its node is taken from."""
    found: dict[str, Resolution] = {}
    for version, table in (("base", tables.base), ("theirs", tables.theirs)):
        rows = _incident(edge, table, nodes, version)
        if rows.num_rows:
            # Edges that theirs inserted come anyway, and edges in ours are already there.
            rows = rows.filter(pc.is_in(rows["id"], value_set=_known(tables.base, rows)))
            rows = rows.filter(pc.invert(pc.is_in(rows["id"], value_set=_known(tables.ours, rows))))
        for column, type_name in (("src", edge.from_type), ("dst", edge.to_type)):
            rows = rows.filter(_in_merged_graph(f"node:{type_name}", flat(rows[column]), nodes, target))
        for edge_id in rows["id"].to_pylist():
            found[edge_id] = Resolution(edge.type_key, edge_id, version, implied=True)
    return found


def restores(edge: EdgeType, nodes: Parts) -> bool:
    """Whether a node is restored that edges of this type may touch."""
    parts = [nodes.get(f"node:{name}", Part()) for name in (edge.from_type, edge.to_type)]
    return any(len(ids) for part in parts for ids in part.restored.values())


def _incident(edge: EdgeType, table: Table, nodes: Parts, version: str) -> pa.Table:
    """The edges in one version of a table that touch a node restored from that version."""
    found = []
    for column, type_name in (("src", edge.from_type), ("dst", edge.to_type)):
        ids = nodes.get(f"node:{type_name}", Part()).restored.get(version, NO_IDS)
        found.append(table.take_by(column, ids, ["id", "src", "dst"]))
    return pa.concat_tables(found)


def _known(table: Table, rows: pa.Table) -> pa.Array:
    return flat(table.take_ids(flat(rows["id"]), ["id"])["id"])


def _in_merged_graph(node_key: str, ids: pa.Array, nodes: Parts, target: Target) -> pa.Array:
    """Which of these nodes are in the merged graph."""
    part = nodes.get(node_key, Part())
    stored = flat(target.stored(node_key, ids, ["id"])["id"])
    remains = pc.and_not(pc.is_in(ids, value_set=stored), pc.is_in(ids, value_set=part.removed))
    if part.checked is None:
        return remains
    return pc.or_(remains, pc.is_in(ids, value_set=flat(part.checked["id"])))
