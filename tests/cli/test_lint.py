"""`omnigraph lint`: what people and programs get to see, and the exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.calling import Outcome, call, spawn

SCHEMA = """\
node Staff { handle: String @key level: I32? note: String? }
edge Mentors: Staff -> Staff
"""
GOOD = """\
query one($h: String) { match { $s: Staff { handle: $h } } return { $s.handle, $s.level } }
query put($h: String) { insert Staff { handle: $h } }
"""
BAD = """\
query typo() {
  match { $s: Staff $s.levle > 3 }
  return { $s.handle }
}
query one() { match { $s: Staff } return { $s.handle } }
query relevel() { update Staff set { level: 3 } where handle = "b" }
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a schema, into which the test goes."""
    (tmp_path / "s.pg").write_text(SCHEMA)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def lint(capsys: pytest.CaptureFixture[str], queries: str, *flags: str) -> Outcome:
    Path("q.gq").write_text(queries)
    return call(capsys, "lint", "--schema", "s.pg", "--query", "q.gq", *flags)


def test_good_queries(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    outcome = lint(capsys, GOOD)
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.splitlines() == [
        "OK    query `one` (read)",
        "OK    query `put` (mutation)",
        "INFO  Lint complete: 2 queries processed (0 error(s), 0 warning(s), 0 info item(s))",
    ]


def test_a_query_without_a_name(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    outcome = lint(capsys, 'update Staff set { level: 3, note: null } where handle = "b"')
    assert (outcome.code, outcome.out.splitlines()[0]) == (0, "OK    query (mutation)")
    assert "WARN" not in outcome.out
    outcome = lint(capsys, "match { $s: Staff\n  $s.handle = $who } return { $s.level }")
    assert outcome.out.splitlines()[:3] == [
        "ERROR query: q.gq:2:15: type error: variable `$who` is not bound; bind it in `match`, or give a parameter `who`",
        "  2 |   $s.handle = $who } return { $s.level }",
        "    |               ^",
    ]
    report = json.loads(lint(capsys, "match { $s: Staff } return { $s.level }", "--json").out)
    assert [(found["name"], found["kind"]) for found in report["results"]] == [("", "read")]


def test_every_query_is_reported_and_errors_have_a_caret(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    outcome = lint(capsys, BAD)
    assert (outcome.code, outcome.err) == (1, "")
    error, source_line, caret, *rest = outcome.out.splitlines()
    assert error == (
        "ERROR query `typo`: q.gq:2:21: type error: T6: no property `levle` on Staff; did you mean `level`?"
    )
    assert source_line == "  2 |   match { $s: Staff $s.levle > 3 }"
    assert caret == "    |                     ^"
    assert rest[:2] == ["OK    query `one` (read)", "OK    query `relevel` (mutation)"]
    warnings = rest[2:-1]
    assert all(line.startswith("WARN  ") for line in warnings)
    assert any("`relevel`: mutation declares no parameters" in line for line in warnings)
    assert any("Staff.note is nullable" in line for line in warnings)
    assert rest[-1] == "INFO  Lint complete: 3 queries processed (1 error(s), 2 warning(s), 0 info item(s))"


def test_warnings_alone_are_no_failure(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    outcome = lint(capsys, 'query relevel() { update Staff set { level: 3 } where handle = "b" }')
    assert outcome.code == 0
    assert "WARN  " in outcome.out


def test_a_file_that_does_not_parse(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    outcome = lint(capsys, "query q() {\n  macth { $s: Staff } }\n")
    assert (outcome.code, outcome.err) == (1, "")
    error, source_line, caret, summary = outcome.out.splitlines()
    assert error.startswith("ERROR q.gq:2:3: parse error: expected `match`")
    assert error.endswith("did you mean `match`?")
    assert (source_line, caret) == ("  2 |   macth { $s: Staff } }", "    |   ^")
    assert summary == "INFO  Lint complete: 0 queries processed (1 error(s), 0 warning(s), 0 info item(s))"


def test_an_empty_file_is_fine(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    outcome = lint(capsys, "// nothing yet\n")
    assert (outcome.code, len(outcome.out.splitlines())) == (0, 1)


def test_json_for_good_queries(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    outcome = lint(capsys, GOOD, "--json")
    assert (outcome.code, outcome.err) == (0, "")
    report = json.loads(outcome.out)
    assert outcome.out == json.dumps(report, indent=2, ensure_ascii=False) + "\n"
    operations = [result.pop("operation") for result in report["results"]]
    assert report == {
        "status": "ok",
        "schema_source": {"kind": "file", "path": "s.pg"},
        "query_path": "q.gq",
        "queries_processed": 2,
        "errors": 0,
        "warnings": 0,
        "infos": 0,
        "results": [
            {"name": "one", "kind": "read", "status": "ok"},
            {"name": "put", "kind": "mutation", "status": "ok"},
        ],
        "findings": [],
    }
    staff = {"kind": "node", "type_name": "Staff"}
    assert operations == [
        {
            "name": "one",
            "kind": "read",
            "params": [{"name": "h", "kind": "string", "nullable": False}],
            "result": [
                {"name": "s.handle", "kind": "string", "nullable": False},
                {"name": "s.level", "kind": "int", "nullable": True},
            ],
            "reads": [staff],
            "writes": [],
        },
        {
            "name": "put",
            "kind": "mutation",
            "params": [{"name": "h", "kind": "string", "nullable": False}],
            "result": [],
            "reads": [],
            "writes": [staff],
        },
    ]


def test_json_for_bad_queries(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    outcome = lint(capsys, BAD, "--json")
    assert (outcome.code, outcome.err) == (1, "")
    report = json.loads(outcome.out)
    assert (report["status"], report["errors"], report["warnings"], report["infos"]) == ("error", 1, 2, 0)
    typo, one, relevel = report["results"]
    assert typo["error"] == "type error: T6: no property `levle` on Staff; did you mean `level`?"
    assert (typo["status"], "operation" in typo) == ("error", False)
    assert (one["status"], "error" in one, "warnings" in one) == ("ok", False, False)
    assert len(relevel["warnings"]) == 1
    (finding,) = report["findings"]
    assert {key: finding[key] for key in ("severity", "code", "type_name", "property", "query_names")} == {
        "severity": "warning",
        "code": "L201",
        "type_name": "Staff",
        "property": "note",
        "query_names": ["relevel"],
    }


def test_json_for_a_file_that_does_not_parse(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    outcome = lint(capsys, "nonsense", "--json")
    report = json.loads(outcome.out)
    assert (outcome.code, report["status"], report["queries_processed"], report["errors"]) == (1, "error", 0, 1)
    assert [finding["code"] for finding in report["findings"]] == ["Q000"]


def test_a_bad_schema_is_a_failure_of_the_command(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    (folder / "s.pg").write_text("node Staff { handle: Strin }")
    outcome = lint(capsys, GOOD, "--json")
    assert (outcome.code, outcome.out) == (1, "")
    assert outcome.err.startswith("Error: s.pg:1:22: parse error: ")
    assert "did you mean `String`?" in outcome.err


@pytest.mark.parametrize(
    ("schema", "query", "missing"),
    [("nowhere.pg", "q.gq", "nowhere.pg"), ("s.pg", "nowhere.gq", "nowhere.gq")],
    ids=["schema", "query"],
)
def test_missing_files(capsys: pytest.CaptureFixture[str], folder: Path, schema: str, query: str, missing: str) -> None:
    (folder / "q.gq").write_text(GOOD)
    outcome = call(capsys, "lint", "--schema", schema, "--query", query)
    assert (outcome.code, outcome.err) == (1, f"Error: cannot read '{missing}': No such file or directory\n")


def test_the_same_as_a_process(folder: Path) -> None:
    (folder / "q.gq").write_text(BAD)
    done = spawn("lint", "--schema", "s.pg", "--query", "q.gq", cwd=folder)
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.splitlines()[-1].startswith("INFO  Lint complete: 3 queries processed")


def test_lint_loads_no_storage(folder: Path) -> None:
    (folder / "q.gq").write_text(GOOD)
    done = spawn("lint", "--schema", "s.pg", "--query", "q.gq", cwd=folder, env={"PYTHONPROFILEIMPORTTIME": "1"})
    assert done.returncode == 0
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "omnigraph.language.query.lint" in loaded
    assert not loaded & {"pyarrow", "lance", "obstore", "pygments"}


# --- against a graph --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("address", [("org.omni",), ("--store", "org.omni")], ids=" ".join)
def test_against_the_schema_of_a_graph(capsys: pytest.CaptureFixture[str], org: Path, address: tuple[str, ...]) -> None:
    outcome = call(capsys, "lint", *address, "--query", "w.gq", "--json")
    report = json.loads(outcome.out)
    assert (outcome.code, report["status"]) == (0, "ok")
    assert report["schema_source"] == {"kind": "graph", "uri": "org.omni"}
    (org / "w.gq").write_text(BAD)
    outcome = call(capsys, "lint", *address, "--query", "w.gq")
    assert outcome.code == 1
    assert outcome.out.startswith("ERROR query `typo`: w.gq:2:21: type error: T6: ")


@pytest.mark.parametrize("address", [("org.omni",), ("--store", "org.omni"), ("--profile", "p")], ids=" ".join)
def test_a_schema_file_and_a_graph_exclude_each_other(
    capsys: pytest.CaptureFixture[str], org: Path, address: tuple[str, ...]
) -> None:
    outcome = call(capsys, "lint", *address, "--query", "w.gq", "--schema", "s.pg")
    assert (outcome.code, outcome.out) == (2, "")
    assert "exclude each other" in outcome.err


def test_nothing_to_check_against(capsys: pytest.CaptureFixture[str], org: Path) -> None:
    assert "no graph addressed" in call(capsys, "lint", "--query", "w.gq").err
