"""The two ways a load is carried out; the Spark session is started once for a test process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import pytest

import omnigraph as og
from omnigraph.load.model import LoadResult
from tests.commit.limited import limit

Load = Callable[..., LoadResult]

#: Rows kept in memory by this process; staged by this process; staged by Spark, on some partitions.
WAYS = ("held", "staged", "spark")


@pytest.fixture(params=WAYS)
def load(request: pytest.FixtureRequest) -> Load:
    """`Graph.load` on one of the ways."""
    way = request.param
    engine: Literal["spark", "local"] = "spark" if way == "spark" else "local"

    def run(graph: og.Graph, data: Any, mode: Any = "append", **options: Any) -> LoadResult:
        if way != "held":
            limit(graph, held_bytes=0)
        return graph.load(data, mode, engine=engine, **options)

    return run
