"""The layout of `__manifest`: history is kept in other fragments than the state, so that loading a state reads no history.

Commits and receipts are only ever added, while rows of the state are replaced all the time; publishes leave them mixed in the
same fragments. Here the rows of the state are published again, in one fragment, so that all other fragments hold only
history. These are compacted, and listed in the schema's metadata. Fragments never change and their numbers are never reused,
so the list stays true, and a load of the state may skip these fragments.

Each of the three steps leaves a valid manifest; if one fails, or a writer comes in between, the next call continues.
"""

from __future__ import annotations

from omnigraph import failpoints
from omnigraph.commit import rows
from omnigraph.commit.branch_refs import MANIFEST_PATH
from omnigraph.commit.context import CommitContext
from omnigraph.commit.format import CURRENT
from omnigraph.commit.manifest import Warm, manifest_location, scan_state
from omnigraph.commit.publisher import ROWS_PER_FRAGMENT, publish
from omnigraph.commit.updates import FenceIs, Restate
from omnigraph.ids import new_ulid
from omnigraph.storage.tables.commit import commit_staged, set_schema_metadata
from omnigraph.storage.tables.lance_errors import translated
from omnigraph.storage.tables.staged import stage_compaction
from omnigraph.storage.tables.table import ROW_ADDRESS, Table

#: From this many rows of history on, it is kept apart: the publisher's own compaction leaves fragments of this size alone.
HISTORY_APART = ROWS_PER_FRAGMENT

failpoints.declare("layout.after_restate", "layout.after_compaction")


def settle_layout(context: CommitContext, branch: str) -> None:
    """Compact the manifest of a branch with its history kept apart; a second call does nothing. Needs the effect window."""
    manifest = context.manifest
    manifest.forget(branch)
    warm = manifest.warm(branch)
    apart = warm.state.stamp == CURRENT and _history_rows(warm) >= HISTORY_APART
    if apart and not _is_together(warm):
        _restate(context, warm)
        failpoints.hit("layout.after_restate")
        warm = manifest.warm(branch)
    left_alone = _state_fragments(warm) if apart else frozenset[int]()
    staged = stage_compaction(Table(manifest_location(branch), warm.dataset), left_alone=left_alone)
    if staged is not None:
        commit_staged(context.tables, staged, expected_version=staged.read_version, transaction_id=new_ulid())
        failpoints.hit("layout.after_compaction")
        manifest.forget(branch)
        warm = manifest.warm(branch)
    if apart:
        _name_history(warm)
    manifest.forget(branch)


def _history_rows(warm: Warm) -> int:
    with translated(MANIFEST_PATH, "read"):
        return int(warm.dataset.count_rows()) - len(warm.state.addresses)


def _state_fragments(warm: Warm) -> frozenset[int]:
    return frozenset(address >> 32 for address in warm.state.addresses.values())


def _is_together(warm: Warm) -> bool:
    """Whether all rows of the state lie in one fragment that holds no other rows."""
    fragments = _state_fragments(warm)
    if len(fragments) != 1:
        return False
    fragment = warm.dataset.get_fragment(next(iter(fragments)))
    return fragment is not None and fragment.physical_rows == len(warm.state.addresses)


def _restate(context: CommitContext, warm: Warm) -> None:
    """Publish the rows of the state again, unchanged, in one fragment. This makes no commit."""
    with translated(MANIFEST_PATH, "read"):
        table = scan_state(warm.dataset, warm.dataset.get_fragments(), rows.COLUMNS.names)
    # Every publish writes the fence itself.
    again = [row for row in table.drop_columns([ROW_ADDRESS]).to_pylist() if row["object_type"] != rows.FENCE]
    publish(context, warm.state.branch, [Restate(tuple(again))], [FenceIs(warm.state.fence)], None, base=warm)


def _name_history(warm: Warm) -> None:
    state = _state_fragments(warm)
    history = sorted(
        fragment.fragment_id for fragment in warm.dataset.get_fragments() if fragment.fragment_id not in state
    )
    if frozenset(history) != rows.history_fragments(warm.dataset.schema):
        set_schema_metadata(warm.dataset, rows.HISTORY_KEY, ",".join(map(str, history)))
