"""The languages: compiling a query, linting a file as a process, and the slowest input of the fuzz tests."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from bench.measure import Floor, Measure, Row, benchmark, timed
from omnigraph.errors import BadRequest
from omnigraph.language.query.compile import compile_query
from omnigraph.language.query.lint import lint_queries
from omnigraph.language.schema.build import compile_schema
from tests.language.fuzzing import damaged_sources, random_texts

SCHEMA = """\
node Staff { handle: String @key level: I32? joined: Date? bio: String? @index emb: Vector(4)? }
node Team { code: String @key budget: F64? }
edge Mentors: Staff -> Staff { began: Date? }
edge MemberOf: Staff -> Team { role: String? }
"""
QUERY = """\
query mentors_near($team: String, $text: String, $since: Date, $v: Vector(4)) @description("who could help") {
  match {
    $t: Team { code: $team }
    $s $m:memberOf $t
    $s mentors{1,2} $x
    $x.level >= 3
    $m.role != "guest"
    $x.joined > $since
    search($x.bio, $text)
    not { $x memberOf $t }
  }
  return { $s.handle, $x.handle as mentor, rrf(nearest($x.emb, $v), bm25($x.bio, $text)) as score }
  order { score desc, mentor }
  limit 20
}
"""
_TOKEN = re.compile(r'"[^"]*"|[$@]?\w+|[^\s\w]')
FUZZ_INPUTS = 20_000
_SUSPECTS = 200


@benchmark("languages.compile")
def compile_warm() -> Iterator[Row]:
    catalog = compile_schema(SCHEMA)
    lines = len(QUERY.splitlines())
    yield Row(
        f"compile a query of {lines} lines, warm",
        timed(lambda: compile_query(QUERY, None, catalog), repeat=300, warm_up=30),
        Floor("split it into tokens", timed(lambda: _TOKEN.findall(QUERY), repeat=300, warm_up=30)),
        goal=3e-3,
    )


@benchmark("languages.lint")
def lint_process() -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as folder:
        schema, queries = Path(folder, "s.pg"), Path(folder, "q.gq")
        schema.write_text(SCHEMA)
        queries.write_text(QUERY)
        command = [sys.executable, "-m", "omnigraph", "lint", "--schema", str(schema), "--query", str(queries)]
        yield Row(
            "`omnigraph lint` on one file, as a process",
            timed(lambda: subprocess.run(command, check=True, capture_output=True), repeat=15),
            Floor("start Python", timed(lambda: subprocess.run([sys.executable, "-c", ""], check=True), repeat=15)),
            goal=0.5,
        )


@benchmark("languages.fuzz")
def slowest_fuzz_input() -> Iterator[Row]:
    catalog = compile_schema(SCHEMA)
    for name, action in (
        ("schema", compile_schema),
        ("queries", lambda text: lint_queries(text, catalog)),
    ):
        yield Row(f"the slowest of {2 * FUZZ_INPUTS:,} fuzz inputs, {name}", _slowest(action), goal=50e-3)


def _slowest(action: Callable[[str], object]) -> Measure:
    """The slowest input: those that were slow once are measured again, for a single run may have been disturbed."""
    seen: list[tuple[float, str]] = []
    for inputs in (random_texts, damaged_sources):
        for text in inputs(0, FUZZ_INPUTS):
            start = time.perf_counter()
            _try(action, text)
            seen.append((time.perf_counter() - start, text))
    suspects = sorted(seen, reverse=True)[:_SUSPECTS]
    measures = [timed(partial(_try, action, text), repeat=7) for _, text in suspects]
    return max(measures, key=lambda measure: measure.median)


def _try(action: Callable[[str], object], text: str) -> None:
    try:
        action(text)
    except BadRequest:
        return
