"""A process that inserts one key again and again, at the same time as others.

    racing_child.py <uri> <start file> <handle> <level> [<level> …]

It waits for the start file, then makes one insert per level and prints, for each, the commit it made or its error.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import orjson

import omnigraph as og
from tests.mutation.org_graph import call, commit_of


def main(uri: str, start: str, handle: str, *levels: str) -> None:
    graph = og.open(uri)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    while not Path(start).exists():
        time.sleep(0.005)
    outcomes = []
    for level in levels:
        try:
            outcomes.append([int(level), commit_of(call(graph, "put", handle, int(level))).id, None])
        except og.errors.Conflict as error:
            outcomes.append([int(level), None, type(error).__name__])
    sys.stdout.buffer.write(orjson.dumps(outcomes))


if __name__ == "__main__":
    main(*sys.argv[1:])
