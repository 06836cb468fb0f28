"""Section 10, rules about one row, as any writer has them judged: batches in, violations out."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pytest

from omnigraph.language.schema.build import compile_schema
from omnigraph.validation.rows import Violation, check_rows
from omnigraph.values.columns import table_of


def violations(properties: str, *rows: dict[str, Any]) -> list[Violation]:
    """What is wrong with rows of a node type; their ids are a, b, c …"""
    entity = compile_schema(f"node N {{ {properties} }}").nodes["N"]
    table = table_of(entity, [{"id": chr(ord("a") + number), **row} for number, row in enumerate(rows)])
    return list(check_rows(entity, table))


def places(found: list[Violation]) -> list[tuple[str, str | None, int | None]]:
    return [(violation.kind, violation.property, violation.row) for violation in found]


@pytest.mark.row("VAL-01")
def test_enum(row: list[str]) -> None:
    kinds = "role: enum(admin, guest)?"
    (found,) = violations(kinds, {"role": "admin"}, {"role": "root"}, {"role": None}, {"role": "guest"})
    assert "invalid enum value 'root' for N.role; allowed are admin, guest" in found.message
    assert (found.kind, found.type_key, found.property, found.row, found.entity_id) == (
        "enum",
        "node:N",
        "role",
        1,
        "b",
    )


def test_required() -> None:
    found = violations("p: String q: I32?", {"p": None, "q": None}, {"p": "x"}, {"p": None})
    assert places(found) == [("required", "p", 0), ("required", "p", 2)]
    assert "null or invalid values" in found[0].message


@pytest.mark.parametrize(
    ("kind", "bound", "values", "bad"),
    [
        pytest.param("F64", "-40.0..60.0", [-20.0, -40.0, 60.0, -50.0, 60.5, None], [3, 4], id="VAL-03 both ends"),
        pytest.param("I64", "..9", [9, 10, -5], [1], id="VAL-03 upper"),
        pytest.param("I64", "3..", [2, 3], [0], id="VAL-03 lower"),
        pytest.param("I32", "0.5..2.5", [0, 1, 2, 3], [0, 3], id="VAL-03 fractions on integers"),
        pytest.param("U32", "-5..3", [0, 4], [1], id="VAL-03 a bound below the type"),
        pytest.param("I32", "0..3000000000", [-1, 2**31 - 1], [0], id="VAL-03 a bound above the type"),
        pytest.param("F32", "0.1..0.5", [0.1, 0.09, 0.5], [1], id="VAL-03 at the stored width"),
        pytest.param("F64", "0.0..1.0", [math.nan, math.inf, -math.inf, 0.5, -0.0], [0, 1, 2], id="VAL-04 not finite"),
    ],
)
def test_range(kind: str, bound: str, values: list[Any], bad: list[int]) -> None:
    found = violations(f"v: {kind}? @range(v, {bound})", *({"v": value} for value in values))
    assert {violation.kind for violation in found} == {"range"}
    assert sorted(violation.row for violation in found if violation.row is not None) == bad
    assert all("@range violation on N.v" in violation.message for violation in found)


@pytest.mark.row("VAL-04")
def test_nan_is_named(row: list[str]) -> None:
    (found,) = violations("v: F32? @range(v, ..9)", {"v": math.nan}, {"v": None})
    assert "NaN" in found.message


@pytest.mark.row("VAL-05")
def test_check(row: list[str]) -> None:
    properties = 'code: String? @check(code, "^[A-Z]{3}-[0-9]+$")'
    found = violations(properties, {"code": "ABC-1"}, {"code": "abc"}, {"code": None}, {"code": "XABC-1"}, {"code": ""})
    assert [violation.row for violation in found] == [1, 3, 4]
    assert "@check violation on N.code: 'abc' does not match" in found[0].message


def test_check_searches_and_does_not_anchor_by_itself() -> None:
    assert violations('t: String @check(t, "b")', {"t": "abc"}) == []


@pytest.mark.parametrize(
    ("pattern", "matched", "missed"),
    [
        pytest.param("^[A-Z]+$", ["ABC"], ["ABC\n", "\nABC", "ABC\nx"], id="the end is the end"),
        pytest.param("^a$|^b$", ["a", "b"], ["a\n", "b\n"], id="twice"),
        pytest.param("[$]x", ["$x"], ["x"], id="in a set"),
        pytest.param("[]$]x", ["$x", "]x"], ["x"], id="in a set that begins with a bracket"),
        pytest.param("\\\\$", ["a$b"], ["ab"], id="escaped"),
        pytest.param("(?m)^b$", ["a\nb\nc"], ["ab"], id="ends of lines where that is asked for"),
    ],
)
def test_a_dollar_is_the_end_of_the_text(pattern: str, matched: list[str], missed: list[str]) -> None:
    found = violations(f't: String @check(t, "{pattern}")', *({"t": text} for text in (*matched, *missed)))
    assert [violation.row for violation in found] == list(range(len(matched), len(matched) + len(missed)))


@pytest.mark.parametrize("null_first", [False, True])
def test_vectors_are_finite(null_first: bool) -> None:
    rows: list[dict[str, Any]] = [{"v": (1.0, 2.0)}, {"v": (1.0, math.nan)}, {"v": (math.inf, 0.0)}]
    found = violations("v: Vector(2)?", *([{"v": None}] if null_first else []), *rows)
    assert places(found) == [("vector", "v", number + null_first) for number in (1, 2)]


def test_every_rule_in_order_and_columns_in_chunks() -> None:
    """A batch may come in pieces; the row is its place in the whole."""
    entity = compile_schema("node N { a: I32 b: enum(x)? @range(a, ..1) }").nodes["N"]
    one, two = (table_of(entity, [{"id": str(number), "a": number, "b": "y"}]) for number in (0, 2))
    found = list(check_rows(entity, pa.concat_tables([one, two])))
    assert places(found) == [("enum", "b", 0), ("enum", "b", 1), ("range", "a", 1)]
    assert found[2].entity_id == "2"


def test_no_rows() -> None:
    properties = 'p: String q: enum(x)? r: F64? v: Vector(2)? @range(r, ..1) @check(p, "x")'
    assert violations(properties) == []


def test_a_violation_as_an_error() -> None:
    (found,) = violations("p: enum(x)", {"p": "y"})
    error = found.to_error()
    assert (str(error), error.kind, error.type_key, error.property, error.entity_id) == (
        found.message,
        "enum",
        "node:N",
        "p",
        "a",
    )


def test_a_null_inside_a_vector_is_no_number() -> None:
    """Wherever it stands, and whatever stands before: null vectors, whole ones, several chunks."""
    entity = compile_schema("node N { v: Vector(3)? }").nodes["N"]
    kind = pa.list_(pa.float32(), 3)
    whole, holed = [1.0, 2.0, 3.0], ([None, 2.0, 3.0], [1.0, None, 3.0], [1.0, 2.0, None])
    chunks = [
        pa.array([None, whole, holed[0]], kind),
        pa.array([holed[1]], kind),
        pa.array([None, holed[2], whole], kind),
    ]
    ids = pa.chunked_array([pa.array(list("abc")), pa.array(["d"]), pa.array(list("efg"))])
    found = check_rows(entity, pa.table({"id": ids, "v": pa.chunked_array(chunks)}))
    assert [(one.kind, one.row, one.entity_id) for one in found] == [
        ("vector", 2, "c"),
        ("vector", 3, "d"),
        ("vector", 5, "f"),
    ]


def test_no_element_of_a_list_is_null() -> None:
    lists = [["a"], ["a", None], None, [], [None, None], ["b"]]
    found = violations("tags: [String]?", *({"tags": tags} for tags in lists))
    assert places(found) == [("element", "tags", 1), ("element", "tags", 4)]
    assert found[0].message == "N.tags ([String]?): null is not accepted as an element"
    assert (found[0].type_key, found[0].entity_id) == ("node:N", "b")


def test_what_a_null_list_or_vector_hides_is_no_element() -> None:
    entity = compile_schema("node N { tags: [String]? v: Vector(2)? }").nodes["N"]
    absent = pa.array([True, False])
    tags = pa.ListArray.from_arrays(pa.array([0, 2, 3], pa.int32()), pa.array([None, "b", None]), mask=absent)
    numbers = pa.array([1.0, None, 3.0, math.nan], pa.float32())
    v = pa.FixedSizeListArray.from_arrays(numbers, 2, mask=absent)
    twice = pa.concat_tables([pa.table({"id": ["a", "b"], "tags": tags, "v": v})] * 2)
    assert places(list(check_rows(entity, twice))) == [
        ("element", "tags", 1),
        ("element", "tags", 3),
        ("vector", "v", 1),
        ("vector", "v", 3),
    ]
