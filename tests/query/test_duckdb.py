"""The engine against DuckDB: queries that exist in both languages, made at random from the same parts."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.query.naive import BATCHES, BRANCH, World, make_world

duckdb = pytest.importorskip("duckdb")

QUERIES_PER_WORLD = 50


@dataclass(frozen=True)
class Pair:
    """One question in both languages."""

    gq: str
    sql: str
    ordered: bool


#: (.gq condition, SQL condition) on the variables a, b (Staff) and t (Team).
CONDITIONS = {
    "a": [
        ("$a.level > 1", "a.level > 1"),
        ("2.5 >= $a.level", "2.5 >= a.level"),
        ("$a.level != 2", "a.level <> 2"),
        ('$a.handle contains "3"', "contains(a.handle, '3')"),
        ('$a.handle starts_with "s"', "starts_with(a.handle, 's')"),
        ("not { $a memberOf $_ }", "not exists (select 1 from memberof n where n.src = a.id)"),
        (
            "not { $a mentors $z $z.level > 1 }",
            "not exists (select 1 from mentors n join staff z on z.id = n.dst where n.src = a.id and z.level > 1)",
        ),
    ],
    "b": [("$b.level <= 2", "b.level <= 2"), ("$a.level < $b.level", "a.level < b.level")],
    "t": [("$t.size >= 1", "t.size >= 1"), ("$a.level = $t.size", "a.level = t.size")],
}
PAIRS = "(select distinct src, dst from mentors)"
BOTH_WAYS = "(select src, dst from mentors union select dst, src from mentors)"
#: (variable that is bound, .gq step, SQL join)
STEPS = [
    ("b", "$a mentors $b", f"join {PAIRS} x on x.src = a.id join staff b on b.id = x.dst"),
    ("b", "$b mentors $a", f"join {PAIRS} x on x.dst = a.id join staff b on b.id = x.src"),
    ("b", "$a <mentors> $b", f"join {BOTH_WAYS} x on x.src = a.id join staff b on b.id = x.dst"),
    ("b", "$a $e:mentors $b", "join mentors x on x.src = a.id join staff b on b.id = x.dst"),
    (
        "t",
        "$a memberOf $t",
        "join (select distinct src, dst from memberof) y on y.src = a.id join team t on t.id = y.dst",
    ),
]
RETURNS = {
    "plain": ("$a.handle, $a.level", "a.handle, a.level", ""),
    "count": ("count($a) as n, sum($a.level) as s", "count(*), sum(a.level)::double", ""),
    "groups": (
        "$a.handle, count($a.level) as n, max($a.level) as m",
        "a.handle, count(a.level), max(a.level)",
        "group by a.handle",
    ),
}


def make_pair(random: Random) -> Pair:
    bound = ["a"]
    steps = []
    for variable, step, join in random.sample(STEPS, random.randint(0, 2)):
        if variable not in bound:
            bound.append(variable)
            steps.append((step, join))
    choices = [condition for variable in bound for condition in CONDITIONS[variable]]
    conditions = random.sample(choices, min(len(choices), random.randint(0, 2)))
    kind = random.choice(list(RETURNS))
    returned, selected, grouped = RETURNS[kind]
    ordered = kind == "plain" and random.random() < 0.5
    match = " ".join(["$a: Staff", *(step for step, _ in steps), *(gq for gq, _ in conditions)])
    gq = f"query q() {{ match {{ {match} }} return {{ {returned} }}"
    where = " and ".join(["true", *(sql for _, sql in conditions)])
    sql = f"select {selected} from staff a {' '.join(join for _, join in steps)} where {where} {grouped}"
    if ordered:
        gq += " order { $a.level desc, $a.handle asc } limit 7"
        sql += " order by a.level desc nulls last, a.handle asc limit 7"
    return Pair(gq + " }", sql, ordered)


def connection(world: World, branch: str) -> Any:
    """The tables of a branch as DuckDB sees them."""
    connected = duckdb.connect()
    snapshot = world.graph.snapshot(branch)
    for key in ("node:Staff", "node:Team", "edge:Mentors", "edge:MemberOf"):
        connected.register("stored", snapshot.open(key).read())
        connected.execute(f"create table {key.split(':')[1]} as select * from stored")
    return connected


def run(seed: int, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    random = Random(seed)
    world = make_world(random, path / "graph", BATCHES[seed % 2])
    connections = {branch: connection(world, branch) for branch in ("main", BRANCH)}
    found = 0
    for _ in range(QUERIES_PER_WORLD):
        pair = make_pair(random)
        monkeypatch.setenv("OMNIGRAPH_TRAVERSAL_MODE", random.choice(world.modes))
        for branch, connected in connections.items():
            expected = connected.execute(pair.sql).fetchall()
            actual = [tuple(row.values()) for row in world.graph.query(pair.gq, branch=branch).rows]
            same = actual == expected if pair.ordered else Counter(actual) == Counter(expected)
            assert same, (pair, branch, actual, expected)
            found += bool(expected)
    assert found > QUERIES_PER_WORLD


@pytest.mark.parametrize("seed", range(5))
def test_duckdb_agrees(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(seed, tmp_path, monkeypatch)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(1000, 1100))
def test_duckdb_agrees_at_length(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(seed, tmp_path, monkeypatch)
