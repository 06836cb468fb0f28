"""What a query inside a transaction answers is what it answers after the commit: every form, every index, both traversals."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest

import omnigraph as og
from omnigraph.language.query.check import CheckedRead
from omnigraph.language.query.compile import compile_query
from tests.language.query.test_meaning import PARAMS, make_query
from tests.query.loading import append
from tests.query.naive import BATCHES, BRANCH, STAFF, TEAMS, World, make_world
from tests.query.test_differential import comparable

QUERIES = 25


def change(random: Random) -> str:
    """One random mutation on the types of a world."""
    staff, other, team = random.choice((*STAFF, "s7")), random.choice(STAFF), random.choice(TEAMS)
    level = random.randint(0, 3)
    return random.choice(
        (
            f'insert Staff {{ handle: "{staff}", level: {level} }}',
            f'upsert Staff {{ handle: "{staff}", level: {level} }}',
            f'update Staff set {{ level: {level} }} where handle = "{staff}"',
            f"update Staff set {{ level: {level} }} where level > 1",
            f'delete Staff where handle = "{staff}"',
            f'insert Staff {{ handle: "{staff}", level: 1 }} insert Mentors {{ from: "{staff}", to: "{staff}", weight: 2 }}',
            f"update Mentors set {{ weight: {level} }} where weight is null",
            f'delete Mentors where from = "{other}"',
            f'delete MemberOf where to = "{team}"',
            f'update Team set {{ size: {level} }} where code = "{team}"',
        )
    )


def agree(world: World, branch: str, random: Random, monkeypatch: pytest.MonkeyPatch) -> None:
    graph, seen = world.graph, []
    catalog = graph.contract().catalog
    with graph.transaction(branch=branch) as t:
        for _ in range(3):
            for _ in range(random.randint(1, 3)):
                t.mutate(f"query q() {{ {change(random)} }}")
            last = t.query("query q() { match { $s: Staff } return { count($s) as n } }").rows
        for _ in range(QUERIES):
            text, mode = make_query(random), random.choice(world.modes)
            monkeypatch.setenv("OMNIGRAPH_TRAVERSAL_MODE", mode)
            seen.append((text, mode, t.query(text, params=PARAMS).table.to_pylist()))
    assert t.result is not None
    assert graph.query("query q() { match { $s: Staff } return { count($s) as n } }", branch=branch).rows == last
    for text, mode, inside in seen:
        monkeypatch.setenv("OMNIGRAPH_TRAVERSAL_MODE", mode)
        read = compile_query(text, None, catalog).checked.body
        assert isinstance(read, CheckedRead)
        after = graph.query(text, params=PARAMS, branch=branch).table.to_pylist()
        assert comparable(inside, bool(read.order)) == comparable(after, bool(read.order)), (text, mode, branch)


@pytest.mark.parametrize("seed", range(6))
def test_random_queries(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    random = Random(seed)
    world = make_world(random, tmp_path / "graph", BATCHES[seed % 2])
    agree(world, random.choice(("main", BRANCH)), random, monkeypatch)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(1000, 1300))
def test_many_random_queries(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    random = Random(seed)
    world = make_world(random, tmp_path / "graph", BATCHES[seed % 2])
    agree(world, random.choice(("main", BRANCH)), random, monkeypatch)


# --- search -----------------------------------------------------------------------------------------------------------

TEXTS = "node T { k: String @key text: String @index emb: Vector(4) @index }\nedge Next: T -> T"
WORDS = ("river", "running", "café", "snake_case", "the", "delta", "über", "x1")
RETEXT = "query q($k: String, $t: String) { update T set { text: $t } where k = $k }"
ASKED = (
    'match { $t: T search($t.text, "river delta") } return { $t.k as k }',
    'match { $t: T match_text($t.text, "river") } return { $t.k as k }',
    'match { $t: T fuzzy($t.text, "rivr", 1) } return { $t.k as k }',
    "match { $t: T } return { $t.k as k } order { nearest($t.emb, [0.1, 0.2, 0.3, 0.4]) } limit 20",
    'match { $t: T } return { $t.k as k } order { bm25($t.text, "river delta") desc } limit 20',
    'match { $t: T { k: "k3" } $t next{1,3} $o } return { $o.k as k }',
)


@pytest.mark.parametrize("covered", [0, 150, 300])
def test_searches(covered: int, tmp_path: Path) -> None:
    """With no index, one that covers half of the texts, and one that covered all of them before the transaction."""
    random = Random(covered)
    graph = og.init(tmp_path / "g", TEXTS)

    def text() -> str:
        return " ".join(random.choices(WORDS, k=random.randint(1, 5)))

    def document(number: int) -> dict[str, Any]:
        data = {"k": f"k{number}", "text": text(), "emb": [random.random() for _ in range(4)]}
        return {"type": "T", "id": f"k{number}", "data": data}

    documents = [document(number) for number in range(300)]
    edges = [
        {"edge": "Next", "id": f"e{number}", "from": f"k{number}", "to": f"k{number + 1}", "data": {}}
        for number in range(299)
    ]
    append(graph, documents[:covered])
    if covered:
        graph.ensure_indices()
    append(graph, [*documents[covered:], *edges] if covered < 300 else edges)
    with graph.transaction() as t:
        for number in range(0, 300, 10):
            t.mutate(RETEXT, params={"k": f"k{number}", "t": text()})
        for number in range(1, 300, 30):
            t.mutate("query q($k: String) { delete T where k = $k }", params={"k": f"k{number}"})
        for number in range(300, 320):
            t.mutate(
                "query q($k: String, $t: String, $e: Vector(4)) { insert T { k: $k, text: $t, emb: $e } }",
                params={"k": f"k{number}", "t": text(), "e": [random.random() for _ in range(4)]},
            )
        inside = [t.query(f"query q() {{ {asked} }}").rows for asked in ASKED]
    assert any(row["k"] in {f"k{number}" for number in range(300, 320)} for rows in inside for row in rows)
    for asked, rows in zip(ASKED, inside, strict=True):
        after = graph.query(f"query q() {{ {asked} }}").rows
        assert sorted(row["k"] for row in rows) == sorted(row["k"] for row in after), asked
