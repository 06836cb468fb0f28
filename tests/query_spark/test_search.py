"""Searches on Spark: the ids of the local engine in its order, and its scores to 1e-6, with and without indexes."""

from __future__ import annotations

from typing import Any

import pytest

import omnigraph as og
from tests.query.fixtures import PAGE, PAGE_ROWS
from tests.query.loading import graph_with

V, W = [0.0, 0.0], [1.0, 1.0]
QUERIES: list[tuple[str, dict[str, Any]]] = [
    ("match { $p: Page search($p.head, $x) } return { $p.slug } order { $p.slug }", {"x": "RIVERS mountains"}),
    ("match { $p: Page fuzzy($p.head, $x) } return { $p.slug } order { $p.slug }", {"x": "rivr"}),
    ("match { $p: Page } return { $p.slug, nearest($p.emb, $v) as d } order { nearest($p.emb, $v) } limit 3", {"v": V}),
    ("match { $p: Page } return { $p.slug, bm25($p.head, $x) as s } order { s desc } limit 3", {"x": "river water"}),
    (
        "match { $p: Page } return { $p.slug, rrf(nearest($p.emb, $v), bm25($p.head, $x)) as s } order { s desc } limit 4",
        {"v": W, "x": "river"},
    ),
    (
        "match { $p: Page } return { $p.slug } order { rrf(nearest($p.emb, $v), bm25($p.head, $x)) desc } limit 2",
        {"v": V, "x": "river"},
    ),
]


@pytest.fixture(scope="module", params=["indexed", "unindexed"])
def pages(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> og.Graph:
    """FX-PAGE."""
    graph = graph_with(tmp_path_factory.mktemp("pages") / "g", PAGE, PAGE_ROWS)
    if request.param == "indexed":
        graph.ensure_indices()
    return graph


@pytest.mark.parametrize(("body", "params"), QUERIES)
def test_searches(pages: og.Graph, body: str, params: dict[str, Any]) -> None:
    kinds = {"x": "String", "v": "Vector(2)"}
    source = f"query q({', '.join(f'${name}: {kinds[name]}' for name in params)}) {{ {body} }}"
    here = [tuple(row.values()) for row in pages.query(source, params=params).rows]
    there = [tuple(row.values()) for row in pages.query(source, params=params, engine="spark").rows]
    assert [row[0] for row in there] == [row[0] for row in here]
    for found, expected in zip(there, here, strict=True):
        assert found[1:] == pytest.approx(expected[1:], abs=1e-6)
