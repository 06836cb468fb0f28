"""`omnigraph schema …`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from omnigraph.language.schema.accept import accept_schema
from omnigraph.language.schema.build import compile_schema
from tests.cli.calling import call

SCHEMA = "node Staff { handle: String @key }\nedge Mentors: Staff -> Staff\n"


def test_show_ir_prints_the_canonical_form(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "s.pg"
    path.write_text(SCHEMA)
    outcome = call(capsys, "schema", "show-ir", str(path))
    assert (outcome.code, outcome.err) == (0, "")
    assert json.loads(outcome.out) == json.loads(accept_schema(compile_schema(SCHEMA)).to_json())
    assert outcome.out == json.dumps(json.loads(outcome.out), indent=2, ensure_ascii=False) + "\n"


@pytest.mark.parametrize(
    ("text", "report"),
    [
        pytest.param(
            "node A { x: String }\nedge R: A -> B\n",
            ":2:1: catalog error: edge R has an unknown endpoint type `B`",
            id="catalog",
        ),
        pytest.param('node A {\n  x: I32 @check(x, "a")\n}\n', ":2:10: parse error: ", id="semantic"),
        pytest.param("node A { x: }", ":1:13: parse error: expected ", id="grammar"),
    ],
)
def test_show_ir_points_at_an_error(capsys: pytest.CaptureFixture[str], tmp_path: Path, text: str, report: str) -> None:
    path = tmp_path / "s.pg"
    path.write_text(text)
    outcome = call(capsys, "schema", "show-ir", str(path))
    assert (outcome.code, outcome.out) == (1, "")
    first, source_line, caret = outcome.err.splitlines()
    assert first.startswith(f"Error: {path}{report}")
    line, column = (int(number) for number in report.split(":")[1:3])
    assert source_line == f"  {line} | {text.splitlines()[line - 1]}"
    assert caret.index("^") == len(f"  {line} | ") + column - 1


@pytest.mark.parametrize("verb", ["show", "get"])
def test_show_prints_the_source(capsys: pytest.CaptureFixture[str], org: Path, verb: str) -> None:
    source = (org / "s.pg").read_text()
    outcome = call(capsys, "schema", verb, "org.omni")
    assert (outcome.code, outcome.out, outcome.err) == (0, source, "")
    outcome = call(capsys, "schema", verb, "--store", "org.omni", "--json")
    assert json.loads(outcome.out) == {"schema_source": source}


def test_show_without_a_graph(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    outcome = call(capsys, "schema", "show", str(tmp_path))
    assert (outcome.code, outcome.out) == (1, "")
    assert outcome.err == f"Error: there is no graph at {tmp_path}; create one with `omnigraph init`\n"
