"""One rule for all commands that work on a graph: it is the first argument, `--uri` or `--store`."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from omnigraph.cli.commands import Command
from omnigraph.cli.settings import Settings
from tests.cli.calling import call
from tests.cli.test_documentation import ALL

Capsys = pytest.CaptureFixture[str]
GRAPHS = {
    path: command for path, command in ALL.items() if isinstance(command, Command) and "store" in command.scope.takes
}


def required(command: click.Command) -> list[str]:
    """A value for everything that a command needs besides its graph."""
    words = []
    for parameter in command.params:
        value = parameter.type.choices[0] if isinstance(parameter.type, click.Choice) else "x"
        if isinstance(parameter, click.Argument) and parameter.required and "URI" not in (parameter.metavar or ""):
            words.append(value)
        elif isinstance(parameter, click.Option) and parameter.required:
            words += [parameter.opts[0], value]
    return words


def addressed(path: str, words: list[str]) -> str | None:
    """The graph that a call of a command names."""
    context = GRAPHS[path].make_context(path, words, obj=Settings())
    places: tuple[str, ...] = context.params.get("places", ())
    return places[0] if places else context.params.get("uri") or context.obj.flags.get("store")


@pytest.mark.parametrize("path", GRAPHS)
@pytest.mark.parametrize("flag", ["", "--uri", "--store"], ids=["first", "uri", "store"])
def test_every_command_takes_its_graph_in_each_way(path: str, flag: str, tmp_path: Path) -> None:
    graph = tmp_path / "g"
    (graph / "__manifest").mkdir(parents=True)
    if path == "backup":  # TARGET is the last of its places, so that a flag leaves only it
        assert flag or addressed(path, [str(graph), "x"]) == str(graph)
        return
    words = [flag, str(graph)] if flag else [str(graph)]
    assert addressed(path, words + required(GRAPHS[path])) == str(graph)


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(["org.omni", "r.gq", "named", "--param", "n=ada"], id="graph-file-name"),
        pytest.param(["--param", "n=ada", "org.omni", "r.gq", "named"], id="after-an-option"),
        pytest.param(["org.omni", "named", "--query", "r.gq", "--param=n=ada"], id="file-by-its-flag"),
        pytest.param(["--store", "org.omni", "r.gq", "named", "--params", '{"n": "ada"}'], id="graph-by-its-flag"),
        pytest.param(["--store", "org.omni", "--query", "r.gq", "named", "--param", "n=ada"], id="as-before"),
    ],
)
def test_a_query_of_a_file_on_a_graph(capsys: Capsys, org: Path, words: list[str]) -> None:
    (org / "r.gq").write_text(
        "query named($n: String) { match { $s: Staff { handle: $n } } return { $s.handle } }\n"
        "query all() { match { $s: Staff } return { $s.handle } }\n"
    )
    outcome = call(capsys, "query", *words, "--format", "csv")
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.splitlines() == ["s.handle", "ada"]


def test_further_commands_with_the_graph_first(capsys: Capsys, org: Path) -> None:
    assert call(capsys, "log", "org.omni").code == 0
    assert call(capsys, "branch", "create", "org.omni", "work", "--quiet").code == 0
    assert call(capsys, "branch", "list", "org.omni").out.splitlines() == ["main", "work"]
    assert call(capsys, "diff", "org.omni", "main", "work").code == 0
    assert call(capsys, "config", "get", "org.omni", "merge.level").code == 0


def test_a_graph_that_is_not_there_is_named(capsys: Capsys, org: Path) -> None:
    (org / "r.gq").write_text("query all() { match { $s: Staff } return { $s.handle } }\n")
    outcome = call(capsys, "query", "none.omni", "r.gq", "all")
    assert outcome.code == 1
    assert "none.omni" in outcome.err
    assert "unexpected" not in outcome.err


def test_a_name_is_no_address(capsys: Capsys, org: Path) -> None:
    """A branch may be called like a file; only a graph is taken for one."""
    assert call(capsys, "branch", "create", "v1.omni", "--uri", "org.omni", "--quiet").code == 0
    assert "v1.omni" in call(capsys, "branch", "list", "org.omni").out
    outcome = call(capsys, "branch", "delete", "v1.omni", "--store", "org.omni", "--yes", "--quiet")
    assert outcome.code == 0


def test_usage_says_so(capsys: Capsys) -> None:
    assert "omnigraph query [OPTIONS] [URI] [FILE] [NAME]" in call(capsys, "query", "--help").out
    assert "omnigraph diff [OPTIONS] [URI] FROM TO" in call(capsys, "diff", "--help").out
