"""Every command and every flag has help, and stands in docs/cli.md."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from omnigraph.cli.commands import Command, global_flags
from omnigraph.cli.main import RENAMED, root

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "cli.md").read_text()
GLOBAL = {option for parameter in global_flags(lambda _: True) for option in parameter.opts}


def commands(group: click.Group, path: tuple[str, ...] = ()) -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))
        else:
            yield " ".join((*path, name)), command


ALL = dict(commands(root))


def section(path: str) -> str:
    found = re.search(rf"^### `omnigraph {re.escape(path)}`\n(.*?)(?=^##|\Z)", PAGE, re.MULTILINE | re.DOTALL)
    assert found is not None, f"docs/cli.md has no section `omnigraph {path}`"
    return found[1]


def own_options(command: click.Command) -> list[click.Option]:
    return [option for option in command.params if isinstance(option, click.Option) and not GLOBAL & set(option.opts)]


@pytest.mark.parametrize("path", ALL)
def test_every_command_and_option_is_documented(path: str) -> None:
    text = section(path)
    missing = [opt for option in own_options(ALL[path]) for opt in option.opts if not re.search(rf"{opt}[^-\w]", text)]
    assert missing == []


@pytest.mark.parametrize("path", ALL)
def test_every_command_and_option_has_help(path: str) -> None:
    command = ALL[path]
    assert isinstance(command, Command), "a command of ours takes the global flags"
    assert command.help
    assert [option.name for option in command.params if isinstance(option, click.Option) and not option.help] == []


def test_the_page_documents_nothing_else() -> None:
    assert set(re.findall(r"^### `omnigraph (.+)`$", PAGE, re.MULTILINE)) == set(ALL)
    for path, command in ALL.items():
        known = {opt for option in own_options(command) for opt in (*option.opts, *option.secondary_opts)}
        documented = set(re.findall(r"`(--[a-z-]+)", "\n".join(re.findall(r"^\| `-.*", section(path), re.MULTILINE))))
        assert documented <= known | GLOBAL, path


def test_global_flags_are_documented() -> None:
    text = PAGE.partition("## Global flags")[2].partition("\n## ")[0]
    assert [option for option in GLOBAL if f"`{option}" not in text] == []
    assert all(option.help for option in global_flags(lambda _: True))


@pytest.mark.parametrize("path", ALL)
def test_the_flags_that_a_command_takes_are_documented(path: str) -> None:
    """The longest name that fits a command, such as `cluster apply` before `cluster`, says what it takes."""
    table = PAGE.partition("| commands | take |")[2].partition("\n\n")[0]
    rows = [row.strip("| ").split(" | ") for row in table.strip().splitlines()[1:]]
    takes = {name: flags for names, flags in rows for name in re.findall(r"`([^`]+)`", names)}
    found = max((name for name in takes if f"{path} ".startswith(f"{name} ")), key=len)
    known = {"all of them": {"as", "server", "graph", "store", "cluster", "profile"}, "none of them": set()}
    documented = known.get(takes[found], set(re.findall(r"--([a-z]+)", takes[found])))
    command = ALL[path]
    assert isinstance(command, Command)
    assert documented == set(command.scope.takes)


@pytest.mark.parametrize("old", RENAMED, ids=" ".join)
def test_old_names_are_documented(old: tuple[str, ...]) -> None:
    assert f"`omnigraph {' '.join(old)}`" in PAGE
