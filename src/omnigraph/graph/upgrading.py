"""`omnigraph.upgrade(uri)`: migrates every branch of a graph to the current format.
The steps are in `commit/migrations`; opening a graph and writing to a branch run them too, here they run for all branches. Each
branch is migrated by one atomic step, so a partly upgraded graph is readable and writable, and another run, or another process
at the same time, continues with the remaining branches.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from omnigraph.commit.branch_refs import MANIFEST_PATH, list_refs
from omnigraph.commit.context import CommitContext
from omnigraph.commit.format import CURRENT, MIN_SUPPORTED
from omnigraph.commit.migrations import migrated, stale_runs
from omnigraph.commit.model import MAIN
from omnigraph.commit.place import settle
from omnigraph.errors import BadRequest, BranchNotFound
from omnigraph.graph.entry import durability_mode
from omnigraph.graph.lifecycle import connect, open_for_writing, refuse_missing


@dataclass(frozen=True, slots=True)
class UpgradeReport:
    """What an upgrade did, or with `check` would do.

    `found`: the oldest format of any branch. `branches`: the format of each branch that had to move, main first; empty when there
    was nothing to do. `removed`: branches that runs of format 2 left behind, which go with it.
    """

    uri: str
    found: int
    current: int
    branches: Mapping[str, int]
    removed: tuple[str, ...]
    check: bool

    @property
    def needed(self) -> bool:
        """Whether there was anything to do."""
        return bool(self.branches)

    def to_dict(self) -> dict[str, Any]:
        return {
            "uri": self.uri,
            "found": self.found,
            "current": self.current,
            "branches": [{"branch": name, "format": stamp} for name, stamp in self.branches.items()],
            "removed": list(self.removed),
            "check": self.check,
        }


def upgrade(
    uri: str | os.PathLike[str],
    check: bool = False,
    *,
    durability: str | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> UpgradeReport:
    """Bring main and every other branch of a graph to the current format; history, branches and tags stay.

    `check`: only say what would be done, and write nothing. A graph of the current format is not touched. An upgrade that was
    interrupted is finished by the next one, and two at once do the work of one. A format that is newer than this OmniGraph, or
    too old for it, is refused as it is by `open`.
    """
    context = connect(os.fspath(uri), storage_options=storage_options, durability=durability_mode(durability))
    refuse_missing(context)
    plan = _plan(context)
    if check or not plan.needed:
        return replace(plan, check=check)
    record = context.place.look()
    if record is not None and record.backup is not None:
        raise BadRequest(
            f"{context.root.uri} is a backup and can only be read; restore it (`omnigraph restore`), then upgrade that"
        )
    contract = open_for_writing(context)
    settle(context, contract.identity_domain)
    left, moved = plan, dict(plan.branches)
    # Repeated, because a branch created from an old branch meanwhile has the old format too.
    while left.needed:
        for branch in left.branches:
            _move(context, branch)
        left = _plan(context)
        moved = dict(left.branches) | moved
    context.make_durable(MANIFEST_PATH)
    return replace(plan, branches=moved)


def _plan(context: CommitContext) -> UpgradeReport:
    """The upgrade report before any change. Every branch is read, which raises for formats that can not be read."""
    main = context.manifest.load().stamp
    refs = list_refs(context.store)
    removed = stale_runs(refs) if main == MIN_SUPPORTED else []
    stamps = {MAIN: main}
    for ref in refs:
        if ref.name not in removed:
            with suppress(BranchNotFound):  # the branch was deleted after it was listed
                stamps[ref.name] = context.manifest.load(ref.name).stamp
    older = {name: stamp for name, stamp in stamps.items() if stamp < CURRENT}
    return UpgradeReport(
        uri=context.root.uri,
        found=min(stamps.values()),
        current=CURRENT,
        branches=older,
        removed=tuple(removed),
        check=False,
    )


def _move(context: CommitContext, branch: str) -> None:
    """Migrate one branch under its lock; nothing happens when it is gone or was migrated by another process."""
    with context.locks.hold(branch), suppress(BranchNotFound):
        migrated(context, branch)
