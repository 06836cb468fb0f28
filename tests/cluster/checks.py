"""What loads on a cluster are given, and what must be true of a graph after each of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa

import omnigraph as og
from omnigraph.commit.staging_jobs import FOLDER
from omnigraph.graph.lifecycle import connect
from tests.commit.healthy import assert_healthy

SCHEMA = """
node N { name: String @key  n: I64  text: String? }
"""
COUNT = 12_000
TABLE = pa.table(
    {
        "name": [f"k{number:06d}" for number in range(COUNT)],
        "n": pa.array(range(COUNT), pa.int64()),
        "text": [None if number % 7 == 0 else "t" * (number % 50) for number in range(COUNT)],
    }
)


def lines() -> bytes:
    """The rows of `TABLE` as JSON lines."""
    return b"".join(orjson.dumps({"type": "N", "data": row}) + b"\n" for row in TABLE.to_pylist())


def new_graph(place: Path) -> og.Graph:
    return og.init(place / "g", SCHEMA)


def assert_whole(graph: og.Graph, *, table: pa.Table = TABLE) -> None:
    """All rows are there once and can be read, every file that a version names exists, nothing waits in `__staging`."""
    found: list[dict[str, Any]] = graph.snapshot().open("node:N").read().to_pylist()
    rows = sorted(({name: row[name] for name in table.column_names} for row in found), key=lambda row: str(row["name"]))
    assert rows == table.to_pylist()
    assert_references(graph)


def assert_references(graph: og.Graph) -> None:
    """Every file that a published version names exists, every pin is a head, nothing waits in `__staging`."""
    context = connect(graph.uri)
    assert [info.path for info in context.store.list(FOLDER)] == []
    for entry in context.manifest.load("main").tables.values():
        dataset = context.tables.open(entry.location, entry.version).dataset
        named = [file.path for fragment in dataset.get_fragments() for file in fragment.metadata.files]
        assert len(named) == len(set(named))
        for path in named:
            assert Path(graph.uri, entry.location.path, "data", path).is_file()
    assert_healthy(context)
