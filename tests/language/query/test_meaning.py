"""Lowering and rewriting keep the meaning of a query: random queries over random graphs, as text and as plans."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

import pytest

from omnigraph.errors import TypecheckError
from omnigraph.language.query import ir
from omnigraph.language.query.check import CheckedMutation, check_query
from omnigraph.language.query.compile import compile_query
from omnigraph.language.query.parser import parse_query_file
from omnigraph.language.query.rewrite import RULES
from omnigraph.language.schema.build import compile_schema
from tests.language.query.interpreter import run_plan
from tests.naive.graph import World, make_world
from tests.naive.reads import answers, shown_value
from tests.query.generated import Generator
from tests.query.naive import DAYS, LABELS, MOMENTS, NOTES, make_schema

SCHEMA = compile_schema(make_schema({"level": "I32", "size": "I32", "weight": "I32"}, ""))

PARAMS = {"h": "s1", "n": 2, "v": (0.0, 0.0)}
DECLARED = "$h: String, $n: I32, $v: Vector(2)"

# --- graphs -----------------------------------------------------------------------------------------------------------

# Equal id texts in both types: they must never be mixed up.
STAFF_IDS = ("s1", "s2", "s3")
TEAM_IDS = ("s1", "t1")


def make_graph(random: Random) -> World:
    """A small graph that is dense enough for most queries to find something."""

    def level() -> int | None:
        return random.choice((None, 0, 1, 2, 3))

    vectors = (None, (0.0, 1.0), (1.0, 0.0), (2.0, 2.0))
    documents: list[dict[str, Any]] = []
    for name in STAFF_IDS:
        data = {
            "handle": name,
            "level": level(),
            "emb": random.choice(vectors),
            "label": random.choice(LABELS),
            "note": random.choice(NOTES),
            "born": random.choice(DAYS),
            "seen": random.choice(MOMENTS),
            "active": random.choice((None, True, False)),
            "tags": random.choice((None, [], ["a", "b"])),
        }
        documents.append({"type": "Staff", "data": data})
    for name in TEAM_IDS:
        data = {"code": name, "size": random.randint(0, 3), "label": random.choice(LABELS)}
        documents.append({"type": "Team", "data": data})
    for kind, ends, most in (("Mentors", STAFF_IDS, 7), ("Likes", STAFF_IDS, 4), ("MemberOf", TEAM_IDS, 5)):
        for number in range(random.randint(0, most)):
            between = {"from": random.choice(STAFF_IDS), "to": random.choice(ends)}
            data = {} if kind == "MemberOf" else {"weight": level()}
            documents.append({"edge": kind, "id": f"{kind}{number}", **between, "data": data})
    return make_world(SCHEMA, documents)


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


def _comparable(rows: Sequence[Mapping[Any, Any]], in_order: bool) -> object:
    """Rows as they are when the query orders them, else as a multiset."""
    shown = [tuple(_hashable(shown_value(value)) for value in row.values()) for row in rows]
    return shown if in_order else Counter(shown)


def _hashable(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(value)
    return round(value, 9) if isinstance(value, float) else value


def _check(text: str, graph: World) -> int:
    """Compare the text, the lowered plan and the plan after each rule; gives the number of rows."""
    compiled = compile_query(text, None, SCHEMA)
    read, plan = compiled.checked.body, compiled.plan
    assert not isinstance(read, CheckedMutation)
    assert not isinstance(plan, ir.MutationPlan)
    ordered = bool(read.order)
    rows = run_plan(plan, graph, PARAMS)
    lowered = _comparable(rows, ordered)
    meant = [dict(enumerate(row)) for row in answers(text, graph, PARAMS)]
    # Rows with equal order keys come in the order of their ids, which the text of the query does not determine.
    assert _comparable(rows, False) == _comparable(meant, False) or (ordered and read.limit is not None), (text, graph)
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


@pytest.mark.parametrize("seed", range(3))
def test_every_rule_keeps_the_meaning_of_the_whole_language(seed: int) -> None:
    random = Random(seed)
    generator = Generator(random, {"level": "I32", "size": "I32", "weight": "I32"})
    texts = [text for text in (generator.question().gq for _ in range(150)) if _fits(text)]
    sizes = [_check(text, make_graph(random)) for text in texts]
    assert len(sizes) > 120
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
