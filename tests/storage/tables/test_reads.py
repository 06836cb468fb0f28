"""Reads of one version: scans, counts, point reads, what is said about fragments and indexes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from omnigraph.errors import BadRequest
from omnigraph.storage.tables import table as table_module
from omnigraph.storage.tables.handles import Tables
from omnigraph.storage.tables.location import Location
from omnigraph.storage.tables.staged import stage_create, stage_index
from omnigraph.storage.tables.table import Table
from tests.storage.tables.people import SEEDED, commit, head, people, rows, seed
from tests.storage.tables.upserts import stage_upsert

FILTERS = {
    "none": (None, 10),
    "SQL text": ("id = 'p3'", 1),
    "Arrow expression": (pc.field("id").isin(["p3", "p9", "p1"]), 2),
    "nothing passes": ("name = 'nobody'", 0),
}


@pytest.mark.parametrize("case", FILTERS)
def test_count_scan_and_read_agree(backend: Tables, case: str) -> None:
    table = seed(backend)
    filter, expected = FILTERS[case]
    assert table.count_rows(filter) == expected
    assert sum(batch.num_rows for batch in table.scan(filter=filter)) == expected
    assert table.read(filter=filter).num_rows == expected


def test_columns_row_ids_and_addresses(tables: Tables) -> None:
    read = seed(tables).read(["name"], "id = 'p9'", with_row_id=True, with_row_address=True)
    assert read.to_pylist() == [{"name": "old", "_rowid": 9, "_rowaddr": (2 << 32) + 1}]


def test_an_empty_read_has_the_schema(tables: Tables) -> None:
    read = seed(tables).read(["id"], "id = 'nobody'", with_row_address=True)
    assert read.schema.names == ["id", "_rowaddr"]
    assert read.num_rows == 0


def test_a_scan_is_batched(tables: Tables) -> None:
    assert max(batch.num_rows for batch in seed(tables).scan(batch_size=2)) == 2


@pytest.mark.parametrize(
    "ask",
    [
        pytest.param(lambda table: table.count_rows("no_such = 1"), id="unknown column"),
        pytest.param(lambda table: table.read(filter="id = = 3"), id="broken text"),
        pytest.param(lambda table: table.read(filter="id = 5"), id="wrong type"),
        pytest.param(lambda table: table.read(filter=pc.field("no_such") == 1), id="unknown column in an expression"),
        pytest.param(lambda table: table.read(["no_such"]), id="unknown projection"),
    ],
)
def test_a_wrong_question_is_a_bad_request(tables: Tables, ask: Callable[[Table], object]) -> None:
    with pytest.raises(BadRequest):
        ask(seed(tables))


@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        pytest.param(pa.array(["p3", "p11"]), ["p11", "p3"], id="two"),
        pytest.param(pa.array(["p3", "p3", None]), ["p3"], id="twice and null"),
        pytest.param(pa.array(["p1", "nobody"]), [], id="deleted and unknown"),
        pytest.param(pa.array([], pa.string()), [], id="none"),
        pytest.param(pa.chunked_array([["p3"], ["p4"]]), ["p3", "p4"], id="chunked"),
        pytest.param(pa.array(["p3"], pa.large_string()), ["p3"], id="large strings"),
    ],
)
def test_take_ids(backend: Tables, ids: pa.Array, expected: list[str]) -> None:
    found = seed(backend).take_ids(ids, ["id", "name"])
    assert sorted(found["id"].to_pylist()) == expected
    assert found.schema.names == ["id", "name"]


def test_take_ids_in_batches(tables: Tables, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_module, "IDS_PER_LOOKUP", 3)
    found = seed(tables).take_ids(pa.array([f"p{number}" for number in range(12)]))
    assert sorted(found["id"].to_pylist()) == [id_ for id_, _ in SEEDED]


def test_take_ids_uses_the_index(tables: Tables) -> None:
    table = seed(tables)
    plan = table.dataset.scanner(filter=pc.field("id").isin(pa.array(["p3", "p4"]))).explain_plan()
    assert "ScalarIndexQuery" in plan


def test_take_by_another_column(tables: Tables) -> None:
    table = commit(tables, stage_upsert(seed(tables), people([2, 3], "new")))
    assert sorted(table.take_by("name", pa.array(["new"]), ["id"])["id"].to_pylist()) == ["p2", "p3"]


FLOATS = [0.0, -0.0, math.nan, -math.nan, 1.0, None]


@pytest.mark.parametrize("values", [[0.0], [-0.0], [0.0, -0.0]])
@pytest.mark.parametrize("indexed", [False, True])
@pytest.mark.parametrize("way", ["one request", "batches", "one pass"])
def test_zeros_and_nans_are_one_value_however_they_are_looked_up(
    tables: Tables, monkeypatch: pytest.MonkeyPatch, values: list[float], indexed: bool, way: str
) -> None:
    if way == "batches":
        monkeypatch.setattr(table_module, "IDS_PER_LOOKUP", 1)
    monkeypatch.setattr(table_module, "VALUES_PER_LOOKUP", 1000 if way == "one pass" else 0)
    data = pa.table({"id": [f"r{n}" for n in range(len(FLOATS))], "f": pa.array(FLOATS, pa.float64())})
    table = commit(tables, stage_create(tables, Location("nodes/floats"), data.schema, data))
    if indexed:
        table = commit(tables, stage_index(table, "f", "BTREE", "f_idx"))

    def found(*wanted: float | None) -> list[str]:
        return sorted(table.take_by("f", pa.array(wanted, pa.float64()), ["id"])["id"].to_pylist())

    assert found(*values) == ["r0", "r1"]
    assert found(math.nan) == found(-math.nan) == ["r2", "r3"]
    assert found(*values, math.nan, 1.0, None) == ["r0", "r1", "r2", "r3", "r4"]
    assert found(None) == found() == []


def test_fragments_and_indexes(backend: Tables) -> None:
    table = seed(backend)
    assert table.fragment_ids == (0, 1, 2)
    assert table.fragment_count == 3
    (index,) = table.indices()
    assert (index.name, index.kind, index.columns, set(index.fragments), index.segments) == (
        "id_idx",
        "BTREE",
        ("id",),
        {0, 1},
        1,
    )


#: By kind of index: the column, the options, a filter that the index answers and what the plan then says.
INDEXES: dict[str, tuple[str, dict[str, Any], str | None, str]] = {
    "BTREE": ("id", {}, "id = 'p3'", "ScalarIndexQuery"),
    "INVERTED": ("name", {}, None, ""),
    "NGRAM": ("name", {}, "contains(name, 'old')", "ScalarIndexQuery"),
    "LABEL_LIST": ("tags", {}, "array_has_any(tags, ['a'])", "ScalarIndexQuery"),
    "IVF_FLAT": ("vector", {"num_partitions": 1, "metric": "l2"}, None, ""),
    "IVF_PQ": ("vector", {"num_partitions": 1, "num_sub_vectors": 2, "metric": "cosine"}, None, ""),
    "IVF_RQ": ("vector", {"num_partitions": 1}, None, ""),
}


def indexable(rows_: int) -> pa.Table:
    schema = pa.schema(
        [
            pa.field("id", pa.string(), nullable=False),
            pa.field("name", pa.string()),
            pa.field("tags", pa.list_(pa.string())),
            pa.field("vector", pa.list_(pa.float32(), 8)),
        ]
    )
    vectors = [[float(number + position) for position in range(8)] for number in range(rows_)]
    return pa.table(
        {
            "id": [f"p{number}" for number in range(rows_)],
            "name": ["the old river"] * rows_,
            "tags": [["a", "b"]] * rows_,
            "vector": vectors,
        },
        schema=schema,
    )


@pytest.mark.parametrize("kind", INDEXES)
def test_every_kind_of_index(tables: Tables, kind: str) -> None:
    column, options, filter, plan = INDEXES[kind]
    location = Location("nodes/indexed")
    data = indexable(300)
    commit(tables, stage_create(tables, location, data.schema, data))
    before = head(tables, location)
    table = commit(tables, stage_index(before, column, kind, "an_index", options=options))
    assert [(index.name, index.kind, index.columns) for index in table.indices()] == [("an_index", kind, (column,))]
    assert table.indices()[0].fragments == set(table.fragment_ids)
    if filter is not None:
        assert plan in table.dataset.scanner(filter=filter).explain_plan()
        assert table.count_rows(filter) == before.count_rows(filter) > 0
    elif column == "name":
        found = table.dataset.scanner(full_text_query="river", limit=3).to_table()
        assert found.num_rows == 3
    else:
        query = {"column": "vector", "q": [7.0 + position for position in range(8)], "k": 1}
        scanner = table.dataset.scanner(columns=["id"], nearest=query)
        assert "ANN" in scanner.explain_plan()
        assert scanner.to_table().num_rows == 1
    again = commit(tables, stage_index(table, column, kind, "an_index", options=options))
    assert [(index.name, index.segments) for index in again.indices()] == [("an_index", 1)]


def test_the_sample_is_what_the_other_tests_expect(tables: Tables) -> None:
    assert rows(seed(tables)) == SEEDED
