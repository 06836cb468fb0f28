"""A process that backs a graph up, restores one, or writes to one until it is told to stop.

OMNIGRAPH_FAILPOINTS=<name>=kill says where it dies.

backup_child.py backup|restore|write <uri> <uri or name>
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import omnigraph as og
from tests.mutation.org_graph import WRITES


def write(uri: str, name: str) -> None:
    """Write on main and on a branch in turn, until the file `stop` lies beside the graph; tell how many commits were made."""
    graph, count = og.open(uri), 0
    branches = ["main", *graph.branches()[1:]]
    while not (Path(uri).parent / "stop").exists():
        graph.mutate(WRITES, "put", {"h": f"{name}-{count}", "n": count}, branch=branches[count % len(branches)])
        count += 1
    print(count)


def main(verb: str, uri: str, other: str) -> None:
    match verb:
        case "backup":
            og.open(uri).backup(other)
        case "restore":
            og.restore(uri, other)
        case "write":
            write(uri, other)


if __name__ == "__main__":
    main(*sys.argv[1:])
