"""What `load` relies on in Arrow's JSON parser and in Lance's overwrite."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pyarrow.json as pj
import pytest
from lance import LanceDataset, LanceOperation
from lance.fragment import write_fragments

SCHEMA = pa.schema(
    [("data", pa.struct([("i", pa.int32()), ("s", pa.string()), ("f", pa.float64()), ("u", pa.uint64())]))]
)


def parse(text: bytes) -> list[Any]:
    options = pj.ParseOptions(explicit_schema=SCHEMA, unexpected_field_behavior="error")
    found = pj.read_json(pa.BufferReader(text), pj.ReadOptions(use_threads=False, block_size=len(text) + 1), options)
    return [row["data"] for row in found.to_pylist()]


@pytest.mark.parametrize(
    "data",
    [
        b'{"i":1,"i":2}',
        b'{"i":1.0}',
        b'{"i":"1"}',
        b'{"i":true}',
        b'{"i":3000000000}',
        b'{"s":1}',
        b'{"u":-1}',
        b'{"z":1}',
        b'{"f":1e400}',
        b'{"i":01}',
        b'{"i":1,}',
        b'{"s":"\\ud800"}',
        b"[]",
    ],
)
def test_what_the_parser_refuses(data: bytes) -> None:
    """load/fast: whatever is not of the declared kind, unknown, given twice or no JSON."""
    with pytest.raises(pa.ArrowInvalid):
        parse(b'{"data":' + data + b"}\n")


def test_what_the_parser_lets_pass() -> None:
    """load/fast, load/json_columns: numbers that JSON does not have, and several values on a line; both are looked for."""
    assert parse(b'{"data":{"u":18446744073709551615}}') == [{"i": None, "s": None, "f": None, "u": 2**64 - 1}]
    assert str(parse(b'{"data":{"f":NaN}}')[0]["f"]) == "nan"
    assert parse(b'{"data":{"f":Infinity}}')[0]["f"] == float("inf")
    assert len(parse(b'{"data":null}{"data":null}\n\n')) == 2


@pytest.mark.parametrize("numbered", [True, False])
def test_an_overwrite_with_fragments_of_an_evolved_table(tmp_path: Path, numbered: bool) -> None:
    """storage/tables/staged.stage_overwrite_fragments: only Lance's own schema has the field ids of appended fragments."""
    dataset = lance.write_dataset(pa.table({"id": ["x"], "a": [1]}), tmp_path / "t", enable_stable_row_ids=True)
    dataset.add_columns({"c": "cast(a as double)"})
    dataset.drop_columns(["a"])
    fragments = write_fragments(pa.table({"id": ["p"], "c": [0.5]}), dataset, mode="append")
    schema = dataset.lance_schema if numbered else dataset.schema
    after = LanceDataset.commit(
        dataset, LanceOperation.Overwrite(schema, fragments), read_version=dataset.version, max_retries=0
    )
    assert after.to_table()["c"].to_pylist() == ([0.5] if numbered else [None])


@pytest.mark.parametrize(
    "text",
    [
        *("2020-1-01", "2020-01-01 ", " 2020-01-01", "+020-01-01", "-020-01-01", "20200101", "2020-01-01T00:00:00"),
        *("2020-13-01", "2020-02-30", "99999-01-01", "2020/01/01", "2020-01-01\0", "2020-01-0１", ""),
    ],
)
def test_arrow_takes_one_form_of_a_date(text: str) -> None:
    """`load.json_columns` leaves the form of dates to this cast; the year zero it checks itself."""
    with pytest.raises(pa.ArrowInvalid):
        pa.array([text]).cast(pa.date32())
    assert pa.array(["2020-02-29", None]).cast(pa.date32()).null_count == 1
    assert pa.array(["0000-01-01"]).cast(pa.date32()).cast(pa.int32())[0].as_py() < 0
