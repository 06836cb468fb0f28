"""`omnigraph functions`: what can be called in a query, from the registry of functions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

import click

from omnigraph.cli import output
from omnigraph.cli.commands import Command
from omnigraph.cli.options import json_option
from omnigraph.cli.scope import LOCAL

if TYPE_CHECKING:
    from omnigraph.language.query.function_list import Entry


@click.command(cls=Command, scope=LOCAL)
@click.argument("name", required=False)
@json_option
def functions(name: str | None, as_json: bool) -> None:
    """List the functions and aggregates of the query language.

    NAME shows one of them.
    """
    from omnigraph.language.query.function_list import described_functions, function_entries, group_of

    if as_json:
        output.json({"functions": described_functions(name)})
        return
    for number, (group, entries) in enumerate(groupby(function_entries(name), key=group_of)):
        if number:
            output.line("")
        for line in _lines(group, list(entries)):
            output.line(line)


def _lines(group: str, entries: Sequence[Entry]) -> Iterator[str]:
    from omnigraph.language.query.function_list import usages_of

    yield group
    for entry in entries:
        yield f"  {', '.join(usages_of(entry))}"
        yield f"      {entry.help}"
