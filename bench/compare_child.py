"""One side of `bench.compare`: a process that measures whatever omnigraph its path leads to. It uses the public API alone.

Reads one JSON request per line (`{"do", …}`) and answers one JSON line: `{"seconds": […], "answer": …}`. Run as a file, so that
nothing of the tree it lies in is imported.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
from collections.abc import Callable
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, Literal

import pyarrow.parquet as parquet

import omnigraph

CLOCK = time.process_time if os.environ.get("BENCH_CLOCK") == "cpu" else time.perf_counter
COMMITS = """
query put($k: String, $n: I32) { insert Person { key: $k, gender: "male", age: $n } }
query link($k: String, $n: I32) { insert Person { key: $k, gender: "male", age: $n } insert Follows { from: $k, to: "p1" } }
query change($k: String, $n: I32) { update Person set { age: $n } where key = $k }
query drop($k: String) { delete Person where key = $k }
"""


class Side:
    """The graphs of one source tree."""

    def __init__(self) -> None:
        self.graphs: dict[str, omnigraph.Graph] = {}
        self.numbers = count()

    def where(self) -> str:
        """Where omnigraph is imported from."""
        return str(Path(omnigraph.__file__).parent)

    def build(self, name: str, uri: str, schema: str, tables: str | None = None, options: Any = None) -> int:
        """A graph with the tables of a folder (`node.Type.parquet`, `edge.Type.parquet`) and its indexes."""
        graph = omnigraph.init(uri, schema, storage_options=options)
        rows = 0
        for path in sorted(Path(tables).glob("*.parquet"), reverse=True) if tables else ():
            kind, type_name, _ = path.name.split(".")
            table = parquet.read_table(path)
            mapping = {"src": "from", "dst": "to"} if kind == "edge" else None
            node, edge = (type_name, None) if kind == "node" else (None, type_name)
            graph.load(table, engine="local", mapping=mapping, type=node, edge=edge)
            rows += table.num_rows
        graph.ensure_indices()
        self.graphs[name] = graph
        return rows

    def load(self, uri: str, schema: str, file: str, engine: Literal["auto", "local", "spark"]) -> dict[str, Any]:
        """One load of a file into a new graph."""
        graph = omnigraph.init(uri, schema)
        seconds = _timed(lambda: graph.load(file, engine=engine))
        answer = hashlib.sha256()
        for piece in graph.export_chunks(types=["Person"]):
            answer.update(piece)
        return {"seconds": [seconds], "answer": answer.hexdigest()}

    def commit(self, name: str, query: str, times: int) -> dict[str, Any]:
        """Single-row commits of one kind, each on a person of its own."""
        graph, taken = self.graphs[name], []
        for _ in range(times):
            number = next(self.numbers)
            params: dict[str, Any] = {"k": f"new{number}", "n": number % 50}
            if query in ("change", "drop"):
                # What there is to change or drop is not part of the measure.
                graph.mutate(COMMITS, "put", params)
            asked = params if query != "drop" else {"k": params["k"]}
            taken.append(_timed(partial(graph.mutate, COMMITS, query, asked)))
        return {"seconds": taken, "answer": None}

    def query(self, name: str, text: str, times: int) -> dict[str, Any]:
        """One query, some times in a row; the first time is not counted when there are more."""
        graph = self.graphs[name]
        rows = [[round(v, 6) if isinstance(v, float) else v for v in row.values()] for row in graph.query(text).rows]
        taken = [_timed(lambda: graph.query(text)) for _ in range(times)]
        return {"seconds": taken[1:] or taken, "answer": rows}


def _timed(action: Callable[[], object]) -> float:
    start = CLOCK()
    action()
    return CLOCK() - start


def main() -> None:
    side, answers = Side(), sys.stdout
    sys.stdout = sys.stderr
    for line in sys.stdin:
        request = json.loads(line)
        answers.write(json.dumps(getattr(side, request.pop("do"))(**request)) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
