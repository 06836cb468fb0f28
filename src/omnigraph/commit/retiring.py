"""Removes a branch: writes its history down, then removes its ref, its manifest files, and the table forks only it used."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress

from omnigraph.commit.branch_refs import MANIFEST_PATH, BranchRef, has_more_branches_than, list_names
from omnigraph.commit.context import CommitContext
from omnigraph.commit.history import made_on, state_of, states_along
from omnigraph.commit.manifest import Manifest, Warm
from omnigraph.commit.model import MAIN, Commit, ManifestState
from omnigraph.commit.retired import Publish, RetiredLine, line_path
from omnigraph.errors import BranchNotFound, HistoricalVersionReclaimed, OmnigraphError
from omnigraph.storage.tables.commit import drop_fork, remove_branch
from omnigraph.storage.tables.location import Location

#: With more branches than this, not every branch is examined; what no branch needs is removed by the next cleanup.
BRANCHES_LOOKED_AT = 32


def own_commits(manifest: Manifest, warm: Warm, ref: BranchRef) -> list[Commit]:
    """The commits that were made on a branch, oldest first."""
    return made_on(manifest.commits_in(warm, newer_than=ref.parent_version), warm.state, ref)[::-1]


def retired_line(context: CommitContext, ref: BranchRef, own: Sequence[Commit]) -> RetiredLine | None:
    """The history to keep of a branch with its own commits; None when no other branch can reach any of them."""
    manifest = context.manifest
    # A merge takes all commits of a branch up to its head: a branch that knows any of them knows the first.
    if not own or not _is_reached(context, ref.name, own[0].id):
        return None
    publishes = tuple(_publishes(manifest, ref, own))
    if not publishes:
        return None
    return RetiredLine(ref.name, ref.incarnation, publishes, line_path(ref.name, own[0].id))


def _is_reached(context: CommitContext, branch: str, commit: str) -> bool:
    """Whether the history of another branch contains this commit, or may contain it."""
    if context.manifest.find_commit(MAIN, commit) is not None:
        return True
    if has_more_branches_than(context.store, BRANCHES_LOOKED_AT + 1):
        return True
    return any(_knows(context.manifest, other, commit) for other in list_names(context.store) if other != branch)


def _knows(manifest: Manifest, branch: str, commit: str) -> bool:
    try:
        return manifest.find_commit(branch, commit) is not None
    except BranchNotFound:
        return False


def _publishes(manifest: Manifest, ref: BranchRef, own: Sequence[Commit]) -> Iterator[Publish]:
    """The publishes of a branch, oldest first, except those that cleanup has removed."""
    groups: dict[int, list[Commit]] = {}
    for commit in own:
        groups.setdefault(commit.manifest_version, []).append(commit)
    for together, state in _states(manifest, ref, list(groups.values())):
        group = together[-1].group
        touched = () if group is None else tuple(manifest.members_of(together[-1], group.id))
        yield Publish(state, tuple(commit.id for commit in together), touched)


def _states(
    manifest: Manifest, ref: BranchRef, groups: Sequence[list[Commit]]
) -> Iterator[tuple[list[Commit], ManifestState]]:
    """The state after each publish; states of consecutive publishes are read in one scan."""
    before: ManifestState | None = None
    with suppress(HistoricalVersionReclaimed):
        before = manifest.load_at(ref.name, ref.parent_version)
    at = 0
    while at < len(groups):
        last = [together[-1] for together in groups[at:]]
        try:
            found = [state_of(manifest, last[0])] if before is None else states_along(manifest, before, last)
        except HistoricalVersionReclaimed:
            before, at = None, at + 1
            continue
        yield from zip(groups[at : at + len(found)], found, strict=True)
        before, at = found[-1], at + len(found)


_log = logging.getLogger(__name__)


def remove_ref(context: CommitContext, name: str) -> None:
    """Remove the ref of a branch, which decides whether it exists, and its files. No branch may have been made from it."""
    remove_branch(context.tables, context.store, Location(MANIFEST_PATH, name))
    context.manifest.forget(name)


def drop_own_forks(
    context: CommitContext, state: ManifestState, inherited: Collection[Location], *, alone: bool
) -> None:
    """Drop the forks that a branch made, best effort; inherited forks belong to a branch above it. Cleanup removes the rest.

    `alone`: no branch was ever made from it, so nobody has forked its forks, and other forks need not be looked at.
    """
    for entry in state.tables.values():
        if entry.branch is None or entry.location in inherited:
            continue
        try:
            if alone:
                remove_branch(context.tables, context.store, entry.location)
            else:
                drop_fork(context.tables, entry.location)
        except OmnigraphError as error:
            _log.warning("fork %s of %s is left for cleanup: %s", entry.branch, entry.key, error)
