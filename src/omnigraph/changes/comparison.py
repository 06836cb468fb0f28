"""Compares two states for a person: first the counts per type, then the changes in pages.

A page token names the two compared commits, so that all pages describe the same states while branches move on.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Any

import orjson

from omnigraph.changes.delta import Delta
from omnigraph.changes.diff import TablePair, by_name, moved_tables, table_changes
from omnigraph.changes.filter import Filter
from omnigraph.changes.model import Change, SchemaStep, told_steps
from omnigraph.changes.spans import Span
from omnigraph.commit.context import CommitContext
from omnigraph.commit.model import ManifestState, identity_text
from omnigraph.errors import BadRequest
from omnigraph.shown import Shown

#: The default and the largest number of changes on a page.
PAGE = 100
MOST_CHANGES = 5000
_FEW_ROWS = 4096


@dataclass(frozen=True, slots=True)
class TypeCounts:
    """How many entities of one type were inserted, updated and deleted."""

    kind: str
    type: str
    inserts: int
    updates: int
    deletes: int

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Comparison(Shown):
    """`before` and `after`: the ids of the compared commits. `counts`: None on later pages, which do not count again.

    `schema`: the steps from the schema of the earlier state to that of the later one, on the first page.
    """

    before: str
    after: str
    counts: tuple[TypeCounts, ...] | None
    changes: tuple[Change, ...]
    next_page_token: str | None = None
    schema: tuple[SchemaStep, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values, ready for JSON."""
        told: dict[str, Any] = {"before": self.before, "after": self.after, **told_steps(self.schema)}
        if self.counts is not None:
            told["counts"] = [count.to_dict() for count in self.counts]
        told["changes"] = [change.to_dict() for change in self.changes]
        if self.next_page_token is not None:
            told["next_page_token"] = self.next_page_token
        return told


@dataclass(frozen=True, slots=True)
class PageToken:
    """Where a page begins: the compared commits, the filter, and the type and id of the last change on the page before."""

    before: str
    after: str
    wanted: str
    table: str
    last_id: str

    def text(self) -> str:
        """The token as text for the caller."""
        parts = [self.before, self.after, self.wanted, self.table, self.last_id]
        return base64.urlsafe_b64encode(orjson.dumps(parts)).decode().rstrip("=")


def read_token(text: str, wanted: Filter) -> PageToken:
    """Parse a token; BadRequest if it is invalid or belongs to another filter."""
    try:
        parts = orjson.loads(base64.urlsafe_b64decode(text.encode() + b"=" * (-len(text) % 4)))
    except (binascii.Error, orjson.JSONDecodeError, UnicodeEncodeError, ValueError):
        parts = None
    if not isinstance(parts, list) or len(parts) != 5 or not all(isinstance(part, str) for part in parts):
        raise BadRequest("the page token is not one of a comparison; start again without one")
    token = PageToken(*parts)
    if token.wanted != wanted.fingerprint():
        raise BadRequest("the page token belongs to a comparison with other filters; start again without one")
    return token


def compare(
    context: CommitContext,
    before: ManifestState,
    after: ManifestState,
    wanted: Filter,
    limit: int,
    behind: PageToken | None = None,
    schema: tuple[SchemaStep, ...] = (),
) -> Comparison:
    """The counts of the wanted changes (first page only), and at most `limit` changes after those of the token."""
    if not 0 <= limit <= MOST_CHANGES:
        raise BadRequest(f"limit is a number of changes from 0 to {MOST_CHANGES}, not {limit}")
    today = context.manifest.load() if wanted.types else after
    wanted.refuse_unknown_types(before, after, today)
    deltas = [(pair, pair.delta(context)) for pair in by_name(moved_tables(before, after, wanted, today))]
    counts = None if behind is not None else tuple(_counted(deltas, wanted))
    found = list(islice(_behind(deltas, wanted, behind, limit), limit + 1)) if limit else []
    token = None
    if len(found) > limit:
        table, last = found[limit - 1]
        token = PageToken(before.head, after.head, wanted.fingerprint(), table, last.id).text()
    changes = tuple(change for _, change in found[:limit])
    return Comparison(before.head, after.head, counts, changes, token, schema if behind is None else ())


def _counted(deltas: list[tuple[TablePair, Delta]], wanted: Filter) -> Iterator[TypeCounts]:
    for pair, delta in deltas:
        inserts = updates = deletes = 0
        for batch in delta.batches():
            inserts += batch.inserted.num_rows
            updates += batch.updated_after.num_rows
            deletes += batch.deleted.num_rows
        numbers = {"insert": inserts, "update": updates, "delete": deletes}
        kept = {op: number if wanted.ops is None or op in wanted.ops else 0 for op, number in numbers.items()}
        if any(kept.values()):
            yield TypeCounts(pair.kind, pair.names[0], kept["insert"], kept["update"], kept["delete"])


def _behind(
    deltas: list[tuple[TablePair, Delta]], wanted: Filter, behind: PageToken | None, limit: int
) -> Iterator[tuple[str, Change]]:
    """The changes with their tables, starting after the change that the token names."""
    is_reached = behind is None
    for pair, delta in deltas:
        table = identity_text(pair.identity)
        last_id = None
        if not is_reached:
            assert behind is not None
            if table != behind.table:
                continue
            is_reached, last_id = True, behind.last_id
        rows = max(limit + 1, _FEW_ROWS)
        for change in table_changes(pair, delta, wanted, Span(last_id), batch_rows=rows):
            yield table, change
