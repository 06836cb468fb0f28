"""The functions and aggregates of the query language as data, for who lists or looks them up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from omnigraph.errors import NotFound
from omnigraph.language.query.functions import AGGREGATES, FUNCTIONS, AggregateFunction, Function, Signature
from omnigraph.language.source import did_you_mean, nearest_name

Entry: TypeAlias = Function | AggregateFunction

AGGREGATES_GROUP = "aggregates"


def function_entries(name: str | None = None) -> list[Entry]:
    """All functions in the order of the registry, then the aggregates; or the one of this name."""
    entries: dict[str, Entry] = {**FUNCTIONS, **AGGREGATES}
    if name is None:
        return list(entries.values())
    if name not in entries:
        raise NotFound(f"there is no function '{name}'{did_you_mean(nearest_name(name, entries))}")
    return [entries[name]]


def described_functions(name: str | None = None) -> list[dict[str, Any]]:
    """The entries as plain data: how they are written, what they do, and their arguments."""
    return [_described(entry) for entry in function_entries(name)]


def group_of(entry: Entry) -> str:
    """The group that an entry is listed under."""
    return getattr(entry, "group", AGGREGATES_GROUP)


def usages_of(entry: Entry) -> list[str]:
    """How an entry is written, one text for each of its signatures."""
    signatures: Sequence[Signature] | None = getattr(entry, "signatures", None)
    if signatures is None:
        return [f"{entry.name}(x, p)" if entry.name == "percentile" else f"{entry.name}(x)"]
    return list(dict.fromkeys(f"{entry.name}{signature}" for signature in signatures))


def _described(entry: Entry) -> dict[str, Any]:
    signatures: Sequence[Signature] = getattr(entry, "signatures", ())
    nulls = getattr(entry, "nulls", None)
    return {
        "name": entry.name,
        "group": group_of(entry),
        "usage": usages_of(entry),
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
