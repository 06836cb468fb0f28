"""`--param`, and queries without a name, on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.calling import Outcome, call, spawn

Capsys = pytest.CaptureFixture[str]

ABOVE = "match { $s: Staff $s.level > $n } return { $s.handle } order { $s.handle }"
NAMED = f"query above($n: I32) {{ {ABOVE} }}"
BY_NAME = "match { $s: Staff { handle: $who } } return { $s.level }"


def query(capsys: Capsys, text: str, *arguments: str) -> Outcome:
    return call(capsys, "query", "--store", "org.omni", "--format", "csv", "-e", text, *arguments)


@pytest.mark.parametrize(
    ("text", "arguments", "rows"),
    [
        (NAMED, ("--param", "n:=28"), "s.handle\nada\ncleo\n"),
        (NAMED, ("--param", "n=28"), "s.handle\nada\ncleo\n"),
        (ABOVE, ("--param", "n:=28"), "s.handle\nada\ncleo\n"),
        (ABOVE, ("--param", "n:=28.5"), "s.handle\nada\ncleo\n"),
        (ABOVE, ("--params", '{"n": 28}'), "s.handle\nada\ncleo\n"),
        (ABOVE, ("--param", "n:=null"), "s.handle\n"),
        (BY_NAME, ("--param", "who=ada"), "s.level\n30\n"),
        (BY_NAME, ("--param", "$who=ada"), "s.level\n30\n"),
        (BY_NAME, ("--param", 'who:="ada"'), "s.level\n30\n"),
        (BY_NAME, ("--param", "who=a=b"), "s.level\n"),
        (BY_NAME, ("--param", "who="), "s.level\n"),
        (
            "match { $s: Staff $s.handle in $who and $s.level > $n } return { $s.level }",
            ("--param", 'who:=["ada", "ben"]', "--param", "n:=26"),
            "s.level\n30\n",
        ),
        (f"{ABOVE};", ("--params", '{"n": 28}'), "s.handle\nada\ncleo\n"),
    ],
)
def test_parameters(capsys: Capsys, org: Path, text: str, arguments: tuple[str, ...], rows: str) -> None:
    outcome = query(capsys, text, *arguments)
    assert (outcome.code, outcome.out, outcome.err) == (0, rows, "")


def test_one_by_one_and_as_an_object(capsys: Capsys, org: Path) -> None:
    text = "match { $s: Staff $s.level > $n and $s.level < $m } return { $s.handle }"
    assert query(capsys, text, "--params", '{"n": 28}', "--param", "m:=34").out == "s.handle\nada\n"


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("--param", "n"), 2, "--param 'n': write NAME=TEXT, such as who=Ada, or NAME:=JSON, such as n:=3"),
        (("--param", "=3"), 2, "--param '=3': write NAME=TEXT"),
        (("--param", "a b=3"), 2, "--param 'a b=3': write NAME=TEXT"),
        (("--param", "n:=3", "--param", "n:=4"), 2, "parameter 'n' is given twice"),
        (("--params", '{"n": 1}', "--param", "n:=4"), 2, "parameter 'n' is given twice"),
        (("--param", "n:=Ada"), 1, "--param n:= takes a JSON value, and 'Ada' is none"),
        (("--param", "n:=3", "--param", "m:=3"), 1, "the query declares no parameter 'm'; its parameters are n"),
        (("--param", "n=Ada"), 1, "parameter 'n' (I32): expected an integer, got the text 'Ada'"),
        ((), 1, "parameter 'n' not provided"),
        (("--param", "nn:=3"), 1, "the query declares no parameter 'nn'; did you mean `n`?"),
    ],
)
def test_refused(capsys: Capsys, org: Path, arguments: tuple[str, ...], code: int, message: str) -> None:
    outcome = query(capsys, NAMED, *arguments)
    assert (outcome.code, outcome.out) == (code, "")
    assert message in outcome.err
    assert "Traceback" not in outcome.err


def test_a_query_without_a_name_shows_where_its_errors_are(capsys: Capsys, org: Path) -> None:
    outcome = query(capsys, "match { $s: Staff\n  $s.handle = $who }\nreturn { $s.level }", "--param", "whom=ada")
    assert outcome.code == 1
    assert outcome.err == (
        "Error: <text>:2:15: type error: variable `$who` is not bound; is the parameter `whom` meant to be it?\n"
        "  2 |   $s.handle = $who }\n"
        "    |               ^\n"
    )


@pytest.mark.parametrize(
    ("text", "arguments", "message", "column"),
    [
        (
            "match { $s: Staff } return { $s.handle } limit $n",
            ("--param", "n=2"),
            "T28: `limit` takes an integer parameter, `$n` is String; `n=2` is a text, write `n:=2`",
            48,
        ),
        (
            "match { $s: Staff $s.level = $b } return { $s.handle }",
            ("--param", "b=-3.5"),
            "T7: can not compare I32? with String; `b=-3.5` is a text, write `b:=-3.5`",
            19,
        ),
    ],
)
def test_a_number_that_is_given_as_a_text(
    capsys: Capsys, org: Path, text: str, arguments: tuple[str, ...], message: str, column: int
) -> None:
    outcome = query(capsys, text, *arguments)
    assert outcome.code == 1
    assert outcome.err.startswith(f"Error: <text>:1:{column}: type error: {message}\n")


@pytest.mark.parametrize(("kind", "value"), [("F64", "1.5"), ("Bool", "true"), ("[I64]", "[1, 2]")])
def test_a_text_for_a_declared_type(capsys: Capsys, org: Path, kind: str, value: str) -> None:
    text = f"query q($x: {kind}) {{ match {{ $s: Staff }} return {{ $s.handle }} }}"
    outcome = query(capsys, text, "--param", f"x={value}")
    assert outcome.code == 1
    assert outcome.err.startswith(f"Error: parameter 'x' ({kind}): ")
    assert outcome.err.endswith(f"; `x={value}` is a text, write `x:={value}`\n")
    assert query(capsys, text, "--param", f"x:={value}").code == 0


def test_a_text_that_is_one(capsys: Capsys, org: Path) -> None:
    outcome = query(capsys, "match { $s: Staff $s.level = $b } return { $s.handle }", "--param", "b=Ada")
    assert outcome.code == 1
    assert ":=" not in outcome.err


def test_files_and_standard_input(capsys: Capsys, org: Path) -> None:
    (org / "a.gq").write_text(f"// everybody above\n{ABOVE}\n")
    found = call(capsys, "query", "--store", "org.omni", "--query", "a.gq", "--param", "n:=28")
    assert (found.code, found.out.splitlines()[0]) == (0, "2 rows from branch main")
    document = json.loads(
        call(capsys, "query", "--store", "org.omni", "--query", "a.gq", "--param", "n:=28", "--json").out
    )
    assert (document["query_name"], document["row_count"]) == ("", 2)
    piped = spawn(
        "query", "--store", "org.omni", "--query", "-", "--param", "n:=28", "--format", "csv", input=ABOVE, cwd=org
    )
    assert (piped.returncode, piped.stdout) == (0, "s.handle\nada\ncleo\n")
    (org / "a.gq").write_text(ABOVE.replace("level", "levle"))
    wrong = call(capsys, "query", "--store", "org.omni", "--query", "a.gq", "--param", "n:=28")
    assert wrong.err.startswith("Error: a.gq:1:19: type error: T6")


def test_mutations(capsys: Capsys, org: Path) -> None:
    text = "insert Staff { handle: $who, level: $n }"
    done = call(capsys, "mutate", "--store", "org.omni", "-e", text, "--param", "who=eve", "--param", "n:=3")
    assert (done.code, done.out) == (0, "changed main: 1 nodes, 0 edges\n")
    done = call(capsys, "mutate", "--store", "org.omni", "-e", 'delete Staff where handle = "eve"', "--json")
    assert json.loads(done.out)["query_name"] == ""
    read = call(capsys, "mutate", "--store", "org.omni", "-e", "match { $s: Staff } return { $s.level }")
    assert (read.code, "the query is a read query; run it with query" in read.err) == (1, True)
    write = query(capsys, 'delete Staff where handle = "eve"')
    assert "the query contains mutations; run it with mutate" in write.err


def test_explain(capsys: Capsys, org: Path) -> None:
    outcome = call(capsys, "explain", "--store", "org.omni", "-e", ABOVE, "--param", "n:=28")
    assert (outcome.code, "$n" in outcome.out) == (0, True)
