"""A process that loads on a cluster and is killed while its tasks run: driver.py <graph> <master> <file> <conf as JSON>"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import omnigraph as og
from omnigraph.load import inputs


def main(uri: str, master: str, path: str, conf: str) -> None:
    os.environ["OMNIGRAPH_HELD_LOAD_BYTES"] = "0"
    inputs.RANGE_BYTES = inputs.SMALLEST_RANGE = 64 << 10
    graph = og.open(uri, spark={"master": master, **json.loads(conf)})
    graph.load(path, "merge", engine="spark", progress=lambda _: os.kill(os.getpid(), signal.SIGKILL))


if __name__ == "__main__":
    main(*sys.argv[1:])
