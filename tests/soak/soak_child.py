"""One process of the soak. soak_child.py <uri> <role> <name> <seconds> <folder for acknowledgements>

It works until its time is up and then prints what it did. A conflict is repeated; any other error ends it with a traceback.
"""

from __future__ import annotations

import json
import random
import sys
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

import omnigraph as og
from tests.soak.schema import append, chains, length

DONE: Counter[str] = Counter()
FAILED: list[str] = []


def settled(action: Callable[[], object], deadline: float, what: str) -> bool:
    """Do it, again and again while others are in the way; False when the time was up before."""
    while time.monotonic() < deadline:
        try:
            action()
        except (og.errors.Conflict, og.errors.RecoveryRequired):
            DONE[f"{what} repeated"] += 1
            time.sleep(random.uniform(0.005, 0.05))
            continue
        DONE[what] += 1
        return True
    return False


def write(graph: og.Graph, owner: str, deadline: float, acknowledged: Path) -> None:
    """Append to a chain, and note each acknowledged length."""
    place = length(graph, owner)
    while settled(partial(append, graph, owner, place), deadline, "written"):
        place += 1
        acknowledged.write_text(str(place))
        time.sleep(random.uniform(0, 0.02))


def read(graph: og.Graph, deadline: float) -> None:
    """Look at the whole graph; what was there once never gets shorter."""
    before: dict[str, int] = {}
    while time.monotonic() < deadline:
        now = chains(graph)
        assert all(now.get(owner, 0) >= count for owner, count in before.items()), f"{before} became {now}"
        before = now
        DONE["read"] += 1


def maintain(graph: og.Graph, deadline: float) -> None:
    """Indexes, compaction and cleanup in turn."""
    while time.monotonic() < deadline:
        settled(graph.ensure_indices, deadline, "ensure_indices")
        settled(graph.optimize, deadline, "optimize")
        settled(lambda: graph.cleanup(keep=3), deadline, "cleanup")
        time.sleep(random.uniform(0, 0.5))


def merge(graph: og.Graph, name: str, deadline: float, acknowledged: Path) -> None:
    """Append to a chain on a branch, then merge the branch and delete it."""
    number = 0
    while time.monotonic() < deadline:
        number += 1
        branch = f"{name}-{number}-{time.time_ns()}"
        if not settled(partial(graph.create_branch, branch), deadline, "branched"):
            return
        place = length(graph, name, branch)
        for at in range(place, place + 3):
            if not settled(partial(append, graph, name, at, branch), deadline, "written on a branch"):
                return
        if settled(partial(graph.merge, branch), deadline, "merged"):
            acknowledged.write_text(str(place + 3))
        settled(partial(graph.delete_branch, branch), deadline, "deleted")


def main(uri: str, role: str, name: str, seconds: str, folder: str) -> None:
    graph = og.open(uri)
    deadline = time.monotonic() + float(seconds)
    roles: dict[str, list[Callable[[], object]]] = {
        "write": [partial(write, graph, owner, deadline, Path(folder) / owner) for owner in (f"{name}0", f"{name}1")],
        "read": [lambda: read(graph, deadline)],
        "maintain": [lambda: maintain(graph, deadline)],
        "merge": [lambda: merge(graph, name, deadline, Path(folder) / name)],
    }
    threads = [threading.Thread(target=guarded, args=(action,)) for action in roles[role]]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(json.dumps({"role": role, "done": DONE, "failed": FAILED}))


def guarded(action: Callable[[], object]) -> None:
    try:
        action()
    except BaseException:
        FAILED.append(traceback.format_exc())


if __name__ == "__main__":
    main(*sys.argv[1:])
