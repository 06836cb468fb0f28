"""Which graph a command works on: an explicit address, else the active profile, else the defaults of the configuration.

Commands take a graph through `resolve` and `open_graph`, whether it is stored or served; commands that work on storage
itself use `resolve_storage`.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal, overload

import click

from omnigraph.cli import output
from omnigraph.cli.commands import Command
from omnigraph.cli.scope import DIRECT
from omnigraph.cli.servers import Server, is_web_address, server_at
from omnigraph.cli.settings import Settings
from omnigraph.errors import BadRequest, redacted

if TYPE_CHECKING:
    from omnigraph.client.graph import AnyGraph, RemoteGraph
    from omnigraph.cluster.applied import AppliedCluster
    from omnigraph.graph.graph import Graph
    from omnigraph.spark.options import SparkOptions


@dataclass(frozen=True)
class Stored:
    """A graph on storage, as addressed by flags, profile or defaults."""

    uri: str
    #: Settings of the object store, which a cluster may have.
    options: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    @property
    def storage_options(self) -> dict[str, str] | None:
        return dict(self.options) or None

    @property
    def is_local(self) -> bool:
        """Whether it lies on this machine: a path or a file:// URI."""
        return "://" not in self.uri or self.uri.startswith("file://")

    @property
    def access(self) -> str:
        return "direct, local" if self.is_local else "direct, remote"


@dataclass(frozen=True)
class Served:
    """A graph of a server; `graph` is its id."""

    server: Server
    graph: str

    is_local = False
    access = "served"

    @property
    def uri(self) -> str:
        return redacted(f"{self.server.url}/graphs/{self.graph}")


Target = Stored | Served


@dataclass(frozen=True)
class Addressed:
    """The addressed scope: a storage, or a server and possibly one of its graphs."""

    storage: Stored | None = None
    server: Server | None = None
    graph: str | None = None


def resolve(context: click.Context, uri: str | None = None, *, named_by: str = "a positional URI") -> Target:
    """The graph that a call addresses; `uri` is its argument, in addition to the global flags."""
    scope = scope_of(context, uri, named_by=named_by)
    if scope.server is None:
        assert scope.storage is not None, "a scope is a storage or a server"
        return scope.storage
    if "as" in context.ensure_object(Settings).flags:
        raise BadRequest("`--as` is not allowed on a served write: the server takes the actor from the token")
    return Served(scope.server, scope.graph or scope.server.only_graph())


def resolve_storage(context: click.Context, uri: str | None = None, *, named_by: str = "a positional URI") -> Stored:
    """The storage that a call addresses, for commands that servers do not offer."""
    scope = scope_of(context, uri, named_by=named_by)
    if scope.storage is None:
        assert scope.server is not None, "a scope is a storage or a server"
        raise _needs_storage(context, scope.server.called)
    return scope.storage


def scope_of(context: click.Context, uri: str | None = None, *, named_by: str = "a positional URI") -> Addressed:
    """The scope that a call addresses, as far as it is known without a request to a server."""
    settings = context.ensure_object(Settings)
    explicit = {named_by: uri} | {f"--{name}": settings.flags.get(name) for name in ("store", "server", "cluster")}
    given = [(way, address) for way, address in explicit.items() if address is not None]
    if len(given) > 1:
        raise click.UsageError(f"{' and '.join(way for way, _ in given)} exclude each other: address one graph")
    graph = settings.flags.get("graph")
    if given:
        return _addressed(context, settings, *given[0], graph)
    profile = settings.profile
    if profile is not None:
        return _addressed(context, settings, f"--{profile.scope}", profile.endpoint, graph or profile.default_graph)
    defaults = settings.config.defaults
    if defaults.server is not None:
        return _addressed(context, settings, "--server", defaults.server, graph or defaults.default_graph)
    if defaults.store is not None:
        return _addressed(context, settings, "--store", defaults.store, graph)
    raise BadRequest(
        "no graph addressed — pass a positional URI, --store <uri>, --server <name>, --profile <name>, "
        f"or set defaults.store in {settings.config.path}"
    )


def _addressed(context: click.Context, settings: Settings, way: str, address: str, graph: str | None) -> Addressed:
    if way == "--server":
        return Addressed(server=server_at(settings, address), graph=graph)
    if way == "--cluster":
        return Addressed(storage=_of_cluster(context, settings, address, graph))
    if is_web_address(address) and _is_direct(context):
        raise _needs_storage(context, address)
    refuse_remote(address)
    if graph is not None:
        raise BadRequest(f"`--graph` does not apply: {address} is already a single graph")
    return Addressed(storage=Stored(address))


def _of_cluster(context: click.Context, settings: Settings, address: str, graph: str | None) -> Stored:
    """The storage of a graph of an applied cluster, for commands that work on storage."""
    if not _is_direct(context):
        raise BadRequest(
            f"'{address}' is a cluster, whose graphs are read and written through a server: address that with --server <name>"
        )
    known = settings.config.clusters
    if address not in known and "/" not in address and not Path(address).exists():
        raise BadRequest(f"no cluster '{address}' is configured; name it under `clusters:` in {settings.config.path}")
    from omnigraph.cluster.applied import read_applied

    found = read_applied(known.get(address, address)).graph(graph)
    return Stored(found.uri, tuple(sorted(found.storage_options.items())))


def _is_direct(context: click.Context) -> bool:
    command = context.command
    return isinstance(command, Command) and command.scope.kind == DIRECT.kind


def _needs_storage(context: click.Context, address: str) -> BadRequest:
    """Raise an error when a server is addressed for a command that works on storage only."""
    command = context.command
    called = command.called(context) if isinstance(command, Command) else context.command_path
    return BadRequest(
        f"`{called}` is a direct (storage-native) command and needs direct storage access; "
        f"'{redacted(address)}' is a server, address the graph with --store <uri>"
    )


def refuse_remote(uri: str) -> None:
    """Raise an error for a web address (of a server) in place of the storage of a graph."""
    if is_web_address(uri):
        raise BadRequest(f"a remote graph must be addressed with `--server <url>`; {uri} is not a graph's storage")


@overload
def open_graph(
    target: Stored, mode: Literal["rw", "ro"], actor: str | None = None, *, spark: SparkOptions | None = None
) -> Graph: ...
@overload
def open_graph(
    target: Served, mode: Literal["rw", "ro"], actor: str | None = None, *, spark: SparkOptions | None = None
) -> RemoteGraph: ...
@overload
def open_graph(
    target: Target, mode: Literal["rw", "ro"], actor: str | None = None, *, spark: SparkOptions | None = None
) -> AnyGraph: ...
def open_graph(
    target: Target, mode: Literal["rw", "ro"], actor: str | None = None, *, spark: SparkOptions | None = None
) -> AnyGraph:
    """The graph at a target; reading commands open it read-only. For a served graph the server determines the actor."""
    if isinstance(target, Stored):
        from omnigraph.graph.entry import open

        return open(target.uri, mode, actor=actor, spark=spark, storage_options=target.storage_options)
    from omnigraph.client.graph import remote_graph

    if spark is not None and (spark.master is not None or spark.conf or spark.ship_package):
        raise BadRequest(
            "--spark-master, --spark-conf and --spark-ship-package are for graphs on storage; a server has its own"
        )
    return remote_graph(target.server.url, target.graph, target.server.token)


def echo_write(settings: Settings, label: str, target: Target) -> None:
    """Print on stderr the graph to which a command is about to write, unless `--quiet`."""
    if not settings.quiet:
        output.note(f"omnigraph {label} → {target.uri} ({target.access})")


def confirm_destruction(settings: Settings, label: str, target: Target, *, as_json: bool) -> None:
    """Raise an error for a destructive write on a non-local target without `--yes`, unless a person types `yes`."""
    if target.is_local or settings.yes:
        return
    if as_json or not output.is_terminal(sys.stdin):
        raise BadRequest(
            f"refusing destructive `{label}` against non-local target {target.uri}; pass --yes to go ahead"
        )
    answer = click.prompt(f"`{label}` destroys data in {target.uri}; type `yes` to go ahead", default="", err=True)
    if answer != "yes":
        raise BadRequest(f"`{label}` was not confirmed; nothing was changed")


_GRAPH_OF_A_CLUSTER = re.compile(r"(?P<root>.+)/graphs/[^/]+\.omni")


def cluster_root(uri: str) -> str | None:
    """The root of the cluster that contains the place of a graph; None when there is no cluster."""
    from omnigraph.storage.objects import open_store
    from omnigraph.storage.root import Root

    place = Root.parse(uri)
    inside = _GRAPH_OF_A_CLUSTER.fullmatch(place.uri)
    if inside is not None and open_store(Root(inside["root"], place.options)).exists("__cluster/state.json"):
        return inside["root"]
    return None


def cluster_address(context: click.Context) -> str:
    """The place of the cluster that a call addresses."""
    settings = context.ensure_object(Settings)
    given = settings.flags.get("cluster")
    if given is None:
        profile = settings.profile
        if profile is None or profile.scope != "cluster":
            raise BadRequest("no cluster addressed — pass --cluster <dir|uri>, or --profile <name> of a cluster")
        given = profile.endpoint
    return settings.config.clusters.get(given, given)


def applied_cluster(context: click.Context) -> tuple[AppliedCluster, str | None]:
    """The applied revision of the addressed cluster, and the graph that was named."""
    from omnigraph.cluster.applied import read_applied

    return read_applied(cluster_address(context)), context.ensure_object(Settings).flags.get("graph")
