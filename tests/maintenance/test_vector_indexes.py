"""Vector indexes: when they can be built, for which metric, how large, and when they are trained again."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import omnigraph as og
from omnigraph.graph.lifecycle import connect
from omnigraph.maintenance.index_plan import OUTGROWN, VECTORS_PER_PARTITION, VectorShape, shape_for
from tests.commit.org import insert
from tests.maintenance.coverage import build_index, index_on, published

DOC = "node:Doc"


def docs(path: Path, metric: str = "l2") -> og.Graph:
    return og.init(path, f'node Doc {{ slug: String @key emb: Vector(2)? @index @metric("{metric}") }}')


def put(graph: og.Graph, vectors: Sequence[list[float] | None], prefix: str = "d") -> None:
    ids = pa.array([f"{prefix}{number}" for number in range(len(vectors))])
    schema = published(graph, DOC).schema
    columns = {"id": ids, "slug": ids, "emb": pa.array(vectors, pa.list_(pa.float32(), 2))}
    rows = pa.table([columns[name] for name in schema.names], schema=schema)
    insert(connect(graph.uri), {DOC: rows})


@pytest.mark.parametrize(
    ("vectors", "expected"),
    [
        pytest.param(1, VectorShape("IVF_FLAT", 1), id="one"),
        pytest.param(2 * VECTORS_PER_PARTITION - 1, VectorShape("IVF_FLAT", 1), id="one partition"),
        pytest.param(200_000, VectorShape("IVF_FLAT", 48), id="many"),
        pytest.param(1_000_000, VectorShape("IVF_SQ", 244), id="very many"),
        pytest.param(10**9, VectorShape("IVF_SQ", 4096), id="no more partitions than can be trained"),
    ],
)
def test_the_number_of_vectors_decides_the_shape(vectors: int, expected: VectorShape) -> None:
    assert shape_for(vectors) == expected


@pytest.mark.row("IDX-06")
@pytest.mark.parametrize("metric", ["l2", "cosine", "dot"])
def test_an_index_has_the_metric_of_its_property(tmp_path: Path, metric: str) -> None:
    graph = docs(tmp_path / "g", metric)
    put(graph, [[1.0, 0.0], [0.0, 2.0], None])
    graph.ensure_indices()
    index = index_on(graph, DOC, "emb")
    assert (index.name, index.details["metric_type"]) == ("p1_vector", metric.upper())
    plan = published(graph, DOC).dataset.scanner(nearest={"column": "emb", "q": [1.0, 0.1], "k": 1, "metric": metric})
    assert "p1_vector" in plan.explain_plan()
    assert graph.ensure_indices().commit is None


def test_an_index_for_another_metric_is_replaced(tmp_path: Path) -> None:
    graph = docs(tmp_path / "g", "l2")
    put(graph, [[1.0, 0.0], [0.0, 2.0]])
    build_index(graph, DOC, "emb", "IVF_FLAT", "p1_vector", metric="cosine", num_partitions=1)
    assert "emb" in {status.column for status in graph.ensure_indices().built}
    assert index_on(graph, DOC, "emb").details["metric_type"] == "L2"


@pytest.mark.row("IDX-06")
@pytest.mark.parametrize(
    ("metric", "vectors"),
    [
        pytest.param("l2", [None, None], id="only nulls"),
        pytest.param("cosine", [[0.0, 0.0], None], id="cosine without a direction"),
    ],
)
def test_without_vectors_the_index_is_pending(tmp_path: Path, metric: str, vectors: list[list[float] | None]) -> None:
    graph = docs(tmp_path / "g", metric)
    put(graph, vectors)
    first, second = graph.ensure_indices(), graph.ensure_indices()
    assert first.commit is not None
    assert second.commit is None
    for report in (first, second):
        assert [(status.column, status.kind, status.reason) for status in report.pending] == [
            ("emb", "VECTOR", "there are no vectors yet")
        ]
    put(graph, [[1.0, 0.0]], prefix="late")
    assert [status.column for status in graph.ensure_indices().built] == ["emb"]


def test_a_pending_index_does_not_fork_a_branch(tmp_path: Path) -> None:
    graph = docs(tmp_path / "g")
    put(graph, [None])
    graph.ensure_indices()
    graph.create_branch("work")
    report = graph.ensure_indices("work")
    assert report.commit is None
    assert [status.column for status in report.pending] == ["emb"]


def test_an_index_that_is_outgrown_is_trained_again(tmp_path: Path) -> None:
    graph = docs(tmp_path / "g")
    put(graph, [[1.0, 0.0]])
    graph.ensure_indices()
    points = np.random.default_rng(7).normal(size=(OUTGROWN * VECTORS_PER_PARTITION, 2))
    half = len(points) // 2
    put(graph, points[:half].tolist(), prefix="a")
    assert graph.ensure_indices().commit is None
    put(graph, points[half:].tolist(), prefix="b")
    assert [status.column for status in graph.ensure_indices().built] == ["emb"]
    table = published(graph, DOC)
    assert len(table.dataset.get_ivf_model("p1_vector").centroids) == OUTGROWN
    assert index_on(graph, DOC, "emb").fragments == set(table.fragment_ids)
    assert graph.ensure_indices().commit is None


def test_rows_without_vectors_do_not_outgrow_an_index(tmp_path: Path) -> None:
    graph = docs(tmp_path / "g")
    put(graph, [[1.0, 0.0]])
    graph.ensure_indices()
    put(graph, [None] * (OUTGROWN * VECTORS_PER_PARTITION), prefix="n")
    assert graph.ensure_indices().commit is None
