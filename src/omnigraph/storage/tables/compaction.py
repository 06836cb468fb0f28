"""Compaction as tasks over fragments: planned here, executed anywhere, committed on a version that may have moved on.

Lance plans compaction for the indexes a table has now and never mixes fragments that an index covers with fragments it does
not. We fold the indexes in the same write, so the plan is made for what they will cover. A task that was executed is good
for every later version in which its fragments are the same, and so are the indexes over them.
"""

# Lance's tasks and results speak JSON, but its type stubs do not know it.

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

from lance.fragment import FragmentMetadata
from lance.optimize import CompactionTask, RewriteResult

from omnigraph.storage.tables.lance_private import data_file_name
from omnigraph.storage.tables.table import Table, TableIndex

#: A fragment is rewritten for its own sake when so large a share of its rows is deleted.
DELETED_SHARE = 0.1

# Lance makes these from its defaults when it plans; a task that is made by hand has to say all of them.
_OPTIONS: dict[str, object] = {
    "max_rows_per_group": 1024,
    "max_bytes_per_file": None,
    "materialize_deletions": True,
    "materialize_deletions_threshold": DELETED_SHARE,
    "num_threads": None,
    "batch_size": None,
    "io_buffer_size": None,
    "defer_index_remap": False,
    "index_remap_mode": "Direct",
    "compaction_mode": None,
    "enable_binary_copy": False,
    "enable_binary_copy_force": False,
    "binary_copy_read_batch_bytes": 16 * 1024 * 1024,
    "max_source_fragments": None,
    "max_source_rows": None,
    "max_source_bytes": None,
    "excluded_fragment_ids": [],
    "max_overlays_per_fragment": 10,
    # The index that needs to know where its rows went may be built between the task and its commit.
    "has_eager_remappable_index": True,
}
# These know rows by their stable ids; others, such as a BTREE, have to be told where the rows went.
_UNMOVED_KINDS = ("BITMAP", "INVERTED", "LABEL_LIST", "IVF_")


def plan_groups(
    fragments: Iterable[FragmentMetadata],
    covers: Sequence[frozenset[int]],
    target_rows: int,
    left_alone: Collection[int] = (),
) -> list[list[FragmentMetadata]]:
    """The fragments to rewrite together: neighbours that are small or riddled, in the same of the given covers.

    A group has rows for one full fragment at least, or is all there is of its run. So what is rewritten is never small
    next to something small, and a second plan finds nothing.
    """
    groups = []
    for run in _runs(fragments, covers, target_rows, left_alone):
        groups += [group for group in _split(run, target_rows) if len(group) > 1 or _is_riddled(group[0])]
    return groups


def segment_covers(indexes: Iterable[TableIndex]) -> list[frozenset[int]]:
    """What each segment of some indexes covers: Lance rewrites together only what lies in the same ones."""
    return [covered for index in indexes for covered in index.segment_fragments]


def pinned_fragments(indexes: Iterable[TableIndex]) -> frozenset[int]:
    """The fragments that can not be rewritten yet, because a fork inherits an index that would have to be told.

    Lance writes what it tells such an index to the fork's folder and goes on looking for it in the folder of the table that was
    forked: nothing could be looked up any more. An index that is folded or built on the fork is the fork's own.
    """
    told = (index for index in indexes if _is_told(index))
    return frozenset(id_ for index in told for id_ in index.inherited_fragments)


def _is_told(index: TableIndex) -> bool:
    """Whether an index has to be told where rows went."""
    return not index.kind.startswith(_UNMOVED_KINDS)


def make_task(
    version: int, group: Sequence[FragmentMetadata], target_rows: int, storage_version: str
) -> CompactionTask:
    """A task for Lance that rewrites a group of fragments of one version of a table."""
    described = {
        "task": {"fragments": [fragment.to_json() for fragment in group]},
        "read_version": version,
        "options": {
            **_OPTIONS,
            "target_rows_per_fragment": target_rows,
            "data_storage_version": storage_version,
        },
    }
    return CompactionTask.from_json(json.dumps(described, default=list))  # type: ignore[attr-defined, no-any-return]


def still_good(table: Table, results: Iterable[RewriteResult]) -> tuple[RewriteResult, ...]:
    """Those of the executed tasks that fit this version of the table, made out as if they had been executed on it."""
    there = {fragment.fragment_id: fragment.metadata for fragment in table.dataset.get_fragments()}
    indexes = table.indices()
    # Lance refuses to be told where rows went when no index asks.
    is_asked = any(map(_is_told, indexes))
    pinned = pinned_fragments(indexes)
    fitting = []
    for result in results:
        described: dict[str, Any] = json.loads(result.json())  # type: ignore[attr-defined]
        ids = [fragment["id"] for fragment in described["original_fragments"]]
        same = all(
            id_ in there and _marks(there[id_]) == _told_marks(fragment)
            for id_, fragment in zip(ids, described["original_fragments"], strict=True)
        )
        if same and pinned.isdisjoint(ids) and all(_is_uniform(ids, covered) for covered in segment_covers(indexes)):
            described["read_version"] = table.version
            if not is_asked:
                described["row_addrs"] = None
            fitting.append(RewriteResult.from_json(json.dumps(described)))  # type: ignore[attr-defined]
    return tuple(fitting)


def _runs(
    fragments: Iterable[FragmentMetadata],
    covers: Sequence[frozenset[int]],
    target_rows: int,
    left_alone: Collection[int],
) -> Iterator[list[FragmentMetadata]]:
    run: list[FragmentMetadata] = []
    covering: tuple[bool, ...] = ()
    for fragment in fragments:
        here = tuple(fragment.id in covered for covered in covers)
        candidate = fragment.id not in left_alone and _is_candidate(fragment, target_rows)
        if run and (here != covering or not candidate):
            yield run
            run = []
        if candidate:
            run.append(fragment)
            covering = here
    if run:
        yield run


def _split(run: Sequence[FragmentMetadata], target_rows: int) -> list[list[FragmentMetadata]]:
    groups: list[list[FragmentMetadata]] = [[]]
    rows = 0
    for fragment in run:
        if rows >= target_rows:
            groups.append([])
            rows = 0
        groups[-1].append(fragment)
        rows += fragment.num_rows
    if rows < target_rows and len(groups) > 1:
        # A rest of its own would lie small beside the end of the group before it.
        groups[-2] += groups.pop()
    return groups


def _is_candidate(fragment: FragmentMetadata, target_rows: int) -> bool:
    return bool(fragment.num_rows < target_rows) or _is_riddled(fragment)


def _is_riddled(fragment: FragmentMetadata) -> bool:
    return bool(fragment.num_rows < fragment.physical_rows * (1 - DELETED_SHARE))


def _is_uniform(ids: Collection[int], covered: frozenset[int]) -> bool:
    return covered.issuperset(ids) or covered.isdisjoint(ids)


def _marks(fragment: FragmentMetadata) -> tuple[list[str], object]:
    """What changes when rows of a fragment do: its files, and its deletion marks."""
    deletion = fragment.deletion_file
    marks = (None, None, None) if deletion is None else (deletion.read_version, deletion.id, deletion.num_deleted_rows)
    return [data_file_name(file) for file in fragment.files], marks


def _told_marks(fragment: dict[str, Any]) -> tuple[list[str], object]:
    """The same of a fragment that Lance has written down."""
    deletion = fragment.get("deletion_file") or {}
    marks = (deletion.get("read_version"), deletion.get("id"), deletion.get("num_deleted_rows"))
    return [file["path"] for file in fragment["files"]], marks
