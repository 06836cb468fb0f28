"""Where names stand: the span of a name holds exactly the name."""

from __future__ import annotations

import pytest

from omnigraph.errors import BadRequest
from omnigraph.language.query.names import query_names
from omnigraph.language.query.parser import parse_query_file
from omnigraph.language.renaming import applied, rename_in_query
from omnigraph.language.schema.build import compile_schema
from omnigraph.language.schema.names import schema_names
from tests.language.fuzzing import QUERIES, SCHEMAS

CATALOG = compile_schema("\n".join(SCHEMAS))
TRICKY = (
    "query y() { match { $s: Staff } return { $s } }",
    "query query() { match { $s: Staff } return { $s } }",
    'queryq(){insertStaff{handle:"a"}}',
)


@pytest.mark.parametrize("text", [*QUERIES, *TRICKY])
def test_names_of_queries(text: str) -> None:
    found = query_names(parse_query_file(text), CATALOG)
    for name in found:
        spelt = text[name.span.start : name.span.end].removeprefix("$")
        assert spelt == name.name or (name.kind == "edge" and spelt.lower() == name.name.lower())
    assert [name.name for name in found if name.kind == "query"] == [q.name for q in parse_query_file(text).queries]


@pytest.mark.parametrize(
    "text", [*SCHEMAS, "interface A { a: I32 } interface BA { b: I32 } node N implements BA, A { n: I32 }"]
)
def test_names_of_schemas(text: str) -> None:
    for name in schema_names(text):
        assert text[name.span.start : name.span.end] == name.name


@pytest.mark.parametrize(
    ("text", "at", "new", "expected"),
    [
        (TRICKY[0], "y()", "z", TRICKY[0].replace("y()", "z()")),
        (
            'match { $s: Staff } with { $s.note as n, count(*) as c } where n != "" return { $n, $c as m } order { m }',
            "$n,",
            "text",
            'match { $s: Staff } with { $s.note as text, count(*) as c } where text != "" return { $text, $c as m } order { m }',
        ),
        (
            "query q($n: I64) { match { $s: Staff } return { count($s) as n } limit $n }",
            "$n:",
            "most",
            "query q($most: I64) { match { $s: Staff } return { count($s) as n } limit $most }",
        ),
    ],
)
def test_renames(text: str, at: str, new: str, expected: str) -> None:
    edits = rename_in_query(text, text.index(at) + 1 if at.startswith("$") else text.index(at), new, CATALOG)
    assert applied(text, edits) == expected


def test_a_rename_to_a_name_that_is_taken_is_refused() -> None:
    with pytest.raises(BadRequest, match="taken"):
        rename_in_query(QUERIES[0], QUERIES[0].index("$s:") + 1, "h", CATALOG)
