"""Hard drops and who else needs the data: a tag, or another branch. What they name can be read for good, so it is kept."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from omnigraph.commit.branches import branch_names
from omnigraph.commit.context import CommitContext
from omnigraph.commit.history import state_of
from omnigraph.commit.model import ManifestState
from omnigraph.commit.tags import tagged_commits
from omnigraph.errors import BranchNotFound, CommitNotFound, Conflict, HistoricalVersionReclaimed


def refuse_named_elsewhere(context: CommitContext, branch: str, purged: Collection[str]) -> None:
    """Raise when a tag or another branch names a table whose older versions would go, saying which names and tables."""
    if not purged:
        return
    tags: list[str] = []
    branches: list[str] = []
    keys: set[str] = set()
    for found, name, state in [*_tagged(context, tags), *_others(context, branch, branches)]:
        named = {entry.key for path, entry in state.by_path.items() if path in purged}
        if named:
            found.append(name)
            keys |= named
    if tags:
        raise Conflict(
            f"older snapshots of {', '.join(sorted(keys))} would be gone, and {_listed('tag', tags)} could not be read any more; "
            "delete it first (`omnigraph tag delete`), or drop without allow_data_loss"
        )
    if branches:
        raise Conflict(
            f"the data of {', '.join(sorted(keys))} would be gone, and {_listed('branch', branches)} still {_has(branches)} it; "
            "merge or delete first, or drop without allow_data_loss"
        )


_Named = tuple[list[str], str, ManifestState]


def _tagged(context: CommitContext, found: list[str]) -> Iterator[_Named]:
    for name, commit_id in tagged_commits(context).items():
        try:
            yield found, name, state_of(context.manifest, context.manifest.commit_near(commit_id))
        except (BranchNotFound, CommitNotFound, HistoricalVersionReclaimed):
            # What it names can not be read any more, so there is nothing to keep.
            continue


def _others(context: CommitContext, branch: str, found: list[str]) -> Iterator[_Named]:
    for name in branch_names(context):
        if name == branch:
            continue
        try:
            yield found, name, context.manifest.load(name)
        except BranchNotFound:
            continue


def _has(names: list[str]) -> str:
    return "has" if len(names) == 1 else "have"


def _listed(word: str, names: list[str]) -> str:
    many = "es" if word == "branch" else "s"
    return f"{word}{'' if len(names) == 1 else many} {', '.join(repr(name) for name in names)}"
