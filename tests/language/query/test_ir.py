"""The intermediate representation: walking plans, and the types of expressions."""

from __future__ import annotations

import pytest

from omnigraph.language.query import ir
from omnigraph.language.query.compile import compile_query
from tests.language.query.catalogs import BOOKS, PAGE

GROUPED = (
    "query q($x: String) { match { $b: Book { pages: 3 } $b $e:cites $c $s: Shop "
    "not { $c soldAt $t $t.city = $x } } return { $s.city, count($c.tags) as n } order { n } limit 2 }"
)
RANKED = (
    'query q() { match { $p: Page { slug: "a" } search($p.head, "x") } return { $p.slug } '
    "order { nearest($p.emb, [1, 2]), $p.body } limit 2 }"
)
COUNTED = (
    "query q() { match { $b: Book $b cites $c $c: Book { pages: 3 } $c cites $d $d: Book { pages: 4 } } "
    "return { count($d) as n } }"
)


def plans(text: str) -> tuple[ir.Plan, ir.Plan]:
    """The plan of a query as lowered, and as rewritten."""
    compiled = compile_query(text, None, PAGE if "Page" in text else BOOKS)
    assert not isinstance(compiled.plan, ir.MutationPlan)
    assert not isinstance(compiled.rewritten, ir.MutationPlan)
    return compiled.plan, compiled.rewritten


def test_every_expression_of_a_plan_is_found() -> None:
    lowered, _ = plans(GROUPED)
    assert [ir.render_expr(expr) for expr in ir.expressions_in(lowered)] == [
        "s.city",
        "n",
        "n",
        "s.city",
        "$s.city",
        "count($c.tags)",
        "$b.pages = 3",
        "$t.city = $x",
    ]
    _, ranked = plans(RANKED)
    shown = [ir.render_expr(expr) for expr in ir.expressions_in(ranked)]
    assert shown == [
        "$p.slug",
        "nearest_l2($p.emb, [1.0, 2.0])",
        "$p.body",
        "$p.id",
        'search($p.head, "x")',
        "nearest_l2($p.emb, [1.0, 2.0])",
    ]
    _, counted = plans(COUNTED)
    assert [ir.render_expr(expr) for expr in ir.expressions_in(counted)][-2:] == ["$c.pages = 3", "$d.pages = 4"]


def test_bound_variables() -> None:
    lowered, _ = plans(GROUPED)
    bound = [sorted(ir.bound_variables(lowered))]
    plan = lowered
    while ir.children(plan):
        plan = ir.children(plan)[0]
        bound.append(sorted(ir.bound_variables(plan)))
    everything = ["b", "c", "e", "s"]
    # Project, Limit, Order, Aggregate, AntiJoin, CrossJoin, Expand, NodeScan
    assert bound == [[], [], [], [], everything, everything, ["b", "c", "e"], ["b"]]


def test_a_transformation_reaches_every_operator() -> None:
    lowered, _ = plans(GROUPED)
    seen: list[str] = []

    def note(operator: ir.Plan) -> ir.Plan:
        seen.append(type(operator).__name__)
        return operator

    assert ir.transform(lowered, note) == lowered
    assert seen == [
        "NodeScan",
        "Expand",
        "NodeScan",
        "CrossJoin",
        "Outer",
        "Expand",
        "Filter",
        "AntiJoin",
        "Aggregate",
        "Order",
        "Limit",
        "Project",
    ]


@pytest.mark.parametrize(
    "clause",
    [
        '$b.isbn = "x"',
        '$b.isbn contains "x"',
        '$b.isbn starts_with "x"',
        '$b.tags contains "x"',
        'search($b.isbn, "x")',
    ],
)
def test_predicates_are_boolean(clause: str) -> None:
    plan, _ = plans(f"query q() {{ match {{ $b: Book {clause} }} return {{ $b }} }}")
    predicate = next(expr for expr in ir.expressions_in(ir.children(plan)[0]))
    assert not isinstance(predicate, ir.UnknownAlias)
    assert str(predicate.type).rstrip("?") == "Bool"
    assert ir.variables_of(predicate) == {"b"}


def test_plans_are_values() -> None:
    assert plans(GROUPED) == plans(GROUPED)
    assert hash(plans(GROUPED)) == hash(plans(GROUPED))
    assert plans(GROUPED)[0] != plans(RANKED)[0]
