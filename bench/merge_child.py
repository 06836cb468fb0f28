"""A process of the fast-forward benchmark: `make URI ROWS DIMENSION` makes a branch with new rows, `merge URI` merges it."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
import pyarrow as pa

import omnigraph
from omnigraph.commit.model import Lineage
from omnigraph.commit.protocol import Step, TableEffect, Write, execute
from omnigraph.commit.sidecar import Kind
from omnigraph.commit.updates import SchemaIs
from omnigraph.graph.lifecycle import connect
from omnigraph.ids import new_ulid, now_micros
from omnigraph.storage.tables.staged import stage_append

BATCH = 8192


def make(uri: str, count: int, dimension: int) -> None:
    """A graph whose branch `feature` has so many rows more than main."""
    graph = omnigraph.init(uri, f"node Doc {{ slug: String @key body: String? emb: Vector({dimension})? }}")
    graph.create_branch("feature")
    context = connect(uri)
    state = context.manifest.load("feature")
    entry = state.by_key["node:Doc"]
    effect = TableEffect(entry, (Step(lambda table: stage_append(table, batches(table.schema, count))),), forks=True)
    lineage = Lineage(new_ulid(), now_micros(), "load")
    execute(context, Write(Kind.LOAD, "feature", lineage, (effect,), SchemaIs(state.schema_hash)))


def batches(schema: pa.Schema, count: int) -> Iterator[pa.RecordBatch]:
    numbers = np.random.default_rng(7)
    for start in range(0, count, BATCH):
        size = min(BATCH, count - start)
        names = [f"d{number:08}" for number in range(start, start + size)]
        kind = schema.field("emb").type
        vectors = numbers.random(size * kind.list_size, np.float32)
        columns = {
            "id": pa.array(names),
            "slug": pa.array(names),
            "body": pa.array([f"the text of {name}" for name in names]),
            "emb": pa.FixedSizeListArray.from_arrays(pa.array(vectors), kind.list_size),
        }
        yield pa.RecordBatch.from_arrays([columns[name] for name in schema.names], schema=schema)


def merge(uri: str) -> None:
    """Merge it, and print how that went."""
    graph = omnigraph.open(uri)
    start = time.perf_counter()
    result = graph.merge("feature")
    taken = time.perf_counter() - start
    rows = graph.snapshot().entry("node:Doc").row_count
    print(json.dumps({"outcome": result.outcome, "seconds": taken, "rows": rows}))


if __name__ == "__main__":
    action, uri, *others = sys.argv[1:]
    make(uri, *map(int, others)) if action == "make" else merge(uri)
