"""`omnigraph query` and `omnigraph explain`: the formats, and what can go wrong."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

import omnigraph as og
from omnigraph.query.result import TableStyle, table_lines
from tests.cli.calling import Outcome, call, spawn

Capsys = pytest.CaptureFixture[str]

READS = """\
query staff() { match { $s: Staff } return { $s.handle, $s.level as lvl } order { $s.handle } }
query above($n: I32) { match { $s: Staff $s.level > $n } return { $s.handle } order { $s.handle } }
"""


@pytest.fixture
def reads(org: Path) -> Path:
    (org / "r.gq").write_text(READS)
    return org


def query(capsys: Capsys, *arguments: str) -> Outcome:
    return call(capsys, "query", "--store", "org.omni", "--query", "r.gq", *arguments)


def head() -> str:
    return og.open("org.omni", "ro").head().id


# --- formats ----------------------------------------------------------------------------------------------------------


def test_table_is_the_default(capsys: Capsys, reads: Path) -> None:
    outcome = query(capsys, "staff")
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.splitlines() == [
        "4 rows from branch main via staff",
        "s.handle | lvl",
        "---------+----",
        "ada      | 30",
        "ben      | 25",
        "cleo     | 35",
        "dov      | 28",
    ]


def test_a_table_without_rows_has_its_header(capsys: Capsys, reads: Path) -> None:
    outcome = query(capsys, "above", "--params", '{"n": 99}')
    assert outcome.out == "0 rows from branch main via above\ns.handle\n--------\n"


def test_json(capsys: Capsys, reads: Path) -> None:
    expected = {
        "query_name": "above",
        "target": {"branch": "main", "snapshot": None},
        "row_count": 2,
        "columns": ["s.handle"],
        "rows": [{"s.handle": "ada"}, {"s.handle": "cleo"}],
        "graph_commit_id": head(),
    }
    for flags in (("--json",), ("--format", "json"), ("--format", "csv", "--json")):
        outcome = query(capsys, "above", "--params", '{"n": 28}', *flags)
        assert outcome.code == 0
        assert outcome.out == json.dumps(expected, indent=2) + "\n"


def test_jsonl(capsys: Capsys, reads: Path) -> None:
    lines = query(capsys, "above", "--params", '{"n": 28}', "--format", "jsonl").out.splitlines()
    assert [json.loads(line) for line in lines] == [
        {"kind": "metadata", "query_name": "above", "target": {"branch": "main", "snapshot": None}, "row_count": 2},
        {"s.handle": "ada"},
        {"s.handle": "cleo"},
    ]


def test_kv(capsys: Capsys, reads: Path) -> None:
    assert query(capsys, "above", "--params", '{"n": 28}', "--format", "kv").out.splitlines() == [
        "2 rows from branch main via above",
        "row 1",
        "s.handle: ada",
        "",
        "row 2",
        "s.handle: cleo",
    ]
    outcome = query(capsys, "above", "--params", '{"n": 99}', "--format", "kv")
    assert outcome.out == "0 rows from branch main via above\n(no rows)\n"


def test_arrow(capsysbinary: pytest.CaptureFixture[bytes], reads: Path) -> None:
    from omnigraph.cli.main import run

    assert run(["query", "staff", "--query", "r.gq", "--store", "org.omni", "--format", "arrow"]) == 0
    table = pa.ipc.open_stream(capsysbinary.readouterr().out).read_all()
    assert table.to_pydict() == {"s.handle": ["ada", "ben", "cleo", "dov"], "lvl": [30, 25, 35, 28]}


def test_arrow_is_not_for_terminals(reads: Path) -> None:
    ours, theirs = pty.openpty()
    arguments = ["query", "staff", "--query", "r.gq", "--store", "org.omni", "--format", "arrow"]
    done = subprocess.run(
        [sys.executable, "-m", "omnigraph", *arguments], stdout=theirs, stderr=subprocess.PIPE, text=True, check=False
    )
    os.close(ours)
    os.close(theirs)
    assert done.returncode == 1
    assert "the format arrow is binary" in done.stderr


ODD = """node Odd {
  k: String @key
  text: String?
  tags: [String]?
  day: Date?
  at: DateTime?
  big: I64?
  real: F64?
  yes: Bool?
}
"""
ODD_ROWS = """query load() {
  insert Odd {
    k: "1" text: "a,b" tags: ["x", "y"] day: date("2026-07-09") at: datetime("2026-04-01T08:30:00Z")
    big: 9007199254740993 real: 1.5 yes: true
  }
  insert Odd { k: "2" text: "say \\"hi\\"\\nthere" }
}"""
ODD_READ = """query odd() {
  match { $o: Odd }
  return { $o.text, $o.tags, $o.day, $o.at, $o.big, $o.real, $o.yes }
  order { $o.k }
}"""


@pytest.fixture
def odd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A graph whose values need care."""
    og.init(tmp_path / "odd.omni", ODD).mutate(ODD_ROWS)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_csv(capsys: Capsys, odd: Path) -> None:
    outcome = call(capsys, "query", "-e", ODD_READ, "--store", "odd.omni", "--format", "csv")
    assert outcome.code == 0
    assert outcome.out == (
        "o.text,o.tags,o.day,o.at,o.big,o.real,o.yes\n"
        '"a,b","[""x"",""y""]",2026-07-09,2026-04-01T08:30:00.000Z,9007199254740993,1.5,true\n'
        '"say ""hi""\nthere",null,null,null,null,null,null\n'
    )


def test_values_in_a_table_stay_on_their_line(capsys: Capsys, odd: Path) -> None:
    outcome = call(capsys, "query", "-e", ODD_READ, "--store", "odd.omni")
    assert outcome.out.splitlines()[-1].startswith('say "hi"\\nthere | null')


def test_values_in_json(capsys: Capsys, odd: Path) -> None:
    row = json.loads(call(capsys, "query", "-e", ODD_READ, "--store", "odd.omni", "--json").out)["rows"][0]
    assert (row["o.at"], row["o.day"], row["o.big"]) == ("2026-04-01T08:30:00.000Z", "2026-07-09", 9007199254740993)


@pytest.mark.parametrize(
    ("columns", "rows", "style", "lines"),
    [
        pytest.param([], [], TableStyle(), [], id="no-columns"),
        pytest.param(["a"], [["x" * 81]], TableStyle(), ["a", "-" * 80, "x" * 79 + "…"], id="cut"),
        pytest.param(["a"], [["x" * 80]], TableStyle(), ["a", "-" * 80, "x" * 80], id="just-fits"),
        pytest.param(
            ["a", "b"],
            [["abcdefg", "1"]],
            TableStyle(3, "wrap"),
            ["a   | b", "----+--", "abc | 1", "def |", "g   |"],
            id="wrap",
        ),
        pytest.param(["a", "b"], [["日本", "1"]], TableStyle(), ["a    | b", "-----+--", "日本 | 1"], id="wide"),
        pytest.param(["a"], [["日本語"]], TableStyle(5), ["a", "-----", "日本…"], id="wide-cut"),
        pytest.param(["a"], [["日本"]], TableStyle(1, "wrap"), ["a", "--", "日", "本"], id="wider-than-the-column"),
        pytest.param(["a", "b"], [["e\u0301", "1"]], TableStyle(), ["a | b", "--+--", "e\u0301 | 1"], id="combining"),
        pytest.param(["a"], [["\x1b[31m\t"]], TableStyle(), ["a", "-" * 10, "\\x1b[31m\\t"], id="control"),
    ],
)
def test_tables(columns: list[str], rows: list[list[str]], style: TableStyle, lines: list[str]) -> None:
    assert list(table_lines(columns, rows, style)) == [line.rstrip() for line in lines]


def test_the_configuration_chooses(capsys: Capsys, reads: Path, home: Path) -> None:
    (home / "config.yaml").write_text(
        "defaults: { output: kv, table_max_column_width: 2, table_cell_layout: wrap }\n"
        f"profiles: {{ p: {{ store: {reads}/org.omni, output: csv }} }}"
    )
    assert query(capsys, "staff").out.splitlines()[1] == "row 1"
    assert query(capsys, "staff", "--format", "table").out.splitlines()[-2:] == ["do | 28", "v  |"]
    assert call(capsys, "query", "staff", "--query=r.gq", "--profile=p").out.splitlines()[0] == "s.handle,lvl"


# --- where it is asked ------------------------------------------------------------------------------------------------


def test_branch_and_snapshot(capsys: Capsys, reads: Path) -> None:
    graph, before = og.open("org.omni"), head()
    graph.create_branch("b")
    graph.mutate('query q() { insert Staff { handle: "eve" } }', branch="b")
    graph.mutate('query q() { delete Staff where handle = "dov" }')
    assert query(capsys, "staff", "--branch", "b").out.startswith("5 rows from branch b via staff\n")
    assert query(capsys, "staff").out.startswith("3 rows from branch main via staff\n")
    outcome = query(capsys, "staff", "--snapshot", before)
    assert outcome.out.startswith(f"4 rows from snapshot {before} via staff\n")
    shown = json.loads(query(capsys, "staff", "--snapshot", before, "--json").out)
    assert (shown["target"], shown["graph_commit_id"]) == ({"branch": None, "snapshot": before}, before)


def test_as_a_process(reads: Path) -> None:
    done = spawn("query", "above", "--query=r.gq", "--params", '{"n": 30}', "--store", "org.omni", "--format=csv")
    assert (done.returncode, done.stdout, done.stderr) == (0, "s.handle\ncleo\n", "")


def test_the_old_name_warns(capsys: Capsys, reads: Path) -> None:
    outcome = call(capsys, "read", "staff", "--query", "r.gq", "--store", "org.omni")
    assert (outcome.code, outcome.err) == (0, "warning: `omnigraph read` is now `omnigraph query`\n")


# --- failures ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param(("--query", "r.gq"), "query file contains multiple queries; pass --name", id="several"),
        pytest.param(("staff",), "by-name invocation needs a server", id="stored"),
        pytest.param(("-e", ""), "must not be empty", id="empty"),
        pytest.param(("--query", "load.gq"), "contains mutations", id="a-mutation"),
        pytest.param(("above", "--query", "r.gq"), "parameter 'n' not provided", id="no-params"),
        pytest.param(("above", "--query", "r.gq", "--params", '{"n": "x"}'), "parameter 'n'", id="wrong-type"),
        pytest.param(("staff", "--query", "r.gq", "--branch", "no"), "branch 'no' not found", id="unknown-branch"),
        pytest.param(
            ("staff", "--query", "r.gq", "--snapshot", "01ARZ3NDEKTSV4RRFFQ69G5FAV"), "not found", id="unknown-commit"
        ),
    ],
)
@pytest.mark.parametrize("command", ["query", "explain"])
def test_failures(capsys: Capsys, reads: Path, command: str, arguments: tuple[str, ...], message: str) -> None:
    outcome = call(capsys, command, "--store", "org.omni", *arguments)
    assert (outcome.code, outcome.out) == (1, "")
    assert outcome.err.startswith("Error: ")
    assert message in outcome.err


@pytest.mark.parametrize(
    "arguments",
    [("--branch", "a", "--snapshot", "b"), ("--format", "xml"), ("--branch", ""), ("staff", "extra")],
    ids=" ".join,
)
def test_usage(capsys: Capsys, reads: Path, arguments: tuple[str, ...]) -> None:
    assert query(capsys, "staff", *arguments).code == 2


def test_a_typo_is_pointed_at(capsys: Capsys, reads: Path) -> None:
    (reads / "r.gq").write_text("query q() {\n  match { $s: Staff $s.levle > 3 }\n  return { $s.handle }\n}\n")
    first, source_line, caret = query(capsys).err.splitlines()
    assert first == "Error: r.gq:2:21: type error: T6: no property `levle` on Staff; did you mean `level`?"
    assert (source_line, caret) == ("  2 |   match { $s: Staff $s.levle > 3 }", "    |                     ^")


# --- explain ----------------------------------------------------------------------------------------------------------


def test_bounds_of_a_query(capsys: Capsys, reads: Path) -> None:
    assert query(capsys, "staff", "--timeout", "60", "--memory-limit", "64MiB").code == 0
    refused = query(capsys, "staff", "--memory-limit", "much")
    assert refused.code != 0
    assert "memory_limit is a number of bytes such as 536870912 or 512MiB, not 'much'" in refused.err
    late = query(capsys, "staff", "--timeout", "0.000001")
    assert late.code != 0
    assert "the query did not end within 1e-06 s" in late.err


def test_explain(capsys: Capsys, reads: Path) -> None:
    outcome = call(capsys, "explain", "staff", "--query", "r.gq", "--store", "org.omni")
    assert (outcome.code, outcome.err) == (0, "")
    assert "NodeScan" in outcome.out
    assert " ms" not in outcome.out


def test_explain_analyze_as_json(capsys: Capsys, reads: Path) -> None:
    outcome = call(capsys, "explain", "staff", "--query", "r.gq", "--store", "org.omni", "--analyze", "--json")
    shown = json.loads(outcome.out)
    assert (shown["query_name"], shown["analyzed"]) == ("staff", True)
    assert "4 rows" in shown["steps"]


def test_a_query_may_come_from_standard_input(org: Path) -> None:
    text = "query q($c: String) {\n  match { $t: Team { code: $c } }\n  return { $t.%s }\n}"
    arguments = ("query", "--store", "org.omni", "--query", "-", "--params", '{"c": "core"}', "--format", "csv")
    done = spawn(*arguments, cwd=org, input=text % "code")
    assert (done.returncode, done.stdout, done.stderr) == (0, "t.code\ncore\n", "")
    done = spawn(*arguments, cwd=org, input=text % "cod")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(
        "Error: <stdin>:3:12: type error: T6: no property `cod` on Team; did you mean `code`?\n"
    )


def test_a_query_name_with_a_typo(capsys: pytest.CaptureFixture[str], org: Path) -> None:
    outcome = call(capsys, "mutate", "--store", "org.omni", "--query", "w.gq", "relevl")
    assert (outcome.code, outcome.err) == (1, "Error: query 'relevl' not found; did you mean `relevel`?\n")
