"""The changes of one commit against its first parent, as a whole or in pages."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import orjson

from omnigraph.changes.along import Along
from omnigraph.changes.delta import Delta
from omnigraph.changes.diff import TablePair, moved_tables, table_changes
from omnigraph.changes.filter import Filter
from omnigraph.changes.model import Change, Changes, ChangeSet
from omnigraph.changes.spans import Span, spans
from omnigraph.changes.tokens import Position, position_of, read_position, rejected, seal, unseal
from omnigraph.commit.context import CommitContext
from omnigraph.commit.model import MAIN, Commit, Identity
from omnigraph.errors import (
    BadRequest,
    ChangeFeedGap,
    ChangeSchemaBoundary,
    CommitHasNoParent,
    HistoricalVersionReclaimed,
    ResourceLimit,
)

#: The default and the largest number of changes on a page.
PAGE_CHANGES = 1_000
MOST_PAGE_CHANGES = 8_192
#: A page ends early when its changes exceed this size in bytes as JSON; it always has at least one change.
PAGE_BYTES = 4 * 1024 * 1024

PAGE_TOKEN = "page token of a commit"


def cause(commit: Commit) -> dict[str, Any]:
    """The fields about the commit in a block of changes; a null branch means main."""
    told = {
        "graph_commit_id": commit.id,
        "authored_branch": None if commit.branch == MAIN else commit.branch,
        "parent_commit_id": commit.parent,
        "merged_parent_commit_id": commit.merged_parent,
        "actor_id": commit.actor,
        "authored_at": commit.created_at,
    }
    return {name: value for name, value in told.items() if value is not None or name == "authored_branch"}


@dataclass(frozen=True)
class CommitChanges(ChangeSet):
    """The changes of one commit, or a page of them. `next_page_token`: None when there are no more."""

    commit: Commit
    next_page_token: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values, ready for JSON."""
        told: dict[str, Any] = {"cause": cause(self.commit), "changes": [change.to_dict() for change in self.changes]}
        return told if self.next_page_token is None else told | {"next_page_token": self.next_page_token}


@dataclass(frozen=True)
class CommitPart:
    """A part of a commit's changes: a span of ids in one table."""

    identity: Identity
    span: Span


class CommitBlock:
    """The tables that a commit changed, opened, so that its changes can be read from any position."""

    def __init__(self, context: CommitContext, commit: Commit, wanted: Filter, along: Along | None = None) -> None:
        if commit.parent is None:
            raise CommitHasNoParent(
                f"commit {commit.id} is the first of its graph: there is nothing to compare it with", commit=commit.id
            )
        self.commit = commit
        self._wanted = wanted
        along = along or Along(context, [commit], None)
        self.before, self.after = along.states(commit)
        # The current names of types, needed only for a filter by type.
        self.today = context.manifest.load() if wanted.types else self.after
        moved = moved_tables(self.before, self.after, wanted, self.today)
        pairs = [pair for pair in moved if not _dropped(commit, pair)]
        self._deltas = [(pair, self._opened(along, pair)) for pair in pairs]
        for pair, delta in self._deltas:
            if pair.before is not None and delta.columns.one_sided:
                raise _boundary(commit, pair)

    def changes(
        self, behind: Position | None = None, batch_rows: int | None = None
    ) -> Iterator[tuple[Identity, Change]]:
        """The changes with their types: nodes before edges, then by type id and id; only changes after `behind`."""
        for pair, delta in self._deltas:
            last_id = None
            if behind is not None:
                order = (pair.kind != "node", pair.identity)
                if order < behind.order:
                    continue
                if order == behind.order:
                    last_id = behind.last_id(delta)
            for change in table_changes(pair, delta, self._wanted, Span(last_id), batch_rows=batch_rows):
                yield pair.identity, change

    def parts(self, most_rows: int) -> list[CommitPart]:
        """The tables that the commit changed, each in spans of ids with about `most_rows` rows."""
        return [
            CommitPart(pair.identity, span)
            for pair, delta in self._deltas
            for span in spans(delta.candidate_ids(), delta.candidates, -(-delta.candidates // most_rows))
        ]

    def changes_of(self, part: CommitPart) -> Iterator[Change]:
        """The changes of one part, in id order."""
        for pair, delta in self._deltas:
            if pair.identity == part.identity:
                yield from table_changes(pair, delta, self._wanted, part.span)

    def _opened(self, along: Along, pair: TablePair) -> Delta:
        try:
            return along.delta(pair, self.before, self.after)
        except HistoricalVersionReclaimed as gone:
            # A schema change with a hard drop removes the versions that had the dropped property.
            if self.commit.kind == "schema":
                raise _boundary(self.commit, pair) from gone
            raise


def _dropped(commit: Commit, pair: TablePair) -> bool:
    """Whether a commit dropped an empty type; raises for a type with rows, because its rows are not read."""
    if pair.after is None and pair.before is not None and pair.before.row_count:
        raise _boundary(commit, pair)
    return pair.after is None


def _boundary(commit: Commit, pair: TablePair) -> ChangeSchemaBoundary:
    return ChangeSchemaBoundary(
        f"commit {commit.id} changed the schema of {pair.kind}:{pair.names[0]}: its changes can not be told entity by "
        "entity; take a baseline and go on behind it",
        commit=commit.id,
        type_name=pair.names[0],
    )


def open_told(
    context: CommitContext, commit: Commit, wanted: Filter, cursor: str | None = None, along: Along | None = None
) -> CommitBlock:
    """The block of a commit for a reader of a branch; raises if a wanted type was renamed or dropped since."""
    block = open_block(context, commit, wanted, cursor, along)
    for name in wanted.unknown_types(block.before, block.after, block.today):
        raise ChangeSchemaBoundary(
            f"there is no type '{name}' any more at commit {commit.id}: it was renamed or dropped; take a baseline with the "
            "types of today and go on behind it",
            commit=commit.id,
            type_name=name.rpartition(":")[2],
        )
    return block


def open_block(
    context: CommitContext, commit: Commit, wanted: Filter, cursor: str | None = None, along: Along | None = None
) -> CommitBlock:
    """The block of a commit; if cleanup has removed its data, raises `ChangeFeedGap` with the caller's cursor."""
    try:
        return CommitBlock(context, commit, wanted, along)
    except HistoricalVersionReclaimed as gone:
        raise ChangeFeedGap(
            f"the changes of commit {commit.id} can not be told any more ({gone}); take a baseline and go on from there",
            cursor=cursor,
            first_unreadable_commit=commit.id,
        ) from gone


@dataclass
class Budget:
    """The space that is left on a page."""

    changes: int
    size: int
    taken: int = 0

    def take(self, change: Change) -> bool:
        """Whether a change fits on the page, which is then charged with it; the first change always fits."""
        size = len(orjson.dumps(change.to_dict()))
        if self.taken and (self.changes < 1 or self.size < size):
            return False
        self.changes -= 1
        self.size -= size
        self.taken += 1
        return True

    @cached_property
    def batch_rows(self) -> int:
        """How many rows to read at once: enough for the rest of the page and one more change."""
        return min(max(self.changes + 1, 16), PAGE_CHANGES)


def page_budget(limit: int | None, resource: str) -> Budget:
    """The budget of a page with the requested number of changes; raises if that is invalid."""
    if limit is None:
        return Budget(PAGE_CHANGES, PAGE_BYTES)
    if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
        raise BadRequest(f"a page has 1 to {MOST_PAGE_CHANGES} changes, not {limit!r}")
    if limit > MOST_PAGE_CHANGES:
        raise ResourceLimit(
            f"a page has at most {MOST_PAGE_CHANGES} changes, not {limit}; read it in several pages",
            resource=resource,
            limit=MOST_PAGE_CHANGES,
            actual=limit,
        )
    return Budget(limit, PAGE_BYTES)


def commit_changes(
    context: CommitContext,
    identities: tuple[str, ...],
    commit: Commit,
    wanted: Filter,
    limit: int | None = None,
    page_token: str | None = None,
) -> CommitChanges:
    """The changes of a commit: all, read while iterated, or one page if a limit or a page token is given."""
    budget = page_budget(limit, "commit_changes_page_changes")
    behind = None if page_token is None else _resumed(identities, page_token, commit, wanted)
    block = open_block(context, commit, wanted)
    wanted.refuse_unknown_types(block.before, block.after, block.today)
    if limit is None and page_token is None:
        return CommitChanges(Changes(lambda: (change for _, change in block.changes())), commit)
    page: list[Change] = []
    last: Position | None = None
    for identity, change in block.changes(behind, budget.batch_rows):
        if not budget.take(change):
            assert last is not None
            return CommitChanges(page, commit, _token(identities[0], commit, wanted, last))
        page.append(change)
        last = position_of(change, identity)
    return CommitChanges(page, commit)


def _token(identity_domain: str, commit: Commit, wanted: Filter, behind: Position) -> str:
    payload = {"for": PAGE_TOKEN, "commit": commit.id, "filter": wanted.fingerprint(), "at": behind.payload()}
    return seal(identity_domain, payload)


def _resumed(identities: tuple[str, ...], token: str, commit: Commit, wanted: Filter) -> Position | None:
    payload = unseal(identities, token, PAGE_TOKEN)
    if payload["commit"] != commit.id:
        raise rejected("other_commit", f"it belongs to commit {payload['commit']}")
    if payload["filter"] != wanted.fingerprint():
        raise rejected("other_filter", "it belongs to other filters")
    return read_position(payload["at"])
