"""Two source trees are measured in one run, and answer the same."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[2]


@pytest.mark.long
def test_a_tree_compared_with_itself() -> None:
    command = [
        sys.executable,
        "-m",
        "bench.compare",
        str(PROJECT),
        "--rounds",
        "1",
        "--persons",
        "200",
        "--part",
        "local",
    ]
    environment = {**os.environ, "PYTHONPATH": ""}
    done = subprocess.run(command, cwd=PROJECT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr[-3000:]
    measured = [line.split("|")[1].strip() for line in done.stdout.splitlines()[2:]]
    assert sum(what.startswith("query") for what in measured) == 9
    assert {"load of 200 persons, local", "single-row commit: put", "look-up by key"} <= set(measured)
    assert f"before ({PROJECT.name})" in done.stdout
