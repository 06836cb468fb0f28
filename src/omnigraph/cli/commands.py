"""The construction of commands: loaded only when they are called, with the global flags before or after them."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import click

from omnigraph import __version__
from omnigraph.cli.output import line, warn
from omnigraph.cli.scope import Scope, refuse_foreign_flag
from omnigraph.cli.settings import Settings
from omnigraph.language.source import did_you_mean, nearest_name

#: The global flags with a value: their metavar and their help.
_ADDRESSING = {
    "as": ("ACTOR", "Write as this actor, instead of operator.actor."),
    "server": ("NAME|URL", "Work on a served graph."),
    "graph": ("ID", "The graph in a server or cluster."),
    "store": ("URI", "The storage of one graph: a path, file:// or s3://."),
    "cluster": ("DIR|URI", "Work on a graph of a cluster."),
    "profile": ("NAME", "Take the address from a profile; default $OMNIGRAPH_PROFILE."),
}
#: The flags that name a graph, or a server or cluster with graphs.
_ADDRESSES = frozenset({"store", "server", "cluster"})
_SWITCHES = {
    "yes": "Allow a destructive write on a non-local target.",
    "quiet": "Do not say what is written to.",
    "debug": "Add the traceback to an error.",
}


def _show_version(context: click.Context, _parameter: click.Parameter, given: bool) -> None:
    if given:
        line(f"omnigraph {__version__}")
        context.exit()


def _remember_address(context: click.Context, parameter: click.Parameter, given: str | None) -> None:
    if given is None:
        return
    flag = parameter.opts[0].removeprefix("--")
    if not given:
        raise click.UsageError(f"--{flag} must not be empty", context)
    context.ensure_object(Settings).flags[flag] = given
    if isinstance(context.command, Command):
        context.command.refuse_foreign(context, flag)


def _remember_switch(context: click.Context, parameter: click.Parameter, given: bool) -> None:
    if given:
        setattr(context.ensure_object(Settings), parameter.opts[0].removeprefix("--"), True)


def global_flags(is_shown: Callable[[str], bool], taken: frozenset[str] = frozenset()) -> list[click.Option]:
    """The global flags. A flag that means nothing to a command is parsed, so that it can be refused, but not shown in the help.

    `--uri` is another name of `--store`, unless it is `taken` by an option of the command itself.
    """
    others = {"store": ["--uri"]} if "--uri" not in taken else {}
    options = [
        click.Option(
            [f"--{name}", *others.get(name, []), f"_{name}"],
            metavar=metavar,
            is_eager=True,
            expose_value=False,
            hidden=not is_shown(name),
            callback=_remember_address,
            help=text,
        )
        for name, (metavar, text) in _ADDRESSING.items()
    ]
    options += [
        click.Option(
            [f"--{name}", f"_{name}"],
            is_flag=True,
            expose_value=False,
            hidden=not is_shown(name),
            callback=_remember_switch,
            help=text,
        )
        for name, text in _SWITCHES.items()
    ]
    options.append(
        click.Option(
            ["-v", "--version"],
            is_flag=True,
            is_eager=True,
            expose_value=False,
            hidden=not is_shown("version"),
            callback=_show_version,
            help="Show the version and exit.",
        )
    )
    return options


class Command(click.Command):
    """A command that also takes the global flags, and refuses the flags that do not apply to it."""

    def __init__(self, *args: Any, scope: Scope, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.scope = scope
        own = frozenset(name for parameter in self.params for name in parameter.opts)
        self.params += global_flags(scope.takes.__contains__, own)
        #: Whether a graph may be given before the arguments that the command declares.
        self._takes_graph_first = "store" in scope.takes and not any(map(_names_graph, self.params))
        #: Whether files of queries may stand among the arguments.
        self._takes_query_files = {"--query", "--query-string"} <= own

    def called(self, context: click.Context) -> str:
        """The command as people type it, without the name of the program."""
        return context.command_path.partition(" ")[2]

    def refuse_foreign(self, context: click.Context, flag: str) -> None:
        """Refuse a global flag that this command does not take."""
        refuse_foreign_flag(self.called(context), self.scope, flag)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        flags = ctx.ensure_object(Settings).flags
        for flag in flags:
            self.refuse_foreign(ctx, flag)
        try:
            return super().parse_args(ctx, self._with_flags(args, is_addressed=bool(flags.keys() & _ADDRESSES)))
        except click.UsageError as error:
            if not error.message.startswith("Got unexpected extra argument"):
                raise
            raise click.UsageError(error.message.rstrip(".") + self._address_hint(), ctx) from None

    def _with_flags(self, args: Sequence[str], *, is_addressed: bool) -> list[str]:
        """The same call with flags for a leading graph and for files of queries.

        `query g.omni people.gq friends` becomes `query --uri g.omni --query people.gq friends`. A name of a query, a branch or
        a commit is never taken for one of them: it has no `.gq` at its end and is no folder with a `__manifest`.
        """
        args = list(args)
        has_text = _gives(args, "--query", "-e", "--query-string")
        places = self._positionals(args)
        if self._takes_query_files and not has_text:
            for place in reversed([place for place in places if args[place].endswith(".gq")]):
                args[place : place + 1] = ["--query", args[place]]
            places = self._positionals(args)
        if not self._takes_graph_first or is_addressed or not places:
            return args
        first = args[places[0]]
        if not _gives(args, "--uri", "--store", "--server", "--cluster") and (
            _is_graph(first) or (first.endswith(".omni") and len(places) > self._most_positionals())
        ):
            args[places[0] : places[0] + 1] = ["--uri", first]
        return args

    def _positionals(self, args: Sequence[str]) -> list[int]:
        """The places of arguments that are neither flags nor values of flags."""
        values = {
            name: option.nargs
            for option in self.params
            if isinstance(option, click.Option) and not (option.is_flag or option.count)
            for name in option.opts
        }
        places, place = [], 0
        while place < len(args) and args[place] != "--":
            if args[place].startswith("-") and args[place] != "-":
                place += values.get(args[place], 0)
            else:
                places.append(place)
            place += 1
        return places

    def _most_positionals(self) -> float:
        """How many arguments the command declares; infinite where one takes any number."""
        counts = [parameter.nargs for parameter in self.params if isinstance(parameter, click.Argument)]
        return float("inf") if -1 in counts else sum(counts)

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        options, *arguments = super().collect_usage_pieces(ctx)
        graph = ["[URI]"] if self._takes_graph_first else []
        files = ["[FILE]"] if self._takes_query_files else []
        return [options, *graph, *files, *arguments]

    def _address_hint(self) -> str:
        """What is too much is often the graph: how this command is told about it."""
        return "; address the graph with --uri <uri>" if self._takes_graph_first else ""


def _names_graph(parameter: click.Parameter) -> bool:
    """Whether an argument of a command is the graph it works on."""
    return isinstance(parameter, click.Argument) and (parameter.name == "uri" or "URI" in (parameter.metavar or ""))


def _gives(args: Sequence[str], *flags: str) -> bool:
    """Whether one of these flags is among the arguments."""
    return any(word in flags or word.startswith(tuple(f"{flag}=" for flag in flags)) for word in args)


def _is_graph(word: str) -> bool:
    """Whether a word is certainly an address: a URI, or a folder with a graph."""
    return "://" in word or os.path.isdir(os.path.join(word, "__manifest"))  # noqa: PTH112, PTH118 (no error for odd words)


class Group(click.Group):
    """A family of commands, such as `schema`, that takes the global flags too."""

    command_class = Command

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params += global_flags(lambda _: False)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in self.commands and not args[0].startswith("-"):
            instead = did_you_mean(nearest_name(args[0], self.commands))
            ctx.fail(
                f"No such command '{args[0]}'{instead or '; the commands are ' + ', '.join(sorted(self.commands))}"
            )
        return super().resolve_command(ctx, args)


@dataclass(frozen=True)
class Lazy:
    """A command as its module, its name in the module, and its line in the list of commands."""

    module: str
    name: str
    summary: str


class LazyGroup(click.Group):
    """The root group: it knows its commands by name and imports only the called command."""

    def __init__(
        self,
        *args: Any,
        lazy: Mapping[str, Lazy],
        sections: Mapping[str, Mapping[str, Lazy]],
        renamed: Mapping[tuple[str, ...], str],
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self._lazy = lazy
        self._sections = sections
        self._renamed = renamed
        self.params += global_flags(lambda _: True)

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
                break
        if args[0] not in self._lazy and not args[0].startswith("-"):
            ctx.fail(f"No such command '{args[0]}'{did_you_mean(nearest_name(args[0], self._lazy))}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        widest = max(map(len, self._lazy))
        for title, commands in self._sections.items():
            with formatter.section(title):
                # One width for all sections, so that the summaries stand below each other.
                formatter.write_dl([(name.ljust(widest), lazy.summary) for name, lazy in commands.items()])
