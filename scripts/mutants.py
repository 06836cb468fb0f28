"""Mutation testing: small changes to `commit/`, `merge/` and `validation/`, each of which some test must notice.

usage: mutants.py [--package NAME]... [--sample N] [--seed N]

Cosmic Ray makes the changes, in a copy of the project below `build/mutants`. All of them would take days, so a sample is taken at
random: as many of each package, the same ones for the same seed. The report names every survivor with its difference; the exit
code is 1 when fewer than `GOAL` of a package are noticed.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from cosmic_ray.work_db import WorkDB, use_db
from cosmic_ray.work_item import MutationSpec, TestOutcome, WorkerOutcome, WorkResult

PROJECT = Path(__file__).resolve().parents[1]
WORKSHOP = PROJECT / "build" / "mutants"
#: The part of the mutants that tests notice, at least.
GOAL = 0.85
#: Seconds after which the tests of one mutant count as having noticed it: it does not end.
LONGEST = 900.0
#: The tests that are asked about a package: quick ones first, since the first failure is enough.
TESTS = {
    "commit": ["tests/commit", "tests/graph"],
    "merge": ["tests/merge"],
    "validation": ["tests/validation", "tests/mutation/test_validation.py", "tests/load/test_behaviours.py"],
}
#: Slow tests that repeat what others of these folders show.
LEFT_OUT = ("tests/commit/test_races.py", "tests/merge/test_laws.py", "tests/merge/test_spark.py")


@dataclass(frozen=True)
class Outcome:
    """What became of the mutants of one package."""

    package: str
    killed: int
    survivors: tuple[tuple[MutationSpec, str], ...]

    @property
    def share(self) -> float:
        total = self.killed + len(self.survivors)
        return self.killed / total if total else 1.0


def main() -> int:
    parser = argparse.ArgumentParser(prog="make mutants", description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--package", action="append", choices=sorted(TESTS), help="only this package; may be repeated")
    parser.add_argument("--sample", type=int, default=60, help="mutants of each package (60)")
    parser.add_argument("--seed", type=int, default=1, help="which ones (1)")
    asked = parser.parse_args()
    outcomes = [try_package(name, asked.sample, asked.seed) for name in asked.package or sorted(TESTS)]
    report = "\n".join(line for outcome in outcomes for line in described(outcome))
    (WORKSHOP / "report.md").write_text(report + "\n")
    print(report)
    return 0 if all(outcome.share >= GOAL for outcome in outcomes) else 1


def try_package(package: str, sample: int, seed: int) -> Outcome:
    """Make a sample of mutants of a package and run its tests on each."""
    copy = _copied(package)
    session, config = WORKSHOP / f"{package}.sqlite", WORKSHOP / f"{package}.toml"
    session.unlink(missing_ok=True)
    config.write_text(_config(package))
    _cosmic_ray("baseline", config, cwd=copy)
    _cosmic_ray("init", config, session, cwd=copy)
    with use_db(session) as database:
        _keep_a_sample(database, copy, sample, random.Random(seed))
    _cosmic_ray("exec", config, session, cwd=copy)
    with use_db(session, WorkDB.Mode.open) as database:
        return _outcome(package, database)


def described(outcome: Outcome) -> Iterator[str]:
    """The lines of the report about one package."""
    total = outcome.killed + len(outcome.survivors)
    yield f"## {outcome.package}: {outcome.killed} of {total} mutants noticed ({outcome.share:.0%}, goal {GOAL:.0%})"
    for spec, difference in outcome.survivors:
        yield f"\n{spec.module_path}:{spec.start_pos[0]} {spec.operator_name}\n\n```diff\n{difference.strip()}\n```"
    yield ""


def _copied(package: str) -> Path:
    """The project as it is now, to be changed: the sources, the tests and what they read."""
    copy = WORKSHOP / package
    shutil.rmtree(copy, ignore_errors=True)
    unwanted = shutil.ignore_patterns(
        ".git", ".venv", ".tmp", "build", "dist", "node_modules", "__pycache__", ".*_cache"
    )
    shutil.copytree(PROJECT, copy, ignore=unwanted)
    (copy / ".tmp").mkdir()
    return copy


def _config(package: str) -> str:
    left_out = [f"--ignore={path}" for path in LEFT_OUT]
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-m", "not long", *left_out]
    return "\n".join(
        [
            "[cosmic-ray]",
            f'module-path = "src/omnigraph/{package}"',
            f"timeout = {LONGEST}",
            "excluded-modules = []",
            f"test-command = {shlex.join([*command, *TESTS[package]])!r}",
            "",
            "[cosmic-ray.distributor]",
            'name = "local"',
            "",
        ]
    )


def _cosmic_ray(*arguments: str | Path, cwd: Path) -> None:
    """Run a command of Cosmic Ray; tests import the copy, whatever is installed."""
    environment = {**os.environ, "PYTHONPATH": str(cwd / "src"), "TMPDIR": str(cwd / ".tmp")}
    command = [Path(sys.executable).with_name("cosmic-ray"), *arguments]
    done = subprocess.run(command, cwd=cwd, env=environment, check=False)
    if done.returncode:
        raise SystemExit(f"mutants: `cosmic-ray {arguments[0]}` failed; do the tests pass as they are?")


def _keep_a_sample(database: WorkDB, copy: Path, sample: int, choice: random.Random) -> None:
    """Skip every mutant but some that a test could notice."""
    mutations = {item.job_id: item.mutations[0] for item in database.work_items}
    unread = {path: set(_unread(copy / path)) for path in {each.module_path for each in mutations.values()}}
    read = {job: each for job, each in mutations.items() if each.start_pos[0] not in unread[each.module_path]}
    # In an order that is the same in every run: jobs have random names.
    jobs = sorted(read, key=lambda job: (str(read[job].module_path), read[job].start_pos, read[job].operator_name))
    chosen = set(choice.sample(jobs, min(sample, len(jobs))))
    skipped = WorkResult(worker_outcome=WorkerOutcome.SKIPPED)
    database.set_multiple_results([job for job in mutations if job not in chosen], skipped)


def _unread(path: Path) -> Iterator[int]:
    """The lines of a module that nothing evaluates: annotations, and blocks for type checkers."""
    for node in ast.walk(ast.parse(path.read_text())):
        annotations: Sequence[ast.expr | None] = ()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
            annotations = [node.returns, *(argument.annotation for argument in arguments)]
        elif isinstance(node, ast.AnnAssign):
            annotations = [node.annotation] if node.value is None else []
        elif isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            yield from range(node.lineno, (node.end_lineno or node.lineno) + 1)
        for found in annotations:
            if found is not None:
                yield from range(found.lineno, (found.end_lineno or found.lineno) + 1)


def _outcome(package: str, database: WorkDB) -> Outcome:
    killed, survivors = 0, []
    specs = {item.job_id: item.mutations[0] for item in database.work_items}
    for job_id, result in database.results:
        if result.worker_outcome is WorkerOutcome.SKIPPED:
            continue
        if result.test_outcome is TestOutcome.SURVIVED:
            survivors.append((specs[job_id], result.diff or ""))
        else:
            killed += 1
    return Outcome(package, killed, tuple(survivors))


if __name__ == "__main__":
    sys.exit(main())
