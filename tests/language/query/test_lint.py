"""Linting: every problem of a file, and the JSON of cli.md section 5."""

from __future__ import annotations

import pytest

from omnigraph.errors import ParseError, TypecheckError
from omnigraph.language.query.lint import LintReport, lint_queries
from omnigraph.language.schema.build import compile_schema
from omnigraph.language.schema.catalog import Catalog
from tests.language.query.catalogs import DOC, ORG

READ = "query r() { match { $s: Staff } return { $s.handle } }"
PUT = "query put($h: String) { insert Staff { handle: $h } }"
RELEVEL = "query relevel($h: String, $n: I32) { update Staff set { level: $n } where handle = $h }"

PEOPLE = compile_schema("""
node Person { name: String @key nick: String? age: I32? bio: String? emb: Vector(2)? @embed(bio) need: I32 }
node City { name: String @key size: I32? }
edge Knows: Person -> Person { since: Date? }
""")


def codes(report: LintReport) -> list[str | None]:
    return [finding.code for finding in report.all_findings()]


def test_a_clean_file() -> None:
    report = lint_queries(f"{READ} {PUT} {RELEVEL}", ORG)
    assert codes(report) == []
    assert report.to_dict() == {
        "status": "ok",
        "queries_processed": 3,
        "errors": 0,
        "warnings": 0,
        "infos": 0,
        "results": [
            {
                "name": "r",
                "kind": "read",
                "status": "ok",
                "operation": {
                    "name": "r",
                    "kind": "read",
                    "params": [],
                    "result": [{"name": "s.handle", "kind": "string", "nullable": False}],
                    "reads": [{"kind": "node", "type_name": "Staff"}],
                    "writes": [],
                },
            },
            {
                "name": "put",
                "kind": "mutation",
                "status": "ok",
                "operation": {
                    "name": "put",
                    "kind": "mutation",
                    "params": [{"name": "h", "kind": "string", "nullable": False}],
                    "result": [],
                    "reads": [],
                    "writes": [{"kind": "node", "type_name": "Staff"}],
                },
            },
            {
                "name": "relevel",
                "kind": "mutation",
                "status": "ok",
                "operation": {
                    "name": "relevel",
                    "kind": "mutation",
                    "params": [
                        {"name": "h", "kind": "string", "nullable": False},
                        {"name": "n", "kind": "int", "nullable": False},
                    ],
                    "result": [],
                    "reads": [{"kind": "node", "type_name": "Staff"}],
                    "writes": [{"kind": "node", "type_name": "Staff"}],
                },
            },
        ],
        "findings": [],
    }


def test_an_empty_file() -> None:
    report = lint_queries("// nothing yet", ORG)
    assert (report.status, report.results, report.findings) == ("ok", (), ())


def test_a_file_that_does_not_parse() -> None:
    report = lint_queries(f"{READ} query broken( {{", ORG, "q.gq")
    assert codes(report) == ["Q000"]
    assert report.results == ()
    found = report.to_dict()
    assert (found["status"], found["queries_processed"], found["errors"]) == ("error", 0, 1)
    assert found["findings"][0]["severity"] == "error"
    assert found["findings"][0]["message"].startswith("parse error: ")
    error = report.findings[0].error
    assert isinstance(error, ParseError)
    assert error.file == "q.gq"


def test_every_bad_query_is_reported() -> None:
    bad_property = "query a() { match { $s: Staff } return { $s.nope } }"
    bad_type = "query b($h: String) { delete Nobody where handle = $h }"
    uncoded = "query c() { match { $s: Staff } return { $zz } }"
    mixed = 'query d($h: String) { insert Staff { handle: $h } delete Staff where handle = "x" }'
    report = lint_queries("\n".join([bad_property, READ, bad_type, uncoded, mixed]), ORG, "q.gq")
    assert [result.to_dict()["status"] for result in report.results] == ["error", "ok", "error", "error", "error"]
    assert codes(report) == ["T6", "T10", None, None]
    found = report.to_dict()
    assert (found["status"], found["queries_processed"], found["errors"], found["warnings"]) == ("error", 5, 4, 0)
    assert found["results"][0] == {
        "name": "a",
        "kind": "read",
        "status": "error",
        "error": "type error: T6: no property `nope` on Staff",
    }
    assert "mixes inserts/updates and deletes" in found["results"][4]["error"]
    assert found["findings"] == []
    finding = report.results[0].error
    assert finding is not None
    assert finding.query_names == ("a",)
    assert isinstance(finding.error, TypecheckError)
    assert (finding.error.file, finding.error.line) == ("q.gq", 1)


def test_a_query_that_is_too_large_is_an_error_of_that_query() -> None:
    steps = " ".join(f"$s{number} mentors $s{number + 1}" for number in range(200))
    report = lint_queries(f"query a() {{ match {{ {steps} }} return {{ $s0 }} }} {READ}", ORG)
    assert [result.to_dict()["status"] for result in report.results] == ["error", "ok"]


@pytest.mark.parametrize(
    ("text", "warns"),
    [
        ('query q() { insert Staff { handle: "x" } }', True),
        ("query q($h: String) { insert Staff { handle: $h } }", False),
        ("query q() { match { $s: Staff } return { $s } }", False),
    ],
)
def test_a_mutation_without_parameters(text: str, warns: bool) -> None:
    report = lint_queries(text, ORG)
    result = report.to_dict()["results"][0]
    assert any("mutation declares no parameters" in warning for warning in result.get("warnings", [])) is warns
    assert report.count("warning") == int(warns)
    assert report.status == "ok"


def test_a_query_that_can_not_be_reached() -> None:
    report = lint_queries(f"{READ} {READ} {PUT}", ORG)
    assert codes(report) == ["L202"]
    assert report.results[0].warnings == ()
    assert "'r'" in report.results[1].warnings[0]


def update(assigned: str, name: str = "u", type_name: str = "Person") -> str:
    return f"query {name}($x: String) {{ update {type_name} set {{ {assigned} }} where name = $x }}"


@pytest.mark.parametrize(
    ("catalog", "text", "found"),
    [
        pytest.param(
            PEOPLE,
            update("nick: $x"),
            [("Person", "age", ("u",)), ("Person", "bio", ("u",))],
            id="nullable properties that no update sets",
        ),
        pytest.param(
            PEOPLE,
            update("nick: $x", "a") + update("bio: $x", "b") + update("age: 3", "c"),
            [],
            id="several updates together",
        ),
        pytest.param(
            PEOPLE,
            update("nick: $x, bio: $x", "a") + update("need: 1 nick: $x", "b"),
            [("Person", "age", ("a", "b"))],
            id="the update queries are named",
        ),
        pytest.param(
            PEOPLE,
            update("nick: $x age: 1 bio: $x") + "query p($x: String) { insert City { name: $x } }",
            [],
            id="a type that nothing updates is left alone",
        ),
        pytest.param(
            PEOPLE,
            update("nick: $x age: 1", "bad") + update("nope: $x", "worse"),
            [("Person", "bio", ("bad",))],
            id="queries with errors do not count",
        ),
        pytest.param(
            DOC,
            'query u($x: String) { update Doc set { slug: $x } where slug = "a" }',
            [("Doc", "body", ("u",))],
            id="embedded vectors do not count",
        ),
        pytest.param(ORG, RELEVEL, [], id="all set"),
    ],
)
def test_properties_never_updated(catalog: Catalog, text: str, found: list[tuple[str, str, tuple[str, ...]]]) -> None:
    report = lint_queries(text, catalog)
    findings = [finding for finding in report.findings if finding.code == "L201"]
    assert [(finding.type_name, finding.property, finding.query_names) for finding in findings] == found
    assert [finding.to_dict() for finding in findings] == [
        {
            "severity": "warning",
            "code": "L201",
            "message": f"{type_name}.{name} is nullable, but no update query sets it",
            "type_name": type_name,
            "property": name,
            "query_names": list(queries),
        }
        for type_name, name, queries in found
    ]
    assert report.to_dict()["warnings"] == len(found)
