"""Compaction as tasks over fragments: planned here, executed anywhere, committed on a version that may be newer.

Lance plans compaction for the indexes that a table has now, and never mixes fragments that an index covers with others. We
fold the indexes in the same write, so the plan assumes what they will cover. An executed task is valid for every later version
in which its fragments, and the indexes over them, are the same.
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

#: A fragment with at least this share of deleted rows is rewritten even on its own.
DELETED_SHARE = 0.1

# Lance fills these in from defaults when it plans; a task built by hand must contain all of them.
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
    # An index that must learn the new addresses of rows may be built between the task and its commit.
    "has_eager_remappable_index": True,
}
# These index kinds refer to stable row ids; others, such as BTREE, must be told the new addresses of rows.
_UNMOVED_KINDS = ("BITMAP", "INVERTED", "LABEL_LIST", "IVF_")


def plan_groups(
    fragments: Iterable[FragmentMetadata],
    covers: Sequence[frozenset[int]],
    target_rows: int,
    left_alone: Collection[int] = (),
) -> list[list[FragmentMetadata]]:
    """The groups of fragments to rewrite: adjacent fragments, small or with many deletions, covered by the same indexes.

    A group has enough rows for at least one full fragment, or is its whole run. So the result is never small next to another
    small fragment, and a second plan finds nothing.
    """
    groups = []
    for run in _runs(fragments, covers, target_rows, left_alone):
        groups += [group for group in _split(run, target_rows) if len(group) > 1 or _is_riddled(group[0])]
    return groups


def segment_covers(indexes: Iterable[TableIndex]) -> list[frozenset[int]]:
    """The fragments that each segment of the indexes covers: Lance rewrites together only fragments in the same segments."""
    return [covered for index in indexes for covered in index.segment_fragments]


def pinned_fragments(indexes: Iterable[TableIndex]) -> frozenset[int]:
    """The fragments that can not be rewritten yet, because a fork inherits an index that must be told new addresses.

    Lance writes the new addresses for such an index to the fork's folder but looks for them in the parent table's folder, so
    no look-up would work any more. An index that is folded or built on the fork belongs to the fork.
    """
    told = (index for index in indexes if _is_told(index))
    return frozenset(id_ for index in told for id_ in index.inherited_fragments)


def _is_told(index: TableIndex) -> bool:
    """Whether an index must be told the new addresses of moved rows."""
    return not index.kind.startswith(_UNMOVED_KINDS)


def make_task(
    version: int, group: Sequence[FragmentMetadata], target_rows: int, storage_version: str
) -> CompactionTask:
    """A Lance task that rewrites a group of fragments of one version of a table."""
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
    """The executed tasks that still fit this version of the table, rewritten as if they had been executed on it."""
    there = {fragment.fragment_id: fragment.metadata for fragment in table.dataset.get_fragments()}
    indexes = table.indices()
    # Lance refuses new addresses when no index needs them.
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
        # A small rest of its own would lie beside the small end of the previous group.
        groups[-2] += groups.pop()
    return groups


def _is_candidate(fragment: FragmentMetadata, target_rows: int) -> bool:
    return bool(fragment.num_rows < target_rows) or _is_riddled(fragment)


def _is_riddled(fragment: FragmentMetadata) -> bool:
    return bool(fragment.num_rows < fragment.physical_rows * (1 - DELETED_SHARE))


def _is_uniform(ids: Collection[int], covered: frozenset[int]) -> bool:
    return covered.issuperset(ids) or covered.isdisjoint(ids)


def _marks(fragment: FragmentMetadata) -> tuple[list[str], object]:
    """What identifies the rows of a fragment: the names of its files, and its deletion marks."""
    deletion = fragment.deletion_file
    marks = (None, None, None) if deletion is None else (deletion.read_version, deletion.id, deletion.num_deleted_rows)
    return [data_file_name(file) for file in fragment.files], marks


def _told_marks(fragment: dict[str, Any]) -> tuple[list[str], object]:
    """The same as `_marks`, for a fragment in Lance's JSON form."""
    deletion = fragment.get("deletion_file") or {}
    marks = (deletion.get("read_version"), deletion.get("id"), deletion.get("num_deleted_rows"))
    return [file["path"] for file in fragment["files"]], marks
