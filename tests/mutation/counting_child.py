"""A process that updates a row of its own and counts in a row of everybody, at the same time as others.

    counting_child.py <uri> <start file> <own handle> <rounds>

It waits for the start file. Each round sets the level of its own row and adds one to the level of ada; it prints the
conflicts of the updates of its own row.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import orjson

import omnigraph as og
from tests.mutation.org_graph import call, known_level


def count(handle: og.Graph) -> None:
    call(handle, "relevel", "ada", known_level(handle, "ada") + 1)


def main(uri: str, start: str, own: str, rounds: str) -> None:
    graph = og.open(uri)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    while not Path(start).exists():
        time.sleep(0.005)
    conflicts = []
    for number in range(int(rounds)):
        try:
            call(graph, "relevel", own, number + 1)
        except og.errors.Conflict as error:
            conflicts.append(str(error))
        graph.retrying(count, attempts=100)
    sys.stdout.buffer.write(orjson.dumps(conflicts))


if __name__ == "__main__":
    main(*sys.argv[1:])
