"""Hard drops and tags: what is tagged can be read for good, so it is not dropped for good under its tag."""

from __future__ import annotations

from collections.abc import Collection

from omnigraph.commit.context import CommitContext
from omnigraph.commit.history import state_of
from omnigraph.commit.tags import tagged_commits
from omnigraph.errors import BranchNotFound, CommitNotFound, Conflict, HistoricalVersionReclaimed


def refuse_tagged(context: CommitContext, purged: Collection[str]) -> None:
    """Raise when a tag names a state with a table whose older versions would go, naming such tags and tables."""
    if not purged:
        return
    tags: list[str] = []
    keys: set[str] = set()
    for name, commit_id in tagged_commits(context).items():
        try:
            state = state_of(context.manifest, context.manifest.commit_near(commit_id))
        except (BranchNotFound, CommitNotFound, HistoricalVersionReclaimed):
            # What it names can not be read any more, so there is nothing to keep.
            continue
        found = {entry.key for path, entry in state.by_path.items() if path in purged}
        if found:
            tags.append(name)
            keys |= found
    if tags:
        raise Conflict(
            f"older snapshots of {', '.join(sorted(keys))} would be gone, and {_listed(tags)} could not be read any more; "
            "delete it first (`omnigraph tag delete`), or drop without allow_data_loss"
        )


def _listed(tags: list[str]) -> str:
    return f"{'tag' if len(tags) == 1 else 'tags'} {', '.join(repr(tag) for tag in tags)}"
