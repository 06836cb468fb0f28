"""`omnigraph serve`: serve graphs over HTTP; and `omnigraph-server`, which serves the applied revision of a cluster."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from omnigraph.cli import output
from omnigraph.cli.commands import Command
from omnigraph.cli.scope import SERVING
from omnigraph.cli.settings import Settings as Told
from omnigraph.errors import BadRequest

if TYPE_CHECKING:
    from omnigraph.server.settings import Rights, Settings

_DEFAULTS: dict[str, Any] = {
    "bind": "127.0.0.1:8080",
    "workers": 1,
    "read_only": False,
    "unauthenticated": False,
    "full_access": False,
    "require_all_graphs": False,
    "tls_cert": None,
    "tls_key": None,
    "drain_seconds": 30,
    "studio": True,
}


@click.command(cls=Command, scope=SERVING)
@click.argument("graphs", metavar="[NAME=]GRAPH", nargs=-1)
@click.option("--bind", metavar="HOST:PORT", help="The address; 127.0.0.1:8080 unless given. Port 0 takes a free one.")
@click.option("--workers", type=click.IntRange(1, 64), metavar="N", help="How many processes serve; 1 unless given.")
@click.option("--read-only", is_flag=True, default=None, help="Change nothing, whoever asks.")
@click.option(
    "--unauthenticated", is_flag=True, default=None, help="Need no token: whoever reaches it may do everything."
)
@click.option("--full-access", is_flag=True, default=None, help="Tokens of the environment may do everything.")
@click.option("--require-all-graphs", is_flag=True, default=None, help="Do not start when a graph can not be opened.")
@click.option("--tls-cert", metavar="FILE", help="The certificate chain of the server, in PEM form.")
@click.option("--tls-key", metavar="FILE", help="The private key of the certificate, in PEM form.")
@click.option(
    "--drain-seconds", type=click.IntRange(min=0), metavar="N", help="How long requests may take to end at a stop; 30."
)
@click.option("--studio/--no-studio", default=None, help="Whether the web page is served at `/`; it is.")
@click.option("--config", metavar="FILE", help="A YAML file with the same names, `graphs` and `limits`.")
@click.pass_context
def serve(context: click.Context, /, graphs: tuple[str, ...], config: str | None, **flags: Any) -> None:
    """Serve graphs over HTTP.

    Each graph is served under NAME, or the name of its folder; with --cluster, those of its applied revision. Prints the address
    on stdout. Without tokens in the environment, a token for this run is made and shown, except for a cluster.
    """
    from omnigraph.server.process import run

    told = context.ensure_object(Told)
    address = told.flags.get("cluster")
    cluster = None if address is None else told.config.clusters.get(address, address)
    settings = _settings(graphs, config, flags, cluster)

    def announce(address: str) -> None:
        if settings.one_time_token is not None:
            output.note("This token is for this run of the server; whoever has it may do everything:")
            output.note(f"  export OMNIGRAPH_BEARER_TOKEN={settings.one_time_token}")
        output.line(f"OMNIGRAPH_LISTEN_ADDR={address}")
        output.flush()

    run(settings, announce)


def _settings(graphs: tuple[str, ...], config: str | None, flags: dict[str, Any], cluster: str | None) -> Settings:
    """What the flags say, then the configuration file, then the environment, then the defaults."""
    from omnigraph.server import settings as told

    file = told.read_config(config) if config is not None else {}
    chosen = {name: _first(flags.get(name), file.get(name), default) for name, default in _DEFAULTS.items()}
    folder = Path(config).resolve().parent if config is not None else Path()
    sources = tuple(map(told.graph_source, graphs))
    if "graphs" in file:
        sources += told.graphs_of_config(file["graphs"], folder)
    if cluster is not None and sources:
        raise BadRequest("a cluster says itself which graphs it has: give --cluster, or graphs, not both")
    if not sources and cluster is None:
        raise BadRequest("name a graph to serve: omnigraph serve GRAPH.omni, or name=URI")
    told.refuse_twice(sources)
    host, port = told.split_address(str(chosen["bind"]))
    if (chosen["tls_cert"] is None) != (chosen["tls_key"] is None):
        raise BadRequest("--tls-cert and --tls-key belong together; give both")
    for name in ("tls_cert", "tls_key"):
        if chosen[name] is not None and not Path(chosen[name]).is_file():
            raise BadRequest(f"there is no file '{chosen[name]}' for --{name.replace('_', '-')}")
    rights, token = _rights(chosen, host) if cluster is None else (_cluster_rights(chosen), None)
    limits = told.limits_of_config(file.get("limits", {}))
    return told.Settings(
        graphs=sources,
        cluster=cluster,
        host=host,
        port=port,
        workers=chosen["workers"],
        rights=rights,
        one_time_token=token,
        read_only=chosen["read_only"],
        require_all_graphs=chosen["require_all_graphs"] or told.is_set(os.environ, "OMNIGRAPH_REQUIRE_ALL_GRAPHS"),
        tls_cert=chosen["tls_cert"],
        tls_key=chosen["tls_key"],
        drain_seconds=chosen["drain_seconds"],
        studio=bool(chosen["studio"]),
        limits=told.limits_of_environment(os.environ, limits),
    )


def _rights(chosen: dict[str, Any], host: str) -> tuple[Rights, str | None]:
    """Who may do what, and the token that is made when there is none and the server is reached from this machine only."""
    from omnigraph.server.settings import is_loopback, is_set
    from omnigraph.server.tokens import new_token, read_tokens

    unauthenticated = chosen["unauthenticated"] or is_set(os.environ, "OMNIGRAPH_UNAUTHENTICATED")
    if read_tokens(os.environ):
        return ("full" if chosen["full_access"] else "default-deny"), None
    if unauthenticated:
        return "open", None
    if not is_loopback(host):
        raise BadRequest(
            f"{host} is reached from other machines: set tokens (OMNIGRAPH_SERVER_BEARER_TOKENS_FILE, …_JSON or "
            "OMNIGRAPH_SERVER_BEARER_TOKEN), or pass --unauthenticated to let everybody in"
        )
    return "full", new_token()


def _cluster_rights(chosen: dict[str, Any]) -> Rights:
    """Who may do what with graphs of a cluster that have no policy; nobody gets in by accident."""
    from omnigraph.server.settings import is_set
    from omnigraph.server.tokens import read_tokens

    if chosen["full_access"]:
        raise BadRequest("--full-access is for single graphs; who may do what in a cluster is declared in its policies")
    if read_tokens(os.environ):
        return "default-deny"
    if chosen["unauthenticated"] or is_set(os.environ, "OMNIGRAPH_UNAUTHENTICATED"):
        return "open"
    raise BadRequest(
        "a cluster is served to callers with tokens: set OMNIGRAPH_SERVER_BEARER_TOKENS_FILE, …_JSON or "
        "OMNIGRAPH_SERVER_BEARER_TOKEN, or pass --unauthenticated to let everybody in"
    )


def _first(*values: Any) -> Any:
    return next((value for value in values if value is not None), None)


# --- omnigraph-server --------------------------------------------------------------------------------------------------


@click.command()
@click.option("--cluster", metavar="DIR|URI", required=True, help="The cluster whose applied revision is served.")
@click.option("--bind", metavar="HOST:PORT", default="127.0.0.1:8080", show_default=True, help="The address.")
@click.option("--unauthenticated", is_flag=True, help="Need no token: whoever reaches it may do everything.")
@click.option("--require-all-graphs", is_flag=True, help="Do not start when a graph can not be served.")
def cluster_server(cluster: str, bind: str, unauthenticated: bool, require_all_graphs: bool) -> None:
    """Serve the applied revision of a cluster over HTTP."""
    from omnigraph.cli.main import run

    flags = ["--unauthenticated"] * unauthenticated + ["--require-all-graphs"] * require_all_graphs
    sys.exit(run(["serve", "--cluster", cluster, "--bind", bind, *flags]))


def main(arguments: Sequence[str] | None = None) -> None:
    """The entry point of the installed command."""
    cluster_server.main(arguments, prog_name="omnigraph-server")
