"""A process that does one thing to a graph and is killed on the way. Run with OMNIGRAPH_FAILPOINTS=<name>=kill.

    crash_child.py <uri> write <writer> <branch>      one of tests/commit/scenarios.py
    crash_child.py <uri> open                         a read-write open, which recovers
    crash_child.py <uri> init
    crash_child.py <uri> create-branch <name>
    crash_child.py <uri> delete-branch <name>

CRASH_AT=<name>:<n> kills at the nth passing of a failpoint instead of the first.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

# The folder of this script goes: its `org` would be taken for a module that pickle looks for.
sys.path.pop(0)
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import orjson

from omnigraph import failpoints
from omnigraph.commit.branches import create_branch, delete_branch
from omnigraph.commit.model import MAIN
from omnigraph.commit.protocol import execute
from omnigraph.graph.lifecycle import connect, create, open_for_writing
from tests.commit.org import SCHEMA
from tests.commit.scenarios import SCENARIOS


def main(uri: str, action: str, *names: str) -> None:
    context = connect(uri)
    with _later_death():
        match action:
            case "write":
                writer, branch = names
                write = SCENARIOS[writer].plan(context, branch)
                plan = {"commit": write.lineage.id, "operation": write.operation_id}
                sys.stdout.buffer.write(orjson.dumps(plan))
                sys.stdout.flush()
                execute(context, write)
            case "open":
                open_for_writing(context)
            case "init":
                create(context, SCHEMA)
            case "create-branch":
                create_branch(context, names[0], MAIN)
            case "delete-branch":
                delete_branch(context, names[0])


def _later_death() -> AbstractContextManager[None]:
    name, _, passing = os.environ.get("CRASH_AT", "").partition(":")
    return failpoints.armed(name, _kill_at(int(passing))) if name else nullcontext()


def _kill_at(passing: int) -> Callable[[], None]:
    passed = iter(range(1, passing + 1))

    def die_in_time() -> None:
        if next(passed) == passing:
            os.kill(os.getpid(), signal.SIGKILL)

    return die_in_time


if __name__ == "__main__":
    main(*sys.argv[1:])
