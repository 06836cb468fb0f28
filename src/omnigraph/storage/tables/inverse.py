"""Undo: the inverse of what happened to a table between two of its versions.

The inverse is an ordinary transaction on fragments: added fragments are removed, changed fragments get their old
metadata, vanished fragments come back. It keeps row ids, indexes, and commits made meanwhile by other writers.
Three cases have no such inverse and need Lance's restore: a changed schema, lost indexes (every overwrite drops them),
and a vanished fragment 0 with deletion marks (Lance gives a returning fragment 0 a new id and then looks for the
deletion file under the new id).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from lance import LanceDataset, LanceOperation
from lance.fragment import FragmentMetadata


@dataclass(frozen=True)
class Unchanged:
    """The rows are the same in both versions; at most derived data differs."""


@dataclass(frozen=True)
class Inversion:
    """The effect can be undone by this operation, which is prepared against the version of the effect."""

    operation: LanceOperation.Update


@dataclass(frozen=True)
class Restoration:
    """Only a restore can undo the effect; it would wipe out commits made after it."""

    reason: str


Inverse = Unchanged | Inversion | Restoration


def inverse_of(before: LanceDataset, after: LanceDataset) -> Inverse:
    """The operation that restores the content of `before` on top of `after`."""
    if before.lance_schema != after.lance_schema or before.schema.metadata != after.schema.metadata:
        return Restoration("the schema changed")
    if lost := _index_names(before) - _index_names(after):
        return Restoration(f"the effect dropped the indexes {', '.join(sorted(lost))}")
    return _inverse_of_fragments(before, after)


def _inverse_of_fragments(before: LanceDataset, after: LanceDataset) -> Inverse:
    old, new = _by_content(before), _by_content(after)
    added = {fragment.id for content, fragment in new.items() if content not in old}
    gone = {fragment.id: fragment for content, fragment in old.items() if content not in new}
    if not added and not gone:
        return Unchanged()
    # Fragment ids are never reused, so the same id in both versions is the same fragment with other marks.
    changed = [fragment for id_, fragment in gone.items() if id_ in added]
    vanished = [fragment for id_, fragment in gone.items() if id_ not in added]
    if vanished and not changed and _only_rewritten(before, after):
        return Unchanged()
    if any(fragment.id == 0 and fragment.deletion_file is not None for fragment in vanished):
        return Restoration("fragment 0 vanished together with its deletion marks")
    return Inversion(
        LanceOperation.Update(
            removed_fragment_ids=sorted(added - {fragment.id for fragment in changed}),
            updated_fragments=changed,
            new_fragments=vanished,
        )
    )


def _by_content(dataset: LanceDataset) -> dict[str, FragmentMetadata]:
    return {_content(fragment.metadata): fragment.metadata for fragment in dataset.get_fragments()}


def _content(fragment: FragmentMetadata) -> str:
    # The id and the version stamps of a fragment change when it is restored, its rows do not.
    described: dict[str, Any] = dict(fragment.to_json())
    for derived in ("id", "created_at_version_meta", "last_updated_at_version_meta"):
        described.pop(derived)
    return json.dumps(described, sort_keys=True, default=list)


def _only_rewritten(before: LanceDataset, after: LanceDataset) -> bool:
    """Whether the rows are the same although the fragments differ, as after a compaction."""
    if before.count_rows() != after.count_rows():
        return False
    delta = after.delta(compared_against=before.version)
    readers = (delta.get_inserted_rows(), delta.get_updated_rows(), delta.get_deleted_row_ids())
    return not any(batch.num_rows for reader in readers for batch in reader)


def _index_names(dataset: LanceDataset) -> set[str]:
    return {index.name for index in dataset.describe_indices()}
