"""An edge to a node whose own line was refused is no problem of its own; one to a node that nobody gave is."""

from __future__ import annotations

from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.errors import LoadRejected
from tests.load.conftest import Load
from tests.load.loading import edge, lines, node

SCHEMA = """
node P { name: String @key level: I32? }
node M { ten: String slot: U32 @key(ten, slot) lab: String? }
node D { day: Date @key note: String? }
node F { v: F64 @key note: String? }
node U { note: String }
edge K: P -> P
edge L: M -> D
edge G: F -> U
"""


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    return og.init(tmp_path / "g", SCHEMA)


def problems(graph: og.Graph, load: Load, data: bytes, mode: str = "append") -> list[tuple[int, str]]:
    with pytest.raises(LoadRejected) as rejected:
        load(graph, data, mode)
    assert rejected.value.total == len(rejected.value.errors)
    return [(line, message) for _, line, message in rejected.value.errors]


@pytest.mark.parametrize("mode", ["append", "merge", "overwrite"])
def test_consequences_are_not_reported(graph: og.Graph, load: Load, mode: str) -> None:
    found = problems(
        graph,
        load,
        lines(
            [
                node("P", name="good"),
                node("P", name="wrong", level="high"),
                {**node("P", name="extra"), "more": 1},
                node("M", ten="acme", slot=7, lab=1),
                node("D", day="2024-01-01", nope=1),
                node("U", id="u1", note=5),
                node("F", v=1.5, note=5),
                *(edge("K", "good", "wrong") for _ in range(200)),
                edge("K", "extra", "good"),
                edge("L", '["7","acme"]', "19723"),
                edge("G", "1.5", "u1"),
                edge("K", "good", "nobody"),
            ]
        ),
        mode,
    )
    assert [line for line, _ in found] == [2, 3, 4, 5, 6, 7, 211]
    assert found[-1][1] == "edge K: `to` node P 'nobody' not found"


def test_a_node_without_a_readable_key_stays_unknown(graph: og.Graph, load: Load) -> None:
    """Nobody can tell which node that line meant, so its edges are named as they are."""
    found = problems(
        graph,
        load,
        lines([node("P", name=5), '{"type":"P","data":{"name":"torn"', node("P"), edge("K", "5", "torn")]),
    )
    assert [line for line, _ in found] == [1, 2, 3, 4, 4]
