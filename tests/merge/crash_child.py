"""A process that merges one branch into another and is killed on the way. Run with OMNIGRAPH_FAILPOINTS=<name>=kill.

crash_child.py <uri> <source> <into>; CRASH_AT=<name>:<passing> kills at a later passing of a failpoint.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import omnigraph as og
from omnigraph import failpoints


def die_at(passing: int) -> Callable[[], None]:
    """What kills this process when it is called for the nth time."""
    left = [passing]

    def count() -> None:
        left[0] -= 1
        if not left[0]:
            os.kill(os.getpid(), signal.SIGKILL)

    return count


def main(uri: str, source: str, into: str) -> None:
    graph = og.open(uri)
    name, _, passing = os.environ.get("CRASH_AT", "").partition(":")
    with failpoints.armed(name, die_at(int(passing))) if name else nullcontext():
        graph.merge(source, into=into, actor="act-merge", idempotency_key="once")


if __name__ == "__main__":
    main(*sys.argv[1:])
