"""What a graph shows: the rows of every type, at a snapshot, with a schema."""

from __future__ import annotations

from typing import Any, Literal

import omnigraph as og

Picture = dict[str, list[dict[str, Any]]]


def picture(graph: og.Graph, at: int | str | None = None, schema: Literal["now", "then"] = "now") -> Picture:
    """Every type of a schema with its rows, ordered; generated ids are left out."""
    snapshot = graph.snapshot(at=at, schema=schema)
    contract, _ = graph._view(None, at, schema)
    shown: Picture = {}
    for entity in contract.types():
        if entity.type_key not in {
            key for key, identity in snapshot.names.items() if identity in snapshot.state.tables
        }:
            continue
        kind: Literal["node", "edge"] = "edge" if entity.type_key.startswith("edge:") else "node"
        ids = snapshot.open(entity.type_key).read(["id"])["id"].to_pylist()
        rows = [graph.entity(kind, entity.name, id_, snapshot=at, schema=schema) for id_ in ids]
        shown[entity.type_key] = sorted((plain(row, entity.key is None) for row in rows if row), key=repr)
    return shown


def plain(row: dict[str, Any], generated: bool) -> dict[str, Any]:
    """A row in the order of its names, without an id that nobody chose."""
    return {name: row[name] for name in sorted(row) if not (generated and name == "id")}
