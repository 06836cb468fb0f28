"""Backfills: what is computed for rows that have no value, what is refused, and what a plan says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.errors import (
    BadRequest,
    EvaluationError,
    OmnigraphError,
    SchemaChangeRefused,
    TypecheckError,
    ValidationError,
)

BEFORE = """
node Person { name: String @key first: String? last: String? age: I32? nick: String? }
node Team { code: String @key }
edge Knows: Person -> Person { since: I32? }
"""
PEOPLE = [("ada", "Ada", "Byron", 36, "al"), ("ben", "Ben", "Oz", None, None), ("cy", None, "Young", 5, None)]


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    made = og.init(tmp_path / "graph", BEFORE)
    names = ("name", "first", "last", "age", "nick")
    rows: list[dict[str, Any]] = [{"type": "Person", "data": dict(zip(names, row, strict=True))} for row in PEOPLE]
    made.load([*rows, {"edge": "Knows", "from": "ada", "to": "ben", "data": {"since": 1999}}])
    made.ensure_indices()
    return made


def values(graph: og.Graph, name: str, branch: str | None = None) -> list[Any]:
    text = f"query q() {{ match {{ $p: Person }} return {{ $p.{name} as v }} order {{ $p.name }} }}"
    return [row["v"] for row in graph.query(text, branch=branch).to_dicts()]


def with_members(*members: str, without: str = "") -> str:
    text = BEFORE.replace("nick: String?", f"nick: String? {' '.join(members)}")
    for name in without.split():
        text = text.replace(f"{name}: String? ", "")
    return text


def test_a_required_unique_property_is_added_to_a_full_type(graph: og.Graph) -> None:
    head = graph.head().id
    wanted = with_members("slug: String @unique @index")
    applied = graph.apply_schema(wanted, backfill={"Person.slug": 'lower(concat(last, "-", name))'}, message="slugs")
    assert [str(step) for step in applied.plan.steps] == [
        "add property 'Person.slug' (String)",
        "backfill 'Person.slug' with lower(concat(last, \"-\", name))",
        "add constraint on node 'Person': @unique(slug)",
        "add constraint on node 'Person': @index(slug)",
    ]
    assert values(graph, "slug") == ["byron-ada", "oz-ben", "young-cy"]
    assert [commit.parent for commit in graph.commits()[:1]] == [head], "one commit"
    with pytest.raises(ValidationError, match="@unique"):
        graph.mutate('query w() { insert Person { name: "dov", slug: "oz-ben" } }')
    graph.ensure_indices()
    found = graph.query('query q() { match { $p: Person { slug: "oz-ben" } } return { $p.name } }').to_dicts()
    assert found == [{"p.name": "ben"}]
    assert not graph.apply_schema(wanted, backfill="Person.slug = lower(name)").applied, (
        "a repeat finds nothing to fill"
    )
    assert graph.verify(deep=True).ok


@pytest.mark.parametrize(
    "given", [{"Person.x": "age + 1"}, "Person.x = age + 1", ["Person.x=age+1"], ("Person.x = age + 1",)]
)
def test_forms(graph: og.Graph, given: Any) -> None:
    graph.apply_schema(with_members("x: I64?"), backfill=given)
    assert values(graph, "x") == [37, None, 6]


@pytest.mark.parametrize(
    ("member", "expression", "expected"),
    [
        ("x: String", "coalesce(nick, name)", ["al", "ben", "cy"]),
        ("x: Bool", "age is null", [False, True, False]),
        ("x: F64", "if(age > 30, 0.5, 1.0)", [0.5, 1.0, 1.0]),
        ("x: enum(old, young)", 'if(age > 30, "old", "young")', ["old", "young", "young"]),
        ("x: String", '"same"', ["same"] * 3),
        ("x: I32", "length(name)", [3, 3, 2]),
        ("x: [String]", 'split(name, "d")', [["a", "a"], ["ben"], ["cy"]]),
        ('x: String @default("none")', "nick", ["al", "none", "none"]),
        ("x: String", "@id", ["ada", "ben", "cy"]),
    ],
)
def test_expressions(graph: og.Graph, member: str, expression: str, expected: list[Any]) -> None:
    graph.apply_schema(with_members(member), backfill={"Person.x": expression})
    assert values(graph, "x") == expected


def test_what_is_dropped_is_read_by_its_old_name(graph: og.Graph) -> None:
    wanted = with_members("full: String?", without="first last")
    graph.apply_schema(wanted, backfill={"Person.full": 'concat(first, " ", last)'})
    assert values(graph, "full") == ["Ada Byron", "Ben Oz", " Young"]


def test_renamed_and_wider_properties_are_read_as_they_will_be(graph: og.Graph) -> None:
    wanted = with_members("x: String").replace("age: I32?", 'years: I64? @rename_from("age") @default(0)')
    graph.apply_schema(
        wanted.replace("years: I64?", "years: I64"), backfill={"Person.x": "to_text(years * 3000000000)"}
    )
    assert values(graph, "years") == [36, 0, 5]
    assert values(graph, "x") == ["108000000000", "0", "15000000000"]


def test_only_nulls_of_a_property_that_is_there_are_filled(graph: og.Graph) -> None:
    wanted = BEFORE.replace("nick: String?", "nick: String")
    applied = graph.apply_schema(wanted, backfill={"Person.nick": "name"})
    assert [step.kind for step in applied.plan.steps] == ["backfill", "add_constraint"]
    assert values(graph, "nick") == ["al", "ben", "cy"]


def test_a_backfill_alone_is_a_change(graph: og.Graph) -> None:
    assert [step.kind for step in graph.apply_schema(BEFORE, backfill={"Person.nick": "name"}).plan.steps] == [
        "backfill"
    ]
    assert values(graph, "nick") == ["al", "ben", "cy"]
    assert not graph.apply_schema(BEFORE, backfill={"Person.nick": "name"}).applied
    assert og.open(graph.uri).verify(deep=True).ok


def test_edges(graph: og.Graph) -> None:
    wanted = BEFORE.replace("since: I32?", "since: I32? label: String")
    graph.apply_schema(wanted, backfill={"Knows.label": 'concat(from, ">", to, ":", to_text(since))'})
    found = graph.query("query q() { match { $a: Person $a $k:knows $b } return { $k.label } }").to_dicts()
    assert found == [{"k.label": "ada>ben:1999"}]


def test_on_a_branch_with_a_shared_table(graph: og.Graph) -> None:
    graph.create_branch("b")
    wanted = with_members("slug: String @unique")
    graph.apply_schema(wanted, branch="b", backfill={"Person.slug": "upper(name)"})
    assert values(graph, "slug", "b") == ["ADA", "BEN", "CY"]
    assert graph.schema() == BEFORE
    graph.mutate('query w() { insert Team { code: "x" } }')
    assert graph.merge("b").outcome == "merged"
    assert values(graph, "slug") == ["ADA", "BEN", "CY"]
    assert graph.verify(deep=True).ok


def test_a_row_that_the_other_side_does_not_know_is_a_conflict(graph: og.Graph) -> None:
    graph.create_branch("b")
    graph.apply_schema(with_members("slug: String"), branch="b", backfill={"Person.slug": "upper(name)"})
    graph.mutate('query w() { insert Person { name: "dov" } }')
    with pytest.raises(og.errors.MergeConflicts, match="'slug' of Person is required"):
        graph.merge("b")
    assert values(graph, "name") == ["ada", "ben", "cy", "dov"]


def test_reverted(graph: og.Graph) -> None:
    applied = graph.apply_schema(with_members("slug: String"), backfill={"Person.slug": "upper(name)"})
    assert applied.commit is not None
    assert graph.revert(applied.commit.id).outcome == "merged"
    assert graph.contract().catalog.nodes["Person"].properties.keys() == {"age", "first", "last", "name", "nick"}
    assert graph.verify(deep=True).ok


# --- refused ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "Person.slug = lower(nam)",
            "backfill:1:21: type error: T11: no property `nam` on Person; did you mean `name`?",
        ),
        ("Person.slugg = name", "backfill:1:8: type error: T11: no property `slugg` on Person; did you mean `slug`?"),
        ("Persn.slug = name", "backfill:1:1: type error: T10: unknown type `Persn`; did you mean `Person`?"),
        ("Person.slug = age", "backfill:1:15: type error: T7: `Person.slug` takes String, not I32?"),
        ("Person.slug = 5", "backfill:1:15: type error: T3: `Person.slug` takes String, not I64"),
        ("Person.slug = null", "backfill:1:15: type error: T3: `Person.slug` takes String, not null"),
        ("Person.slug lower(name)", "backfill:1:13: parse error: expected `=`, found `lower`"),
        ("Person.slug = name name", "backfill:1:20: parse error: "),
        ("", "backfill:1:1: parse error: expected a type name"),
        ("Person.slug = count(name)", "type error"),
        ("Person.slug = $p", "type error"),
    ],
)
def test_wrong_texts(graph: og.Graph, text: str, message: str) -> None:
    for verb in (graph.plan_schema, graph.apply_schema):
        with pytest.raises(OmnigraphError) as refused:
            verb(with_members("slug: String"), backfill=[text])
        assert message in str(refused.value)
        assert isinstance(refused.value, og.errors.LanguageError)


def test_given_twice(graph: og.Graph) -> None:
    with pytest.raises(BadRequest, match="Person.slug is backfilled twice"):
        graph.plan_schema(with_members("slug: String"), backfill=["Person.slug = name", "Person.slug = nick"])
    with pytest.raises(BadRequest, match="a backfill is a text"):
        graph.plan_schema(BEFORE, backfill=[1])  # type: ignore[list-item]


def test_nulls_are_refused_with_the_first_rows(graph: og.Graph) -> None:
    wanted = with_members("slug: String")
    plan = graph.plan_schema(wanted, backfill={"Person.slug": "lower(nick)"})
    reason = "it is required, and `lower(nick)` is null in 2 of 3 rows ('ben', 'cy') of Person; give it @default(…) too"
    assert [step.reason for step in plan.refusals] == [reason]
    with pytest.raises(SchemaChangeRefused):
        graph.apply_schema(wanted, backfill={"Person.slug": "lower(nick)"})


@pytest.mark.parametrize(
    ("member", "expression", "message"),
    [
        ("slug: String @unique", '"x"', "@unique violation on Person.slug: 'x' belongs to 'ada' and to 'cy'"),
        ("slug: enum(ada, ben)", "name", "invalid enum value 'cy' for Person.slug; allowed are ada, ben"),
        ("slug: I64? @range(slug, 0..10)", "age", "@range violation on Person.slug: 36 is not in 0..10 (row 'ada')"),
        ('slug: String @check(slug, "^[a-c]+$")', "name", "@check violation on Person.slug: 'ada' does not match"),
    ],
)
def test_rules_are_judged_on_what_is_computed(graph: og.Graph, member: str, expression: str, message: str) -> None:
    wanted, backfill = with_members(member), {"Person.slug": expression}
    plan = graph.plan_schema(wanted, backfill=backfill)
    assert [step.code for step in plan.refusals] == ["OG-MF-107"]
    assert message in plan.refusals[0].reason
    head = graph.head()
    with pytest.raises(ValidationError) as broken:
        graph.apply_schema(wanted, backfill=backfill)
    assert message in broken.value.message
    assert graph.head() == head


def test_a_value_that_can_not_be_computed(graph: og.Graph) -> None:
    with pytest.raises(OmnigraphError, match="zero"):
        graph.apply_schema(with_members("x: I64?"), backfill={"Person.x": "10 / (age - 5)"})
    with pytest.raises(OmnigraphError, match="outside the range of I32"):
        graph.apply_schema(with_members("x: I32?"), backfill={"Person.x": "age * 3000000000"})
    assert graph.schema() == BEFORE


def test_type_errors_have_a_caret(graph: og.Graph) -> None:
    with pytest.raises(TypecheckError) as refused:
        graph.plan_schema(with_members("slug: String"), backfill="Person.slug = lower(nam)")
    assert "Person.slug = lower(nam)" in str(refused.value)
    assert "^" in str(refused.value)


def test_a_value_that_the_property_can_not_hold_is_told_with_its_place(graph: og.Graph) -> None:
    with pytest.raises(
        EvaluationError, match="Person.x \\(I32\\?\\): 2.5 is not a whole number.* in `age / 2`"
    ) as refused:
        graph.apply_schema(with_members("x: I32?"), backfill="Person.x = age / 2")
    assert refused.value.line == 1


def test_a_list_that_is_computed_holds_no_null(graph: og.Graph) -> None:
    with pytest.raises(ValidationError, match="null is not accepted as an element"):
        graph.apply_schema(with_members("x: [String]?"), backfill="Person.x = [first, last]")
