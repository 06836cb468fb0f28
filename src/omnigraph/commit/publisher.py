"""The publisher: the only way in which anything becomes visible.

A publish loads the branch's state, checks every requirement, and writes its rows in one Lance transaction that always
replaces the `fence` row. Every other publisher of the branch must replace the same row, and the commit allows zero Lance
retries, so of two publishers from one state exactly one succeeds.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from omnigraph import failpoints
from omnigraph.commit import rows
from omnigraph.commit.branch_refs import MANIFEST_PATH
from omnigraph.commit.context import CommitContext
from omnigraph.commit.manifest import Manifest, Warm, manifest_location, receipts_in
from omnigraph.commit.migrations import migrated
from omnigraph.commit.model import Commit, Lineage, ManifestState
from omnigraph.commit.updates import Publication, RecordReceipt, Requirement, Update, apply_updates, check
from omnigraph.errors import BadRequest, CommitStateUnknown, ManifestContention, OmnigraphError, StorageError
from omnigraph.storage.objects import at_once
from omnigraph.storage.tables.commit import commit_exact, compact_dataset
from omnigraph.storage.tables.lance_errors import StaleCommit
from omnigraph.storage.tables.staged import Staged, stage_replace
from omnigraph.storage.tables.table import Table
from omnigraph.storage.tables.written import files_of_staged, require_whole
from omnigraph.watching import RETRY, happened

PUBLISHER_RETRY_BUDGET = 5
#: The manifest is compacted when it has more small fragments than this; full fragments do not count.
COMPACT_ABOVE_FRAGMENTS = 12
#: Fragments with this many rows are left alone, so that the cost of compaction does not grow with the history.
ROWS_PER_FRAGMENT = 1024

failpoints.declare(
    "publisher.load_contention", "publisher.before_commit", "publisher.after_commit", "publisher.before_compact"
)

_log = logging.getLogger(__name__)


def publish(
    context: CommitContext,
    branch: str,
    updates: Sequence[Update],
    requirements: Sequence[Requirement],
    lineage: Lineage | None,
    base: Warm | None = None,
    drafted: Draft | None = None,
) -> ManifestState:
    """Make updates visible in one commit and return the new state. Contention is retried, a broken requirement raises.

    `lineage`: the commit; None for a publish that changes no data, such as a tag.

    `base`: the branch as the caller has loaded it inside the effect window; used by the first attempt.
    `drafted`: a publish staged ahead on `base`; used if its updates are the ones to publish.
    """
    manifest = context.manifest
    for attempt in range(PUBLISHER_RETRY_BUDGET + 1):
        if attempt:
            happened(RETRY)
            time.sleep(random.uniform(0.002, 0.01) * 2**attempt)
        try:
            failpoints.hit("publisher.load_contention")
            warm = base if base is not None and not attempt else migrated(context, branch)
        except (StaleCommit, ManifestContention, failpoints.FailpointError):
            continue
        if lineage is not None and (
            warm.state.head == lineage.id or (attempt and manifest.find_commit(branch, lineage.id))
        ):
            # An earlier attempt, or recovery, has published this commit already.
            return warm.state
        check(requirements, warm.state)
        check_receipts(warm, updates)
        if drafted is None or drafted.base is not warm or drafted.updates != tuple(updates):
            drafted = draft(context, warm, updates, lineage)
        try:
            state = _commit(context, drafted, lineage)
        except StaleCommit:
            continue
        context.make_durable(MANIFEST_PATH)
        return state
    raise ManifestContention(
        f"too many writers published on branch '{branch}' at once; nothing was written by this one, repeat it"
    )


@dataclass(frozen=True, slots=True)
class Draft:
    """A publish whose files are written but not committed; it is valid only for the version it was made from."""

    base: Warm
    updates: tuple[Update, ...]
    publication: Publication
    staged: Staged


def draft(context: CommitContext, base: Warm, updates: Sequence[Update], lineage: Lineage | None) -> Draft:
    """Stage the rows of a publish, and deletion marks on the rows they replace; all files are checked to be complete."""
    publication = apply_updates(base.state, updates, lineage)
    written = (row["object_id"] for row in publication.rows)
    known = map(base.state.addresses.get, (*written, *publication.removed))
    replaced = pa.array([address for address in known if address is not None], pa.uint64())
    table = Table(manifest_location(base.state.branch), base.dataset)
    with at_once(context.root) as requests:
        staged = stage_replace(table, rows.to_arrow(publication.rows), replaced, requests)
    require_whole(context.root, files_of_staged(staged))
    return Draft(base, tuple(updates), publication, staged)


def check_receipts(warm: Warm, updates: Sequence[Update]) -> None:
    for key in receipts_in(warm, [update.key for update in updates if isinstance(update, RecordReceipt)]):
        raise BadRequest(f"idempotency key '{key}' has been used on branch '{warm.state.branch}' already")


def _commit(context: CommitContext, drafted: Draft, lineage: Lineage | None) -> ManifestState:
    manifest, before = context.manifest, drafted.base.state
    failpoints.hit("publisher.before_commit")
    try:
        dataset = commit_exact(drafted.base.dataset, drafted.staged.transaction)
        failpoints.hit("publisher.after_commit")
    except (StorageError, failpoints.FailpointError) as error:
        if isinstance(error, StorageError) and error.kind != "unknown":
            raise
        if lineage is None:
            return _settle_unnamed(manifest, drafted.publication.state, error)
        return _settle_unknown(manifest, before.branch, lineage, error)
    state = _state_after(drafted.publication, before, dataset, lineage)
    if state is None:
        return manifest.load(before.branch)
    manifest.adopt(Warm(dataset, state))
    return state


def _state_after(
    publication: Publication, before: ManifestState, dataset: object, lineage: Lineage | None
) -> ManifestState | None:
    """The state after a publish, without reading it back; None when another version came in between."""
    version: int = dataset.version  # type: ignore[attr-defined]
    fragments = dataset.get_fragments()  # type: ignore[attr-defined]
    if version != before.version + 1 or fragments[-1].metadata.physical_rows != len(publication.rows):
        return None
    first = fragments[-1].fragment_id << 32
    addresses = {
        **{name: address for name, address in before.addresses.items() if name not in publication.removed},
        **{
            row["object_id"]: first + offset
            for offset, row in enumerate(publication.rows)
            if row["object_type"] in rows.STATE_TYPES
        },
    }
    return replace(
        publication.state,
        version=version,
        commit_version=before.commit_version if lineage is None else version,
        addresses=addresses,
        newest=before.newest if lineage is None else commit_from(lineage, before.branch, publication.parent, version),
        fragment_count=len(fragments),
    )


def commit_from(lineage: Lineage, branch: str, parent: str | None, version: int) -> Commit:
    """The commit that a publish has made on a branch at this manifest version."""
    return Commit(
        id=lineage.id,
        branch=branch,
        parent=parent,
        merged_parent=lineage.merged_parent,
        actor=lineage.actor,
        created_at=lineage.created_at,
        manifest_version=version,
        kind=lineage.kind,
        recovery_for_actor=lineage.recovery_for_actor,
        recovers=lineage.recovers,
        message=lineage.message,
        group=lineage.group,
        changed=lineage.changed,
    )


def _settle_unnamed(manifest: Manifest, wanted: ManifestState, error: OmnigraphError) -> ManifestState:
    """Find out whether a publish without a commit has happened after the store failed: returns its state, or raises."""
    manifest.forget(wanted.branch)
    state = manifest.load(wanted.branch)
    if state.fence >= wanted.fence and state.tags == wanted.tags:
        return state
    raise StorageError(f"the store failed ({error}); look at the tags and repeat it", kind="unknown") from error


def _settle_unknown(manifest: Manifest, branch: str, lineage: Lineage, error: OmnigraphError) -> ManifestState:
    """Find out whether a commit was published after the store failed: returns its state, or raises `CommitStateUnknown`."""
    manifest.forget(branch)
    try:
        if manifest.find_commit(branch, lineage.id) is not None:
            return manifest.load(branch)
    except OmnigraphError as unreadable:
        _log.warning("the manifest could not be read after an unknown commit: %s", unreadable)
    raise CommitStateUnknown(
        f"the store failed while commit {lineage.id} was being published ({error}); "
        "it will be finished or undone as a whole, look it up with `omnigraph commit show`",
        commit_id=lineage.id,
    ) from error


def compact_when_due(manifest: Manifest, branch: str) -> bool:
    """Compact the manifest if it has many small fragments. Runs after a write, in the effect window, and never fails it."""
    try:
        warm = manifest.last_seen(branch)
        if not _is_due(warm):
            return False
        failpoints.hit("publisher.before_compact")
        location = manifest_location(branch)
        # Compaction advances the handle it works on, so it gets its own.
        dataset = manifest.tables.open_dataset(location)
        compact_dataset(manifest.tables, location, dataset, target_rows_per_fragment=ROWS_PER_FRAGMENT)
    except OmnigraphError as error:
        _log.warning("compaction of the manifest of branch '%s' was put off: %s", branch, error)
        return False
    manifest.forget(branch)
    return True


def _is_due(warm: Warm) -> bool:
    if warm.state.fragment_count <= COMPACT_ABOVE_FRAGMENTS:
        return False
    small = sum(1 for fragment in warm.dataset.get_fragments() if fragment.metadata.num_rows < ROWS_PER_FRAGMENT)
    return small > COMPACT_ABOVE_FRAGMENTS
