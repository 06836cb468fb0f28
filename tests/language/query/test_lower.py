"""Lowering: the evaluation model of languages.md 2.5 as plans, and mutations as statements."""

from __future__ import annotations

from textwrap import dedent
from typing import Any

import pytest

from omnigraph.errors import ResourceLimit
from omnigraph.language.literals import TypedValue
from omnigraph.language.query.compile import compile_query
from omnigraph.language.query.ir import (
    Bm25,
    Column,
    FuzzyToken,
    InsertEdge,
    InsertNode,
    MutationPlan,
    Nearest,
    NodeScan,
    Order,
    Project,
    Rrf,
    render_plan,
)
from omnigraph.language.schema.catalog import Catalog
from tests.language.query.catalogs import BOOKS, KINDS, ORG, PAGE


def lowered(catalog: Catalog, text: str) -> str:
    return render_plan(compile_query(text, None, catalog).plan)


def org(clauses: str, returns: str = "1 as x", tail: str = "", params: str = "") -> str:
    return lowered(ORG, f"query q({params}) {{ match {{ {clauses} }} return {{ {returns} }} {tail} }}")


def matched(clauses: str, params: str = "") -> str:
    """The plan of a match block, without the projection above it."""
    return dedent("\n".join(org(clauses, params=params).splitlines()[1:]))


@pytest.mark.parametrize(
    ("clauses", "plan"),
    [
        pytest.param("$s: Staff", "NodeScan $s: Staff", id="scan"),
        pytest.param(
            '$s: Staff { handle: "a", level: 3 }',
            'NodeScan $s: Staff where $s.handle = "a" and $s.level = 3',
            id="inline patterns",
        ),
        pytest.param(
            "$s: Staff { level: 3 } $s: Staff { level: 4 }",
            "NodeScan $s: Staff where $s.level = 3 and $s.level = 4",
            id="a variable bound twice",
        ),
        pytest.param(
            "$s: Staff $s mentors $m",
            """\
            Expand $s -[Mentors out]-> $m: Staff
              NodeScan $s: Staff""",
            id="traversal",
        ),
        pytest.param(
            '$s: Staff $s memberOf $t $t: Team { code: "core" }',
            """\
            Expand $s -[MemberOf out]-> $t: Team where $t.code = "core"
              NodeScan $s: Staff""",
            id="TRV-05 the pattern of a reached node is a condition on the target",
        ),
        pytest.param(
            "$t: Team $s memberOf $t",
            """\
            Expand $t -[MemberOf in]-> $s: Staff
              NodeScan $t: Team""",
            id="TRV-02 reached against the arrow",
        ),
        pytest.param(
            "$s memberOf $t $t: Team",
            """\
            Expand $t -[MemberOf in]-> $s: Staff
              NodeScan $t: Team""",
            id="the first declared binding is scanned",
        ),
        pytest.param(
            "$s memberOf $t",
            """\
            Expand $s -[MemberOf out]-> $t: Team
              NodeScan $s: Staff""",
            id="no binding: the first variable is scanned",
        ),
        pytest.param(
            "$t: Team $t memberOf $s",
            """\
            Expand $t -[MemberOf in]-> $s: Staff
              NodeScan $t: Team""",
            id="a reverse traversal",
        ),
        pytest.param(
            "$s: Staff $x mentors $y $s mentors $x",
            """\
            Expand $x -[Mentors out]-> $y: Staff
              Expand $s -[Mentors out]-> $x: Staff
                NodeScan $s: Staff""",
            id="a traversal waits until it is reached",
        ),
        pytest.param(
            "$s: Staff $s mentors{2,3} $m $m <mentors> $x",
            """\
            Expand $m -[Mentors both]-> $x: Staff
              Expand $s -[Mentors out {2,3}]-> $m: Staff
                NodeScan $s: Staff""",
            id="hop bounds and both ways",
        ),
        pytest.param(
            "$s: Staff $s memberOf{1,2} $t",
            """\
            Expand $s -[MemberOf out]-> $t: Team
              NodeScan $s: Staff""",
            id="TRV-26 an edge between two types does not chain",
        ),
        pytest.param(
            "$s: Staff $s memberOf{2,3} $t",
            """\
            Filter false
              Expand $s -[MemberOf out]-> $t: Team
                NodeScan $s: Staff""",
            id="TRV-26 and has no second hop",
        ),
        pytest.param(
            '$s: Staff $s $e:mentors $m $e.began >= date("2023-01-01")',
            """\
            Filter $e.began >= date("2023-01-01")
              Expand $s -[$e: Mentors out]-> $m: Staff
                NodeScan $s: Staff""",
            id="TRV-15 edge binding",
        ),
        pytest.param(
            "$a: Staff $a mentors $b $b mentors $c $c mentors $a",
            """\
            Close $c -[Mentors out]-> $a: Staff
              Expand $b -[Mentors out]-> $c: Staff
                Expand $a -[Mentors out]-> $b: Staff
                  NodeScan $a: Staff""",
            id="closing a cycle",
        ),
        pytest.param(
            "$a mentors $a",
            """\
            Close $a -[Mentors out]-> $a: Staff
              NodeScan $a: Staff""",
            id="self-loop",
        ),
        pytest.param(
            "$s: Staff $t: Team $u: Team",
            """\
            CrossJoin
              CrossJoin
                NodeScan $s: Staff
                NodeScan $t: Team
              NodeScan $u: Team""",
            id="unconnected bindings",
        ),
        pytest.param(
            "$s: Staff $t: Team $s.level > 3 $s mentors $m",
            """\
            Filter $s.level > 3
              CrossJoin
                Expand $s -[Mentors out]-> $m: Staff
                  NodeScan $s: Staff
                NodeScan $t: Team""",
            id="scans, traversals, then filters",
        ),
        pytest.param(
            "$s: Staff not { $s memberOf $_ } $s mentors $m $s.level > 3",
            """\
            AntiJoin on $s
              Filter $s.level > 3
                Expand $s -[Mentors out]-> $m: Staff
                  NodeScan $s: Staff
              Expand $s -[MemberOf out]-> $_#1: Team
                Outer $s""",
            id="negations come last",
        ),
        pytest.param(
            '$s: Staff not { $s memberOf $t not { $t.code = "core" } }',
            """\
            AntiJoin on $s
              NodeScan $s: Staff
              AntiJoin on $t
                Expand $s -[MemberOf out]-> $t: Team
                  Outer $s
                Filter $t.code = "core"
                  Outer $t""",
            id="NEG-05 nested negations",
        ),
        pytest.param(
            "$s: Staff not { $s: Staff { level: 3 } $t: Team }",
            """\
            AntiJoin on $s
              NodeScan $s: Staff
              Filter $s.level = 3
                CrossJoin
                  Outer $s
                  NodeScan $t: Team""",
            id="a pattern on an outer variable",
        ),
        pytest.param(
            "$s: Staff $s $e:mentors $m not { $x: Staff $x.level = $m.level $e.began = $e.began }",
            """\
            AntiJoin on $m, $e
              Expand $s -[$e: Mentors out]-> $m: Staff
                NodeScan $s: Staff
              Filter $x.level = $m.level and $e.began = $e.began
                CrossJoin
                  Outer $m, $e
                  NodeScan $x: Staff""",
            id="outer edge variables",
        ),
        pytest.param(
            "$s: Staff not { $s memberOf $t } $s memberOf $t",
            """\
            AntiJoin on $s, $t
              Expand $s -[MemberOf out]-> $t: Team
                NodeScan $s: Staff
              Close $s -[MemberOf out]-> $t: Team
                Outer $s, $t""",
            id="the order of clauses does not matter",
        ),
        pytest.param(
            'not { not { search($s.handle, "x") $t.code = "a" } } $s: Staff $s memberOf $t',
            """\
            AntiJoin on $s, $t
              Expand $s -[MemberOf out]-> $t: Team
                NodeScan $s: Staff
              AntiJoin on $s, $t
                Outer $s, $t
                Filter search($s.handle, "x") and $t.code = "a"
                  Outer $s, $t""",
            id="nor at any depth",
        ),
        pytest.param(
            "$s: Staff $s mentors $_ $_ mentors $s",
            """\
            Expand $s -[Mentors in]-> $_#2: Staff
              Expand $s -[Mentors out]-> $_#1: Staff
                NodeScan $s: Staff""",
            id="the anonymous variable is a new one each time",
        ),
        pytest.param(
            "1 = 2",
            """\
            Filter 1 = 2
              Outer""",
            id="no variables at all",
        ),
    ],
)
def test_matching(clauses: str, plan: str) -> None:
    assert matched(clauses) == dedent(plan)


@pytest.mark.parametrize(
    ("clauses", "returns", "tail", "plan"),
    [
        pytest.param(
            "$s: Staff",
            "$s.handle, $s.level as l, $s",
            "order { l desc, $s.handle } limit 2",
            """\
            Project s.handle = $s.handle, l = $s.level, s = $s.id
              Limit 2
                Order $s.level desc nulls last, $s.handle asc nulls first ties $s.id
                  NodeScan $s: Staff""",
            id="order and limit read the matched rows",
        ),
        pytest.param(
            "$s: Staff $s $e:mentors $m $m mentors $_",
            "$m.handle",
            "order { $m.level }",
            """\
            Project m.handle = $m.handle
              Order $m.level asc nulls first ties $s.id, $m.id, $e.id
                Expand $m -[Mentors out]-> $_#1: Staff
                  Expand $s -[$e: Mentors out]-> $m: Staff
                    NodeScan $s: Staff""",
            id="ties: nodes in order of declaration, then edges",
        ),
        pytest.param(
            "$s: Staff",
            "$s.handle",
            "limit 0",
            """\
            Project s.handle = $s.handle
              Limit 0
                NodeScan $s: Staff""",
            id="limit alone",
        ),
        pytest.param(
            "$s: Staff",
            "$s.handle",
            "order { nobody }",
            """\
            Project s.handle = $s.handle
              Order nobody asc nulls first ties $s.id
                NodeScan $s: Staff""",
            id="an unknown alias is kept for execution",
        ),
        pytest.param(
            "$s: Staff $s mentors $m",
            "count($m) as n, $s.handle, avg($m.level)",
            "order { n desc } limit 1",
            """\
            Project n = n, s.handle = s.handle, avg(m.level) = avg(m.level)
              Limit 1
                Order n desc nulls last ties s.handle
                  Aggregate n = count($m.id), avg(m.level) = avg($m.level) by s.handle = $s.handle
                    Expand $s -[Mentors out]-> $m: Staff
                      NodeScan $s: Staff""",
            id="QA-06 groups",
        ),
        pytest.param(
            "$s: Staff",
            "$s, $s.level as a, $s.level as b, count($s) as n, count($s) as m",
            "order { $s.handle, min($s.level), $s.level }",
            """\
            Project s = s, a = a, b = a, n = n, m = n
              Order #3 asc nulls first, #4 asc nulls first, a asc nulls first ties s, a, #3
                Aggregate n = count($s.id), #4 = min($s.level) by s = $s.id, a = $s.level, #3 = $s.handle
                  NodeScan $s: Staff""",
            id="equal expressions are computed once, hidden ones for the order",
        ),
    ],
)
def test_results(clauses: str, returns: str, tail: str, plan: str) -> None:
    assert org(clauses, returns, tail) == dedent(plan)


@pytest.mark.parametrize(
    ("catalog", "text", "plan"),
    [
        pytest.param(
            ORG,
            'query q($h: String) { insert Staff { handle: $h, level: 3 } insert Mentors { to: "b", from: $h } }',
            """\
            InsertNode Staff {handle: $h, level: 3}
            InsertEdge Mentors $h -> "b" {}""",
            id="inserts",
        ),
        pytest.param(
            ORG,
            'query q() { update Staff set { level: 4 } where id = "a" update Staff set { level: 5 } where level < 2 }',
            """\
            UpdateNodes Staff {level: 4} where $row.id = "a"
            UpdateNodes Staff {level: 5} where $row.level < 2""",
            id="updates",
        ),
        pytest.param(
            ORG,
            'query q() { delete Staff where id = "a" delete Mentors where from = "a" delete Mentors where to != "b" }',
            """\
            DeleteNodes Staff where $row.id = "a"
            DeleteEdges Mentors where $row.src = "a"
            DeleteEdges Mentors where $row.dst != "b\"""",
            id="deletes",
        ),
        pytest.param(
            KINDS,
            'query q() { insert Kind { k: "x", at: now(), day: date("2024-01-01"), e: "open", ss: ["a"] } }',
            """\
            InsertNode Kind {k: "x", at: now(), day: date("2024-01-01"), e: "open", ss: ["a"]}""",
            id="values",
        ),
    ],
)
def test_mutations(catalog: Catalog, text: str, plan: str) -> None:
    assert lowered(catalog, text) == dedent(plan)


def test_assigned_literals_have_the_type_of_their_property() -> None:
    kind = 'insert Kind { k: "x", i: 2.0, f: 0.1, d: 3, v: [1, 2], is: [1] }'
    text = f'query q() {{ {kind} insert Pair {{ from: "a", to: "b", n: 3 }} }}'
    plan = compile_query(text, None, KINDS).plan
    assert isinstance(plan, MutationPlan)
    insert, pair = plan.statements
    assert isinstance(insert, InsertNode)
    assert isinstance(pair, InsertEdge)
    values = {assign.property: assign.value for assign in insert.assignments}
    assert all(isinstance(value, TypedValue) for value in values.values())
    found = {name: (value.value, str(value.type)) for name, value in values.items() if isinstance(value, TypedValue)}
    assert found == {
        "k": ("x", "String"),
        "i": (2, "I32?"),
        "f": (0.10000000149011612, "F32?"),
        "d": (3.0, "F64?"),
        "v": ((1.0, 2.0), "Vector(2)?"),
        "is": ((1,), "[I32]?"),
    }
    assert type(found["i"][0]) is int
    assert type(found["d"][0]) is float
    assert [assign.property for assign in pair.assignments] == ["n"]


def _first_key(text: str, catalog: Catalog = PAGE) -> object:
    plan: Any = compile_query(text, None, catalog).plan  # above an Order there are operators with one input only
    while not isinstance(plan, Order):
        plan = plan.input
    return plan.keys[0].expr


def test_search_calls_are_typed() -> None:
    text = "query q($v: Vector(2)) {{ match {{ $p: Page }} return {{ $p.slug }} order {{ {} }} limit 3 }}"
    near = _first_key(text.format("nearest($p.emb, $v)"))
    assert isinstance(near, Nearest)
    assert (near.metric, near.dimension, near.model) == ("l2", 2, None)
    embedded = _first_key(text.format('nearest($p.cos, "river")'))
    assert isinstance(embedded, Nearest)
    assert (embedded.metric, embedded.dimension, embedded.model) == ("cosine", 2, "m/x")
    fused = _first_key(text.format('rrf(nearest($p.emb, [1, 2]), bm25($p.head, "x"))'))
    assert isinstance(fused, Rrf)
    assert isinstance(fused.k, TypedValue)
    assert fused.k.value == 60
    assert isinstance(fused.left, Nearest)
    assert fused.left.query == TypedValue((1.0, 2.0), near.field.type)
    assert isinstance(fused.right, Bm25)


@pytest.mark.parametrize(
    ("clause", "predicate"),
    [
        ('search($b.isbn, "x")', 'search($b.isbn, "x")'),
        ('search($b.isbn, "x") = true', 'search($b.isbn, "x")'),
        ('search($b.isbn, "x") = false', 'search($b.isbn, "x") = false'),
        ('match_text($b.isbn, "x")', 'match_text($b.isbn, "x")'),
        ('fuzzy($b.isbn, "x", 2)', 'fuzzy($b.isbn, "x", 2)'),
        ('$b.tags contains "x"', '$b.tags has "x"'),
        ('$b.isbn contains "x"', '$b.isbn contains "x"'),
        ('"xyz" starts_with $b.isbn', '"xyz" starts_with $b.isbn'),
        ("$b.seen <= now()", "$b.seen <= now()"),
        ('$b.seen = datetime("2024-01-01T00:00:00+01:00")', '$b.seen = datetime("2023-12-31T23:00:00.000Z")'),
        ("true != false", "true != false"),
    ],
)
def test_predicates(clause: str, predicate: str) -> None:
    text = f"query q() {{ match {{ $b: Book {clause} }} return {{ $b.isbn }} }}"
    assert lowered(BOOKS, text).splitlines()[1].strip() == f"Filter {predicate}"


def test_fuzzy_without_edits_leaves_them_to_the_token() -> None:
    plan = compile_query(
        'query q() { match { $b: Book fuzzy($b.isbn, "x") } return { $b.isbn } }', None, BOOKS
    ).rewritten
    assert isinstance(plan, Project)
    assert isinstance(plan.input, NodeScan)
    predicate = plan.input.node.predicates[0]
    assert isinstance(predicate, FuzzyToken)
    assert predicate.max_edits is None
    assert isinstance(predicate.field, Column)


def test_a_plan_is_never_too_deep() -> None:
    def chain(length: int) -> str:
        steps = " ".join(f"$s{number} mentors $s{number + 1}" for number in range(length))
        return f"query q() {{ match {{ $s0: Staff {steps} }} return {{ count($s{length}) as n }} }}"

    assert compile_query(chain(127), None, ORG).operation.columns[0].name == "n"
    with pytest.raises(ResourceLimit) as caught:
        compile_query(chain(128), None, ORG)
    assert (caught.value.limit, caught.value.actual) == (128, 129)


def test_deep_negations_are_checked_once_each() -> None:
    """Each level names a variable that the level around it binds later; checking twice each would double per level."""
    inner = "$s mentors $x40"
    for level in reversed(range(40)):
        inner = f"$s mentors $x{level} not {{ {inner} }} $s mentors $x{level + 1}"
    assert compile_query(f"query q() {{ match {{ $s: Staff {inner} }} return {{ $s }} }}", None, ORG).query.name == "q"


def test_many_filters_cost_no_depth() -> None:
    filters = " ".join(f"$s.level != {number}" for number in range(2000))
    plan = compile_query(f"query q() {{ match {{ $s: Staff {filters} }} return {{ $s }} }}", None, ORG).rewritten
    assert isinstance(plan, Project)
    assert isinstance(plan.input, NodeScan)
    assert len(plan.input.node.predicates) == 2000
