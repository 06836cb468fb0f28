"""`omnigraph shell`: from a pipe, and at a prompt."""

from __future__ import annotations

import io
import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

import omnigraph as og
from omnigraph.cli.addressing import Stored
from omnigraph.cli.shell_prompt import prompt_of
from omnigraph.cli.shell_session import Session, inputs, is_complete, without_end
from omnigraph.language.query.completion import candidates
from omnigraph.language.schema.build import compile_schema
from omnigraph.query.result import TableStyle
from tests.cli.calling import Outcome, call, spawn
from tests.mutation.org_graph import SCHEMA

Capsys = pytest.CaptureFixture[str]


def pipe(capsys: Capsys, monkeypatch: pytest.MonkeyPatch, text: str, *arguments: str) -> Outcome:
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    return call(capsys, "shell", "org.omni", *arguments)


# --- where an input ends ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "complete"),
    [
        (":help\n", True),
        ("begin\n", True),
        (" commit;\n", True),
        ("COMMIT;\n", True),
        ("begin transaction\n", True),
        ("rollback\n", True),
        ("beginning\n", False),
        (":explain\n", False),
        (":explain query q() { match { $s: Staff } return { $s.id } }\n", True),
        ("query q() {\n", False),
        ("query q()\n", False),
        ("query q() { match { $s: Staff } return { $s.id } }\n", True),
        ("// a comment\nquery q() { match { $s: Staff } return { $s.id } }\n", True),
        ('query q() { match { $s: Staff { handle: "}}" } }\n', False),
        ("query q() { /* } */\n", False),
        ("query q() { /* }\n", False),
        ('query q() { match { $s: Staff { handle: "a\n', False),
        ("match { $s: Staff } return { $s.id }\n", False),
        ("match { $s: Staff } return { $s.id };\n", True),
        ("match { $s: Staff } return { $s.id }; // done\n", True),
        ("match { $s: Staff } return { $s.id }\n\n", True),
        ("match {\n\n", False),
        ('match { $s: Staff { handle: ";\n', False),
        ("match { $s: Staff } // ;\n", False),
        ("queryable\n", False),
        ("\n", False),
    ],
)
def test_where_an_input_ends(text: str, complete: bool) -> None:
    assert is_complete(text) is complete


def test_inputs_of_a_stream() -> None:
    lines = [
        "\n",
        ":help\n",
        "match { $a: A }\n",
        "return { $a.x };\n",
        "query q() {\n",
        "}\n",
        "\n",
        "insert A { x: 1 }",
    ]
    assert list(inputs(lines)) == [
        ":help\n",
        "match { $a: A }\nreturn { $a.x };\n",
        "query q() {\n}\n",
        "insert A { x: 1 }\n",
    ]


def test_the_end_of_an_input_is_no_query_text() -> None:
    assert without_end("match { $a: A } return { $a.nn };\n") == "match { $a: A } return { $a.nn }"
    assert without_end("query q() { }\n") == "query q() { }"


def test_remembered_parameters_of_a_text_without_a_head(
    capsys: Capsys, org: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = ':params {"who": "ada", "n": 1}\nmatch { $s: Staff { handle: $who } } return { $s.handle };\n'
    outcome = pipe(capsys, monkeypatch, text, "--format", "csv")
    assert (outcome.code, outcome.err, outcome.out) == (0, "", "s.handle\nada\n")


# --- from a pipe ------------------------------------------------------------------------------------------------------

SESSION = """\
:schema Team
match { $s: Staff } return { $s.handle } order { $s.handle } limit 2;

insert Staff { handle: "eve", level: 1 }

query older($n: I64) {
  match { $s: Staff  $s.level > $n }
  return { $s.handle }
}
"""


def test_queries_and_mutations_from_a_pipe(capsys: Capsys, org: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = pipe(capsys, monkeypatch, f':params {{"n": 30}}\n{SESSION}', "--format", "csv", "--as", "me")
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out == (
        "node Team {\n  code: String @key\n}\n"
        "s.handle\nada\nben\n"
        "changed main via shell: 1 nodes, 0 edges\nactor_id: me\n"
        "s.handle\ncleo\n"
    )


def test_a_real_pipe(org: Path) -> None:
    done = spawn("shell", "org.omni", input="match { $t: Team } return { $t.code } order { $t.code }", cwd=org)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "2 rows from branch main via shell\nt.code\n------\ncore\nlabs\n"


def test_branches(capsys: Capsys, org: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert call(capsys, "branch", "create", "--uri", "org.omni", "b", "--quiet").code == 0
    text = """:branch b
insert Team { code: "new" };
:branch
match { $t: Team } return { count($t) as n };
:branch main
match { $t: Team } return { count($t) as n };
:quit
nonsense
"""
    outcome = pipe(capsys, monkeypatch, text, "--format", "csv")
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out == "changed b via shell: 1 nodes, 0 edges\n* b\n  main\nn\n3\nn\n2\n"


def test_transactions(capsys: Capsys, org: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = og.open("org.omni", "ro").head()
    typed = """\
begin
insert Staff { handle: "eve", level: 1 };
insert Mentors { from: "eve", to: "ada" };
match { $s: Staff  $s mentors $t  $t.handle = "ada" } return { $s.handle };
commit
begin;
delete Staff where handle = "ada";
rollback
match { $s: Staff { handle: "ada" } } return { $s.handle };
"""
    outcome = pipe(capsys, monkeypatch, typed, "--format", "csv")
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.splitlines() == [
        "transaction on main: commit writes what follows, rollback forgets it",
        "1 nodes, 0 edges; not committed yet",
        "0 nodes, 1 edges; not committed yet",
        "s.handle",
        "eve",
        "changed main via transaction: 1 nodes, 1 edges",
        "transaction on main: commit writes what follows, rollback forgets it",
        "1 nodes, 4 edges; not committed yet",
        "rolled back; nothing was written",
        "s.handle",
        "ada",
    ]
    assert og.open("org.omni", "ro").head().parent == before.id


@pytest.mark.parametrize(
    ("typed", "code", "message"),
    [
        (
            'begin\ninsert Staff { handle: "eve", level: 1 };\n',
            1,
            "the input ends inside a transaction; it was rolled back",
        ),
        (
            'begin\ninsert Staff { handle: "eve", level: 1 };\n:quit\n',
            1,
            "nothing of it was written; end it with commit",
        ),
        ('begin\ninsert Staff { handle: "eve", level: 1 };\nrollback\n', 0, ""),
        ('begin\ninsert Mentors { from: "ada", to: "no" };\n', 1, "the transaction is undone"),
        ("commit\n", 1, "no transaction is open; start one with begin"),
        ("rollback\n", 1, "no transaction is open; start one with begin"),
        ("COMMIT\n", 1, "the shell has no command 'COMMIT'; write `commit`"),
        ("begin transaction;\n", 1, "the shell has no command 'begin transaction'; write `begin`"),
        ("START TRANSACTION\n", 1, "the shell has no command 'START TRANSACTION'; write `begin`"),
        ("begin\nbegin\n", 1, "a transaction is open already; end it with commit or rollback"),
        ("begin\n:branch main\n", 1, "a transaction is open on this branch"),
    ],
)
def test_transactions_that_come_to_nothing(
    capsys: Capsys, org: Path, monkeypatch: pytest.MonkeyPatch, typed: str, code: int, message: str
) -> None:
    before = og.open("org.omni", "ro").head()
    outcome = pipe(capsys, monkeypatch, typed)
    assert (outcome.code, message in outcome.err) == (code, True), outcome.err
    assert og.open("org.omni", "ro").head() == before


def test_explain_params_format_and_help(capsys: Capsys, org: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = """:explain match { $s: Staff { handle: $who } } return { $s.level };
:params {"who": "ada"}
:params
:format
:format jsonl
match { $s: Staff { handle: $who } } return { $s.level };
:help
"""
    outcome = pipe(capsys, monkeypatch, text)
    assert outcome.code == 1, "an unbound parameter"
    outcome = pipe(capsys, monkeypatch, text.partition("\n")[2] + text.partition("\n")[0])
    assert (outcome.code, outcome.err) == (0, "")
    assert '"who": "ada"' in outcome.out
    assert "\ntable\n" in outcome.out
    assert '{"s.level":30}' in outcome.out
    assert ":explain QUERY" in outcome.out
    assert "NodeScan" in outcome.out


def test_json(capsys: Capsys, org: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = pipe(capsys, monkeypatch, "match { $t: Team } return { $t.code } limit 1;", "--json")
    assert json.loads(outcome.out)["row_count"] == 1
    outcome = pipe(capsys, monkeypatch, 'insert Team { code: "x" };', "--json")
    assert json.loads(outcome.out)["affected_nodes"] == 1


def test_looking_writes_nothing(capsys: Capsys, org: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = sorted(str(path) for path in (org / "org.omni").rglob("*"))
    assert pipe(capsys, monkeypatch, ":schema\n:branch\nmatch { $t: Team } return { $t.code };").code == 0
    assert sorted(str(path) for path in (org / "org.omni").rglob("*")) == before


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (":scheme\n", "the shell has no command ':scheme'; did you mean `:schema`?; see :help"),
        (":schema Teem\n", "the schema has no type 'Teem'; did you mean `Team`?"),
        (":branch nope\n", "branch 'nope' not found"),
        (":params 1\n", ":params must be a JSON object"),
        (":format xml\n", "'xml' is no format of the shell"),
        (":format arrow\n", "'arrow' is no format of the shell"),
        (";\n", "there is no query in this"),
        ("match { $s: Staff } return { $s.handel };", "<text>:1:30: type error: T6"),
        ("match {\n $s: Staf\n} return { $s.id };", "<text>:2:"),
        ("query q() { match { $s: Staf } return { $s.id } }", "<text>:1:"),
        ("query q() {", "parse error"),
        ("update Team set { code: 1 } where code = 2\n", "type error"),
    ],
)
def test_the_first_error_ends_a_pipe(
    capsys: Capsys, org: Path, monkeypatch: pytest.MonkeyPatch, text: str, message: str
) -> None:
    outcome = pipe(capsys, monkeypatch, f"{text}\n\n:help\n")
    assert (outcome.code, outcome.out) == (1, "")
    assert outcome.err.startswith("Error: ")
    assert message in outcome.err
    assert "Traceback" not in outcome.err


def test_no_graph_and_no_branch(capsys: Capsys, org: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    assert f"there is no graph at {org}/nope" in call(capsys, "shell", "nope").err
    assert "branch 'nope' not found" in call(capsys, "shell", "org.omni", "--branch", "nope").err


# --- at a prompt ------------------------------------------------------------------------------------------------------


@pytest.fixture
def session(org: Path) -> Session:
    return Session(Stored("org.omni"), None, "main", "csv", TableStyle())


def test_the_prompt_takes_several_lines_and_remembers(session: Session, tmp_path: Path) -> None:
    history = tmp_path / "home" / "shell_history"
    with create_pipe_input() as keys:
        prompt = prompt_of(session, history, io.StringIO(), input=keys, output=DummyOutput())
        keys.send_text("query q() {\r match { $s: Staff } return { $s.id } }\r")
        assert prompt.prompt("main> ") == "query q() {\n match { $s: Staff } return { $s.id } }"
        keys.send_text(":help\r")
        assert prompt.prompt("main> ") == ":help"
    assert history.stat().st_mode & 0o777 == 0o600
    with create_pipe_input() as keys:
        prompt = prompt_of(session, history, io.StringIO(), input=keys, output=DummyOutput())
        keys.send_text("\x1b[A\r")  # the key up
        assert prompt.prompt("main> ") == ":help"


def test_the_prompt_completes(session: Session, tmp_path: Path) -> None:
    with create_pipe_input() as keys:
        prompt = prompt_of(session, tmp_path / "h", io.StringIO(), input=keys, output=DummyOutput())
        assert prompt.completer is not None
        asked = Document("match { $s: Staff } return { $s.han")
        (offered,) = prompt.completer.get_completions(asked, CompleteEvent(completion_requested=True))
        assert (offered.text, offered.start_position) == (".handle", -len(".han"))


def test_a_history_that_can_not_be_kept(session: Session, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with create_pipe_input() as keys:
        prompt = prompt_of(session, tmp_path / "file" / "h", io.StringIO(), input=keys, output=DummyOutput())
        keys.send_text(":help\r")
        assert prompt.prompt("main> ") == ":help"


def test_at_a_terminal_an_error_ends_its_input_and_nothing_else(org: Path, home: Path) -> None:
    typed = ["match { $s: Staf } return { $s.id };", "match { $t: Team } return { $t.code } limit 1;", ":quit"]
    shown = on_a_terminal(org, "shell", "org.omni", "--format", "csv", typed=typed)
    assert "omnigraph 0.1.0 on org.omni" in shown
    assert "did you mean `Staff`?" in shown
    assert "t.code\r\ncore" in shown
    assert "match { $s: Staf }" in (home / "shell_history").read_text()


def on_a_terminal(folder: Path, *arguments: str, typed: list[str]) -> str:
    """What a terminal shows when a person types these lines, each after the prompt has come back."""
    environment = os.environ | {"TERM": "dumb", "PROMPT_TOOLKIT_NO_CPR": "1"}
    terminal, inside = pty.openpty()
    command = [sys.executable, "-m", "omnigraph", *arguments]
    child = subprocess.Popen(command, stdin=inside, stdout=inside, stderr=inside, cwd=folder, env=environment)
    os.close(inside)
    shown = b""
    try:
        while part := os.read(terminal, 65536):
            shown += part
            if typed and shown.endswith(b"> "):
                os.write(terminal, f"{typed.pop(0)}\r".encode())
                shown += b"\n"
    except OSError:
        pass  # the other end is gone
    os.close(terminal)
    assert child.wait() == 0
    assert typed == []
    return shown.decode()


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (":sc", [":schema"]),
        (":schema S", ["Staff"]),
        (":branch ma", ["main"]),
        ("match { $s: T", ["Team"]),
        ("match { $s: Staff $s men", ["mentors"]),
        ("match { $s: Staff $s memberOf $t } return { $t.", [".code", ".id"]),
        ("match { $s: Staff $s $m: mentors $o } return { $m.", [".began", ".id"]),
        ("match { $t: Team $t memberOf $s } return { $s.l", [".level"]),
        ("match { $s: Staff } return { $", ["$s"]),
        ("match { $s: Staff { ", ["handle", "id", "level"]),
        ("insert Staff { le", ["level"]),
        ("insert Mentors { ", ["began", "from", "id", "to"]),
        ("update Staff set { level: 3 } where han", ["handle"]),
        ("delete Staff where ", ["handle", "id", "level"]),
        ("match { $x: Nope } return { $x.", []),
        ("insert Nope { ", []),
        ("order", ["order"]),
    ],
)
def test_completion(text: str, found: list[str]) -> None:
    commands = [":schema", ":branch", ":help", ":explain"]
    assert candidates(compile_schema(SCHEMA), commands, ["main", "b"], text) == found
