"""`python -m bench [NAME…]`: run all benchmarks, or some. What a whole family measures is kept in RESULTS.md."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module

from bench.measure import BENCHMARKS, Row, family_of
from bench.results import RESULTS, keep
from bench.table import render

#: Importing a module registers its benchmarks.
MODULES = (
    "bench.algorithms",
    "bench.branches",
    "bench.changes",
    "bench.cli",
    "bench.languages",
    "bench.load",
    "bench.maintenance",
    "bench.merge",
    "bench.merge_s3",
    "bench.mutations",
    "bench.groups",
    "bench.policy",
    "bench.query",
    "bench.query_limits",
    "bench.scale",
    "bench.search",
    "bench.serve",
    "bench.storage",
    "bench.storage_s3",
    "bench.studio",
)


def main(names: Sequence[str]) -> int:
    """Run the benchmarks of these names, or all of them, and return the exit code."""
    for module in MODULES:
        import_module(module)
    chosen = [name for name in BENCHMARKS if not names or any(_belongs(name, wanted) for wanted in names)]
    if not chosen:
        print(f"no such benchmark; known are: {', '.join(BENCHMARKS)}", file=sys.stderr)
        return 2
    for family in dict.fromkeys(map(family_of, chosen)):
        _run(family, [name for name in chosen if family_of(name) == family])
    return 0


def _run(family: str, names: Sequence[str]) -> None:
    """Some benchmarks of one family; all of them together are worth keeping, and at once: others take long."""
    rows: list[Row] = []
    for name in names:
        print(f"{name} …", file=sys.stderr, flush=True)
        rows += BENCHMARKS[name]()
    print(render(rows), flush=True)
    if names == [name for name in BENCHMARKS if family_of(name) == family]:
        keep(family, rows)
        print(f"{family}: written to {RESULTS.name}", file=sys.stderr)


def _belongs(name: str, wanted: str) -> bool:
    return name == wanted or name.startswith(f"{wanted}.")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
