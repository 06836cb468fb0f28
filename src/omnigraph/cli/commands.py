"""How commands are put together: loaded only when they are called, with the global flags before or after them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import click

from omnigraph import __version__
from omnigraph.cli.output import line, warn
from omnigraph.language.suggest import did_you_mean, nearest_name


@dataclass
class Settings:
    """What the global flags of one call said."""

    debug: bool = False


def _set_debug(context: click.Context, _parameter: click.Parameter, given: bool) -> None:
    if given:
        context.ensure_object(Settings).debug = True


def _show_version(context: click.Context, _parameter: click.Parameter, given: bool) -> None:
    if given:
        line(f"omnigraph {__version__}")
        context.exit()


def _global_flags(hidden: bool) -> tuple[click.Option, ...]:
    return (
        click.Option(
            ["-v", "--version"],
            is_flag=True,
            is_eager=True,
            expose_value=False,
            hidden=hidden,
            callback=_show_version,
            help="Show the version and exit.",
        ),
        click.Option(
            ["--debug"],
            is_flag=True,
            expose_value=False,
            hidden=hidden,
            callback=_set_debug,
            help="Add the traceback to an error.",
        ),
    )


_FLAGS_BEFORE = _global_flags(hidden=False)
_FLAGS_AFTER = _global_flags(hidden=True)


class Command(click.Command):
    """A command that takes the global flags too."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        return [*super().get_params(ctx), *_FLAGS_AFTER]


class Group(click.Group):
    """A family of commands, such as `schema`, that takes the global flags too."""

    command_class = Command

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        return [*super().get_params(ctx), *_FLAGS_AFTER]


@dataclass(frozen=True)
class Lazy:
    """A command by the module and name it is found under, and its one line in the list of commands."""

    module: str
    name: str
    summary: str


class LazyGroup(click.Group):
    """The root: knows its commands by name and loads only the one that is called."""

    def __init__(
        self, *args: Any, lazy: Mapping[str, Lazy], renamed: Mapping[tuple[str, ...], str], **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self._lazy = lazy
        self._renamed = renamed
        self.params += _FLAGS_BEFORE

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._lazy)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self._lazy:
            return None
        lazy = self._lazy[cmd_name]
        command = getattr(import_module(lazy.module), lazy.name)
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        for old, new in self._renamed.items():
            if tuple(args[: len(old)]) == old:
                warn(f"`omnigraph {' '.join(old)}` is now `omnigraph {new}`")
                args = [new, *args[len(old) :]]
        if args[0] not in self._lazy and not args[0].startswith("-"):
            ctx.fail(f"No such command '{args[0]}'{did_you_mean(nearest_name(args[0], self._lazy))}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, lazy.summary) for name, lazy in self._lazy.items()])
