"""`python -m bench.compare OLD`: the same measures against two source trees in one run; is the new one slower?

OLD is another checkout (a path) or a git revision, which is checked out into a temporary folder. Each tree has a process of its
own; they are asked in turn, who is first changes every round, and their answers must be equal. What is measured: a load in one
process (and on Spark with `--spark`), single-row commits, the requests of a commit on S3, the nine queries, neighbourhoods and a
look-up. On a machine that others use too, `--cpu` counts the processor time of the processes instead of the time that passes.

Both sides are asked for the same few repetitions within a second, and only the fastest repetition of each counts: what else
the machine does only ever adds. The ratio is the median, over the rounds, of new to old in the same round.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow.parquet as parquet

from bench.load_data import SCHEMA as LOAD_SCHEMA
from bench.load_data import write_jsonl
from bench.measure import Floor, Row, scratch_folder, summary
from bench.query_texts import QUESTIONS
from bench.results import RESULTS, keep
from bench.s3_requests import Recorder, recorded
from bench.social import SCHEMA, make_social
from bench.table import render
from tests.s3 import running_server

#: The largest ratio of new to old that is good enough.
SLOWER = 1.05
COMMITS_A_ROUND = 20
QUERIES_A_ROUND = 20
LOOKUPS_A_ROUND = 60
REQUESTS_A_ROUND = 12
CHILD = Path(__file__).with_name("compare_child.py")
PROJECT = Path(__file__).resolve().parents[1]

LOOKUP = 'query q() { match { $p: Person { key: "p4711" } } return { $p.age } }'
HOPS = 'query q() { match { $p: Person { key: "p11" } $p follows{1,3} $x } return { count($x) as n } }'


class Side:
    """One source tree and the process that measures it."""

    def __init__(self, name: str, tree: Path, folder: Path, clock: str) -> None:
        self.name, self.folder = name, folder
        folder.mkdir()
        environment = {**os.environ, "PYTHONPATH": str(tree / "src"), "BENCH_CLOCK": clock}
        self.process = subprocess.Popen(
            [sys.executable, str(CHILD)],
            env=environment,
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        found = self.ask(do="where")
        if not Path(found).is_relative_to(tree / "src"):
            raise SystemExit(f"{name}: omnigraph comes from {found}, not from {tree}")

    def ask(self, **request: Any) -> Any:
        """The answer to one request; a process that fails ends the comparison, its traceback is on standard error."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"the process of {self.name} has failed at {request['do']}")
        return json.loads(line)

    def end(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


@dataclass
class Compared:
    """One measure: how it is asked of a side, and what both sides took so far.

    `exact`: a count, which must not grow. `turns`: how often a round asks each side, one after the other; a commit makes the
    next one slower and the disk is quick or slow for seconds, so that commits are compared one by one.
    """

    what: str
    ask: Callable[[Side], dict[str, Any]]
    unit: str = "s"
    exact: bool = False
    turns: int = 1
    #: The fastest repetition of each round, by side; of an exact count, all of them.
    taken: dict[str, list[float]] = field(default_factory=dict)

    def round(self, sides: Sequence[Side]) -> None:
        """Ask the sides in turn; the answers must be equal."""
        for turn in range(self.turns):
            answers = []
            for side in sides if turn % 2 else sides[::-1]:
                told = self.ask(side)
                counted = told["seconds"] if self.exact else [min(told["seconds"])]
                self.taken.setdefault(side.name, []).extend(counted)
                answers.append(told["answer"])
            if answers[0] != answers[1]:
                raise SystemExit(f"{self.what}: the answers differ: {answers[0]} / {answers[1]}")

    def row(self, old: str, new: str) -> Row:
        before, after = summary(self.taken[old], self.unit), summary(self.taken[new], self.unit)
        paired = [ours / theirs for ours, theirs in zip(self.taken[new], self.taken[old], strict=True)]
        factor = 1.0 if self.exact else SLOWER
        return Row(self.what, after, Floor(old, before), goal=factor * before.median, paired=statistics.median(paired))


def compare(old: Side, new: Side, rounds: int, measures: Sequence[Compared]) -> list[Row]:
    """Warm up once, then some rounds in which who is first changes."""
    for measure in measures:
        for side in (old, new):
            measure.ask(side)
    for number in range(rounds):
        for measure in measures:
            measure.round((old, new) if number % 2 else (new, old))
        print(f"round {number + 1} of {rounds}", file=sys.stderr, flush=True)
    return [measure.row(old.name, new.name) for measure in measures]


# --- what is measured -------------------------------------------------------------------------------------------------


def local_measures(sides: Sequence[Side], data: Path, persons: int, engines: Sequence[str]) -> list[Compared]:
    """Loads, commits and queries on local disk."""
    social = make_social(persons, persons * 24)
    tables = data / "tables"
    tables.mkdir()
    for kind, named in (("node", social.nodes), ("edge", social.edges)):
        for name, table in named.items():
            parquet.write_table(table, tables / f"{kind}.{name}.parquet")
    file = data / "people.jsonl"
    write_jsonl(file, persons)
    for side in sides:
        print(f"{side.name}: building a graph of {persons:,} persons", file=sys.stderr, flush=True)
        side.ask(do="build", name="social", uri=str(side.folder / "social"), schema=SCHEMA, tables=str(tables))
        side.ask(do="build", name="commits", uri=str(side.folder / "commits"), schema=SCHEMA, tables=str(tables))
    loads = [Compared(f"load of {persons:,} persons, {engine}", _load(file, engine)) for engine in engines]
    commits = [
        Compared(f"single-row commit: {query}", _commit("commits", query, 1), turns=COMMITS_A_ROUND)
        for query in ("put", "link", "change", "drop")
    ]
    queries = [Compared(f"query {question.name}", _query(question.gq, QUERIES_A_ROUND)) for question in QUESTIONS]
    quick = [("look-up by key", LOOKUP), ("neighbourhood of 3 hops", HOPS)]
    return [*loads, *commits, *queries, *(Compared(name, _query(text, LOOKUPS_A_ROUND)) for name, text in quick)]


def _load(file: Path, engine: str) -> Callable[[Side], dict[str, Any]]:
    numbers = iter(range(1_000_000))

    def ask(side: Side) -> dict[str, Any]:
        uri = str(side.folder / f"load-{engine}-{next(numbers)}")
        told: dict[str, Any] = side.ask(do="load", uri=uri, schema=LOAD_SCHEMA, file=str(file), engine=engine)
        return told

    return ask


def _commit(graph: str, query: str, times: int) -> Callable[[Side], dict[str, Any]]:
    return lambda side: dict(side.ask(do="commit", name=graph, query=query, times=times))


def _query(text: str, times: int) -> Callable[[Side], dict[str, Any]]:
    return lambda side: dict(side.ask(do="query", name="social", text=text, times=times))


@contextmanager
def s3_measures(sides: Sequence[Side]) -> Iterator[list[Compared]]:
    """The requests of a commit on S3; each side has a recording proxy of its own."""
    with ExitStack() as stack:
        server = stack.enter_context(running_server())
        recorders: dict[str, Recorder] = {}
        for side in sides:
            proxy, recorders[side.name] = stack.enter_context(recorded(server))
            uri = f"s3://{server.new_bucket()}/graph"
            side.ask(do="build", name="s3", uri=uri, schema=SCHEMA, options=proxy.options)
            side.ask(do="commit", name="s3", query="put", times=2)

        def requests(side: Side) -> dict[str, Any]:
            counts = []
            for _ in range(REQUESTS_A_ROUND):
                with recorders[side.name].recording() as told:
                    side.ask(do="commit", name="s3", query="put", times=1)
                    counts.append(float(told().total))
            return {"seconds": counts, "answer": None}

        yield [Compared("requests of a single-row commit on S3", requests, unit="requests", exact=True)]


# --- the two trees ----------------------------------------------------------------------------------------------------


@contextmanager
def tree_of(given: str, folder: Path) -> Iterator[tuple[str, Path]]:
    """The name and the folder of a source tree: a checkout that is there, or a revision that is checked out for now."""
    if (Path(given) / "src" / "omnigraph").is_dir():
        yield Path(given).resolve().name, Path(given).resolve()
        return
    target = folder / "old-tree"
    _git("worktree", "add", "--detach", str(target), given)
    try:
        yield _git("rev-parse", "--short", given), target
    finally:
        _git("worktree", "remove", "--force", str(target))


def _git(*arguments: str) -> str:
    return subprocess.run(
        ["git", "-C", str(PROJECT), *arguments], check=True, capture_output=True, text=True
    ).stdout.strip()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.compare", description=__doc__)
    parser.add_argument("old", help="a checkout or a git revision")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--persons", type=int, default=100_000)
    parser.add_argument("--spark", action="store_true", help="measure a load on Spark too")
    parser.add_argument("--cpu", action="store_true", help="processor time; what Spark's processes take is not counted")
    parser.add_argument(
        "--part", choices=["all", "local", "s3"], default="all", help="s3: only the requests of a commit"
    )
    parser.add_argument("--only", default="", metavar="TEXT", help="measures whose name has this text")
    parser.add_argument("--keep", action="store_true", help="write the table into RESULTS.md")
    asked = parser.parse_args()
    with ExitStack() as stack:
        folder = stack.enter_context(scratch_folder())
        name, tree = stack.enter_context(tree_of(asked.old, folder))
        clock = "cpu" if asked.cpu else "wall"
        old = Side(f"before ({name})", tree, folder / "old", clock)
        new = Side("now", PROJECT, folder / "new", clock)
        stack.callback(old.end)
        stack.callback(new.end)
        engines = ["local", "spark"] if asked.spark else ["local"]
        measures: list[Compared] = []
        if asked.part != "s3":
            measures += local_measures((old, new), folder, asked.persons, engines)
        if asked.part != "local":
            measures += stack.enter_context(s3_measures((old, new)))
        measures = [measure for measure in measures if asked.only in measure.what]
        rows = compare(old, new, asked.rounds, measures)
    print(render(rows))
    if asked.keep:
        keep("compare", rows)
        print(f"compare: written to {RESULTS.name}", file=sys.stderr)
    return 0 if all(row.met is not False for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
