"""`omnigraph functions`: what can be called in a query, from the registry of functions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

import click

from omnigraph.cli import output
from omnigraph.cli.commands import Command
from omnigraph.cli.options import json_option
from omnigraph.cli.scope import LOCAL
from omnigraph.errors import NotFound
from omnigraph.language.suggest import did_you_mean, nearest_name

if TYPE_CHECKING:
    from omnigraph.language.query.functions import AggregateFunction, Function, Signature

    Entry = Function | AggregateFunction

AGGREGATES_GROUP = "aggregates"


@click.command(cls=Command, scope=LOCAL)
@click.argument("name", required=False)
@json_option
def functions(name: str | None, as_json: bool) -> None:
    """List the functions and aggregates of the query language.

    NAME shows one of them.
    """
    found = _entries(name)
    if as_json:
        output.json({"functions": [_described(entry) for entry in found]})
        return
    for number, (group, entries) in enumerate(groupby(found, key=_group)):
        if number:
            output.line("")
        for line in _lines(group, list(entries)):
            output.line(line)


def _entries(name: str | None) -> list[Entry]:
    """All functions in the order of the registry, then the aggregates; or the one of this name."""
    from omnigraph.language.query.functions import AGGREGATES, FUNCTIONS

    entries: dict[str, Entry] = {**FUNCTIONS, **AGGREGATES}
    if name is None:
        return list(entries.values())
    if name not in entries:
        raise NotFound(f"there is no function '{name}'{did_you_mean(nearest_name(name, entries))}")
    return [entries[name]]


def _group(entry: Entry) -> str:
    return getattr(entry, "group", AGGREGATES_GROUP)


def _usages(entry: Entry) -> list[str]:
    """How an entry is written, one text for each of its signatures."""
    signatures: Sequence[Signature] | None = getattr(entry, "signatures", None)
    if signatures is None:
        return [f"{entry.name}(x, p)" if entry.name == "percentile" else f"{entry.name}(x)"]
    return list(dict.fromkeys(f"{entry.name}{signature}" for signature in signatures))


def _lines(group: str, entries: Sequence[Entry]) -> Iterator[str]:
    yield group
    for entry in entries:
        yield f"  {', '.join(_usages(entry))}"
        yield f"      {entry.help}"


def _described(entry: Entry) -> dict[str, Any]:
    signatures: Sequence[Signature] = getattr(entry, "signatures", ())
    nulls = getattr(entry, "nulls", None)
    return {
        "name": entry.name,
        "group": _group(entry),
        "usage": _usages(entry),
        "help": entry.help,
        "aggregate": not signatures,
        **({"nulls": str(nulls)} if nulls is not None else {}),
        "signatures": [
            {
                "arguments": [
                    {
                        "name": name,
                        "kind": str(kind),
                        "optional": place >= len(signature.arguments) - signature.optional,
                    }
                    for place, (name, kind) in enumerate(signature.arguments)
                ],
                "repeats": signature.repeats,
            }
            for signature in signatures
        ],
    }
