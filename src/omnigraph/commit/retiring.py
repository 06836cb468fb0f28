"""Taking a branch away: what is written down of it before, its ref and manifest files, and the table forks that only it used."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress

from omnigraph.commit.branch_refs import BranchRef, list_refs, remove_ref_file
from omnigraph.commit.context import CommitContext
from omnigraph.commit.history import made_on, state_of, states_along
from omnigraph.commit.manifest import Manifest
from omnigraph.commit.model import MAIN, Commit, ManifestState
from omnigraph.commit.retired import Publish, RetiredLine, line_path
from omnigraph.errors import BranchNotFound, HistoricalVersionReclaimed, OmnigraphError
from omnigraph.storage.tables.forks import delete_lance_branch, drop_fork
from omnigraph.storage.tables.location import Location

#: With more branches than this nobody looks at each of them; what no branch reaches goes with the next cleanup.
BRANCHES_LOOKED_AT = 32


def retired_line(context: CommitContext, ref: BranchRef) -> RetiredLine | None:
    """What is to be kept of a branch; None when nobody can ask for a commit that was made on it."""
    manifest = context.manifest
    known = manifest.commits(ref.name, newer_than=ref.parent_version)
    own = made_on(known, manifest.load(ref.name), ref)[::-1]
    # A merge takes all commits of a branch up to its head: who knows any of them knows the first.
    if not own or not _is_reached(context, ref.name, own[0].id):
        return None
    publishes = tuple(_publishes(manifest, ref, own))
    if not publishes:
        return None
    return RetiredLine(ref.name, ref.incarnation, publishes, line_path(ref.name, own[0].id))


def _is_reached(context: CommitContext, branch: str, commit: str) -> bool:
    """Whether another branch's history has a commit, or may have it."""
    if context.manifest.find_commit(MAIN, commit) is not None:
        return True
    others = [ref.name for ref in list_refs(context.store) if ref.name != branch]
    return len(others) > BRANCHES_LOOKED_AT or any(_knows(context.manifest, other, commit) for other in others)


def _knows(manifest: Manifest, branch: str, commit: str) -> bool:
    try:
        return manifest.find_commit(branch, commit) is not None
    except BranchNotFound:
        return False


def _publishes(manifest: Manifest, ref: BranchRef, own: Sequence[Commit]) -> Iterator[Publish]:
    """The publishes of a branch, oldest first, except the publishes that cleanup has removed."""
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
    """The state that each publish led to; where they follow each other many are read in one scan."""
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
    """Remove the ref of a branch, which is the authority for its existence, and its manifest files."""
    if name.startswith(f"{MAIN}/"):
        # Such a name is refused today. Lance tidies up the folder above a branch, and that of `main` is the manifest itself.
        remove_ref_file(context.store, name)
    delete_lance_branch(context.manifest.warm(MAIN).dataset, name)
    context.manifest.forget(name)


def drop_own_forks(context: CommitContext, state: ManifestState, inherited: Collection[Location]) -> None:
    """The forks a branch made, best effort; those it inherited belong to a branch above it. Cleanup is the backstop."""
    for entry in state.tables.values():
        if entry.branch is None or entry.location in inherited:
            continue
        try:
            drop_fork(context.tables, entry.location)
        except OmnigraphError as error:
            _log.warning("fork %s of %s is left for cleanup: %s", entry.branch, entry.key, error)
