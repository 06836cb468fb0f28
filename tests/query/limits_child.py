"""Runs one query in a process of its own and prints what became of it, with the peak of its memory.

`python -m tests.query.limits_child GRAPH QUERY MEMORY_LIMIT MORE_ADDRESS_SPACE`; the peak counts from before the query.
A machine with less memory than the limit allows is one whose process may not grow by more than MORE_ADDRESS_SPACE bytes.
"""

from __future__ import annotations

import json
import re
import resource
import sys
from pathlib import Path

import omnigraph as og


def peak() -> int:
    """The most memory this process ever had, in bytes."""
    found = re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())
    assert found is not None
    return int(found[1]) * 1024


def main() -> None:
    uri, text, limit, space = sys.argv[1:]
    graph = og.open(uri, mode="ro")
    # What every query needs is loaded: the engine, the compiled loops, the adjacency.
    graph.query("query q() { match { $a: N $a to{1,2} $b } return { count($b) as n } }")
    before = peak()
    if int(space):
        taken = re.search(r"VmSize:\s+(\d+)", Path("/proc/self/status").read_text())
        assert taken is not None
        resource.setrlimit(resource.RLIMIT_AS, (int(taken[1]) * 1024 + int(space), resource.RLIM_INFINITY))
    outcome: dict[str, object] = {}
    try:
        result = graph.query(text, memory_limit=limit)
        outcome = {"rows": len(result), "first": result.rows[:3]}
    except og.errors.ResourceLimit as error:
        outcome = {"error": error.to_dict()}
    # The process goes on.
    outcome["alive"] = graph.query("query q() { match { $n: N } return { count($n) as n } }").rows[0]["n"]
    outcome["grown"] = peak() - before
    print(json.dumps(outcome))


if __name__ == "__main__":
    main()
