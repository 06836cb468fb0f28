"""`omnigraph lint`: every problem of a query file against a schema."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from omnigraph.cli import output
from omnigraph.cli.commands import Command
from omnigraph.cli.sources import read_source
from omnigraph.errors import LanguageError

if TYPE_CHECKING:
    from omnigraph.language.query.lint import Finding, LintReport, QueryReport

_LABELS = {"error": "ERROR", "warning": "WARN ", "info": "INFO "}


@click.command(cls=Command)
@click.option("--query", "query_path", metavar="FILE", required=True, help="The queries to check.")
@click.option("--schema", "schema_path", metavar="FILE", required=True, help="The schema they are meant for.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
@click.pass_context
def lint(context: click.Context, query_path: str, schema_path: str, as_json: bool) -> None:
    """Check a file of queries against a schema."""
    from omnigraph.language.query.lint import lint_queries
    from omnigraph.language.schema.build import compile_schema

    catalog = compile_schema(read_source(schema_path), schema_path)
    report = lint_queries(read_source(query_path), catalog, query_path)
    if as_json:
        source = {"kind": "file", "path": schema_path}
        output.json({"status": report.status, "schema_source": source, "query_path": query_path} | report.to_dict())
    else:
        for line in _lines(report):
            output.line(line)
    if report.status == "error":
        context.exit(1)


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
    name = f"query `{result.query.name}`"
    if result.error is None:
        yield f"OK    {name} ({'mutation' if result.query.is_mutation else 'read'})"
    for finding in result.findings:
        yield f"{_LABELS[finding.severity]} {name}: {_described(finding)}"


def _described(finding: Finding) -> str:
    """The message, with the source line and a caret where the finding has a place."""
    if isinstance(finding.error, LanguageError):
        return output.render(finding.error, sys.stdout)
    return finding.message
