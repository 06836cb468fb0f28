"""The command line as a process: how long a person waits, the start of the interpreter included."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from bench.measure import Floor, Measure, Row, benchmark, timed
from tests.mutation.org_graph import org_graph

QUERY = "query staff() { match { $s: Staff } return { $s.handle } order { $s.handle } }"
ANSWER = "s.handle\nada\nben\ncleo\ndov\n"
_RUNS = 15


@benchmark("cli.start")
def start() -> Iterator[Row]:
    floor = Floor("start Python", _process("-c", ""))
    yield Row("`omnigraph --help`, as a process", _process("-m", "omnigraph", "--help"), floor, goal=0.25)
    yield Row("`omnigraph version`, as a process", _process("-m", "omnigraph", "version"), floor, goal=0.2)


@benchmark("cli.query")
def query() -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "org.omni"
        org_graph(place)
        arguments = ("-m", "omnigraph", "query", "-e", QUERY, "--store", str(place), "--format", "csv")
        answer = subprocess.run([sys.executable, *arguments], check=True, capture_output=True, text=True).stdout
        assert answer == ANSWER, f"the wrong answer: {answer}"
        yield Row(
            "`omnigraph query` on a small graph, as a process",
            _process(*arguments),
            Floor("start Python and import lance", _process("-c", "import lance")),
            goal=1.0,
        )


def _process(*arguments: str) -> Measure:
    command = [sys.executable, *arguments]
    return timed(lambda: subprocess.run(command, check=True, capture_output=True), repeat=_RUNS)
