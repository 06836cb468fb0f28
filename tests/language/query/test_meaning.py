"""Lowering and rewriting keep the meaning of a query: random queries over random graphs, three ways."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from omnigraph.errors import TypecheckError
from omnigraph.language.query import ir
from omnigraph.language.query.check import CheckedRead, check_query
from omnigraph.language.query.compile import CompiledQuery, compile_query
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
levels = st.none() | st.integers(0, 3)


def _edges(sources: tuple[str, ...], targets: tuple[str, ...]) -> st.SearchStrategy[list[dict[str, Any]]]:
    ends = st.lists(st.tuples(st.sampled_from(sources), st.sampled_from(targets), levels), max_size=5)
    return ends.map(
        lambda found: [
            {"id": f"e{number}", "src": src, "dst": dst, "weight": weight}
            for number, (src, dst, weight) in enumerate(found)
        ]
    )


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    vectors = st.none() | st.tuples(st.integers(0, 2).map(float), st.integers(0, 2).map(float))
    staff = [{"id": name, "handle": name, "level": draw(levels), "emb": draw(vectors)} for name in STAFF_IDS]
    teams = [{"id": name, "code": name, "size": draw(st.integers(0, 3))} for name in TEAM_IDS]
    edges = {"Mentors": draw(_edges(STAFF_IDS, STAFF_IDS)), "MemberOf": draw(_edges(STAFF_IDS, TEAM_IDS))}
    return Graph({"Staff": staff, "Team": teams}, edges)


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


@st.composite
def queries(draw: st.DrawFn) -> CompiledQuery:
    """A query that fits the schema; `$a` is always there."""
    clauses: list[str] = []
    for clause in draw(st.lists(st.sampled_from(CLAUSES), max_size=7, unique=True)):
        if _fits(_text([*clauses, clause], "$a")):
            clauses.append(clause)
    returns = draw(st.sampled_from([returns for returns in RETURNS if _fits(_text(clauses, returns))]))
    tails = [tail for tail in ORDERS if "{ n" not in tail or "as n" in returns]
    tail = draw(st.sampled_from([tail for tail in tails if _fits(_text(clauses, returns, tail))]))
    return compile_query(_text(clauses, returns, tail), None, SCHEMA)


def _comparable(rows: list[Row], in_order: bool) -> object:
    """Rows as they are when the query orders them, else as a multiset."""
    values = [tuple(sorted(row.items(), key=str)) for row in rows]
    return values if in_order else Counter(values)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(queries(), graphs())
def test_every_rule_keeps_the_meaning(compiled: CompiledQuery, graph: Graph) -> None:
    read = compiled.checked.body
    assert isinstance(read, CheckedRead)
    plan = compiled.plan
    assert not isinstance(plan, ir.MutationPlan)
    ordered = bool(read.order)
    lowered = _comparable(run_plan(plan, graph, PARAMS), ordered)
    if not (read.aggregates and ordered):
        assert lowered == _comparable(run_clauses(read, graph, PARAMS), ordered)
    for rule in RULES:
        plan = rule(plan)
        assert _comparable(run_plan(plan, graph, PARAMS), ordered) == lowered, rule.__name__
    assert plan == compiled.rewritten


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
