"""Parameters: behaviours.md section 6 and the table of languages.md 2.6."""

from __future__ import annotations

import math
from typing import Any, Literal

import pytest

from omnigraph.errors import BadRequest
from omnigraph.language.literals import PlainValue, TypedValue
from omnigraph.language.query.compile import compile_query
from omnigraph.language.query.params import bind_params
from omnigraph.language.query.parser import find_query, parse_query_file
from tests.language.query.catalogs import ORG

MAX_I64 = 2**63 - 1


def bind(declared: str, document: object, undeclared: Literal["refuse", "ignore"] = "ignore") -> dict[str, TypedValue]:
    """Bind a document to the parameters of a query that declares these."""
    text = f"query q({declared}) {{ match {{ $s: Staff }} return {{ $s.handle }} }}"
    return bind_params(find_query(parse_query_file(text)).params, document, undeclared=undeclared)


def bind_one(kind: str, value: object) -> PlainValue:
    return bind(f"$x: {kind}", {"x": value})["x"].value


@pytest.mark.parametrize(
    ("declared", "document", "expected"),
    [
        pytest.param("$a: String, $b: String?", {"a": "x"}, {"a": "x", "b": None}, id="PRM-01 omitted"),
        pytest.param("$a: String, $b: String?", {"a": "x", "b": None}, {"a": "x", "b": None}, id="PRM-01 null"),
        pytest.param("$b: String?", None, {"b": None}, id="PRM-01 no document"),
        pytest.param("$b: String?", {}, {"b": None}, id="PRM-01 empty document"),
        pytest.param("", None, {}, id="no parameters"),
        pytest.param(
            "$t: [String], $d: [Date]?, $w: DateTime",
            {"t": ["a", "b"], "d": ["1970-01-02"], "w": "1970-01-01T00:00:01Z"},
            {"t": ("a", "b"), "d": (1,), "w": 1000},
            id="PRM-05",
        ),
        pytest.param("", {"zz": 1}, {}, id="PRM-07 ignored"),
        pytest.param("$a: I32", {"a": 1, "zz": [1, ["x"], None]}, {"a": 1}, id="PRM-07 ignored beside others"),
    ],
)
def test_documents(declared: str, document: object, expected: dict[str, Any]) -> None:
    assert {name: typed.value for name, typed in bind(declared, document).items()} == expected


def test_a_value_carries_its_declared_type() -> None:
    assert str(bind("$x: [Date]?", {"x": []})["x"].type) == "[Date]?"


@pytest.mark.parametrize(
    ("declared", "document", "message"),
    [
        pytest.param("", ["x"], "params must be a JSON object", id="PRM-03 array"),
        pytest.param("", "x", "params must be a JSON object", id="PRM-03 string"),
        pytest.param("", 3, "params must be a JSON object", id="PRM-03 number"),
        pytest.param("$x: String", None, "parameter 'x' not provided", id="missing, no document"),
        pytest.param("$x: String", {"y": 1}, "parameter 'x' not provided", id="missing"),
        pytest.param("$who: String", {"$who": 1}, "in the name of the parameter: `who`", id="with its sign"),
        pytest.param("$who: String", {"whom": 1}, "not provided; is `whom` meant to be it?", id="misspelt"),
        pytest.param("$x: String", {"x": None}, "null is not accepted for non-nullable parameter 'x'", id="null"),
        pytest.param("$v: Vector(3)", {"v": [1, 2]}, "expected 3 values", id="PRM-06"),
        pytest.param("", {"zz": {"a": 1}}, "'zz'", id="PRM-07 object"),
        pytest.param("", {"zz": [1, [{"a": 1}]]}, "'zz'", id="PRM-07 object inside an array"),
        pytest.param("$n: U64", {"n": MAX_I64 + 1}, "outside the range of U64", id="PRM-08"),
        pytest.param("$n: U64", {"n": str(MAX_I64 + 1)}, "outside the range of U64", id="PRM-08 as a string"),
        pytest.param("", {"__now": 3}, "reserved", id="reserved name"),
    ],
)
def test_refused_documents(declared: str, document: object, message: str) -> None:
    with pytest.raises(BadRequest) as caught:
        bind(declared, document)
    assert message in caught.value.message


@pytest.mark.parametrize(
    ("declared", "document", "message"),
    [
        ("$who: String?", {"whom": "x"}, "the query declares no parameter 'whom'; did you mean `who`?"),
        (
            "$who: String",
            {"$who": "x"},
            "the query declares no parameter '$who'; leave out the `$` in the name of the parameter: `who`",
        ),
        ("$who: String", {"Who": "x"}, "the query declares no parameter 'Who'; did you mean `who`?"),
        ("$a: I32, $b: I32?", {"a": 1, "zz": 1}, "the query declares no parameter 'zz'; its parameters are a, b"),
        ("", {"zz": None}, "the query declares no parameter 'zz'; it takes none"),
        ("", {"zz": {}}, "parameter 'zz': a JSON object is not a value"),
    ],
)
def test_undeclared_names_are_refused_where_a_person_writes_them(declared: str, document: object, message: str) -> None:
    with pytest.raises(BadRequest) as caught:
        bind(declared, document, "refuse")
    assert caught.value.message == message


def test_unknown_query_name() -> None:
    """PRM-09."""
    with pytest.raises(BadRequest) as caught:
        compile_query("query q() { match { $s: Staff } return { $s.handle } }", "x", ORG)
    assert caught.value.message == "query 'x' not found"


@pytest.mark.parametrize(
    ("kind", "value", "bound"),
    [
        ("String", "", ""),
        ("String", "ada é 😀", "ada é 😀"),
        ("Blob", "base64:AQID", "base64:AQID"),
        ("Bool", True, True),
        ("Bool", False, False),
        ("I32", 3, 3),
        ("I32", -(2**31), -(2**31)),
        ("I32", 2**31 - 1, 2**31 - 1),
        ("I32", "12", 12),
        ("I32", "-12", -12),
        ("I32", "007", 7),
        ("I64", MAX_I64, MAX_I64),
        ("I64", str(-(2**63)), -(2**63)),
        ("U32", 2**32 - 1, 2**32 - 1),
        ("U32", "0", 0),
        ("U64", MAX_I64, MAX_I64),
        ("U64", str(MAX_I64), MAX_I64),
        ("I64", "0" * 5000 + "5", 5),
        ("F64", 1.5, 1.5),
        ("F64", 3, 3.0),
        ("F64", -0.0, -0.0),
        ("F64", 1e308, 1e308),
        ("F32", 0.5, 0.5),
        pytest.param("F32", 0.1, 0.10000000149011612, id="F32 is rounded"),
        ("Date", "2024-06-01", 19875),
        ("DateTime", "2024-06-01T14:00:00+02:00", 1717243200000),
        ("[I32]", [1, "2"], (1, 2)),
        ("[I32]", [], ()),
        ("[Bool]", [True], (True,)),
        ("Vector(2)", [1, 0.5], (1.0, 0.5)),
        ("Vector(2)?", None, None),
        ("[String]?", None, None),
    ],
)
def test_accepted_values(kind: str, value: object, bound: PlainValue) -> None:
    result = bind_one(kind, value)
    assert result == bound
    assert type(result) is type(bound)


@pytest.mark.parametrize(
    ("kind", "value", "message"),
    [
        ("String", 3, "expected a text, got 3"),
        ("String", True, "expected a text, got true"),
        ("String", ["a"], "expected a text, got an array"),
        ("String", {"a": 1}, "expected a text, got an object"),
        pytest.param("String", "\ud800", "surrogate", id="half a surrogate pair"),
        ("Blob", 3, "expected a text"),
        ("Bool", 1, "expected true or false, got 1"),
        ("Bool", "true", "expected true or false"),
        pytest.param("I32", True, "expected an integer, got true", id="a boolean is not an integer"),
        pytest.param("I32", 3.0, "expected an integer, got 3.0", id="a float is not an integer"),
        ("I32", 2.5, "expected an integer"),
        ("I32", "2.5", "expected an integer"),
        ("I32", "", "expected an integer"),
        ("I32", " 3", "expected an integer"),
        ("I32", "+3", "expected an integer"),
        ("I32", "3e2", "expected an integer"),
        ("I32", "0x10", "expected an integer"),
        ("I32", "٣", "expected an integer"),
        ("I32", 2**31, "outside the range of I32"),
        ("I32", str(-(2**31) - 1), "outside the range of I32"),
        ("I64", 2**63, "outside the range of I64"),
        pytest.param("I64", "9" * 100_000, "100000 digits", id="very many digits"),
        pytest.param("I64", 10**10_000, "bits", id="a very large integer"),
        ("U32", -1, "outside the range of U32"),
        ("U32", "-1", "outside the range of U32"),
        ("U32", 2**32, "outside the range of U32"),
        ("U64", -1, "outside the range of U64"),
        ("F64", "1.5", "expected a number"),
        ("F64", False, "expected a number"),
        ("F64", math.nan, "finite"),
        ("F64", math.inf, "finite"),
        pytest.param("F64", 10**400, "outside the range of F64", id="an integer beyond F64"),
        ("F32", 1e39, "outside the range of F32"),
        ("F32", -math.inf, "finite"),
        ("Date", "2024-02-30", "not a day of the calendar"),
        ("Date", "2024-06-01T00:00:00Z", "not a date"),
        ("Date", 19875, "expected a text"),
        ("DateTime", "2024-06-01", "not a date and time"),
        ("DateTime", "2024-06-01T12:00:00.0001Z", "finer than a millisecond"),
        ("DateTime", 0, "expected a text"),
        ("[I32]", 3, "expected an array"),
        ("[I32]", [1, None], "null is not accepted"),
        ("[I32]", [1, True], "expected an integer"),
        ("[I32]", [[1]], "expected an integer, got an array"),
        ("[Date]", ["soon"], "not a date"),
        ("Vector(3)", [1, 2, 3, 4], "expected 3 values, got 4"),
        ("Vector(3)", "abc", "expected an array"),
        ("Vector(2)", [1, "2"], "elements must be numeric"),
        ("Vector(2)", [1, None], "elements must be numeric"),
        ("Vector(2)", [1, True], "elements must be numeric"),
        ("Vector(2)", [1, math.nan], "finite"),
        ("Vector(2)", [1, 1e39], "outside the range of F32"),
        pytest.param("I32", object(), "expected an integer, got a object", id="not JSON"),
    ],
)
def test_refused_values(kind: str, value: object, message: str) -> None:
    with pytest.raises(BadRequest) as caught:
        bind_one(kind, value)
    assert message in caught.value.message
    assert "'x'" in caught.value.message
    assert len(caught.value.message) < 250


@pytest.mark.parametrize(
    ("kind", "items", "problem"),
    [
        ("[String]", ["a", "\ud800"], "half of a surrogate pair"),
        ("[String]", ["\ud83d", "\ude00"], "half of a surrogate pair"),
        ("[String]", ["a", 1], "expected a text, got 1"),
        ("[String]", ["a", None], "null is not accepted as an element"),
        ("[I32]", [1, True], "expected an integer, got true"),
        ("[I32]", [1, 2**31], "outside the range of I32"),
        ("[I32]", [-(2**31) - 1, 1], "outside the range of I32"),
        ("[I64]", [1, 2.0], "expected an integer"),
    ],
)
def test_one_bad_element_among_plain_ones_is_found(kind: str, items: list[object], problem: str) -> None:
    with pytest.raises(BadRequest, match=problem):
        bind_one(kind, [*items[:1] * 1000, *items[1:]])


def test_long_lists_are_taken_as_they_are() -> None:
    assert bind_one("[String]", ["a", "ü", ""] * 1000) == ("a", "ü", "") * 1000
    assert bind_one("[I32]", [-(2**31), 2**31 - 1] * 1000) == (-(2**31), 2**31 - 1) * 1000
    assert bind_one("[I64]", ["9007199254740993", 1]) == (9007199254740993, 1)
