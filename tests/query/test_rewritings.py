"""Queries that mean the same give the same rows, and a condition, its opposite and neither part all rows."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from omnigraph.errors import TypecheckError
from tests.query.generated import Generator, Typed
from tests.query.naive import BATCHES, World, make_world
from tests.query.test_duckdb import comparable

MATCHES = (
    "$a: Staff",
    "$a: Staff $a mentors $b",
    "$a: Staff optional { $a $e:mentors $b }",
    "$a: Staff $a mentors|likes{0,2} $b",
    "$a: Staff optional { $a memberOf $t }",
)


def rows(world: World, match: str, condition: str = "") -> Counter[object]:
    """The rows of a pattern, by what its variables are."""
    names = [name for name in ("a", "b", "t") if f"${name}" in match]
    shown = ", ".join(f"${name} as {name}" for name in names)
    edge = ", $e.@id as e" if "$e:" in match else ""
    text = f"query q() {{ match {{ {match} {condition} }} return {{ {shown}{edge} }} }}"
    return Counter(comparable(tuple(row.values())) for row in world.graph.query(text).rows)


@pytest.fixture(scope="module", params=range(3))
def world(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> World:
    """A random graph."""
    return make_world(
        Random(request.param), tmp_path_factory.mktemp("rewritings") / "graph", BATCHES[request.param % 2]
    )


def conditions(world: World, seed: int, count: int) -> list[tuple[str, Typed, Typed]]:
    """Patterns, each with two conditions over the node that all of them have."""
    generator = Generator(Random(seed), world.types)
    start = generator.start().variables
    return [(generator.one(MATCHES), generator.truth(start, 2), generator.truth(start, 2)) for _ in range(count)]


@pytest.mark.parametrize("mode", ["csr", "indexed"])
def test_a_condition_parts_all_rows(world: World, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """True, false and null: each row is in exactly one part."""
    monkeypatch.setenv("OMNIGRAPH_TRAVERSAL_MODE", mode)
    for match, asked, _ in conditions(world, 1, 20):
        parts = [f"({asked.gq})", f"(not ({asked.gq}))", f"(({asked.gq}) is null)"]
        if "{" in asked.gq:
            continue
        found = [rows(world, match, part) for part in parts]
        assert sum(found, Counter()) == rows(world, match), (match, asked.gq)


def test_de_morgan(world: World) -> None:
    for match, one, other in conditions(world, 2, 25):
        left = rows(world, match, f"(not (({one.gq}) and ({other.gq})))")
        assert left == rows(world, match, f"((not ({one.gq})) or (not ({other.gq})))"), (match, one.gq, other.gq)
        left = rows(world, match, f"(not (({one.gq}) or ({other.gq})))")
        assert left == rows(world, match, f"((not ({one.gq})) and (not ({other.gq})))"), (match, one.gq, other.gq)


def test_two_clauses_are_an_and(world: World) -> None:
    for match, one, other in conditions(world, 3, 20):
        both = rows(world, match, f"(({one.gq}) and ({other.gq}))")
        assert both == rows(world, match, f"({one.gq}) ({other.gq})"), (match, one.gq, other.gq)


def test_exists_is_a_count_above_zero(world: World) -> None:
    generator = Generator(Random(4), world.types)
    checked = 0
    while checked < 20:
        block = generator.block(generator.start().variables)
        if block is None:
            continue
        clauses, match = " ".join(block.clauses), generator.one(MATCHES)
        try:
            found = rows(world, match, f"exists {{ {clauses} }}")
        except TypecheckError as error:
            raise AssertionError(clauses) from error
        assert found == rows(world, match, f"count {{ {clauses} }} > 0"), (match, clauses)
        assert found == rows(world, match, f"(not count {{ {clauses} }} = 0)"), (match, clauses)
        none = rows(world, match, f"not {{ {clauses} }}")
        assert none == rows(world, match, f"not exists {{ {clauses} }}"), (match, clauses)
        assert none == rows(world, match, f"count {{ {clauses} }} = 0"), (match, clauses)
        assert found + none == rows(world, match), (match, clauses)
        checked += 1


@pytest.mark.parametrize("items", [("0", "2"), ("1", "null"), ("3", "3", "0"), ("1.5", "2")])
def test_in_is_an_or_of_equalities(world: World, items: tuple[str, ...]) -> None:
    equal = " or ".join(f"$a.level = {item}" for item in items)
    listed = ", ".join(items)
    for match in MATCHES:
        assert rows(world, match, f"$a.level in [{listed}]") == rows(world, match, f"({equal})")
        assert rows(world, match, f"$a.level not in [{listed}]") == rows(world, match, f"(not ({equal}))")
        part = rows(world, match, f"(not $a.level in [{listed}])")
        assert part == rows(world, match, f"$a.level not in [{listed}]")


def test_an_optional_block_keeps_every_row(world: World) -> None:
    """Its matches are those of the block as clauses, and the rows without a match are those that `not` keeps."""
    generator = Generator(Random(5), world.types)
    for _ in range(15):
        block = generator.block(generator.start().variables)
        if block is None:
            continue
        clauses = " ".join(block.clauses)
        count = "query q() {{ match {{ $a: Staff {} }} return {{ count(*) as n }} }}"

        def counted(more: str, count: str = count) -> int:
            return int(world.graph.query(count.format(more)).rows[0]["n"])

        optional = counted(f"optional {{ {clauses} }}")
        assert optional == counted(clauses) + counted(f"not {{ {clauses} }}"), clauses


def test_a_path_is_where_a_step_leads(world: World) -> None:
    """`shortest` finds a path exactly where a step of the same bounds leads."""
    for bounds in ("{1,}", "{1,2}", "{0,3}", "{2,3}"):
        by_path = rows(world, f"$a: Staff $b: Staff $p = shortest($a mentors{bounds} $b)")
        assert by_path == rows(world, f"$a: Staff $a mentors{bounds} $b"), bounds
