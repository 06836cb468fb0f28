"""`python -m bench [NAME…]`: run all benchmarks and keep the table, or run some and only show it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from bench.measure import BENCHMARKS, Row
from bench.table import circumstances, render

#: Importing a module registers its benchmarks.
MODULES = (
    "bench.changes",
    "bench.cli",
    "bench.languages",
    "bench.load",
    "bench.maintenance",
    "bench.merge",
    "bench.merge_s3",
    "bench.mutations",
    "bench.query",
    "bench.query_limits",
    "bench.search",
    "bench.storage",
    "bench.storage_s3",
)
RESULTS = Path(__file__).with_name("RESULTS.md")


def main(names: Sequence[str]) -> int:
    """Run the benchmarks of these names, or all of them, and return the exit code."""
    for module in MODULES:
        import_module(module)
    chosen = [name for name in BENCHMARKS if not names or any(_belongs(name, wanted) for wanted in names)]
    if not chosen:
        print(f"no such benchmark; known are: {', '.join(BENCHMARKS)}", file=sys.stderr)
        return 2
    rows: list[Row] = []
    for name in chosen:
        print(f"{name} …", file=sys.stderr, flush=True)
        rows += BENCHMARKS[name]()
    table = render(rows)
    print(table)
    if not names:
        facts = "\n".join(f"- {fact}" for fact in circumstances())
        RESULTS.write_text(f"# Results of the last `python -m bench`\n\n{facts}\n\n{table}\n")
        print(f"written to {RESULTS.name}", file=sys.stderr)
    return 0


def _belongs(name: str, wanted: str) -> bool:
    return name == wanted or name.startswith(f"{wanted}.")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
