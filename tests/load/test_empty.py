"""A table without rows mentions its type all the same: an overwrite replaces that by nothing, with all the checks it has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import omnigraph as og
from omnigraph.errors import BadRequest, LoadRejected
from tests.load.conftest import Load
from tests.load.loading import content, edge, graph_of, ids, node

SCHEMA = """node P { name: String @key age: I32? } node Q { name: String @key }
edge K: P -> P { @key(src, dst) } edge W: Q -> Q @card(1..)"""
NAMES = pa.table({"name": pa.array([], pa.string())})
ENDS = pa.table({"from": pa.array([], pa.string()), "to": pa.array([], pa.string())})


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    rows = [node("P", name="a"), node("P", name="b"), node("Q", name="q"), edge("W", "q", "q"), edge("K", "a", "b")]
    return graph_of(tmp_path / "g", SCHEMA, *rows)


def header(tmp_path: Path) -> Any:
    path = tmp_path / "k.csv"
    path.write_text("from,to\n")
    return str(path)


@pytest.mark.parametrize("data", [ENDS, ENDS.to_pandas(), header], ids=["Arrow", "pandas", "CSV"])
def test_a_type_is_replaced_by_nothing(graph: og.Graph, tmp_path: Path, load: Load, data: Any) -> None:
    before = graph.head()
    result = load(graph, data(tmp_path) if callable(data) else data, "overwrite", edge="K")
    assert [(table.kind, table.type, table.rows) for table in result.tables] == [("edge", "K", 0)]
    assert graph.head().parent == before.id
    assert (ids(graph, "edge:K"), ids(graph, "node:P"), len(ids(graph, "edge:W"))) == ([], ["a", "b"], 1)
    graph.load([edge("K", "b", "a")])
    assert graph.query("match { $x: P $x k $y } return { $x.name }").to_dicts() == [{"x.name": "b"}]
    assert graph.verify(deep=True).ok


def test_edges_that_would_dangle_are_refused(graph: og.Graph, load: Load) -> None:
    before = content(graph)
    with pytest.raises(LoadRejected, match="edge K: `from` node P 'a' not found; a stored edge still needs it"):
        load(graph, NAMES, "overwrite", type="P")
    with pytest.raises(LoadRejected, match="@card violation on W: Q 'q' would have 0 edge"):
        load(graph, ENDS, "overwrite", edge="W")
    assert content(graph) == before


def test_a_folder_as_an_export_writes_it(graph: og.Graph, tmp_path: Path, load: Load) -> None:
    for name, table in (("nodes/P", pa.table({"name": ["c"]})), ("edges/K", ENDS)):
        (tmp_path / "e" / name).mkdir(parents=True)
        pq.write_table(table, tmp_path / "e" / name / "0.parquet")
    load(graph, str(tmp_path / "e"), "overwrite")
    assert (ids(graph, "node:P"), ids(graph, "edge:K"), ids(graph, "node:Q")) == (["c"], [], ["q"])


def test_frames_of_several_types_on_a_branch(graph: og.Graph) -> None:
    graph.create_branch("b")
    graph.load_frames({"P": NAMES, "K": pd.DataFrame({"from": [], "to": []})}, "overwrite", branch="b")
    assert (ids(graph, "node:P", "b"), ids(graph, "edge:K", "b")) == ([], [])
    assert (ids(graph, "node:P"), len(ids(graph, "edge:K"))) == (["a", "b"], 1)


@pytest.mark.parametrize("mode", ["append", "merge", "update"])
def test_other_modes_leave_what_is_there(graph: og.Graph, load: Load, mode: str) -> None:
    before = content(graph)
    assert load(graph, NAMES, mode, type="P").tables == ()
    assert content(graph) == before


def test_a_repeat_is_told_from_another_empty_type(graph: og.Graph) -> None:
    done = graph.load(ENDS, "overwrite", edge="K", idempotency_key="k")
    assert graph.load(ENDS, "overwrite", edge="K", idempotency_key="k").commit == done.commit
    with pytest.raises(BadRequest, match="was used for another request"):
        graph.load(NAMES, "overwrite", type="P", idempotency_key="k")
