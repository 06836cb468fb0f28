"""What a graph holds as plain data, and how a difference is applied to it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import omnigraph as og
from omnigraph.changes.model import Change

#: The entities of a graph: by type key and id, their properties and, for edges, endpoints.
Content = dict[tuple[str, str], dict[str, Any]]


def content(graph: og.Graph, branch: str | None = None, at: Any = None) -> Content:
    """Everything a graph holds, read without the code under test."""
    snapshot = graph.snapshot(branch, at)
    return {
        (entry.key, row["id"]): {name: value for name, value in row.items() if name != "id"}
        for entry in snapshot.entries()
        for row in snapshot.open(entry.key).read().to_pylist()
    }


def applied(before: Content, changes: Iterable[Change]) -> Content:
    """The content after some changes, each of which must fit what is there."""
    after = dict(before)
    for change in changes:
        key = (change.type_key, change.id)
        if change.op == "insert":
            assert key not in after
        else:
            assert after[key] == image(change.before, change.endpoints_before)
        if change.op == "delete":
            assert change.after is None
            del after[key]
        else:
            after[key] = image(change.after, change.endpoints)
    return after


def image(properties: Any, endpoints: Any) -> dict[str, Any]:
    ends = {} if endpoints is None else {"src": endpoints.src, "dst": endpoints.dst}
    return {**ends, **properties}


def told(changes: Iterable[Change]) -> list[tuple[str, str, str]]:
    """Changes in short: operation, type, id."""
    return [(change.op, change.type_key, change.id) for change in changes]
