"""`omnigraph lint`, `fmt` and `functions`: the two languages without a graph."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from difflib import unified_diff
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

import click

from omnigraph.cli import output
from omnigraph.cli.addressing import open_graph, resolve_storage
from omnigraph.cli.commands import Command
from omnigraph.cli.options import json_option, positional_uri
from omnigraph.cli.scope import DIRECT, LOCAL
from omnigraph.cli.settings import Settings
from omnigraph.cli.sources import STDIN, read_source, source_name
from omnigraph.errors import BadRequest, LanguageError

if TYPE_CHECKING:
    from omnigraph.language.formatting import Language
    from omnigraph.language.query.functions import Entry
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
    """The text of the schema, and its origin: a file, or the addressed graph."""
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


_SUFFIXES: dict[str, Language] = {".pg": "pg", ".gq": "gq"}
_SCHEMA = re.compile(r"(?:[ \t\r\n]++|//[^\n]*+|/\*.*?\*/)*+(?:interface|node|edge)", re.DOTALL)


@click.command(cls=Command, scope=LOCAL)
@click.argument("files", nargs=-1, metavar="[FILES...|-]")
@click.option("--check", is_flag=True, help="Change nothing; exit with 1 when a file is not laid out.")
@click.option("--diff", "show_diff", is_flag=True, help="Change nothing; print what would change.")
@click.pass_context
def fmt(context: click.Context, files: Sequence[str], check: bool, show_diff: bool) -> None:
    """Lay out schemas and queries canonically.

    Files (.pg, .gq) are replaced, a folder stands for the files below it, and - is standard input, which is printed.
    """
    if not files:
        raise click.UsageError("name the files to lay out, or - for standard input")
    failed = False
    for path in _paths(files):
        try:
            changed = _laid_out(path, check, show_diff)
        except BadRequest as error:
            output.report(error, context.ensure_object(Settings).debug)
            failed = True
        else:
            failed |= changed and check
    if failed:
        context.exit(1)


def _paths(files: Sequence[str]) -> Iterator[str]:
    """The files to format; the files of a folder are sorted by name."""
    for file in files:
        if file == STDIN or not Path(file).is_dir():
            yield file
            continue
        yield from sorted(str(path) for path in Path(file).rglob("*") if path.suffix in _SUFFIXES and path.is_file())


def _laid_out(path: str, check: bool, show_diff: bool) -> bool:
    """Format one file, or print what would change; returns whether it was not in its canonical layout."""
    from omnigraph.language.formatting import format_text

    text = read_source(path)
    formatted = format_text(text, _language(path, text), source_name(path))
    changed = formatted != text
    if show_diff:
        output.raw("".join(_diff(text, formatted, source_name(path))))
    elif check:
        if changed:
            output.line(f"not laid out: {source_name(path)}")
    elif path == STDIN:
        output.data(formatted.encode())
    elif changed:
        _replace(path, formatted)
        output.line(f"laid out {path}")
    return changed


def _language(path: str, text: str) -> Language:
    """The language of a text: by the suffix of its file; for standard input by its first word."""
    if path == STDIN:
        return "pg" if _SCHEMA.match(text) else "gq"
    suffix = Path(path).suffix
    if suffix not in _SUFFIXES:
        raise BadRequest(f"cannot lay out {path!r}: it is neither a schema (.pg) nor queries (.gq)")
    return _SUFFIXES[suffix]


def _diff(text: str, formatted: str, name: str) -> Iterator[str]:
    for line in unified_diff(text.splitlines(keepends=True), formatted.splitlines(keepends=True), name, name):
        yield line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"


def _replace(path: str, text: str) -> None:
    """Replace a file as a whole; it keeps its permissions."""
    from omnigraph.storage.outputs import Output

    target = Output.parse(path)
    mode = target.path.stat().st_mode
    target.write([text.encode()], durable=True)
    target.path.chmod(mode)


@click.command(cls=Command, scope=LOCAL)
@click.argument("name", required=False)
@json_option
def functions(name: str | None, as_json: bool) -> None:
    """List the functions and aggregates of the query language.

    NAME shows one of them.
    """
    from omnigraph.language.query.functions import described_functions, function_entries, group_of

    if as_json:
        output.json({"functions": described_functions(name)})
        return
    for number, (group, entries) in enumerate(groupby(function_entries(name), key=group_of)):
        if number:
            output.line("")
        for line in _function_lines(group, list(entries)):
            output.line(line)


def _function_lines(group: str, entries: Sequence[Entry]) -> Iterator[str]:
    from omnigraph.language.query.functions import usages_of

    yield group
    for entry in entries:
        yield f"  {', '.join(usages_of(entry))}"
        yield f"      {entry.help}"
