"""Lowering and rewriting keep the meaning of a query: random queries over random graphs, three ways."""

from __future__ import annotations

import re
from collections import Counter
from random import Random
from typing import Any

import pytest

from omnigraph.errors import TypecheckError
from omnigraph.language.query import ir
from omnigraph.language.query.check import CheckedRead, check_query
from omnigraph.language.query.compile import compile_query
from omnigraph.language.query.parser import parse_query_file
from omnigraph.language.query.rewrite import RULES
from omnigraph.language.schema.build import compile_schema
from tests.language.query.interpreter import Graph, Row, run_clauses, run_plan

SCHEMA = compile_schema("""
node Staff { handle: String @key level: I32? emb: Vector(2)? }
node Team { code: String @key size: I32 }
edge Mentors: Staff -> Staff { weight: I32? }
edge MemberOf: Staff -> Team
""")

PARAMS = {"h": "s1", "n": 2, "v": (0.0, 0.0)}
DECLARED = "$h: String, $n: I32, $v: Vector(2)"

# --- graphs -----------------------------------------------------------------------------------------------------------

# Equal id texts in both types: they must never be mixed up.
STAFF_IDS = ("s1", "s2", "s3")
TEAM_IDS = ("s1", "t1")


def make_graph(random: Random) -> Graph:
    """A small graph that is dense enough for most queries to find something."""

    def level() -> int | None:
        return random.choice((None, 0, 1, 2, 3))

    def edges(targets: tuple[str, ...], most: int) -> list[dict[str, Any]]:
        return [
            {"id": f"e{number}", "src": random.choice(STAFF_IDS), "dst": random.choice(targets), "weight": level()}
            for number in range(random.randint(0, most))
        ]

    vectors = (None, (0.0, 1.0), (1.0, 0.0), (2.0, 2.0))
    staff = [{"id": name, "handle": name, "level": level(), "emb": random.choice(vectors)} for name in STAFF_IDS]
    teams = [{"id": name, "code": name, "size": random.randint(0, 3)} for name in TEAM_IDS]
    return Graph({"Staff": staff, "Team": teams}, {"Mentors": edges(STAFF_IDS, 7), "MemberOf": edges(TEAM_IDS, 5)})


# --- queries ----------------------------------------------------------------------------------------------------------

CLAUSES = (
    "$b: Staff",
    "$b: Staff { handle: $h }",
    "$c: Staff { level: 2 }",
    "$t: Team",
    '$t: Team { code: "t1" }',
    "$a: Staff { handle: $h }",
    '$a.id = "s2"',
    "$a mentors $b",
    "$b mentors $c",
    "$c mentors $a",
    "$c mentors{1,2} $b",
    "$a <mentors> $b",
    "$b <mentors>{2,3} $c",
    "$a $e:mentors $b",
    "$b $f:<mentors> $c",
    "$a memberOf $t",
    "$b memberOf $t",
    "$t memberOf{1,2} $c",
    "$c memberOf{2,3} $t",
    "$a mentors $_",
    "$_ memberOf $t",
    "$a mentors $a",
    "$a.level > 1",
    "$b.level <= $n",
    "$a.level < $b.level",
    "$a.level < $t.size",
    "$e.weight >= 1",
    "$e.weight = $b.level",
    '$a.handle starts_with "s"',
    "$b.handle contains $h",
    'search($c.handle, "s1 s3")',
    "1 = 1",
    '"a" = "b"',
    "$n > 1",
    "$n > 3",
    "not { $a mentors $b }",
    "not { $b memberOf $_ }",
    'not { $a memberOf $u $u.code = "t1" }',
    "not { $a memberOf $t not { $t.size = 1 } }",
    "not { $a.level = 1 }",
    "not { $a mentors $x $x mentors $y $y.level > 0 }",
    "not { $a mentors $x $y: Staff { handle: $h } $x.level = $y.level }",
    "not { $b: Staff { level: 1 } }",
    "not { $b $g:mentors $x $g.weight = $a.level }",
)
RETURNS = (
    "$a.handle, nearest($a.emb, $v) as d",
    "$a.handle, $a.level",
    "$a.handle, $b.handle, $c.level",
    "$a, $t.code, $e.weight",
    "$a.handle, $t",
    "$a.handle, count($b) as n",
    "$a.handle, count($t) as n, count($b.level) as m",
    "count($c) as n",
    "count($a) as n, sum($b.level) as s",
    "$t.size, count($e.weight) as n",
    "min($a.handle) as lo, max($a.level) as hi, avg($c.level) as av",
    "$b.level, $a.level, $n",
)
ORDERS = (
    "",
    "order { $a.level desc, $a.handle }",
    "order { $b.handle, $a } limit 3",
    "order { nearest($a.emb, $v) } limit 2",
    "order { nearest($a.emb, $v), $a.level desc } limit 1",
    "order { d } limit 2",
    "order { n desc } limit 2",
)


def _text(clauses: list[str], returns: str, tail: str = "") -> str:
    return f"query q({DECLARED}) {{ match {{ $a: Staff {' '.join(clauses)} }} return {{ {returns} }} {tail} }}"


def _fits(text: str) -> bool:
    """Whether a query fits the schema; most often a variable is not bound when it does not."""
    parsed = parse_query_file(text)
    try:
        check_query(parsed.queries[0], SCHEMA, parsed.source)
    except TypecheckError:
        return False
    return True


_ALIAS = re.compile(r"order { ([a-z])\b")


def make_query(random: Random) -> str:
    """A query that fits the schema; `$a` is always there."""
    clauses: list[str] = []
    for clause in random.sample(CLAUSES, random.randint(1, 9)):
        if _fits(_text([*clauses, clause], "$a")):
            clauses.append(clause)
    returns = random.choice([returns for returns in RETURNS if _fits(_text(clauses, returns))])
    tails = [tail for tail in ORDERS if not (alias := _ALIAS.match(tail)) or f"as {alias[1]}" in returns]
    return _text(clauses, returns, random.choice([tail for tail in tails if _fits(_text(clauses, returns, tail))]))


def _comparable(rows: list[Row], in_order: bool) -> object:
    """Rows as they are when the query orders them, else as a multiset."""
    values = [tuple(sorted(row.items(), key=str)) for row in rows]
    return values if in_order else Counter(values)


def _check(text: str, graph: Graph) -> int:
    """Compare the clauses, the lowered plan and the plan after each rule; gives the number of rows."""
    compiled = compile_query(text, None, SCHEMA)
    read, plan = compiled.checked.body, compiled.plan
    assert isinstance(read, CheckedRead)
    assert not isinstance(plan, ir.MutationPlan)
    ordered = bool(read.order)
    rows = run_plan(plan, graph, PARAMS)
    lowered = _comparable(rows, ordered)
    if not (read.aggregates and ordered):
        assert lowered == _comparable(run_clauses(read, graph, PARAMS), ordered), (text, graph)
    for rule in RULES:
        plan = rule(plan)
        assert _comparable(run_plan(plan, graph, PARAMS), ordered) == lowered, (rule.__name__, text, graph)
    assert plan == compiled.rewritten
    return len(rows)


@pytest.mark.parametrize("seed", range(3))
def test_every_rule_keeps_the_meaning(seed: int) -> None:
    random = Random(seed)
    sizes = []
    for _ in range(80):
        text = make_query(random)
        sizes += [_check(text, make_graph(random)) for _ in range(3)]
    assert sum(size > 0 for size in sizes) > len(sizes) / 3, "most queries should find something"


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_a_rule_has_nothing_left_to_do(rule: Any) -> None:
    """Run on its own result, a rule changes nothing more."""
    text = (
        f"query q({DECLARED}) {{ match {{ $a: Staff $a mentors $b $b: Staff {{ handle: $h }} $b memberOf $t "
        "$a.level > 1 $a.level > 1 1 = 1 $a.level < $b.level not { $b mentors $_ } } "
        "return { $a.level, count($t) as n } order { n } limit 3 }"
    )
    plan = compile_query(text, None, SCHEMA).plan
    assert not isinstance(plan, ir.MutationPlan)
    for earlier in RULES[: RULES.index(rule)]:
        plan = earlier(plan)
    once = rule(plan)
    assert rule(once) == once
