"""Sources without `query name() { … }` around them, wherever a graph takes one, and parameters as Python programs hold them."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pytest

import omnigraph as og
from omnigraph.errors import BadRequest, TypecheckError
from omnigraph.graph import sources
from omnigraph.language.query.compile import compile_query

SCHEMA = """
node Item { code: String @key day: Date? at: DateTime? n: I64? x: F64? v: Vector(2)? tags: [String]? data: Blob? }
"""
INSERT = "insert Item { code: $code, day: $day, at: $at, n: $n, x: $x, v: $v, tags: $tags, data: $data }"
READ = "match { $i: Item { code: $code } } return { $i.day, $i.at, $i.n, $i.x, $i.v, $i.tags }"


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    return og.init(tmp_path / "g", SCHEMA)


def test_a_mutation_takes_what_python_holds_and_a_read_gives_it_back(graph: og.Graph) -> None:
    at = datetime(2024, 6, 1, 12, 0, 0, 5000, tzinfo=UTC)
    params = {
        "code": UUID(int=7),
        "day": date(2024, 6, 1),
        "at": at,
        "n": np.int64(3),
        "x": np.float64(0.5),
        "v": np.array([1.0, 0.5], np.float32),
        "tags": ["a", "b"],
        "data": b"\x01\x02",
    }
    done = graph.mutate(INSERT, params=params)
    assert (done.affected_nodes, done.affected_edges) == (1, 0)
    (row,) = graph.query(READ, params={"code": UUID(int=7)}).rows
    assert list(row.values()) == [date(2024, 6, 1), at, 3, 0.5, [1.0, 0.5], ["a", "b"]]
    code = str(UUID(int=7))
    assert graph.read_blob("node", "Item", code, "data").read() == b"\x01\x02"


def test_nulls_and_texts_of_dates(graph: og.Graph) -> None:
    params = dict.fromkeys(("day", "at", "n", "x", "v", "tags", "data")) | {"code": "a"}
    graph.mutate(INSERT, params=params)
    texts = params | {"code": "b", "day": "2024-06-01", "at": "2024-06-01T12:00:00Z", "tags": []}
    graph.mutate(INSERT, params=texts)
    assert [list(row.values()) for row in graph.query(READ, params={"code": "a"})] == [[None] * 6]
    (row,) = graph.query(READ, params={"code": "b"})
    assert list(row.values())[:2] == [date(2024, 6, 1), datetime(2024, 6, 1, 12, tzinfo=UTC)]


def test_every_verb(graph: og.Graph, tmp_path: Path) -> None:
    graph.mutate('insert Item { code: "a", n: 1 } insert Item { code: "b", n: 2 };')
    source = tmp_path / "read.gq"
    source.write_text("// above\nmatch { $i: Item  $i.n > $n } return { $i.code }\n")
    assert graph.query(source, params={"n": 1}).rows == [{"i.code": "b"}]
    assert "NodeScan" in str(graph.explain(source, params={"n": 1}))
    done = graph.retrying(
        lambda g: g.mutate("update Item set { n: n + $n } where code = $c", params={"n": 1, "c": "a"})
    )
    assert done.affected_nodes == 1
    first = graph.mutate("delete Item where code = $c", params={"c": "b"}, idempotency_key="k")
    again = graph.mutate("delete Item where code = $c", params={"c": "b"}, idempotency_key="k")
    assert first.commit == again.commit
    with pytest.raises(BadRequest, match="the query is a read query"):
        graph.mutate("match { $i: Item } return { $i.n }")
    with pytest.raises(BadRequest, match="the query contains mutations"):
        graph.query('delete Item where code = "a"')
    with pytest.raises(BadRequest, match="query 'x' not found"):
        graph.query("match { $i: Item } return { $i.n }", "x")


def test_errors_name_the_file_the_line_and_the_spot(graph: og.Graph, tmp_path: Path) -> None:
    source = tmp_path / "read.gq"
    source.write_text("match {\n  $i: Item\n  $i.m > $n\n} return { $i.code }\n")
    with pytest.raises(TypecheckError) as caught:
        graph.query(source, params={"n": 1})
    assert str(caught.value) == f"{source}:3:3: type error: T6: no property `m` on Item\n  3 |   $i.m > $n\n    |   ^"


def test_it_is_compiled_once_for_values_of_one_type(graph: og.Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = []

    def counted(*arguments: Any, **named: Any) -> object:
        compiled.append(arguments)
        return compile_query(*arguments, **named)

    monkeypatch.setattr(sources, "compile_query", counted)
    text = "match { $i: Item  $i.n > $n } return { $i.code }"
    for number in range(5):
        graph.query(text, params={"n": number})
    assert len(compiled) == 1
    graph.query(text, params={"n": 1.5})
    graph.query(text, params={"n": 2.5})
    assert len(compiled) == 2
    many = "match { $i: Item  $i.n in $ns } return { $i.code }"
    for _ in range(2):
        graph.query(many, params={"ns": list(range(sources.LONGEST_KEPT + 1))})
    assert len(compiled) == 4, "long lists are not kept"


def test_a_long_list(graph: og.Graph) -> None:
    graph.mutate('insert Item { code: "a", n: 9999 }')
    text = "match { $i: Item  $i.n in $ns } return { $i.code }"
    assert graph.query(text, params={"ns": list(range(10_000))}).rows == [{"i.code": "a"}]
    assert graph.query(text, params={"ns": np.arange(10_000)}).rows == [{"i.code": "a"}]
