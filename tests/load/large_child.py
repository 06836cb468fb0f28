"""A process that loads one large file on Spark and says what came of it: `python -m tests.load.large_child FILE FOLDER`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import omnigraph as og

SCHEMA = "node P { key: String @key } edge K: P -> P"


def main(file: Path, folder: Path) -> None:
    graph = og.init(folder, SCHEMA)
    before = len(graph.commits())
    result = graph.load(file, engine="spark")
    counts = {entry.key: entry.row_count for entry in graph.snapshot().entries()}
    commits = len(graph.commits()) - before
    print(
        json.dumps(
            {"edges": result.edges_loaded, "counts": counts, "commits": commits, "report": result.report.seconds}
        )
    )


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
