"""The `--filter KEY=VALUE` of `commit list`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

import click

from omnigraph.cli.moments import first_moment, last_moment

KEYS = ("actor", "kind", "since", "until")


@dataclass(frozen=True)
class CommitFilters:
    """Which commits to list; what is None does not matter."""

    actor: str | None = None
    kind: str | None = None
    since: datetime | None = None
    until: datetime | None = None


def read_filters(filters: Iterable[str]) -> CommitFilters:
    """The filters of one call; each key once."""
    given: dict[str, str] = {}
    for text in filters:
        key, equals, value = text.partition("=")
        if not equals or key not in KEYS or not value:
            raise click.UsageError(f"--filter '{text}' is not one of {', '.join(f'{key}=…' for key in KEYS)}")
        if key in given:
            raise click.UsageError(f"--filter {key}=… is given twice")
        given[key] = value
    since, until = given.get("since"), given.get("until")
    return CommitFilters(
        actor=given.get("actor"),
        kind=given.get("kind"),
        since=None if since is None else first_moment(since),
        until=None if until is None else last_moment(until),
    )
