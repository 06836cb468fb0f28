"""Everything at once for a while: writers, readers, merges and maintenance in several processes, some of them killed.

A minute by default, a quarter of an hour in the long run. No reader sees anything wrong, no acknowledged write is lost, everybody
can go on to the end, and after a last cleanup there is not one file that nothing refers to.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.graph.lifecycle import connect
from tests import warm
from tests.commit.healthy import assert_healthy, tree
from tests.maintenance.referenced import all_readable, unreferenced
from tests.soak.schema import SCHEMA, append, chains, length

CHILD = Path(__file__).with_name("soak_child.py")
ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("seconds", [60, pytest.param(900, marks=[pytest.mark.long, pytest.mark.timeout(3600)])])
def test_soak(tmp_path: Path, seconds: int, monkeypatch: pytest.MonkeyPatch) -> None:
    uri, folder = str(tmp_path / "graph"), tmp_path / "acknowledged"
    folder.mkdir()
    graph = og.init(uri, SCHEMA)
    # Long enough for a query that is running, short enough that cleanup has something to do.
    environment = {**os.environ, "OMNIGRAPH_FEED_RETENTION": "15s", "PYTHONPATH": str(ROOT)}

    def start(role: str, name: str, for_seconds: float) -> subprocess.Popen[str]:
        command = [sys.executable, str(CHILD), uri, role, name, str(for_seconds), str(folder)]
        return warm.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    roles = [("write", "a"), ("merge", "m"), ("read", "r"), ("maintain", "x")]
    steady = [start(role, name, seconds) for role, name in roles]
    kills = _killed_again_and_again(lambda left: start("write", "k", left), seconds)
    reports = [_report(child) for child in steady]

    done: dict[str, int] = {}
    for report in reports:
        assert report["failed"] == [], "\n".join(report["failed"])
        done |= report["done"]
    assert {"written", "read", "merged", "ensure_indices", "optimize", "cleanup"} <= {k for k, n in done.items() if n}
    assert kills > 0

    graph.refresh()
    found = chains(og.open(uri))
    for acknowledged in folder.iterdir():
        count = int(acknowledged.read_text() or 0)
        assert count <= found[acknowledged.name] <= count + 3, f"{acknowledged.name}: {count} acknowledged, {found}"
    for branch in graph.branches()[1:]:
        graph.delete_branch(branch)

    monkeypatch.setenv("OMNIGRAPH_FEED_RETENTION", "0s")
    monkeypatch.setenv("OMNIGRAPH_STAGING_GRACE", "0s")
    graph.optimize()
    graph.cleanup(keep=1)
    context = connect(uri)
    assert unreferenced(context) == set()
    all_readable(context)
    assert_healthy(context)
    files = tree(context)
    assert graph.cleanup(keep=1).datasets == ()
    assert tree(context) == files
    assert chains(og.open(uri)) == found
    append(graph, "a0", length(graph, "a0"))


def _killed_again_and_again(start: Callable[[float], subprocess.Popen[str]], seconds: float) -> int:
    """A writer that is killed at some moment, and another one that goes on where it was."""
    deadline = time.monotonic() + seconds
    kills = 0
    while (left := deadline - time.monotonic()) > 5:
        child = start(left)
        time.sleep(min(left, random.uniform(3, 8)))
        child.kill()
        _, errors = child.communicate()
        assert "Traceback" not in errors, errors
        kills += 1
    return kills


def _report(child: subprocess.Popen[str]) -> dict[str, Any]:
    out, errors = child.communicate()
    assert child.returncode == 0, errors
    return dict(json.loads(out.splitlines()[-1]))
