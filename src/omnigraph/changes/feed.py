"""The change feed of a branch: its commits in order, each against its first parent, starting at a cursor.

A poll covers a window of commits that is fixed at its start; pages go through it, and the last page gives the cursor for the
next poll. Unreadable changes are never skipped: the window ends before a gap or a schema change, and the poll that starts
there raises it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from omnigraph.changes.along import Along
from omnigraph.changes.commits import cause, open_told, page_budget
from omnigraph.changes.filter import Filter
from omnigraph.changes.model import Change
from omnigraph.changes.tokens import Position, position_of, read_position
from omnigraph.changes.track import Track, track_of
from omnigraph.commit.context import CommitContext
from omnigraph.commit.model import Commit
from omnigraph.errors import BadRequest, ChangeFeedGap, ChangeSchemaBoundary, ResourceLimit
from omnigraph.shown import Shown

#: The default and the largest number of commits that one poll covers.
POLL_COMMITS = 128
MOST_POLL_COMMITS = 512

PAGE = "page token of the feed"


@dataclass(frozen=True)
class Block:
    """The changes of one commit, or the part of them that fits on a page."""

    commit: Commit
    changes: Sequence[Change]

    def to_dict(self) -> dict[str, Any]:
        return {"cause": cause(self.commit), "changes": [change.to_dict() for change in self.changes]}


@dataclass(frozen=True)
class FeedPage(Shown):
    """Some blocks of the feed. It has either the token of the next page, or the cursor for the next poll."""

    blocks: Sequence[Block]
    cursor: str | None = None
    caught_up: bool | None = None
    next_page_token: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values, ready for JSON."""
        told: dict[str, Any] = {"blocks": [block.to_dict() for block in self.blocks]}
        for name in ("cursor", "caught_up", "next_page_token"):
            if getattr(self, name) is not None:
                told[name] = getattr(self, name)
        return told


@dataclass(frozen=True, slots=True)
class Poll:
    """A poll request, with at most one of a cursor, a start and a page token."""

    branch: str
    wanted: Filter
    cursor: str | None = None
    start: str | None = None
    page_token: str | None = None
    limit: int | None = None
    max_commits: int | None = None


@dataclass(frozen=True, slots=True)
class _Window:
    """The rest of a poll: commits after `seen`, up to `until`. `within`: the last returned change of the first commit."""

    seen: str | None
    until: str
    within: Position | None = None


def poll(context: CommitContext, identities: tuple[str, ...], asked: Poll) -> FeedPage:
    """The next page of the feed."""
    budget = page_budget(asked.limit, "change_feed_page_changes")
    most = _most_commits(asked.max_commits)
    track = track_of(context, identities, asked.branch, asked.wanted)
    window, commits = _window(track, asked, most)
    blocks: list[Block] = []
    along = Along(context, commits, track.state)
    for number, commit in enumerate(commits):
        try:
            block = open_told(context, commit, asked.wanted, asked.cursor, along)
        except (ChangeFeedGap, ChangeSchemaBoundary):
            if not blocks:
                raise
            return _last_page(track, blocks, commits[number - 1].id)
        told: list[Change] = []
        last = window.within
        for identity, change in block.changes(last, budget.batch_rows):
            if not budget.take(change):
                if told:
                    blocks.append(Block(commit, told))
                seen = commits[number - 1].id if number else window.seen
                return _next_page(track, blocks, replace(window, seen=seen, within=last))
            told.append(change)
            last = position_of(change, identity)
        blocks.append(Block(commit, told))
        window = replace(window, within=None)
    return _last_page(track, blocks, window.until)


def _window(track: Track, asked: Poll, most: int) -> tuple[_Window, list[Commit]]:
    """The window of a poll, and its commits, oldest first."""
    if sum(given is not None for given in (asked.cursor, asked.start, asked.page_token)) > 1:
        raise BadRequest("give one of cursor, start and page_token, not several")
    if asked.page_token is not None:
        payload = track.unseal(asked.page_token, PAGE)
        window = _Window(payload["seen"], payload["until"], read_position(payload["within"]))
        return window, track.between(window.seen, window.until)
    seen = track.start(asked.start) if asked.cursor is None else track.seen(asked.cursor)
    commits = track.between(seen, track.head)[:most]
    if not commits:
        return _Window(track.head, track.head), []
    return _Window(commits[0].parent, commits[-1].id), commits


def _last_page(track: Track, blocks: list[Block], seen: str) -> FeedPage:
    """The last page of a window, which ends with commit `seen`."""
    return FeedPage(blocks, cursor=track.cursor(seen), caught_up=track.is_newest(seen))


def _next_page(track: Track, blocks: list[Block], rest: _Window) -> FeedPage:
    within = None if rest.within is None else rest.within.payload()
    payload = {"for": PAGE, "seen": rest.seen, "until": rest.until, "within": within}
    return FeedPage(blocks, next_page_token=track.seal(payload))


def _most_commits(asked: int | None) -> int:
    if asked is None:
        return POLL_COMMITS
    if isinstance(asked, bool) or not isinstance(asked, int) or asked < 1:
        raise BadRequest(f"a poll covers 1 to {MOST_POLL_COMMITS} commits, not {asked!r}")
    if asked > MOST_POLL_COMMITS:
        raise ResourceLimit(
            f"a poll covers at most {MOST_POLL_COMMITS} commits, not {asked}",
            resource="change_feed_poll_commits",
            limit=MOST_POLL_COMMITS,
            actual=asked,
        )
    return asked
