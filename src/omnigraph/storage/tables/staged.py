"""Staged writes: data, deletion and index files that are written but belong to no version yet.

No function here moves a table's head; `commit.commit_staged` does that with the value they return. Data is streamed.
Staged files that are never committed are garbage; cleanup removes them.

A table's fork must exist before anything is staged for it: files lie below the line they are staged on, and Lance would
commit them to another line without an error and leave it unreadable.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa
from lance import LanceOperation, Transaction
from lance.dataset import Index
from lance.fragment import FragmentMetadata, write_fragments
from lance.optimize import CompactionTask, RewriteResult

from omnigraph.errors import BadRequest
from omnigraph.storage.objects import ONE_BY_ONE
from omnigraph.storage.tables.compaction import make_task, pinned_fragments, plan_groups, segment_covers, still_good
from omnigraph.storage.tables.deletions import Marks, mark_deleted
from omnigraph.storage.tables.handles import Tables, for_one_call
from omnigraph.storage.tables.incoming import Data, Incoming
from omnigraph.storage.tables.lance_errors import translated
from omnigraph.storage.tables.lance_private import data_file_name
from omnigraph.storage.tables.location import Location
from omnigraph.storage.tables.row_places import RowPlaces
from omnigraph.storage.tables.table import ROW_ADDRESS, Filter, Table

if TYPE_CHECKING:
    # Lance's native module has no submodules at run time.
    from lance.lance.schema import LanceField

# Blob v2 needs 2.2; fixed here so that a new Lance release does not change the format of a graph.
DATA_STORAGE_VERSION = "2.2"
ROWS_PER_FRAGMENT = 1024 * 1024

Kind = Literal[
    "create",
    "append",
    "replace",
    "delete",
    "overwrite",
    "columns",
    "index",
    "compaction",
    "index_fold",
    "restore",
]


@dataclass(frozen=True)
class Stats:
    """How many rows a staged write inserts, updates and deletes."""

    inserted: int = 0
    updated: int = 0
    deleted: int = 0


@dataclass(frozen=True)
class Rewrites:
    """Executed compaction tasks. Lance commits them itself, in two versions, and remaps indexes meanwhile."""

    results: tuple[RewriteResult, ...]


@dataclass(frozen=True)
class IndexFold:
    """Indexes into which uncovered fragments are to be folded. Lance can not stage this: the work is done at commit."""

    names: tuple[str, ...]


@dataclass(frozen=True)
class Staged:
    """One staged write of one table. `read_version`: the version it was prepared against, None for a new table."""

    kind: Kind
    location: Location
    read_version: int | None
    work: Transaction | Rewrites | IndexFold
    stats: Stats = Stats()

    @property
    def transaction(self) -> Transaction:
        """The single Lance transaction of a write of rows or of an index."""
        assert isinstance(self.work, Transaction), f"a staged {self.kind} has no transaction of its own"
        return self.work


def stage_create(tables: Tables, location: Location, schema: pa.Schema, data: Data | None = None) -> Staged:
    """Stage a new table with this schema and, if given, these rows."""
    if location.branch is not None:
        raise BadRequest(f"a table is created on its main line, not on branch {location.branch!r}")
    incoming = Incoming(data if data is not None else [], schema, str(location))
    with incoming.writing("create"):
        transaction = write_fragments(
            incoming.reader,
            tables.root.lance_uri(location.path),
            mode="create",
            return_transaction=True,
            data_storage_version=DATA_STORAGE_VERSION,
            storage_options=tables.root.storage_options,
            allow_external_blob_outside_bases=True,
            session=tables.session,
        )
    return Staged("create", location, None, transaction, Stats(inserted=incoming.rows))


def stage_append(table: Table, data: Data) -> Staged:
    """Stage new rows, without looking for stored rows with the same ids."""
    incoming = Incoming(data, table.schema, str(table.location))
    return stage_fragments(table, _write(table, incoming))


def staged_files(location: Location, fragments: Sequence[FragmentMetadata]) -> list[str]:
    """The paths of files and folders of uncommitted fragments, below the graph root, to be removed with them."""
    names = [data_file_name(file) for fragment in fragments for file in fragment.files]
    return [f"{location.dataset_path}/data/{part}" for name in names for part in (name, name.removesuffix(".lance"))]


def staged_marks(staged: Staged) -> list[str]:
    """The paths of the deletion files that a staged write has made."""
    operation = staged.transaction.operation
    changed = operation.updated_fragments if isinstance(operation, LanceOperation.Update) else []
    marked = (fragment.deletion_file.path(fragment.id) for fragment in changed or [] if fragment.deletion_file)
    return [f"{staged.location.dataset_path}/{path}" for path in marked]


def stage_replace(
    table: Table,
    data: Data,
    matched_row_addresses: RowPlaces | pa.Array | pa.ChunkedArray,
    requests: Executor = ONE_BY_ONE,
) -> Staged:
    """Stage new rows, and deletion marks on the rows they replace, as one transaction."""
    incoming = Incoming(data, table.schema, str(table.location))
    written = requests.submit(_write, table, incoming)
    marks = mark_deleted(table, matched_row_addresses, requests)
    return _replacement(table, written.result(), marks)


def write_rows(table: Table, data: Data) -> list[FragmentMetadata]:
    """Write new rows as fragments that belong to no version yet, for `stage_fragments`."""
    return _write(table, Incoming(data, table.schema, str(table.location)))


def stage_fragments(
    table: Table, fragments: Sequence[FragmentMetadata], removed: RowPlaces | pa.Array | pa.ChunkedArray | None = None
) -> Staged:
    """Stage fragments that were written against this table (mode "append"), and the removal of the rows they replace."""
    _require_fields_of(table, fragments)
    if removed is not None:
        return _replacement(table, fragments, mark_deleted(table, removed))
    append = Transaction(table.version, LanceOperation.Append(list(fragments)))
    return Staged("append", table.location, table.version, append, Stats(inserted=_row_count(fragments)))


def _replacement(table: Table, fragments: Sequence[FragmentMetadata], marks: Marks) -> Staged:
    operation = LanceOperation.Update(
        removed_fragment_ids=list(marks.vanished),
        updated_fragments=list(marks.changed),
        new_fragments=list(fragments),
    )
    rows = _row_count(fragments)
    updated = min(rows, marks.rows)
    stats = Stats(inserted=rows - updated, updated=updated, deleted=marks.rows - updated)
    return Staged("replace", table.location, table.version, Transaction(table.version, operation), stats)


def stage_delete(
    table: Table,
    *,
    filter: Filter | None = None,
    ids: pa.Array | pa.ChunkedArray | None = None,
    row_addresses: RowPlaces | pa.Array | pa.ChunkedArray | None = None,
) -> Staged:
    """Stage the deletion of rows given by a filter, by ids, or by addresses; exactly one of the three."""
    if filter is not None and ids is None and row_addresses is None:
        marks = mark_deleted(table, _addresses(table, filter))
    elif ids is not None and filter is None and row_addresses is None:
        marks = mark_deleted(table, table.take_ids(ids, ["id"], with_row_address=True).column(ROW_ADDRESS))
    elif row_addresses is not None and filter is None and ids is None:
        marks = mark_deleted(table, row_addresses)
    else:
        raise BadRequest("give exactly one of filter, ids and row_addresses to delete by")
    return _deletion(table, marks)


def stage_overwrite(table: Table, data: Data, schema: pa.Schema | None = None) -> Staged:
    """Stage the replacement of all rows by these rows, and of the schema if one is given. All indexes are lost."""
    incoming = Incoming(data, schema if schema is not None else table.schema, str(table.location))
    with incoming.writing("overwrite"):
        transaction = write_fragments(
            incoming.reader,
            table.dataset,
            mode="overwrite",
            return_transaction=True,
            data_storage_version=DATA_STORAGE_VERSION,
            allow_external_blob_outside_bases=True,
        )
    stats = Stats(inserted=incoming.rows, deleted=table.count_rows())
    return Staged("overwrite", table.location, table.version, transaction, stats)


def stage_overwrite_fragments(table: Table, fragments: Sequence[FragmentMetadata]) -> Staged:
    """Stage the replacement of all rows by fragments that `write_rows` has made for this table. All indexes are lost."""
    _require_fields_of(table, fragments)
    # Lance's own schema, because the fragments contain its field ids, which an Arrow schema lacks.
    operation = LanceOperation.Overwrite(table.dataset.lance_schema, list(fragments))
    stats = Stats(inserted=_row_count(fragments), deleted=table.count_rows())
    return Staged("overwrite", table.location, table.version, Transaction(table.version, operation), stats)


# --- derived state ----------------------------------------------------------------------------------------------------


def build_index_segment(
    table: Table,
    column: str,
    kind: str,
    name: str,
    *,
    fragment_ids: Sequence[int] | None = None,
    options: Mapping[str, Any] | None = None,
) -> Index:
    """Write the files of an index segment over some fragments, or all; segments can be built in parallel processes."""
    if column not in table.schema.names:
        raise BadRequest(f"{table.location} has no column {column!r} to index")
    with translated(str(table.location), f"build the {kind} index {name} of"):
        try:
            return for_one_call(table.dataset).create_index_uncommitted(
                column,
                kind,
                name=name,
                replace=True,
                fragment_ids=list(table.fragment_ids if fragment_ids is None else fragment_ids),
                # Lance takes the options of all index kinds as keywords of one function.
                **(options or {}),
            )
        except TypeError as error:
            raise BadRequest(f"column {column!r} of {table.location} can not have a {kind} index: {error}") from error


def stage_index(table: Table, column: str, kind: str, name: str, *, options: Mapping[str, Any] | None = None) -> Staged:
    """Stage an index over the whole table, replacing an index of the same name."""
    return stage_index_segments(table, kind, name, [build_index_segment(table, column, kind, name, options=options)])


def stage_index_segments(table: Table, kind: str, name: str, segments: Sequence[Index]) -> Staged:
    """Stage built segments as one index, replacing an index of the same name."""
    merged = segments[0]
    # A full-text segment can be searched only after merging, even a single one.
    if len(segments) > 1 or kind == "INVERTED":
        with translated(str(table.location), f"merge the segments of index {name} of"):
            merged = for_one_call(table.dataset).merge_existing_index_segments(list(segments))
    operation = LanceOperation.CreateIndex(new_indices=[merged], removed_indices=_segments_of(table, name))
    return Staged("index", table.location, table.version, Transaction(table.version, operation))


def stage_indexes(indexes: Sequence[Staged]) -> Staged:
    """Combine indexes that were staged on one version of a table into one transaction."""
    new_indices, removed_indices = [], []
    for staged in indexes:
        operation = staged.transaction.operation
        assert isinstance(operation, LanceOperation.CreateIndex), f"a staged {staged.kind} is no index"
        new_indices += operation.new_indices
        removed_indices += operation.removed_indices
    first = indexes[0]
    together = LanceOperation.CreateIndex(new_indices=new_indices, removed_indices=removed_indices)
    return replace(first, work=Transaction(first.transaction.read_version, together))


def stage_index_removal(table: Table, names: Collection[str]) -> Staged:
    """Stage the removal of indexes of a table, as one transaction."""
    removed = [segment for name in names for segment in _segments_of(table, name)]
    operation = LanceOperation.CreateIndex(new_indices=[], removed_indices=removed)
    return Staged("index", table.location, table.version, Transaction(table.version, operation))


def stage_index_fold(table: Table, names: Sequence[str]) -> Staged:
    """Stage the folding of uncovered fragments into these indexes, without training anything again."""
    return Staged("index_fold", table.location, table.version, IndexFold(tuple(names)))


def compaction_tasks(
    table: Table,
    *,
    folded: Collection[str] = (),
    left_alone: Collection[int] = (),
    target_rows_per_fragment: int = ROWS_PER_FRAGMENT,
) -> tuple[CompactionTask, ...]:
    """The independent tasks of a compaction, possibly none. They can run in other processes.

    `folded`: indexes that will cover all fragments when the compaction is committed. `left_alone`: ids of fragments that
    are not rewritten.
    """
    staying = [index for index in table.indices() if index.name not in folded]
    covers, pinned = segment_covers(staying), pinned_fragments(staying)
    with translated(str(table.location), "plan the compaction of"):
        dataset = table.dataset
        fragments = (part.metadata for part in dataset.get_fragments())
        groups = plan_groups(fragments, covers, target_rows_per_fragment, pinned.union(left_alone))
        made = [
            make_task(table.version, group, target_rows_per_fragment, dataset.data_storage_version) for group in groups
        ]
    return tuple(made)


def execute_compaction(table: Table, task: CompactionTask) -> RewriteResult:
    """Write the new fragments of one task."""
    with translated(str(table.location), "compact"):
        return task.execute(table.dataset)


def stage_compaction(
    table: Table, *, left_alone: Collection[int] = (), target_rows_per_fragment: int = ROWS_PER_FRAGMENT
) -> Staged | None:
    """Stage the rewriting of small fragments and deletion marks into full fragments; None when nothing would improve."""
    tasks = compaction_tasks(table, left_alone=left_alone, target_rows_per_fragment=target_rows_per_fragment)
    return stage_rewrites(table, [execute_compaction(table, task) for task in tasks]) if tasks else None


def stage_rewrites(table: Table, results: Sequence[RewriteResult]) -> Staged:
    """Stage executed compaction tasks; tasks whose fragments have changed since are left out."""
    return Staged("compaction", table.location, table.version, Rewrites(still_good(table, results)))


# --- parts ------------------------------------------------------------------------------------------------------------


def _write(table: Table, incoming: Incoming) -> list[FragmentMetadata]:
    with incoming.writing("append to"):
        return write_fragments(
            incoming.reader,
            table.dataset,
            mode="append",
            allow_external_blob_outside_bases=True,
        )


def _row_count(fragments: Sequence[FragmentMetadata]) -> int:
    return sum(fragment.physical_rows for fragment in fragments)


def _deletion(table: Table, marks: Marks) -> Staged:
    operation = LanceOperation.Delete(list(marks.changed), list(marks.vanished), "omnigraph")
    stats = Stats(deleted=marks.rows)
    return Staged("delete", table.location, table.version, Transaction(table.version, operation), stats)


def _addresses(table: Table, filter: Filter) -> pa.ChunkedArray:
    batches = table.scan([], filter, with_row_address=True)
    return pa.chunked_array([batch.column(ROW_ADDRESS) for batch in batches], pa.uint64())


def _require_fields_of(table: Table, fragments: Sequence[FragmentMetadata]) -> None:
    # Fragments written with mode "create" or "overwrite" number their fields from zero; Lance would append them without error
    # to a table whose schema has changed, and read the data of other columns.
    known = set(_field_ids(table.dataset.lance_schema.fields()))
    for fragment in fragments:
        for file in fragment.files:
            if not set(file.fields) <= known:
                raise BadRequest(
                    f"a fragment for {table.location} was not written against this table with mode='append'"
                )


def _field_ids(fields: Sequence[LanceField]) -> Iterator[int]:
    for field in fields:
        yield field.id()
        yield from _field_ids(field.children())


def _segments_of(table: Table, name: str) -> list[Index]:
    return [
        Index(
            uuid=segment.uuid,
            name=index.name,
            fields=list(index.fields),
            dataset_version=segment.dataset_version_at_last_update,
            fragment_ids=segment.fragment_ids,
            index_version=segment.index_version,
            base_id=segment.base_id,
        )
        for index in table.dataset.describe_indices()
        if index.name == name
        for segment in index.segments
    ]
