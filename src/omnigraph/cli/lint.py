"""`omnigraph lint`: every problem of a query file against a schema."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from omnigraph.cli import output
from omnigraph.cli.addressing import open_graph, resolve_storage
from omnigraph.cli.commands import Command
from omnigraph.cli.options import json_option, positional_uri
from omnigraph.cli.scope import DIRECT
from omnigraph.cli.settings import Settings
from omnigraph.cli.sources import read_source, source_name
from omnigraph.errors import LanguageError

if TYPE_CHECKING:
    from omnigraph.language.query.lint import Finding, LintReport, QueryReport

_LABELS = {"error": "ERROR", "warning": "WARN ", "info": "INFO "}


@click.command(cls=Command, scope=DIRECT)
@positional_uri
@click.option(
    "--query", "query_path", metavar="FILE", required=True, help="The queries to check; - for standard input."
)
@click.option("--schema", "schema_path", metavar="FILE", help="A schema file to check against, instead of a graph.")
@json_option
@click.pass_context
def lint(context: click.Context, uri: str | None, query_path: str, schema_path: str | None, as_json: bool) -> None:
    """Check a file of queries against a schema."""
    from omnigraph.language.query.lint import lint_queries
    from omnigraph.language.schema.build import compile_schema

    schema, source = _schema(context, uri, schema_path)
    catalog = compile_schema(schema, schema_path and source_name(schema_path))
    report = lint_queries(read_source(query_path), catalog, source_name(query_path))
    if as_json:
        output.json({"status": report.status, "schema_source": source, "query_path": query_path} | report.to_dict())
    else:
        for line in _lines(report):
            output.line(line)
    if report.status == "error":
        context.exit(1)


def _schema(context: click.Context, uri: str | None, schema_path: str | None) -> tuple[str, dict[str, str]]:
    """The text of the schema, and where it came from: a file, or the graph that is addressed."""
    if schema_path is None:
        target = resolve_storage(context, uri)
        return open_graph(target, "ro").schema(), {"kind": "graph", "uri": target.uri}
    addresses = [f"--{flag}" for flag in context.ensure_object(Settings).flags]
    if uri is not None or addresses:
        way = "a positional URI" if uri is not None else addresses[0]
        raise click.UsageError(f"--schema and {way} exclude each other; give one of them")
    return read_source(schema_path), {"kind": "file", "path": schema_path}


def _lines(report: LintReport) -> Iterator[str]:
    for result in report.results:
        yield from _result_lines(result)
    for finding in report.findings:
        yield f"{_LABELS[finding.severity]} {_described(finding)}"
    yield (
        f"INFO  Lint complete: {len(report.results)} queries processed ({report.count('error')} error(s), "
        f"{report.count('warning')} warning(s), {report.count('info')} info item(s))"
    )


def _result_lines(result: QueryReport) -> Iterator[str]:
    name = f"query `{result.query.name}`" if result.query.name else "query"
    if result.error is None:
        yield f"OK    {name} ({'mutation' if result.query.is_mutation else 'read'})"
    for finding in result.findings:
        yield f"{_LABELS[finding.severity]} {name}: {_described(finding)}"


def _described(finding: Finding) -> str:
    """The message, with the source line and a caret where the finding has a place."""
    if isinstance(finding.error, LanguageError):
        return output.render(finding.error, sys.stdout)
    return finding.message
