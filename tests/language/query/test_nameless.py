"""Queries without a head: how they are parsed, what their parameters are typed as, where their errors point."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from omnigraph.errors import BadRequest, LanguageError, ParseError, TypecheckError
from omnigraph.language.query.compile import CompiledQuery, compile_query
from omnigraph.language.query.nameless import given_parameters, is_nameless, parameter_names
from omnigraph.language.query.parser import parse_query_file
from omnigraph.language.query.printer import print_query
from omnigraph.language.schema.build import compile_schema
from tests.language.query.catalogs import BOOKS, KINDS, ORG

EVERYONE = "match { $s: Staff } return { $s.handle }"
MUTATIONS = (
    'insert Staff { handle: "x" }',
    'upsert Staff { handle: "x", level: 3 }',
    'update Staff set { level: 3 } where handle = "x"',
    'delete Staff where handle = "x"',
)


def compiled(text: str, catalog: Any = ORG, **params: object) -> CompiledQuery:
    return compile_query(text, None, catalog, given=given_parameters(params))


@pytest.mark.parametrize("text", [EVERYONE, *MUTATIONS])
@pytest.mark.parametrize("around", ["{}", "  // first\n/* then */ {}", "{};", "{}\n;\n// end\n"])
def test_a_text_without_a_head_is_one_query_without_a_name(text: str, around: str) -> None:
    whole = around.replace("{}", text)
    (query,) = parse_query_file(whole).queries
    (named,) = parse_query_file(f"query q() {{ {text} }}").queries
    assert (query.name, query.params, query.body) == ("", (), named.body)
    assert whole[query.span.start : query.span.end] == text
    assert query.is_mutation == (text != EVERYONE)
    assert (query.title, named.title) == ("the query", "query 'q'")


@pytest.mark.parametrize("text", [EVERYONE, " ".join(MUTATIONS[:3])])
def test_it_prints_as_it_is(text: str) -> None:
    (query,) = parse_query_file(text).queries
    printed = print_query(query)
    assert parse_query_file(printed).queries == (query,)
    assert "query" not in printed


IN_A_LIST = "match { $s: Staff $s in $x } return { $s.handle }"


@pytest.mark.parametrize("names", [["ada"], [], ["2025-01-01"]])
def test_a_node_is_looked_for_in_a_list_that_is_given(names: list[str]) -> None:
    (query,) = parse_query_file(IN_A_LIST).queries
    assert "x" in parameter_names(query)
    found = compiled(IN_A_LIST, x=names)
    in_parentheses = compiled(IN_A_LIST.replace("$s in $x", "($s in $x)"), x=names)
    assert found.plan == in_parentheses.plan
    assert [param.name for param in found.query.params] == ["x"]


def test_a_list_that_nothing_gives() -> None:
    with pytest.raises(LanguageError) as caught:
        compiled(IN_A_LIST)
    assert "variable `$x` is not bound; bind it in `match`, or give a parameter `x`" in caught.value.message
    assert (caught.value.line, caught.value.column) == (1, IN_A_LIST.index("$x") + 1)


def test_an_edge_named_in_is_an_edge() -> None:
    catalog = compile_schema("node Staff { handle: String @key } edge In: Staff -> Staff")
    found = compiled(IN_A_LIST, catalog, x=["ada"])
    assert found.query.params == ()


def test_a_parameter_that_is_given_with_its_sign() -> None:
    with pytest.raises(LanguageError) as caught:
        compiled("match { $s: Staff { handle: $who } } return { $s.level }", **{"$who": "ada"})
    expected = "variable `$who` is not bound; leave out the `$` in the name of the parameter: `who`"
    assert expected in caught.value.message


@pytest.mark.parametrize(
    ("text", "expected"),
    [("match {}", True), ("// x\nmatch", True), ("query q() {}", False), ("/* query */ query q()", False), ("", True)],
)
def test_the_first_word_tells(text: str, expected: bool) -> None:
    assert is_nameless(text) is expected


@pytest.mark.parametrize(
    ("text", "message", "place"),
    [
        (f"{EVERYONE} query q() {{ {EVERYONE} }}", "the end of the text", (1, 42)),
        ("match { $s: Staff }\nreturn { $s.handle } }", "the end of the text", (2, 22)),
        ("macth { $s: Staff } return { $s.handle }", "did you mean `match`?", (1, 1)),
        ("inser Staff { }", "did you mean `insert`?", (1, 1)),
        ("\n  match { $s Staff } return { $s.handle }", "lower-case first letter", (2, 14)),
        ("nonsense", "expected `query`, `match`, `insert`, `upsert`, `update` or `delete`, found `nonsense`", (1, 1)),
    ],
)
def test_grammar_errors_are_at_their_place(text: str, message: str, place: tuple[int, int]) -> None:
    with pytest.raises(ParseError) as caught:
        parse_query_file(text, "q.gq")
    assert message in caught.value.message
    assert (caught.value.file, caught.value.line, caught.value.column) == ("q.gq", *place)


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ("x", "String"),
        (True, "Bool"),
        (3, "I64"),
        (1.5, "F64"),
        (np.int32(3), "I64"),
        (np.float32(3), "F64"),
        (Decimal("3"), "I64"),
        (Decimal("3.5"), "F64"),
        (date(2024, 1, 1), "Date"),
        (datetime(2024, 1, 1), "DateTime"),
        (np.datetime64("2024-01-01"), "Date"),
        (b"x", "Blob"),
        (None, "String?"),
        (["x"], "[String]"),
        ([True], "[Bool]"),
        ([1, 2], "[I64]"),
        ([1, 2.5], "[F64]"),
        (np.array([1.0]), "[F64]"),
        ([date(2024, 1, 1)], "[Date]"),
        ([], "[String]"),
    ],
)
def test_parameters_have_the_type_of_their_value(value: object, kind: str) -> None:
    assert str(given_parameters({"x": value})["x"].type) == kind


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"a": 1}, "parameter 'x': a JSON object is not a value"),
        ([1, "a"], "parameter 'x': a list holds one type, not I64 and String"),
        ([1, None], "parameter 'x': null is not accepted as an element"),
        ([[1]], "parameter 'x': an array is not a value of a parameter"),
        (object(), "parameter 'x': a object is not a value of a parameter"),
        ([float("nan")], "parameter 'x': expected a finite number, got nan"),
    ],
)
def test_values_that_no_parameter_can_have(value: object, message: str) -> None:
    with pytest.raises(BadRequest) as caught:
        given_parameters({"x": value})
    assert caught.value.message == message


def test_only_what_is_used_is_declared() -> None:
    found = compiled("match { $s: Staff $s.level > $n } return { $s.handle }", n=3, unused=1)
    assert [(param.name, str(param.type)) for param in found.query.params] == [("n", "I64")]


@pytest.mark.parametrize(
    ("text", "catalog", "value"),
    [
        pytest.param("match { $s: Staff $s.level = $x } return { $s }", ORG, None, id="null is like the literal"),
        pytest.param("match { $s: Staff $s.level in $x } return { $s }", ORG, [], id="an empty list of anything"),
        pytest.param("match { $s: Staff $s.level in $x } return { $s }", ORG, [1, 2], id="numbers"),
        pytest.param("match { $s: Staff } return { $s.handle } limit $x", ORG, None, id="no limit"),
        pytest.param("match { $s: Staff } return { $s.handle } limit $x", ORG, 3, id="a limit"),
        pytest.param("match { $k: Kind $k.day > $x } return { $k }", KINDS, "2024-01-01", id="a text that is a date"),
        pytest.param("match { $k: Kind $k.day in $x } return { $k }", KINDS, ["2024-01-01"], id="texts that are dates"),
        pytest.param("match { $k: Kind $k.day = $x } return { $k }", KINDS, date(2024, 1, 1), id="a date"),
        pytest.param("match { $k: Kind $k.at > $x } return { $k }", KINDS, "2024-01-01T00:00:00Z", id="a moment"),
        pytest.param(
            "match { $b: Book } return { $b } order { nearest($b.emb, $x) } limit 2", BOOKS, [1, 2, 3.5], id="a vector"
        ),
    ],
)
def test_where_a_value_stands_decides_its_type(text: str, catalog: Any, value: object) -> None:
    assert compiled(text, catalog, x=value).query.params[0].name == "x"


@pytest.mark.parametrize(
    ("text", "params", "message", "place"),
    [
        pytest.param(
            "match { $s: Staff\n  $s.level > $n }\nreturn { $s.handle }",
            {},
            "variable `$n` is not bound; bind it in `match`, or give a parameter `n`",
            (2, 14),
            id="not given",
        ),
        pytest.param(
            "match { $s: Staff $s.handle = $who } return { $s }",
            {"whom": "x"},
            "variable `$who` is not bound; is the parameter `whom` meant to be it?",
            (1, 31),
            id="misspelt",
        ),
        pytest.param(
            "match { $staff: Staff } return { $staf }",
            {},
            "variable `$staf` is not bound; did you mean `$staff`?",
            (1, 34),
            id="a variable misspelt",
        ),
        pytest.param(
            "insert Staff { handle: $h }", {}, "variable `$h` is not bound; bind it", (1, 24), id="of a mutation"
        ),
        pytest.param(
            "match { $s: Staff $s.level > $n } return { $s }", {"n": "x"}, "T7", (1, 19), id="of another type"
        ),
        pytest.param(
            "match { $s: Staff } return { $s } limit $n", {"n": "2024-01-01"}, "T28", (1, 41), id="no number of rows"
        ),
        pytest.param("match { $s: Staff\n\n $s.hadle = 1 } return { $s }", {}, "T6", (3, 2), id="line and column"),
    ],
)
def test_errors_are_at_their_place(text: str, params: dict[str, object], message: str, place: tuple[int, int]) -> None:
    with pytest.raises(TypecheckError) as caught:
        compiled(text, **params)
    assert message in caught.value.message
    assert (caught.value.line, caught.value.column) == place


def test_a_date_text_of_no_calendar_is_refused_at_its_variable() -> None:
    with pytest.raises(LanguageError) as caught:
        compiled("match { $k: Kind $k.at > $x } return { $k }", KINDS, x="2024-01-01")
    assert "is not a date and time" in caught.value.message
    assert (caught.value.line, caught.value.column) == (1, 26)


def test_names_that_a_query_could_use() -> None:
    (query,) = parse_query_file("match { $s: Staff $s.level > $n } return { $s, $m }").queries
    assert parameter_names(query) == {"n", "s", "m"}
    (named,) = parse_query_file("query q($a: I32) { match { $s: Staff } return { $s } }").queries
    assert parameter_names(named) == {"a"}
