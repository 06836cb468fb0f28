"""`omnigraph load` and `omnigraph ingest`: many rows, one commit."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from omnigraph.cli import output
from omnigraph.cli.addressing import confirm_destruction, echo_write, open_graph, resolve
from omnigraph.cli.commands import Command
from omnigraph.cli.options import (
    branch_option,
    engine_options,
    idempotency_option,
    json_option,
    message_option,
    positional_uri,
    refuse_both,
    together,
)
from omnigraph.cli.progress import shown_progress
from omnigraph.cli.scope import WRITE
from omnigraph.cli.settings import Settings
from omnigraph.commit.model import MAIN
from omnigraph.errors import BadRequest, BranchNotFound, LoadRejected
from omnigraph.graph.loading import edges_again_text
from omnigraph.spark.options import SparkOptions
from omnigraph.wire.shapes import load_output

if TYPE_CHECKING:
    from omnigraph.load.model import LoadResult

_MODES = click.Choice(["overwrite", "append", "merge", "update"])
_MODES_HELP = (
    "What becomes of rows that exist: append refuses them, merge replaces the whole row (what is not given becomes null or its "
    "default), update keeps what is not given, overwrite replaces every type that the input mentions"
)

_input_options = together(
    click.option(
        "--data",
        metavar="FILE",
        multiple=True,
        required=True,
        help="A file, a folder, a glob, an s3:// URI or - for standard input; may be repeated.",
    ),
    click.option(
        "--format",
        type=click.Choice(["jsonl", "parquet", "csv", "arrow"]),
        help="What the files are; by the end of their names unless given, else JSON lines.",
    ),
    click.option("--type", "type_name", metavar="TYPE", help="Tables only: the rows are nodes of this type."),
    click.option("--edge", metavar="TYPE", help="Tables only: the rows are edges of this type."),
    click.option(
        "--map",
        "maps",
        metavar="COLUMN=NAME|FILE",
        multiple=True,
        help="Tables only: a column is id, from, to or a property; may be repeated. Or a JSON file of such pairs.",
    ),
    click.option("--ignore-extra", is_flag=True, help="Tables only: leave columns out that are no properties."),
    click.option(
        "--delimiter",
        metavar="CHARACTER",
        help="CSV only: what stands between fields, such as ; or tab; found out unless given.",
    ),
    message_option,
    idempotency_option,
)


@click.command(cls=Command, scope=WRITE)
@positional_uri
@_input_options
@click.option("--mode", type=_MODES, required=True, help=f"{_MODES_HELP}.")
@branch_option
@click.option("--from", "base", metavar="BASE", help="Create the branch from this one, together with the load.")
@click.option("--lenient", is_flag=True, help="Read a stream of JSON values and pass over what is unknown.")
@engine_options
@json_option
@click.pass_context
def load(context: click.Context, /, **options: Any) -> None:
    """Load rows into a branch: all of them in one commit, or none."""
    _load(context, "load", **options)


@click.command(cls=Command, scope=WRITE)
@positional_uri
@_input_options
@click.option("--mode", type=_MODES, default="merge", help=f"{_MODES_HELP}; merge unless given.")
@click.option("--branch", metavar="NAME", required=True, help="The branch; it is created when there is none.")
@click.option(
    "--from", "base", metavar="BASE", default=MAIN, help="What the branch is created from; main unless given."
)
@engine_options
@json_option
@click.pass_context
def ingest(context: click.Context, /, **options: Any) -> None:
    """Load into a branch that is created with the rows.

    A stream of JSON values is read permissively: what is unknown is passed over.
    """
    output.warn("`ingest` reads permissively: what is unknown is passed over; `load --from BASE` is strict")
    _load(context, "ingest", lenient=options["format"] in (None, "jsonl"), **options)


def _load(
    context: click.Context,
    command: str,
    *,
    uri: str | None,
    data: tuple[str, ...],
    format: Literal["jsonl", "parquet", "csv", "arrow"] | None,
    type_name: str | None,
    edge: str | None,
    maps: tuple[str, ...],
    ignore_extra: bool,
    delimiter: str | None,
    message: str | None,
    idempotency_key: str | None,
    mode: Literal["overwrite", "append", "merge", "update"],
    branch: str | None,
    base: str | None,
    lenient: bool,
    engine: Literal["auto", "local", "spark"],
    spark: SparkOptions,
    as_json: bool,
) -> None:
    refuse_both(type=type_name, edge=edge)
    settings = context.ensure_object(Settings)
    target = resolve(context, uri)
    if mode == "overwrite":
        confirm_destruction(settings, f"{command} --mode overwrite", target, as_json=as_json)
    echo_write(settings, command, target)
    graph = open_graph(target, "rw", settings.actor, spark=spark)
    with shown_progress(settings.quiet) as progress, _with_a_way_on(mode, branch, base), warnings.catch_warnings():
        # What the library warns of is told below, once and in the form of all warnings.
        warnings.simplefilter("ignore", UserWarning)
        result = graph.load(
            list(data),
            mode,
            branch=branch or MAIN,
            base=base,
            engine=engine,
            lenient=lenient,
            format=format,
            type=type_name,
            edge=edge,
            mapping=_mapping(maps),
            ignore_extra=ignore_extra,
            delimiter=_delimiter(delimiter),
            message=message,
            idempotency_key=idempotency_key,
            progress=progress,
        )
    ignored = result.report.ignored
    if any((ignored.fields, ignored.properties, ignored.values)):
        output.warn(
            f"passed over: {ignored.fields} unknown field(s), {ignored.properties} unknown propert(ies), "
            f"{ignored.values} wrong value(s)"
        )
    _warn(result)
    if as_json:
        output.json(load_output(target.uri, result))
        return
    output.line(_summary(target.uri, result))
    if result.branch_created:
        output.line(f"branch {result.branch} created from {result.base_branch}")
    output.fields({"actor_id": graph.actor})


@contextmanager
def _with_a_way_on(mode: str, branch: str | None, base: str | None) -> Iterator[None]:
    """Refusals that another flag would have met say which: rows can be updated, a branch can come with the load."""
    try:
        yield
    except LoadRejected as error:
        if mode == "append" and "exists already" in error.message:
            ways = "pass --mode update to change existing rows, or --mode merge to replace whole rows"
            error.message += f"\nappend adds new rows only; {ways}"
        raise
    except BranchNotFound as error:
        if base is not None or error.branch != branch:
            raise
        raise BranchNotFound(
            f"{error.message}; pass --from {MAIN} to create it with the load", branch=error.branch
        ) from error


def _summary(uri: str, result: LoadResult) -> str:
    nodes, edges = (sum(table.kind == kind for table in result.tables) for kind in ("node", "edge"))
    total = result.nodes_loaded + result.edges_loaded
    return (
        f"loaded {uri} on branch {result.branch} with {result.mode}: {total} entities across {nodes} node types "
        f"and {edges} edge types"
    )


def _warn(result: LoadResult) -> None:
    """Print warnings about surprising outcomes of a successful load."""
    cleared = result.report.cleared
    if cleared:
        listed = ", ".join(f"{name} {count}" for name, count in cleared.items())
        output.warn(
            f"merge replaced whole rows: {sum(cleared.values())} stored value(s) that the input does not give are null now "
            f"({listed}); --mode update keeps them"
        )
    if result.report.edges_again:
        output.warn(edges_again_text(result.report.edges_again))


def _delimiter(given: str | None) -> str | None:
    mark = {"tab": "\t", "\\t": "\t"}.get(given or "", given)
    if mark is not None and (len(mark) != 1 or mark in '"\r\n' or ord(mark) > 127):
        raise click.BadParameter(
            f"{given!r} is no delimiter; give one ASCII character, or tab", param_hint="--delimiter"
        )
    return mark


def _mapping(given: tuple[str, ...]) -> dict[str, str] | None:
    """The columns of a table and what they are, from pairs on the command line and from JSON files."""
    found: dict[str, str] = {}
    for text in given:
        column, equals, name = text.partition("=")
        found |= {column: name} if equals and column and name and not Path(text).exists() else _mapping_file(text)
    return found or None


def _mapping_file(file: str) -> dict[str, str]:
    import orjson

    try:
        found = orjson.loads(Path(file).read_bytes())
    except OSError as error:
        raise BadRequest(f"can not read {file}: {error.strerror}") from error
    except orjson.JSONDecodeError as error:
        raise BadRequest(f"{file} is not valid JSON: {error.msg} at line {error.lineno}") from error
    if not isinstance(found, dict) or not all(isinstance(name, str) for name in found.values()):
        raise BadRequest(f"{file} maps columns to names: a JSON object of texts")
    return found
