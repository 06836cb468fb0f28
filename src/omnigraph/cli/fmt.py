"""`omnigraph fmt`: schemas and queries in their canonical layout."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import unified_diff
from pathlib import Path
from typing import TYPE_CHECKING

import click

from omnigraph.cli import output
from omnigraph.cli.commands import Command
from omnigraph.cli.scope import LOCAL
from omnigraph.cli.settings import Settings
from omnigraph.cli.sources import STDIN, read_source, source_name
from omnigraph.errors import BadRequest

if TYPE_CHECKING:
    from omnigraph.language.formatting import Language

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
    """The files to lay out; those of a folder by name."""
    for file in files:
        if file == STDIN or not Path(file).is_dir():
            yield file
            continue
        yield from sorted(str(path) for path in Path(file).rglob("*") if path.suffix in _SUFFIXES and path.is_file())


def _laid_out(path: str, check: bool, show_diff: bool) -> bool:
    """Lay out one file, or say what would change; whether it was not laid out."""
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
    """By the suffix of the file; standard input by its first word."""
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
