"""`omnigraph.upgrade(uri)`: every branch of a graph of an older format, in the current one.

The steps are those of `commit/migrations`, which opening a graph and writing to a branch take too; here they are taken for all
branches at once. Each branch moves by one atomic step of its own, so a graph that is partly upgraded is readable and
writable, and another run, or another process at the same time, goes on with the branches that are left.
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
    # A branch that is made of an older one while this runs is older too.
    while left.needed:
        for branch in left.branches:
            _move(context, branch)
        left = _plan(context)
        moved = dict(left.branches) | moved
    context.make_durable(MANIFEST_PATH)
    return replace(plan, branches=moved)


def _plan(context: CommitContext) -> UpgradeReport:
    """What is to do now. Every branch is read, which refuses a format, and an old history, that can not be read."""
    main = context.manifest.load().stamp
    refs = list_refs(context.store)
    removed = stale_runs(refs) if main == MIN_SUPPORTED else []
    stamps = {MAIN: main}
    for ref in refs:
        if ref.name not in removed:
            with suppress(BranchNotFound):  # deleted since it was listed
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
    """One branch to the current format, under its lock; nothing is to do when it is gone or another process was faster."""
    with context.locks.hold(branch), suppress(BranchNotFound):
        migrated(context, branch)
