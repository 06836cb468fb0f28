"""A load with an idempotency key is known by its contents: the same again writes nothing, others are refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

import omnigraph as og
from omnigraph.errors import BadRequest
from tests.commit.limited import limit
from tests.load.conftest import Load
from tests.load.loading import files, rows

SCHEMA = """
node N { name: String @key  n: I64?  w: F64?  born: Date?  tags: [I32]?  emb: Vector(2)?  file: Blob? }
"""
TABLE = pa.table(
    {
        "name": [f"k{number}" for number in range(40)],
        "n": pa.array([None if number % 3 == 0 else number for number in range(40)], pa.int64()),
        "w": [number / 7 for number in range(40)],
        "tags": pa.array([[number, 1] if number % 2 else None for number in range(40)], pa.list_(pa.int32())),
        "emb": pa.array([[number, 0.5] for number in range(40)], pa.list_(pa.float32())),
    }
)


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    return og.init(tmp_path / "g", SCHEMA)


def an_input(form: str, table: pa.Table, folder: Path) -> Any:
    """A table in one of its forms; files have the same path each time."""
    if form == "arrow":
        return table
    if form == "dicts":
        return [{"type": "N", "data": row} for row in table.to_pylist()]
    if form == "parquet":
        pq.write_table(table, folder / "in.parquet")
    elif form == "csv":
        pacsv.write_csv(table.drop_columns(["tags", "emb"]), folder / "in.csv")
    else:
        lines = [orjson.dumps({"type": "N", "data": row}) for row in table.to_pylist()]
        (folder / "in.jsonl").write_bytes(b"\n".join(lines))
    return folder / f"in.{form}"


@pytest.mark.parametrize("form", ["arrow", "dicts", "parquet", "csv", "jsonl"])
def test_the_same_contents_again_write_nothing_and_others_are_refused(
    graph: og.Graph, load: Load, tmp_path: Path, form: str
) -> None:
    options: dict[str, Any] = {} if form in ("dicts", "jsonl") else {"type": "N"}
    first = load(graph, an_input(form, TABLE, tmp_path), "merge", idempotency_key="k", **options)
    there = files(graph)
    again = load(graph, an_input(form, TABLE, tmp_path), "merge", idempotency_key="k", **options)
    assert (again.commit, again.nodes_loaded) == (first.commit, 40)
    changed = TABLE.set_column(1, "n", pa.array([7] * 40, pa.int64()))
    for other in (changed, TABLE.slice(0, 39), TABLE.take([1, 0, *range(2, 40)])):
        with pytest.raises(BadRequest, match="idempotency key 'k' was used for another request"):
            load(graph, an_input(form, other, tmp_path), "merge", idempotency_key="k", **options)
    assert files(graph) == there
    assert len(rows(graph, "node:N")) == 40


def test_a_file_of_the_same_path_and_size_with_other_contents_is_another_request(
    graph: og.Graph, load: Load, tmp_path: Path
) -> None:
    def write(first: int) -> Path:
        table = pa.table({"name": ["a", "b"], "n": pa.array([first, 3], pa.int64())})
        pq.write_table(table, tmp_path / "in.parquet", compression="none", use_dictionary=False, write_statistics=False)
        return tmp_path / "in.parquet"

    load(graph, write(1), "merge", type="N", idempotency_key="k")
    size = write(1).stat().st_size
    assert write(2).stat().st_size == size
    with pytest.raises(BadRequest, match="another request"):
        load(graph, write(2), "merge", type="N", idempotency_key="k")


def test_how_a_table_is_cut_encoded_or_stored_does_not_count(graph: og.Graph, load: Load, tmp_path: Path) -> None:
    first = load(graph, TABLE, "merge", type="N", idempotency_key="k")
    cut = pa.concat_tables([TABLE.slice(0, 7), TABLE.slice(7)])
    encoded = TABLE.set_column(0, "name", TABLE["name"].dictionary_encode())
    pq.write_table(TABLE, tmp_path / "in.parquet", row_group_size=9)
    for same in (cut, encoded, tmp_path / "in.parquet"):
        assert load(graph, same, "merge", type="N", idempotency_key="k").commit == first.commit


def test_a_data_frame_twice(graph: og.Graph) -> None:
    from omnigraph.spark.session import spark_session

    frame = spark_session().sql.createDataFrame(TABLE)
    first = graph.load(frame, "merge", type="N", idempotency_key="k")
    for same in (frame, frame.repartition(3), frame.orderBy(frame.w.desc())):
        assert graph.load(same, "merge", type="N", idempotency_key="k").commit == first.commit
    with pytest.raises(BadRequest, match="another request"):
        graph.load(frame.where("n > 5"), "merge", type="N", idempotency_key="k")
    assert len(rows(graph, "node:N")) == 40


def test_the_number_of_cores_does_not_count(graph: og.Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Text is cut the same way whoever reads it."""
    path = an_input("jsonl", TABLE, tmp_path)
    limit(graph, held_bytes=0)
    monkeypatch.setattr("omnigraph.load.inputs.SMALLEST_RANGE", 1)
    first = graph.load(path, idempotency_key="k", engine="local")
    assert graph.load(path, idempotency_key="k", engine="spark").commit == first.commit


def test_the_key_alone_is_the_callers_word(graph: og.Graph, load: Load) -> None:
    first = load(graph, TABLE, "merge", type="N", idempotency_key="k", idempotency="key")
    other = TABLE.slice(0, 3)
    again = load(graph, other, "merge", type="N", idempotency_key="k", idempotency="key")
    assert (again.commit, again.nodes_loaded) == (first.commit, 40)
    with pytest.raises(BadRequest, match="another request"):
        load(graph, TABLE, "merge", type="N", idempotency_key="k")
    with pytest.raises(BadRequest, match="idempotency is contents or key, not 'word'"):
        load(graph, TABLE, "merge", type="N", idempotency_key="k2", idempotency="word")


def test_contents_with_a_bad_row_more_are_another_request(graph: og.Graph, load: Load) -> None:
    row = {"type": "N", "data": {"name": "a"}}
    load(graph, [row], idempotency_key="k")
    with pytest.raises(BadRequest, match="another request"):
        load(graph, [row, {"type": "N", "data": {"nam": "b"}}], idempotency_key="k")


@pytest.mark.parametrize("form", ["arrow", "dicts", "jsonl"])
def test_a_schema_that_changed_since_makes_no_other_request(
    graph: og.Graph, load: Load, tmp_path: Path, form: str
) -> None:
    """Properties came in between the two calls and, where the input is read as it is given, one of its own has another name."""
    options: dict[str, Any] = {"type": "N"} if form == "arrow" else {}
    table = TABLE.select(["name", "n"])
    first = load(graph, an_input(form, table, tmp_path), "append", idempotency_key="k", **options)
    graph.apply_schema(SCHEMA.replace("file: Blob?", "a: I64?  file: Blob?  z: String?"))
    if form != "arrow":
        renamed = SCHEMA.replace(" n: I64?", ' m: I64? @rename_from("n")')
        graph.apply_schema(renamed.replace("file: Blob?", "a: I64?  file: Blob?  z: String?"))
    again = load(graph, an_input(form, table, tmp_path), "append", idempotency_key="k", **options)
    assert (again.commit, again.nodes_loaded) == (first.commit, 40)
    assert len(rows(graph, "node:N")) == 40


def test_a_value_that_json_does_not_have_is_not_null(tmp_path: Path) -> None:
    """A load keeps NaN, so with null in its place it is another request; in which order keys come does not count."""
    graph = og.init(tmp_path / "g", SCHEMA)
    first = graph.load([{"type": "N", "data": {"name": "a", "w": float("nan"), "n": None}}], idempotency_key="k")
    same = [{"data": {"n": None, "w": float("nan"), "name": "a"}, "type": "N"}]
    assert graph.load(same, idempotency_key="k").commit == first.commit
    for value in (None, float("inf")):
        with pytest.raises(BadRequest, match="another request"):
            graph.load([{"type": "N", "data": {"name": "a", "w": value, "n": None}}], idempotency_key="k")
