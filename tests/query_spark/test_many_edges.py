"""Questions over many edges on Spark with 2 GB for each executor: the exact answers; the local engine says that it needs more.

`OMNIGRAPH_TEST_EDGES` says how many there are: 5 million unless given, 50 million in the full form.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import orjson
import pytest

from tests.query_spark.many_edges_child import answers


def asked(folder: Path, edges: int, memory: int) -> dict[str, dict[str, object]]:
    """What a process of its own answers."""
    arguments = [str(folder), str(edges), str(memory)]
    child = subprocess.run(
        [sys.executable, "-m", "tests.query_spark.many_edges_child", *arguments], stdout=subprocess.PIPE, check=True
    )
    told: dict[str, dict[str, object]] = orjson.loads(child.stdout)
    return told


def judge(told: dict[str, dict[str, object]]) -> None:
    """Spark has the exact answers; the local engine too, or it says that it needs more memory and what has enough."""
    assert told["found"] == told["expected"]
    assert told["here"] == {name: told["expected"][name] for name in told["here"]}
    assert {*told["here"], *told["refused"]} == set(told["expected"])
    assert told["refused"]
    assert all('engine="spark"' in str(said) for said in told["refused"].values())


def test_some_edges(tmp_path: Path) -> None:
    judge(answers(tmp_path, 2_000, 1_000))


@pytest.mark.timeout(0)
@pytest.mark.long
def test_many_edges(tmp_path: Path) -> None:
    edges = int(os.environ.get("OMNIGRAPH_TEST_EDGES", "5000000"))
    judge(asked(tmp_path, edges, edges // 10))
