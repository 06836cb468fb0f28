"""Section 11: the id of a keyed entity is the text of its key, for whole columns, whatever its types."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence

import orjson
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from omnigraph.errors import ValidationError
from omnigraph.language.schema.build import compile_schema
from omnigraph.language.schema.catalog import EdgeType, NodeType
from omnigraph.values.columns import arrow_type
from omnigraph.values.identity import derive_ids

#: Neither the machine's load nor the time of one example says anything about an id.
patient = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


def node(properties: str) -> NodeType:
    return compile_schema(f"node N {{ {properties} }}").nodes["N"]


def keys(entity: NodeType | EdgeType, **columns: Sequence[object]) -> pa.Table:
    """Key columns in the types they are stored in."""
    return pa.table(
        {
            name: pa.array(
                values, arrow_type(entity.properties[name].type) if name in entity.properties else pa.string()
            )
            for name, values in columns.items()
        }
    )


def ids(entity: NodeType | EdgeType, **columns: Sequence[object]) -> list[str]:
    found: list[str] = derive_ids(entity, keys(entity, **columns)).to_pylist()
    return found


@pytest.mark.parametrize(
    ("kind", "values", "expected"),
    [
        pytest.param("String", ["", "a b", "ü😀", '"'], ["", "a b", "ü😀", '"'], id="String"),
        pytest.param("Bool", [True, False], ["true", "false"], id="Bool"),
        pytest.param("I32", [-(2**31), 0, 2**31 - 1], ["-2147483648", "0", "2147483647"], id="I32"),
        pytest.param("I64", [-(2**63), 2**63 - 1], ["-9223372036854775808", "9223372036854775807"], id="I64"),
        pytest.param("U32", [0, 42, 2**32 - 1], ["0", "42", "4294967295"], id="IDN-12 U32"),
        pytest.param("U64", [2**63 - 1, 2**64 - 1], ["9223372036854775807", "18446744073709551615"], id="IDN-01 U64"),
        pytest.param("Date", [19723, 0, -1], ["19723", "0", "-1"], id="IDN-11 Date"),
        pytest.param("DateTime", [1500, 0, -1000], ["1500", "0", "-1000"], id="DateTime"),
        pytest.param("F32", [16777217.0, 0.1, -0.0, 1e-7], ["16777216", "0.1", "0", "0.0000001"], id="IDN-04 F32"),
        pytest.param(
            "F64",
            [0.1, 2.0, -0.0, 1e20, 1.5e-7, -2.5],
            ["0.1", "2", "0", "100000000000000000000", "0.00000015", "-2.5"],
            id="F64",
        ),
    ],
)
def test_one_property(kind: str, values: list[object], expected: list[str]) -> None:
    assert ids(node(f"k: {kind} @key"), k=values) == expected


@patient
@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=20))
def test_a_float_key_gives_its_value_back(values: list[float]) -> None:
    texts = ids(node("k: F64 @key"), k=values)
    assert [float(text) for text in texts] == [value + 0 for value in values]
    assert not any("e" in text for text in texts), "positional notation"


@patient
@given(st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=1, max_size=20))
def test_a_narrow_float_key_gives_its_stored_value_back(values: list[float]) -> None:
    texts = ids(node("k: F32 @key"), k=values)
    assert [struct.unpack("<f", struct.pack("<f", float(text)))[0] for text in texts] == [value + 0 for value in values]


@pytest.mark.parametrize("kind", ["F32", "F64"])
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf], ids=str)
@pytest.mark.row("IDN-05")
def test_a_float_key_is_finite(kind: str, value: float, row: list[str]) -> None:
    with pytest.raises(ValidationError, match="finite") as error:
        ids(node(f"k: {kind} @key"), k=[1.0, value])
    assert (error.value.kind, error.value.type_key, error.value.property) == ("key", "node:N", "k")


def test_a_key_is_never_null() -> None:
    with pytest.raises(ValidationError, match="give every entity its key") as error:
        ids(node("k: String @key"), k=["a", None])
    assert error.value.kind == "required"


@pytest.mark.row("IDN-06")
def test_several_properties_are_a_json_array_in_name_order(row: list[str]) -> None:
    entity = node("ten: String slot: U32 @key(ten, slot)")
    assert ids(entity, ten=["acme", 'a"b'], slot=[7, 8]) == ['["7","acme"]', '["8","a\\"b"]']


@patient
@given(st.lists(st.tuples(st.text(), st.text()), min_size=1, max_size=20))
def test_composite_ids_are_plain_json_and_tell_keys_apart(rows: list[tuple[str, str]]) -> None:
    entity = node("a: String b: String @key(a, b)")
    found = ids(entity, a=[first for first, _ in rows], b=[second for _, second in rows])
    assert found == [orjson.dumps(list(row)).decode() for row in rows]
    assert len(set(found)) == len(set(rows))


def test_an_edge_key_may_hold_its_ends() -> None:
    schema = "node A { k: String @key } edge R: A -> A { w: I32 @key(src, dst, w) }"
    edge = compile_schema(schema).edges["R"]
    assert ids(edge, src=["x"], dst=["y"], w=[1]) == ['["x","y","1"]']


def test_columns_in_several_chunks() -> None:
    entity = node("a: String b: F64 @key(a, b)")
    table = pa.concat_tables([keys(entity, a=["x"], b=[1.0]), keys(entity, a=["y"], b=[-0.0])])
    assert derive_ids(entity, table).to_pylist() == ['["x","1"]', '["y","0"]']


def test_no_rows_no_ids() -> None:
    assert ids(node("a: String b: F64 @key(a, b)"), a=[], b=[]) == []
