"""Graphs, inputs and answers for the tests of load, on whichever engine."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import orjson

import omnigraph as og
from tests.commit.org import SCHEMA
from tests.query.fixtures import ORG_ROWS


def lines(documents: Iterable[Any]) -> bytes:
    """Documents as JSON lines; a text stands for itself."""
    return b"".join((one.encode() if isinstance(one, str) else orjson.dumps(one)) + b"\n" for one in documents)


def node(type_name: str, **data: Any) -> dict[str, Any]:
    return {"type": type_name, "data": data}


def edge(type_name: str, source: str, target: str, **data: Any) -> dict[str, Any]:
    return {"edge": type_name, "from": source, "to": target, **({"data": data} if data else {})}


def graph_of(path: Path, schema: str = SCHEMA, *documents: Any) -> og.Graph:
    """A graph with some rows loaded."""
    graph = og.init(path, schema)
    if documents:
        graph.load(lines(documents), engine="local")
    return graph


def org(path: Path) -> og.Graph:
    """A graph that holds FX-ORG."""
    graph = og.init(path, SCHEMA)
    graph.load(ORG_ROWS.encode(), engine="local")
    return graph


def rows(graph: og.Graph, type_key: str, branch: str | None = None) -> list[dict[str, Any]]:
    """All rows of a type, by id."""
    found = graph.snapshot(branch).open(type_key).read(blobs="bytes").to_pylist()
    return sorted(found, key=lambda row: row["id"])


def ids(graph: og.Graph, type_key: str, branch: str | None = None) -> list[str]:
    return [row["id"] for row in rows(graph, type_key, branch)]


def ends(graph: og.Graph, name: str, branch: str | None = None) -> list[tuple[str, str]]:
    return sorted((row["src"], row["dst"]) for row in rows(graph, f"edge:{name}", branch))


def content(graph: og.Graph, branch: str | None = None) -> dict[str, Any]:
    """Everything a graph holds; ids of edges are left out, because most are made anew."""
    state = graph.snapshot(branch)
    found: dict[str, Any] = {}
    for entry in state.entries():
        listed = rows(graph, entry.key, branch)
        if entry.key.startswith("edge:"):
            listed = [{name: value for name, value in row.items() if name != "id"} for row in listed]
        found[entry.key] = sorted(listed, key=repr)
    return found


def files(graph: og.Graph) -> set[str]:
    """Every file of a graph, but for locks."""
    root = Path(graph.uri)
    return {
        str(path.relative_to(root))
        for path in root.rglob("*")
        if path.is_file() and not str(path.relative_to(root)).startswith("__locks")
    }
