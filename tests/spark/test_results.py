"""What tasks send to the driver, by Spark's own event log: at most 1 MB for a million rows, whatever the input holds."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import omnigraph as og
from tests.connect.events import sent

COUNT = 200_000
PROGRAM = """
import sys, omnigraph as og
graph, data, events = sys.argv[1:]
spark = {
    "master": "local[2]",
    "spark.eventLog.enabled": True,
    "spark.eventLog.dir": events,
    "spark.eventLog.compress": False,
    "spark.eventLog.rolling.enabled": False,
}
print(og.open(graph, spark=spark).load(data, engine="spark").nodes_loaded)
"""


def test_a_load_sends_the_driver_little(tmp_path: Path) -> None:
    (tmp_path / "events").mkdir()
    data = tmp_path / "rows.jsonl"
    data.write_bytes(b"".join(b'{"type":"N","data":{"name":"k%06d","n":%d}}\n' % (n, n) for n in range(COUNT)))
    graph = og.init(tmp_path / "g", "node N { name: String @key  n: I64 }")
    arguments = [graph.uri, str(data), str(tmp_path / "events")]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments], capture_output=True, text=True, check=False, env=dict(os.environ)
    )
    assert done.stdout.strip() == str(COUNT), done.stderr
    found = sent(tmp_path / "events")
    assert found.bytes <= COUNT, found
    assert 2 <= found.tasks <= 20, found
