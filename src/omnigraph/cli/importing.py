"""`omnigraph import`: a new graph from the export of another database."""

from __future__ import annotations

import warnings
from typing import Any, Literal

import click

from omnigraph.cli import output
from omnigraph.cli.addressing import refuse_remote
from omnigraph.cli.commands import Command
from omnigraph.cli.init import refuse_inside_cluster
from omnigraph.cli.options import engine_options, json_option
from omnigraph.cli.progress import shown_progress
from omnigraph.cli.scope import IMPORT
from omnigraph.cli.settings import Settings
from omnigraph.spark.options import SparkOptions

#: How many notes are printed; `--json` has all of them.
_SHOWN_NOTES = 50


@click.command("import", cls=Command, scope=IMPORT)
@click.argument("places", nargs=-1, metavar="[FILE]... GRAPH")
@click.option("--from", "kind", type=click.Choice(["neo4j-dump"]), help="The files are those of apoc.export.json.all.")
@click.option("--csv-admin", metavar="DIR", help="A folder of CSV files with the headers of neo4j-admin.")
@click.option("--schema-only", is_flag=True, help="Print the proposed schema and make no graph.")
@click.option("--schema", "schema_path", metavar="FILE", help="Use this schema: the proposed one after changes to it.")
@click.option(
    "--ignore-label", "ignored", metavar="LABEL", multiple=True, help="A label that names no type; may be repeated."
)
@click.option("--no-dates", is_flag=True, help="Texts stay texts, also where every one is a date in ISO form.")
@click.option("--delimiter", metavar="CHARACTER", help="CSV only: what stands between fields; found out unless given.")
@click.option(
    "--array-delimiter",
    metavar="CHARACTER",
    default=";",
    help="CSV only: what stands between elements; a semicolon unless given.",
)
@engine_options
@json_option
@click.pass_context
def import_(
    context: click.Context,
    places: tuple[str, ...],
    kind: str | None,
    csv_admin: str | None,
    schema_only: bool,
    schema_path: str | None,
    ignored: tuple[str, ...],
    no_dates: bool,
    delimiter: str | None,
    array_delimiter: str,
    engine: Literal["auto", "local", "spark"],
    spark: SparkOptions,
    as_json: bool,
) -> None:
    """Make a new graph of an export of Neo4j: a proposed schema, and everything in one commit."""
    settings = context.ensure_object(Settings)
    sources, uri = _places(places, kind, csv_admin, schema_only)
    reading: dict[str, Any] = {
        "format": "csv-admin" if csv_admin is not None else kind,
        "dates": not no_dates,
        "ignore_labels": ignored,
        "delimiter": {"tab": "\t", "\\t": "\t"}.get(delimiter or "", delimiter),
        "array_delimiter": array_delimiter,
    }
    from omnigraph.integrations.neo4j.run import import_neo4j, propose_neo4j

    if schema_only:
        proposed = propose_neo4j(sources, **reading)
        if as_json:
            output.json(proposed.to_dict())
            return
        _show_notes([str(note) for note in proposed.notes])
        output.line(proposed.schema.rstrip("\n"))
        return
    assert uri is not None
    refuse_remote(uri)
    refuse_inside_cluster(uri)
    with shown_progress(settings.quiet) as progress, warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        done = import_neo4j(
            sources,
            uri,
            schema=None if schema_path is None else _schema(schema_path),
            actor=settings.actor,
            engine=engine,
            spark=spark,
            progress=progress,
            **reading,
        )
    if as_json:
        output.json(done.to_dict())
        return
    _show_notes([str(note) for note in done.notes])
    nodes, edges = (sum(table.kind == kind for table in done.load.tables) for kind in ("node", "edge"))
    output.line(
        f"imported {uri}: {_counted(done.load.nodes_loaded, 'node')} of {_counted(nodes, 'type')} and "
        f"{_counted(done.load.edges_loaded, 'edge')} of {_counted(edges, 'type')}"
    )


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _places(
    places: tuple[str, ...], kind: str | None, csv_admin: str | None, schema_only: bool
) -> tuple[list[str], str | None]:
    """The source, and the URI of the new graph; None when only the schema is requested."""
    if (kind is None) == (csv_admin is None):
        raise click.UsageError("say what is imported: --from neo4j-dump FILE GRAPH, or --csv-admin DIR GRAPH")
    if csv_admin is not None:
        if len(places) != 1 and not (schema_only and not places):
            raise click.UsageError("--csv-admin DIR takes one argument, the GRAPH that is made")
        return [csv_admin], places[0] if places else None
    if schema_only and len(places) == 1:
        return [places[0]], None
    if len(places) < 2:
        raise click.UsageError("--from neo4j-dump takes at least one FILE, then the GRAPH that is made")
    return list(places[:-1]), places[-1]


def _schema(path: str) -> str:
    from omnigraph.cli.sources import read_source

    return read_source(path)


def _show_notes(notes: list[str]) -> None:
    for note in notes[:_SHOWN_NOTES]:
        output.note(f"note: {note}")
    if len(notes) > _SHOWN_NOTES:
        output.note(f"note: … and {len(notes) - _SHOWN_NOTES} more; --json has all of them")
