"""What holds for every command: help, versions, global flags, exit codes and the one report of a failure."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import click
import pytest

from omnigraph import __version__
from omnigraph.cli.commands import Lazy
from omnigraph.cli.main import COMMANDS, RENAMED, root
from tests.cli.calling import call, spawn

HEAVY = ("pyarrow", "lance", "pygments", "obstore", "orjson", "yaml", "numpy")


@pytest.mark.parametrize("arguments", [("--help",), ("-h",)])
def test_help_lists_every_command(capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...]) -> None:
    outcome = call(capsys, *arguments)
    assert outcome.code == 0
    for name, lazy in COMMANDS.items():
        assert any(line.split()[:1] == [name] and lazy.summary[:20] in line for line in outcome.out.splitlines())


@pytest.mark.parametrize("name", COMMANDS)
def test_the_list_of_commands_says_what_the_command_says(name: str) -> None:
    command = root.get_command(click.Context(root), name)
    assert command is not None
    assert command.get_short_help_str(limit=200) == COMMANDS[name].summary


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help(capsys: pytest.CaptureFixture[str], name: str) -> None:
    outcome = call(capsys, name, "--help")
    assert outcome.code == 0
    assert COMMANDS[name].summary in " ".join(outcome.out.split())


@pytest.mark.parametrize("argument", ["--help", "version"])
def test_help_and_version_load_nothing_heavy(argument: str) -> None:
    script = f"import sys; from omnigraph.cli.main import run; run([{argument!r}]); print(sorted(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert "'click'" in loaded
    assert [name for name in HEAVY if f"'{name}'" in loaded] == []
    assert "omnigraph.cli.language" not in loaded


def test_a_query_loads_no_writer_and_nothing_for_other_commands(org: Path) -> None:
    text = "query q() { match { $t: Team } return { $t.code } }"
    arguments = ["query", "--store", "org.omni", "-e", text]
    script = f"import sys; from omnigraph.cli.main import run; run({arguments!r}); print(sorted(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert "'lance'" in loaded
    idle = ("ulid", "httpx", "email", "numba", "pygments", "yaml", "prompt_toolkit", "pyspark", "PIL")
    assert [name for name in idle if f"'{name}'" in loaded] == []
    writers = ("mutation", "load", "merge", "evolution", "maintenance", "changes", "export", "drawing")
    assert [name for name in writers if f"'omnigraph.{name}'" in loaded] == []


@pytest.mark.parametrize("arguments", [("-v",), ("--version",), ("lint", "-v"), ("schema", "show-ir", "--version")])
def test_the_version_flag(capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...]) -> None:
    outcome = call(capsys, *arguments)
    assert (outcome.code, outcome.out) == (0, f"omnigraph {__version__}\n")


def test_the_version_command_names_the_format_too(capsys: pytest.CaptureFixture[str]) -> None:
    outcome = call(capsys, "version")
    assert (outcome.code, outcome.out) == (0, f"omnigraph {__version__}\ninternal-schema 4\n")


def test_the_version_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert json.loads(call(capsys, "version", "--json").out) == {"omnigraph": __version__, "internal_schema": 4}


def test_a_terminal_that_does_not_know_a_character(org: Path) -> None:
    text = 'query q() { insert Team { code: "\u6771" } }'
    assert spawn("mutate", "--store", "org.omni", "-e", text, cwd=org).returncode == 0
    query = "query q() { match { $t: Team } return { $t.code } order { $t.code desc } limit 1 }"
    environment = os.environ | {"PYTHONIOENCODING": "latin-1"}
    done = spawn("query", "--store", "org.omni", "-e", query, "--format", "csv", cwd=org, env=environment)
    assert (done.returncode, done.stdout, done.stderr) == (0, "t.code\n\\u6771\n", "")


@pytest.mark.parametrize(
    ("arguments", "fragment"),
    [
        pytest.param(("lnt",), "No such command 'lnt'; did you mean `lint`?", id="misspelt-command"),
        pytest.param(("frobnicate",), "No such command 'frobnicate'\n", id="unknown-command"),
        pytest.param(("--frob",), "No such option", id="unknown-global-flag"),
        pytest.param(("version", "--frob"), "No such option", id="unknown-flag"),
        pytest.param(("version", "extra"), "unexpected extra argument", id="extra-argument"),
        pytest.param(("schema", "show-ir"), "Missing argument 'FILE'", id="missing-argument"),
        pytest.param(("lint",), "Missing option '--query'", id="missing-option"),
        pytest.param((), "Usage: omnigraph", id="nothing"),
        pytest.param(
            ("branch", "lst"), "No such command 'lst'; did you mean `list`?", id="misspelt-command-of-a-family"
        ),
        pytest.param(
            ("tag", "v1"), "No such command 'v1'; the commands are create, delete, list\n", id="no-command-of-a-family"
        ),
        pytest.param(("query", "--quer", "x.gq"), "Did you mean", id="misspelt-flag"),
        pytest.param(
            ("query", "q", "g.omni"),
            "extra argument (g.omni); address the graph with --uri <uri>\n",
            id="URI-behind-a-name",
        ),
        pytest.param(
            ("branch", "create", "b", "g.omni"),
            "extra argument (g.omni); address the graph with --uri <uri>\n",
            id="URI-behind-a-flag",
        ),
    ],
)
def test_usage_errors_exit_with_2(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], fragment: str
) -> None:
    outcome = call(capsys, *arguments)
    assert (outcome.code, outcome.out) == (2, "")
    assert fragment in outcome.err


@pytest.mark.parametrize("old", RENAMED, ids=" ".join)
def test_old_names_still_work_with_a_warning(capsys: pytest.CaptureFixture[str], old: tuple[str, ...]) -> None:
    outcome = call(capsys, *old, "--help")
    assert outcome.code == 0
    assert COMMANDS[RENAMED[old]].summary in outcome.out
    assert outcome.err == f"warning: `omnigraph {' '.join(old)}` is now `omnigraph {RENAMED[old]}`\n"


# --- failures ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "fragment"),
    [
        pytest.param(None, "No such file or directory", id="missing"),
        pytest.param(b"node \xff\xfe", "not UTF-8 text (byte 5)", id="not-utf8"),
        pytest.param(b"\x00\x01\x02", "found the character U+0000", id="control-characters"),
        pytest.param(b"{" * 10_000_000, "expected `interface`, `node` or `edge`, found `{`", id="10-MB-of-braces"),
    ],
)
def test_bad_files_are_one_report(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, data: bytes | None, fragment: str
) -> None:
    path = tmp_path / "bad.pg"
    if data is not None:
        path.write_bytes(data)
    outcome = call(capsys, "schema", "show-ir", str(path))
    assert (outcome.code, outcome.out) == (1, "")
    assert outcome.err.startswith("Error: ")
    assert fragment in outcome.err
    assert len(outcome.err) < 1000
    assert "Traceback" not in outcome.err


def test_a_folder_is_no_source(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    outcome = call(capsys, "schema", "show-ir", str(tmp_path))
    assert (outcome.code, outcome.err) == (1, f"Error: cannot read '{tmp_path}': Is a directory\n")


@pytest.mark.parametrize(
    "before_and_after",
    [(("--debug",), ()), ((), ("--debug",))],
    ids=["before-the-command", "after-the-command"],
)
def test_debug_adds_the_traceback(
    capsys: pytest.CaptureFixture[str], before_and_after: tuple[tuple[str, ...], tuple[str, ...]]
) -> None:
    before, after = before_and_after
    outcome = call(capsys, *before, "schema", "show-ir", "missing.pg", *after)
    assert outcome.code == 1
    assert outcome.err.startswith("Traceback")
    assert outcome.err.endswith("Error: cannot read 'missing.pg': No such file or directory\n")


def test_debug_stands_inside_a_family_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert "Traceback" in call(capsys, "schema", "--debug", "show-ir", "missing.pg").err


@click.command()
def boom() -> None:
    """Break in a way that nobody thought of."""
    raise KeyError("surprise")


def test_the_unexpected_is_one_report_too(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(COMMANDS, "boom", Lazy(__name__, "boom", "Break."))
    outcome = call(capsys, "boom")
    assert (outcome.code, outcome.out) == (1, "")
    assert outcome.err == "Error: unexpected KeyError: 'surprise'; run again with --debug and report it\n"


def test_a_full_disk_is_one_report() -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "omnigraph", "version"], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode == 1
    assert done.stderr.startswith("Error: [Errno 28]")
    assert "Traceback" not in done.stderr


def test_a_broken_pipe_is_quiet() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as pipe:
        done = subprocess.run(
            [sys.executable, "-m", "omnigraph", "version"], stdout=pipe, stderr=subprocess.PIPE, text=True, check=False
        )
    assert (done.returncode, done.stderr) == (1, "")


def buffered() -> dict[str, str]:
    """An environment in which Python keeps output back until there is much of it, as it does by itself."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}


NAMES = "abcdefg"
#: More than a pipe holds.
MANY = (
    f"query q() {{ match {{ {' '.join(f'${name}: Staff' for name in NAMES)} }} "
    f"return {{ {', '.join(f'${name}.handle' for name in NAMES)} }} }}"
)


@pytest.mark.parametrize("extra", [{}, {"PYTHONUNBUFFERED": "1"}], ids=["kept", "unbuffered"])
@pytest.mark.parametrize("format", ["csv", "json"])
def test_a_reader_that_leaves_early_is_no_error_message(org: Path, format: str, extra: dict[str, str]) -> None:
    command = [sys.executable, "-m", "omnigraph", "query", "--store", "org.omni", "-e", MANY, "--format", format]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=org, env=buffered() | extra)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.read(10)
    process.stdout.close()
    assert (process.stderr.read(), process.wait()) == (b"", 1)


@pytest.mark.parametrize("arguments", [("version",), ("lint", "--schema", "s.pg", "--query", "w.gq")], ids=" ".join)
def test_a_disk_that_is_full_is_found_however_much_is_kept_back(org: Path, arguments: tuple[str, ...]) -> None:
    with Path("/dev/full").open("w") as full:
        command = [sys.executable, "-m", "omnigraph", *arguments]
        done = subprocess.run(
            command, stdout=full, stderr=subprocess.PIPE, text=True, check=False, cwd=org, env=buffered()
        )
    assert (done.returncode, done.stderr) == (1, "Error: [Errno 28] No space left on device\n")


def test_what_is_printed_before_a_failure_stands_before_it(org: Path) -> None:
    both = "query q() { match { $t: Team } return { $t.code } limit 1 }\nquery r() { match { $t: Tem } return { $t.code } }"
    command = [sys.executable, "-m", "omnigraph", "shell", "org.omni", "--format", "csv"]
    done = subprocess.run(
        command,
        input=both,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        cwd=org,
        env=buffered(),
    )
    assert done.stdout.index("t.code") < done.stdout.index("Error: ")


def test_values_are_printed_as_they_are(org: Path) -> None:
    """Escape sequences are data: a pipe gets every one of them, and no message lets them reach a terminal."""
    text = "query q($c: String) { insert Team { code: $c } }"
    params = '{"c": "\\u001b[31mred\\u001b[0m"}'
    assert spawn("mutate", "--store", "org.omni", "-e", text, "--params", params, cwd=org).returncode == 0
    query = "query q() { match { $t: Team } return { $t.code } }"
    done = spawn("query", "--store", "org.omni", "-e", query, "--format", "csv", cwd=org)
    assert "\x1b[31mred\x1b[0m" in done.stdout.splitlines()
    done = spawn("query", "--store", "\x1b[31mno.omni", "-e", query, cwd=org)
    assert (done.returncode, "\x1b" in done.stderr, "\\x1b[31mno.omni" in done.stderr) == (1, False, True)


CLOSED_STREAMS = {
    "stdin": ("load org.omni --data - --mode merge --quiet <&-", 1, "Error: there is no standard input to load"),
    "stdin of a source": ("lint org.omni --query - <&-", 1, "Error: there is no standard input to read from"),
    "stdin of the shell": ("shell org.omni <&-", 0, ""),
    "stdout": ("version >&-", 0, ""),
    "stderr": ("version 2>&-", 0, ""),
    "stderr of a failure": ("schema show-ir missing.pg 2>&-", 1, ""),
    "stderr of a language error": ("schema show-ir w.gq 2>&-", 1, ""),
}


@pytest.mark.parametrize("name", CLOSED_STREAMS)
def test_a_stream_that_is_not_there_is_no_traceback(org: Path, name: str) -> None:
    command, code, message = CLOSED_STREAMS[name]
    done = subprocess.run(
        ["sh", "-c", f'"$0" -m omnigraph {command}', sys.executable],
        capture_output=True,
        text=True,
        check=False,
        cwd=org,
    )
    assert done.returncode == code, done.stderr
    # The graph is a copy, and its first write says so before the message.
    assert any(line.startswith(message) for line in done.stderr.splitlines() or [""]), done.stderr
    assert "Traceback" not in done.stderr
    assert "unexpected" not in done.stderr


def test_an_interrupt_is_quiet(tmp_path: Path) -> None:
    fifo = tmp_path / "schema.pg"
    os.mkfifo(fifo)
    # What a shell runs in the background ignores interrupts, and so would the command.
    before = signal.signal(signal.SIGINT, signal.SIG_DFL)
    process = subprocess.Popen(
        [sys.executable, "-m", "omnigraph", "schema", "show-ir", str(fifo)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    signal.signal(signal.SIGINT, before)
    # Opening the other end waits until the command is reading, and it then waits for us.
    with fifo.open("w"):
        process.send_signal(signal.SIGINT)
        out, err = process.communicate()
    assert (process.returncode, out, err.strip()) == (130, "", "")


# --- colours ----------------------------------------------------------------------------------------------------------

BAD_SCHEMA = "node A { x: Strng }\n"


def on_a_terminal(tmp_path: Path, **environment: str) -> str:
    """What a terminal shows of the error for a bad schema."""
    path = tmp_path / "bad.pg"
    path.write_text(BAD_SCHEMA)
    ours, theirs = pty.openpty()
    plain = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "TERM")}
    subprocess.run(
        [sys.executable, "-m", "omnigraph", "schema", "show-ir", str(path)],
        stderr=theirs,
        env=plain | environment,
        check=False,
    )
    os.close(theirs)
    with os.fdopen(ours, "rb", buffering=0) as terminal:
        return terminal.read(100_000).decode()


def test_a_terminal_gets_colours(tmp_path: Path) -> None:
    shown = on_a_terminal(tmp_path, TERM="xterm")
    assert "\x1b[" in shown
    assert "did you mean `String`?" in shown


@pytest.mark.parametrize("environment", [{"TERM": "xterm", "NO_COLOR": "1"}, {"TERM": "dumb"}], ids=str)
def test_colours_can_be_refused(tmp_path: Path, environment: dict[str, str]) -> None:
    shown = on_a_terminal(tmp_path, **environment)
    assert "\x1b[" not in shown
    assert "  1 | node A { x: Strng }" in shown


def test_a_pipe_gets_no_colours(tmp_path: Path) -> None:
    path = tmp_path / "bad.pg"
    path.write_text(BAD_SCHEMA)
    done = spawn("schema", "show-ir", str(path))
    assert done.returncode == 1
    assert done.stderr.splitlines()[1:] == ["  1 | node A { x: Strng }", "    |             ^"]
