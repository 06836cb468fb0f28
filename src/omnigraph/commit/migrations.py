"""Migrates older formats step by step, one function per step: the work first, the stamp last, repeatable after a crash.

Main is migrated at read-write open, any other branch at its first write, all branches by `graph/upgrading`.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from contextlib import suppress

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph import failpoints
from omnigraph.commit import rows
from omnigraph.commit.branch_refs import MANIFEST_PATH, BranchRef, list_refs
from omnigraph.commit.context import CommitContext
from omnigraph.commit.format import CURRENT, MIN_SUPPORTED
from omnigraph.commit.legacy import legacy_commits, legacy_head
from omnigraph.commit.manifest import Warm, manifest_location
from omnigraph.commit.model import MAIN, Commit
from omnigraph.commit.retiring import remove_ref
from omnigraph.errors import ManifestContention
from omnigraph.ids import new_ulid, now_micros
from omnigraph.storage.tables.commit import commit_exact, set_schema_metadata
from omnigraph.storage.tables.lance_errors import StaleCommit, translated
from omnigraph.storage.tables.staged import stage_overwrite
from omnigraph.storage.tables.table import Table

MIGRATION_RETRY_BUDGET = 5

failpoints.declare(
    "migration.v2_to_v3.before_stamp",
    "migration.v3_to_v4.before_overwrite",
    "migration.v4_stamp.force_incompatible",
)


def migrated(context: CommitContext, branch: str) -> Warm:
    """The current state of a branch in the current format; an older format is migrated first."""
    for attempt in range(MIGRATION_RETRY_BUDGET + 1):
        warm = context.manifest.warm(branch)
        if warm.state.stamp == CURRENT:
            return warm
        if attempt:
            time.sleep(random.uniform(0.002, 0.01) * 2**attempt)
        # Another process may migrate the branch at the same time: then read it again.
        with suppress(StaleCommit):
            _STEPS[warm.state.stamp](context, branch, warm)
        context.manifest.forget(branch)
    raise ManifestContention(f"branch '{branch}' is being migrated by others at once; repeat the operation")


def _v2_to_v3(context: CommitContext, branch: str, warm: Warm) -> None:
    """Remove the `__run__…` branches of format 2. Only main does this: afterwards such a name is an ordinary name."""
    for name in stale_runs(list_refs(context.store)) if branch == MAIN else ():
        remove_ref(context, name)
    failpoints.hit("migration.v2_to_v3.before_stamp")
    set_schema_metadata(warm.dataset, rows.STAMP_KEY, "3")


def stale_runs(refs: list[BranchRef]) -> list[str]:
    """The branches that the step from format 2 removes, in order: `__run__` branches that no other branch was made from."""
    left, found = list(refs), []
    while stale := next((ref for ref in left if _is_stale_run(ref, left)), None):
        found.append(stale.name)
        left.remove(stale)
    return found


def _is_stale_run(ref: BranchRef, refs: list[BranchRef]) -> bool:
    return ref.name.startswith("__run__") and all(other.parent != ref.name for other in refs)


def _v3_to_v4(context: CommitContext, branch: str, warm: Warm) -> None:
    """Move the history into `__manifest` with one Overwrite, the only Lance operation that is a strict compare-and-swap."""
    with translated(MANIFEST_PATH, "read"):
        present: pa.Table = warm.dataset.to_table(columns=rows.COLUMNS.names)
    if {rows.FENCE, rows.GRAPH_COMMIT} <= set(pc.unique(present["object_type"]).to_pylist()):
        _stamp_v4(warm)
        return
    commits = legacy_commits(context.store, context.tables, branch) or [_genesis(warm)]
    head = legacy_head(commits, warm.state.version)
    assert head is not None, "there is at least the genesis commit"
    added = [rows.copied_commit_row(commit) for commit in commits]
    added += [rows.head_row(branch, head.id), rows.fence_row(0, head.id)]
    schema = rows.manifest_schema(CURRENT, warm.dataset.schema.metadata)
    kept = present.select(schema.names).cast(schema)
    image = pa.concat_tables([kept, rows.to_arrow(added, schema)])
    staged = stage_overwrite(Table(manifest_location(branch), warm.dataset), image, schema)
    failpoints.hit("migration.v3_to_v4.before_overwrite")
    commit_exact(warm.dataset, staged.transaction)


def _stamp_v4(warm: Warm) -> None:
    """Write the missing stamp; the history is already in the manifest."""
    failpoints.hit("migration.v4_stamp.force_incompatible")
    set_schema_metadata(warm.dataset, rows.STAMP_KEY, "4")


def _genesis(warm: Warm) -> Commit:
    """The first commit of a graph whose old format recorded no history."""
    return Commit(
        id=new_ulid(),
        branch=warm.state.branch,
        parent=None,
        merged_parent=None,
        actor=None,
        created_at=now_micros(),
        manifest_version=warm.state.version,
        kind="init",
    )


_STEPS: dict[int, Callable[[CommitContext, str, Warm], None]] = {2: _v2_to_v3, 3: _v3_to_v4}

assert min(_STEPS) == MIN_SUPPORTED, "the lowest step must start at the oldest supported format"
assert max(_STEPS) == CURRENT - 1, "the highest step must end at the current format"
