"""Costs are counts: the same queries in the same order take the same ways, however long each of them took."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.query.cache import LOOKUP, Spending
from omnigraph.storage.tables.table import Table

SCHEMA = "node N { k: String @key n: I32 } edge To: N -> N"
HOP = 'query q() { match { $a: N { k: "n1" } $a to $b } return { $b.k } }'
ONE = 'query q() { match { $a: N { k: "n7" } } return { $a.n } }'


def ways(graph: og.Graph) -> list[str]:
    """How each of some repeated queries goes."""
    return [str(graph.explain(text).steps) for text in (HOP, ONE) * 4]


def test_a_slow_machine_takes_the_same_ways(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = og.init(tmp_path / "g", SCHEMA)
    graph.load(
        [{"type": "N", "data": {"k": f"n{number}", "n": number}} for number in range(60_000)]
        + [{"edge": "To", "from": f"n{number}", "to": f"n{number + 1}"} for number in range(100)],
        engine="local",
    )
    graph.ensure_indices()
    quick = ways(og.open(graph.uri))
    for name in ("take_by", "take_ids", "take_row_ids", "scan", "read"):
        monkeypatch.setattr(Table, name, slowed(getattr(Table, name)))
    assert ways(og.open(graph.uri)) == quick


def slowed(method: Callable[..., Any]) -> Callable[..., Any]:
    """A method that takes its time."""

    def slowly(*arguments: Any, **options: Any) -> Any:
        time.sleep(0.1)
        return method(*arguments, **options)

    return slowly


def test_what_was_spent_is_kept_for_the_latest() -> None:
    spending = Spending(2)
    spending.add(("a",), LOOKUP)
    spending.add(("b",), 1)
    spending.add(("a",), LOOKUP)
    spending.add(("c",), 1)
    assert [spending.of((name,)) for name in "abc"] == [2 * LOOKUP, 0, 1]
