"""A rule's fixture: a query, the plan the rule is given, and the plan it makes."""

from __future__ import annotations

from textwrap import dedent
from typing import NamedTuple

from omnigraph.language.query.compile import compile_query
from omnigraph.language.query.ir import MutationPlan, render_plan
from omnigraph.language.query.rewrite import RULES, Rule
from omnigraph.language.schema.build import compile_schema

CATALOG = compile_schema("""
node Staff { handle: String @key level: I32? emb: Vector(2)? }
node Team { code: String @key size: I32 }
node Spot { x: I32 y: I64 z: F32? @key(x, y) }
node Gauge { reading: F32 @key }
edge Mentors: Staff -> Staff { began: Date? }
edge MemberOf: Staff -> Team
""")


def read(clauses: str, returns: str = "1 as one", tail: str = "") -> str:
    params = "$h: String, $n: I32, $d: F64, $v: Vector(2)"
    return f"query q({params}) {{ match {{ {clauses} }} return {{ {returns} }} {tail} }}"


class Case(NamedTuple):
    """What a rule makes of a plan; `given` is the plan as the earlier rules leave it."""

    id: str
    text: str
    given: str
    made: str


def check_rule(rule: Rule, case: Case) -> None:
    """Run the rules that come before, then this one."""
    plan = compile_query(case.text, None, CATALOG).plan
    assert not isinstance(plan, MutationPlan)
    for earlier in RULES[: RULES.index(rule)]:
        plan = earlier(plan)
    assert render_plan(plan) == dedent(case.given)
    assert render_plan(rule(plan)) == dedent(case.made)
