"""Which graph a command works on: an explicit address, else the active profile, else the defaults of the configuration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import click

from omnigraph.cli.commands import Command
from omnigraph.cli.scope import DIRECT
from omnigraph.cli.settings import Settings
from omnigraph.errors import BadRequest

if TYPE_CHECKING:
    from omnigraph.graph.graph import Graph
    from omnigraph.spark.options import SparkOptions


@dataclass(frozen=True)
class Target:
    """The storage of one graph, as it was addressed."""

    uri: str

    @property
    def is_local(self) -> bool:
        """Whether it lies on this machine: a path or a file:// URI."""
        return "://" not in self.uri or self.uri.startswith("file://")

    @property
    def access(self) -> str:
        return "direct, local" if self.is_local else "direct, remote"


def resolve(context: click.Context, uri: str | None = None, *, named_by: str = "a positional URI") -> Target:
    """The graph that a call addresses; `uri` is what it gave besides the global flags."""
    settings = context.ensure_object(Settings)
    explicit = {named_by: uri} | {f"--{name}": settings.flags.get(name) for name in ("store", "server", "cluster")}
    given = [(way, address) for way, address in explicit.items() if address is not None]
    if len(given) > 1:
        raise click.UsageError(f"{' and '.join(way for way, _ in given)} exclude each other: address one graph")
    if given:
        return _addressed(context, settings, *given[0])
    profile = settings.profile
    if profile is not None:
        return _addressed(context, settings, f"--{profile.scope}", profile.endpoint)
    defaults = settings.config.defaults
    if defaults.server is not None:
        return _addressed(context, settings, "--server", defaults.server)
    if defaults.store is not None:
        return _addressed(context, settings, "--store", defaults.store)
    raise BadRequest(
        "no graph addressed — pass a positional URI, --store <uri>, --server <name>, --profile <name>, "
        f"or set defaults.store in {settings.config.path}"
    )


def _addressed(context: click.Context, settings: Settings, way: str, address: str) -> Target:
    if way in ("--server", "--cluster"):
        raise _no_server(context, settings, way, address)
    if _is_web_address(address):
        _refuse_served(context, address)
    refuse_remote(address)
    if "graph" in settings.flags:
        raise BadRequest(f"`--graph` does not apply: {address} is already a single graph")
    return Target(address)


def _no_server(context: click.Context, settings: Settings, way: str, address: str) -> BadRequest:
    """Why a served address can not be used: the command needs storage, the name is unknown, or there is no client."""
    if way == "--server":
        _refuse_served(context, address)
    known = settings.config.servers if way == "--server" else settings.config.clusters
    if address not in known and "/" not in address:
        section = "servers" if way == "--server" else "clusters"
        return BadRequest(
            f"no {section[:-1]} '{address}' is configured; name it under `{section}:` in {settings.config.path}"
        )
    return BadRequest(
        f"no server is configured that could serve '{address}': this release works on storage only, "
        "address the graph with --store <uri>"
    )


def _refuse_served(context: click.Context, address: str) -> None:
    """A command that works on storage can not work through a server, however it is addressed."""
    command = context.command
    if isinstance(command, Command) and command.scope.kind == DIRECT.kind:
        raise BadRequest(
            f"`{command.called(context)}` is a direct (storage-native) command and needs direct storage access; "
            f"'{address}' is a server, address the graph with --store <uri>"
        )


def _is_web_address(uri: str) -> bool:
    return uri.lower().startswith(("http://", "https://"))


def refuse_remote(uri: str) -> None:
    """A web address is a server's, never the storage of a graph."""
    if _is_web_address(uri):
        raise BadRequest(f"a remote graph must be addressed with `--server <url>`; {uri} is not a graph's storage")


def open_graph(
    target: Target, mode: Literal["rw", "ro"], actor: str | None = None, *, spark: SparkOptions | None = None
) -> Graph:
    """The graph at a target; reading commands write nothing at all."""
    from omnigraph.graph.entry import open

    return open(target.uri, mode, actor=actor, spark=spark)
