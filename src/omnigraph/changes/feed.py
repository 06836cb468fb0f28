"""The change feed of a branch: its commits one after the other, each against its first parent, from a cursor on.

A poll covers a window of commits that is fixed when it starts; pages go through it, and the last page gives the cursor to go on
from. What can not be told is never skipped: a gap or a schema change ends the window before it, and is the answer to the
poll that starts there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from omnigraph.changes.commits import cause, open_block, page_budget
from omnigraph.changes.filter import Filter
from omnigraph.changes.model import Change
from omnigraph.changes.position import Position, position_of, read_position
from omnigraph.changes.tokens import rejected, seal, unseal
from omnigraph.commit.context import CommitContext
from omnigraph.commit.model import Commit, ManifestState
from omnigraph.errors import BadRequest, ChangeFeedGap, ChangeSchemaBoundary, ResourceLimit

#: How many commits one poll covers, if nothing is asked for, and at most.
POLL_COMMITS = 128
MOST_POLL_COMMITS = 512

CURSOR = "cursor"
PAGE = "page token of the feed"

NOW, BEGINNING, AFTER = "now", "beginning", "after:"


@dataclass(frozen=True)
class Block:
    """What one commit did, or a part of it where a page ends within it."""

    commit: Commit
    changes: Sequence[Change]

    def to_dict(self) -> dict[str, Any]:
        return {"cause": cause(self.commit), "changes": [change.to_dict() for change in self.changes]}


@dataclass(frozen=True)
class FeedPage:
    """Some blocks of the feed. Either there is a next page, or a cursor to poll with when there is more."""

    blocks: Sequence[Block]
    cursor: str | None = None
    caught_up: bool | None = None
    next_page_token: str | None = None

    def to_dict(self) -> dict[str, Any]:
        told: dict[str, Any] = {"blocks": [block.to_dict() for block in self.blocks]}
        for name in ("cursor", "caught_up", "next_page_token"):
            if getattr(self, name) is not None:
                told[name] = getattr(self, name)
        return told


@dataclass(frozen=True, slots=True)
class Poll:
    """What is asked for: at most one of a cursor, a start and a page token."""

    branch: str
    wanted: Filter
    cursor: str | None = None
    start: str | None = None
    page_token: str | None = None
    limit: int | None = None
    max_commits: int | None = None


@dataclass(frozen=True, slots=True)
class _Window:
    """What a poll still has to tell: the commits behind `seen` up to `until`; `within`: how far the first of them was told."""

    seen: str | None
    until: str
    within: Position | None = None


def poll(context: CommitContext, identity_domain: str, asked: Poll) -> FeedPage:
    """The next page of the feed."""
    budget = page_budget(asked.limit, "change_feed_page_changes")
    most = _most_commits(asked.max_commits)
    state = context.manifest.load(asked.branch)
    feed = _Feed(context, identity_domain, asked, state)
    window, commits = feed.window(most)
    blocks: list[Block] = []
    for number, commit in enumerate(commits):
        try:
            block = open_block(context, commit, asked.wanted, asked.cursor)
        except (ChangeFeedGap, ChangeSchemaBoundary):
            if not blocks:
                raise
            return feed.end(blocks, commits[number - 1].id)
        told: list[Change] = []
        last = window.within
        for identity, change in block.changes(last, budget.batch_rows):
            if not budget.take(change):
                if told:
                    blocks.append(Block(commit, told))
                seen = commits[number - 1].id if number else window.seen
                return feed.next_page(blocks, replace(window, seen=seen, within=last))
            told.append(change)
            last = position_of(change, identity)
        blocks.append(Block(commit, told))
        window = replace(window, within=None)
    return feed.end(blocks, window.until)


class _Feed:
    """The feed of one branch for one poll."""

    def __init__(self, context: CommitContext, identity_domain: str, asked: Poll, state: ManifestState) -> None:
        self._manifest = context.manifest
        self._identity_domain = identity_domain
        self._asked = asked
        self._state = state

    def window(self, most: int) -> tuple[_Window, list[Commit]]:
        """What is to be told, and its commits, oldest first."""
        asked = self._asked
        given = [value for value in (asked.cursor, asked.start, asked.page_token) if value is not None]
        if len(given) > 1:
            raise BadRequest("give one of cursor, start and page_token, not several")
        if asked.page_token is not None:
            payload = self._unseal(asked.page_token, PAGE)
            window = _Window(payload["seen"], payload["until"], read_position(payload["within"]))
            return window, self._between(window.seen, window.until)
        commits = self._between(self._start(), self._state.head)[:most]
        if not commits:
            return _Window(self._state.head, self._state.head), []
        return _Window(commits[0].parent, commits[-1].id), commits

    def _start(self) -> str | None:
        """The last commit that the caller has seen; None: nothing yet."""
        asked = self._asked
        if asked.cursor is not None:
            seen: str = self._unseal(asked.cursor, CURSOR)["seen"]
            return seen
        # Where a filter is used for the first time, a type that is not there is a mistake.
        asked.wanted.refuse_unknown_types(self._state)
        start = NOW if asked.start is None else asked.start
        if start == NOW:
            return self._state.head
        if start == BEGINNING:
            return None
        if isinstance(start, str) and start.startswith(AFTER):
            return start.removeprefix(AFTER)
        raise BadRequest(f"'{start}' is no start of a feed: give `{NOW}`, `{BEGINNING}` or `{AFTER}<commit id>`")

    def _between(self, seen: str | None, until: str) -> list[Commit]:
        """The commits of this branch behind one and up to another, oldest first, along first parents."""
        if seen == until:
            return []
        known = self._newer(seen)
        found: list[Commit] = []
        at: str | None = until
        while at is not None and at != seen:
            commit = known.get(at)
            if commit is None:
                raise _not_here(seen or at, self._asked.branch)
            found.append(commit)
            at = commit.parent
        if seen is not None and at is None:
            raise _not_here(seen, self._asked.branch)
        return [commit for commit in reversed(found) if commit.kind != "init"]

    def _newer(self, seen: str | None) -> dict[str, Commit]:
        """The commits that came to this branch behind one that it has; its cost follows how many they are."""
        branch = self._asked.branch
        if seen is None:
            return self._manifest.commits(branch)
        commit = self._manifest.find_commit(branch, seen)
        if commit is None:
            raise _not_here(seen, branch)
        return self._manifest.commits(branch, newer_than=commit.manifest_version)

    # --- answers ----------------------------------------------------------------------------------------------------

    def end(self, blocks: list[Block], seen: str) -> FeedPage:
        """The last page: the window was told up to a commit."""
        caught_up = self._manifest.load(self._asked.branch).head == seen
        return FeedPage(blocks, cursor=self._seal({"for": CURSOR, "seen": seen}), caught_up=caught_up)

    def next_page(self, blocks: list[Block], rest: _Window) -> FeedPage:
        within = None if rest.within is None else rest.within.payload()
        payload = {"for": PAGE, "seen": rest.seen, "until": rest.until, "within": within}
        return FeedPage(blocks, next_page_token=self._seal(payload))

    def _seal(self, payload: dict[str, Any]) -> str:
        return seal(self._identity_domain, payload | self._bound())

    def _bound(self) -> dict[str, Any]:
        """What a token of this feed belongs to."""
        return {
            "branch": self._asked.branch,
            "incarnation": self._state.incarnation,
            "filter": self._asked.wanted.fingerprint(),
        }

    def _unseal(self, token: str, purpose: str) -> dict[str, Any]:
        payload = unseal(self._identity_domain, token, purpose)
        bound = self._bound()
        if payload["branch"] != bound["branch"]:
            raise rejected("other_branch", f"it belongs to branch '{payload['branch']}'")
        if payload["incarnation"] != bound["incarnation"]:
            raise rejected("recreated_branch", f"branch '{payload['branch']}' was deleted and created anew since")
        if payload["filter"] != bound["filter"]:
            raise rejected("other_filter", "it belongs to other filters")
        return payload


def head_cursor(identity_domain: str, state: ManifestState, wanted: Filter) -> str:
    """The cursor of somebody who has seen all that a state of a branch holds."""
    bound = {"branch": state.branch, "incarnation": state.incarnation, "filter": wanted.fingerprint()}
    return seal(identity_domain, {"for": CURSOR, "seen": state.head} | bound)


def _not_here(commit: str, branch: str) -> Exception:
    return rejected("unknown_commit", f"commit {commit} is not in the history that branch '{branch}' tells")


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
