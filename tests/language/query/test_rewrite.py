"""All rewrite rules together; each has its fixture in `rewrite/`."""

from __future__ import annotations

from importlib import import_module
from textwrap import dedent

import pytest

from omnigraph.language.query.compile import compile_query
from omnigraph.language.query.ir import MutationPlan, render_plan
from omnigraph.language.query.rewrite import RULES, Rule, rewrite
from tests.language.query.rewrite.fixture import CATALOG, read


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_every_rule_has_a_fixture_that_it_changes(rule: Rule) -> None:
    cases = import_module(f"tests.language.query.rewrite.test_{rule.__name__}").CASES
    assert any(dedent(case.given) != dedent(case.made) for case in cases)


def test_rewriting_is_all_rules_in_order() -> None:
    text = read(
        '$s: Staff $s memberOf $t $t: Team { code: "core" } $s mentors $m',
        "$s.handle, count($m) as n",
        "order { n desc } limit 3",
    )
    compiled = compile_query(text, None, CATALOG)
    assert not isinstance(compiled.plan, MutationPlan)
    assert rewrite(compiled.plan) == compiled.rewritten
    assert render_plan(compiled.rewritten) == dedent(
        """\
        Project s.handle = s.handle, n = n
          Order n desc nulls last ties s.handle limit 3
            Aggregate n = count(*) by s.handle = $s.handle weighted
              CountPaths
                | $s -[Mentors out]-> $m: Staff reading ()
                Expand $t -[MemberOf in]-> $s: Staff reading (handle, id)
                  NodeScan $t: Team key("core") reading (id)"""
    )
