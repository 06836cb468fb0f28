"""The only module with calls that make a version of a Lance dataset, or make or remove a branch of one.

A table commit is checked, because Lance rebases most transactions silently, even with zero retries: the head must be at
the pin, and the new version must be the next one and carry our transaction id; otherwise the effect is undone.

On local disk the files are checked too (`written`): those of a staged write before its commit, and those that only the
commit writes after it. A version with an incomplete file was acknowledged to nobody and is removed at once.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

import lance
import pyarrow as pa
from lance import LanceDataset, LanceOperation, Transaction
from lance.commit import CommitConflictError
from lance.optimize import Compaction

from omnigraph import failpoints
from omnigraph.errors import AlreadyExists, BadRequest, ExpectedVersionMismatch, OmnigraphError, StorageError
from omnigraph.storage.digests import forget, forget_missing
from omnigraph.storage.objects import ObjectStore
from omnigraph.storage.root import Root
from omnigraph.storage.tables.bases import has_foreign_bases
from omnigraph.storage.tables.blobs import blob_columns
from omnigraph.storage.tables.handles import (
    TRANSACTION_ID,
    UNDO,
    Tables,
    for_one_call,
    own_id,
    read_transaction_id,
    transaction_of,
)
from omnigraph.storage.tables.incoming import Data
from omnigraph.storage.tables.inverse import Inversion, Restoration, Unchanged, inverse_of
from omnigraph.storage.tables.lance_errors import (
    LANCE_ERRORS,
    CommitUnknown,
    Missing,
    StaleCommit,
    translate,
    translated,
    translated_panics,
)
from omnigraph.storage.tables.location import Location, branch_path
from omnigraph.storage.tables.recording import (
    forget_branch,
    forget_line,
    forget_versions,
    record_branch,
    record_commit,
    recording_versions,
    ref_file,
    transaction_file,
)
from omnigraph.storage.tables.staged import (
    ROWS_PER_FRAGMENT,
    IndexFold,
    Rewrites,
    Staged,
    stage_append,
    stage_create,
)
from omnigraph.storage.tables.table import Table
from omnigraph.storage.tables.version_files import version_name
from omnigraph.storage.tables.written import (
    ShortFile,
    VersionBytes,
    files_of_staged,
    files_of_version,
    require_whole,
    require_whole_version,
    version_files,
)

failpoints.declare(
    "table_commit.before_commit", "table_commit.lost_acknowledgement", "undo.before_commit", "undo.before_restore"
)

#: How many branches other processes may delete while one process reads the refs of a dataset.
REFS_RETRY_BUDGET = 20
_REF_GONE = re.compile(r"[Nn]ot found.*/_refs/branches/|/_refs/branches/.*[Nn]ot found")

Value = TypeVar("Value")
_log = logging.getLogger(__name__)

UNDO_RETRY_BUDGET = 5
_ALL_SEGMENTS = 1_000_000
APPEND_RETRY_BUDGET = 20

# --- staged writes ----------------------------------------------------------------------------------------------------


def commit_staged(
    tables: Tables,
    staged: Staged,
    *,
    expected_version: int | None,
    transaction_id: str,
    seen_at_pin: bool = False,
    seen_whole: bool = False,
) -> int:
    """Commit a staged write on a table that is still at its pin, and return the version reached.

    `seen_at_pin`: the caller has just checked, inside the effect window, that the head is the pin.
    `seen_whole`: the caller has checked that the staged files are complete.
    """
    if staged.read_version != expected_version:
        raise BadRequest(
            f"this write of {staged.location} was staged against version {staged.read_version},"
            f" it can not be committed against version {expected_version}"
        )
    if expected_version is not None and not seen_at_pin:
        _require_head(tables, staged.location, expected_version)
    if not seen_whole:
        require_whole(tables.root, files_of_staged(staged))
    if expected_version is None:
        return _commit_create(tables, staged, transaction_id)
    failpoints.hit("table_commit.before_commit")
    if isinstance(staged.work, Rewrites):
        return _commit_rewrites(tables, staged.location, expected_version, staged.work)
    if isinstance(staged.work, IndexFold):
        return _commit_index_fold(tables, staged.location, expected_version, staged.work)
    return _commit_transaction(tables, staged.location, expected_version, staged.transaction, transaction_id)


def _commit_create(tables: Tables, staged: Staged, transaction_id: str) -> int:
    created = _create(tables.root, staged.location.path, _tagged(staged.transaction, transaction_id))
    _require_blobs(tables, staged.location, created, None)
    return created.version


def _commit_transaction(
    tables: Tables, location: Location, pin: int, transaction: Transaction, transaction_id: str
) -> int:
    try:
        committed = _commit(tables.open(location, pin).dataset, _tagged(transaction, transaction_id), str(location))
    except StaleCommit as stale:
        raise _moved(location, pin, tables.head_version(location)) from stale
    reached = committed.version
    if reached != pin + 1:
        _undo_rebased(tables, location, reached)
        raise _moved(location, pin, reached - 1)
    if _transaction_id(tables, committed) != transaction_id:
        raise CommitUnknown(
            f"version {reached} of {location} was written by two commits at once; the store has no atomic create",
            path=location.path,
        )
    _require_blobs(tables, location, committed, pin)
    tables.keep(Table(location, committed))
    return reached


def _transaction_id(tables: Tables, committed: LanceDataset) -> str | None:
    """Our transaction id in the commit that made this version; None when it has none."""
    if tables.root.is_local:
        return read_transaction_id(committed, committed.version)
    # An object store that accepts our conditional put stores exactly our bytes, and every read-write open checks that the store
    # has conditional puts. So the transaction in Lance's memory is enough, and saves a round trip.
    return own_id(committed.get_transactions(1)[0])


def _undo_rebased(tables: Tables, location: Location, reached: int) -> None:
    """Undo a commit that Lance rebased onto another writer's commit."""
    try:
        undo(tables, location, pin=reached - 1, effect=reached)
    except OmnigraphError as error:
        raise CommitUnknown(
            f"version {reached} of {location} holds a rebased effect that could not be undone; recovery will undo it",
            path=location.path,
        ) from error


def _commit_rewrites(tables: Tables, location: Location, pin: int, work: Rewrites) -> int:
    if not work.results:
        return pin
    # Lance advances the handle it is given, so it must not be a shared one.
    dataset = tables.open_dataset(location, pin)
    try:
        with translated(str(location), "commit the compaction of"), recording_versions(dataset):
            Compaction.commit(dataset, list(work.results))
    except StaleCommit as stale:
        raise _moved(location, pin, tables.head_version(location)) from stale
    _require_steps(location, pin, dataset.version, steps=2)
    return _require_versions(tables, location, dataset, pin)


def _commit_index_fold(tables: Tables, location: Location, pin: int, work: IndexFold) -> int:
    dataset = tables.open_dataset(location, pin)
    try:
        if not _fold(dataset, location, work.names):
            # One of the indexes can not be folded; fold the others one by one.
            for name in work.names:
                _fold(dataset, location, [name])
    except StaleCommit as stale:
        raise _moved(location, pin, tables.head_version(location)) from stale
    _require_steps(location, pin, dataset.version, steps=len(work.names))
    return _require_versions(tables, location, dataset, pin)


def _fold(dataset: LanceDataset, location: Location, names: Sequence[str]) -> bool:
    """Fold new rows into some indexes; returns whether it worked. A failure is only logged: the index then lags behind."""
    try:
        said = f"fold new rows into the indexes {', '.join(names)} of"
        with translated(str(location), said), recording_versions(dataset):
            # Into one segment: rows in several segments can not be compacted together.
            dataset.optimize.optimize_indices(index_names=list(names), num_indices_to_merge=_ALL_SEGMENTS)
    except StorageError as error:
        if isinstance(error, StaleCommit) or error.kind == "unknown":
            raise
        _log.warning("%s", error)
        return False
    return True


def _require_steps(location: Location, pin: int, reached: int, *, steps: int) -> None:
    # More versions than expected mean that another writer's commit lies below ours and would be published with it.
    if reached > pin + steps:
        raise _moved(location, pin, reached)


# --- what a commit has written ----------------------------------------------------------------------------------------


def _require_versions(tables: Tables, location: Location, dataset: LanceDataset, pin: int) -> int:
    """The version that Lance itself has brought a dataset to from its pin; all new files are checked to be complete."""
    if not tables.root.is_local or dataset.version == pin:
        return dataset.version
    try:
        for version in range(pin + 1, dataset.version):
            require_whole(tables.root, version_files(tables.root, location, version))
        since = tables.open_dataset(location, pin)
        require_whole(tables.root, files_of_version(tables.root, location, dataset, since))
    except ShortFile:
        _remove_versions(dataset.uri, pin + 1, dataset.version)
        tables.forget(location)
        raise
    return dataset.version


def _require_blobs(tables: Tables, location: Location, committed: LanceDataset, pin: int | None) -> None:
    """Check the blob files of a new version. Its rows describe them, so they are checked after the commit."""
    if not tables.root.is_local or not blob_columns(committed.schema):
        return
    since = tables.open(location, pin).dataset if pin is not None else None
    try:
        require_whole(tables.root, files_of_version(tables.root, location, committed, since))
    except ShortFile:
        _remove_versions(committed.uri, committed.version, committed.version)
        raise


def require_version(committed: LanceDataset, transaction: Transaction | None = None) -> VersionBytes | None:
    """The bytes of the version just committed, if its manifest and its transaction file are complete.

    Otherwise the version is removed and `ShortFile` is raised. None in an object store, where nothing is checked.
    """
    if "://" in committed.uri:
        return None
    name = None if transaction is None else transaction_file(committed, transaction)
    try:
        return require_whole_version(committed.uri, committed.version, name)
    except ShortFile:
        _remove_versions(committed.uri, committed.version, committed.version)
        raise


def _remove_versions(line: str, first: int, last: int) -> None:
    """Remove the files of versions that no manifest of the graph names, newest first; the version below is head again."""
    forget_versions(line, range(first, last + 1))
    for version in range(last, first - 1, -1):
        (Path(line) / "_versions" / version_name(version)).unlink(missing_ok=True)


# --- undo -------------------------------------------------------------------------------------------------------------


def undo(tables: Tables, location: Location, *, pin: int, effect: int | None = None) -> int:
    """Restore the content of version `pin` on the head; returns the new head version.

    Undoes what happened between `pin` and `effect` (by default: the head). A commit that another writer makes meanwhile
    is kept; without a given `effect` it is then reported as a moved head, because the head has more than the content of
    the pin.
    """
    head = tables.head_version(location)
    if head is None:
        raise Missing(f"there is no table {location} to undo", path=location.path)
    if pin > head:
        raise _moved(location, pin, head)
    target = head if effect is None else effect
    inverse = inverse_of(tables.open(location, pin).dataset, tables.open(location, target).dataset)
    failpoints.hit("undo.before_commit")
    match inverse:
        case Unchanged():
            return target
        case Inversion(operation):
            reached = _invert(tables, location, target, operation)
        case Restoration():
            reached = _restore(tables, location, pin, target)
    if effect is None and reached != head + 1:
        raise _moved(location, head, reached)
    return reached


def _invert(tables: Tables, location: Location, effect: int, operation: LanceOperation.Update) -> int:
    """Commit the inverse transaction. Lance may rebase it, so a lost race for a version number is retried."""
    for _ in range(UNDO_RETRY_BUDGET):
        with suppress(ExpectedVersionMismatch):
            return _commit_undo(tables, location, effect, operation)
    return _commit_undo(tables, location, effect, operation)


def _restore(tables: Tables, location: Location, pin: int, head: int) -> int:
    """Use Lance's restore, if there is no inverse; only on a head that has not moved: it wipes out later commits."""
    _require_head(tables, location, head)
    failpoints.hit("undo.before_restore")
    reached = _commit_undo(tables, location, head, LanceOperation.Restore(pin))
    if reached != head + 1:
        # Another writer committed between the check and the restore: restore its version.
        _commit_undo(tables, location, reached, LanceOperation.Restore(reached - 1))
        raise _moved(location, head, reached)
    return reached


def _commit_undo(tables: Tables, location: Location, effect: int, operation: LanceOperation.BaseOperation) -> int:
    try:
        undoing = _tagged(Transaction(effect, operation), UNDO)
        return _commit(tables.open(location, effect).dataset, undoing, str(location)).version
    except StaleCommit as stale:
        raise _moved(location, effect, tables.head_version(location)) from stale


# --- private copies ---------------------------------------------------------------------------------------------------


def private_copy(tables: Tables, table: Table, uri: str, change: Callable[[Table], Staged]) -> Table:
    """A changed table as a separate dataset at another place of the same store; the table itself stays as it is.

    The copy holds a manifest and the changed rows, and refers to the table's files and indexes for everything else. Only its
    maker knows of it, so no digest is recorded and no pin is checked.
    """
    place = Location(uri)
    with translated(uri, "make a private copy at"):
        cloned = for_one_call(table.dataset).shallow_clone(
            uri,
            (table.location.branch, table.version),
            storage_options=tables.root.storage_options,
            session=tables.session,
        )
        if has_foreign_bases(cloned, tables.root, table.location.path):
            # Lance clones the version as it is on disk, which may name an earlier place of the graph.
            cloned = tables.reopened(cloned, table.location.path)
        staged = change(Table(place, cloned))
        return Table(place, LanceDataset.commit(cloned, staged.transaction, max_retries=0))


def private_table(uri: str, schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> Table:
    """A separate table on local disk with these rows. Only its maker knows of it."""
    with translated(uri, "make a private table at"):
        reader = pa.RecordBatchReader.from_batches(schema, (batch.cast(schema) for batch in batches))
        return Table(Location(uri), lance.write_dataset(reader, uri))


# --- the manifest, the audit log and other single datasets ------------------------------------------------------------


def commit_exact(dataset: LanceDataset, transaction: Transaction) -> LanceDataset:
    """Commit with zero retries: `StaleCommit` if another commit was first, `CommitUnknown` if the outcome is unknown."""
    return _commit(dataset, transaction, dataset.uri)


def create_dataset(root: Root, path: str, schema: pa.Schema, data: Data | None = None) -> LanceDataset:
    """Make a new dataset; `AlreadyExists` if there is one."""
    staged = stage_create(Tables(root), Location(path), schema, data)
    require_whole(root, files_of_staged(staged))
    return _create(root, path, staged.transaction)


def append_rows(root: Root, path: str, table: pa.Table) -> int:
    """Append rows to a dataset without a pin, creating it if it is missing; returns the new version."""
    tables = Tables(root)
    head = tables.open_head(Location(path))
    if head is None:
        try:
            return create_dataset(root, path, table.schema, table).version
        except AlreadyExists:
            head = tables.open_head(Location(path))
            assert head is not None
    staged = stage_append(head, table)
    require_whole(root, files_of_staged(staged))
    # Without a pin an append fits on any version, so Lance may rebase it repeatedly.
    return _commit(head.dataset, staged.transaction, path, retries=APPEND_RETRY_BUDGET).version


def compact_dataset(
    tables: Tables,
    location: Location,
    dataset: LanceDataset,
    *,
    target_rows_per_fragment: int = ROWS_PER_FRAGMENT,
) -> int:
    """Compact a dataset without a pin; returns the new version. `StaleCommit` if another writer was first.

    `dataset`: the caller's own handle, which is advanced to the new version.
    """
    before = dataset.version
    with translated(dataset.uri, "compact"), recording_versions(dataset):
        dataset.optimize.compact_files(target_rows_per_fragment=target_rows_per_fragment)
    return _require_versions(tables, location, dataset, before)


def set_schema_metadata(dataset: LanceDataset, key: str, value: str) -> LanceDataset:
    """Set one entry of the schema metadata without touching rows; `StaleCommit` if another writer was first."""
    stamp = LanceOperation.UpdateConfig(schema_metadata_updates=LanceOperation.UpdateMap({key: value}))
    return _commit(dataset, Transaction(dataset.version, stamp), dataset.uri)


# --- the commit itself ------------------------------------------------------------------------------------------------


def _commit(dataset: LanceDataset, transaction: Transaction, name: str, *, retries: int = 0) -> LanceDataset:
    """Commit, by default with zero retries; find out the outcome after errors, and record the digests of the new files."""
    try:
        with translated_panics(name, "commit to"):
            committed = LanceDataset.commit(dataset, transaction, max_retries=retries)
        failpoints.hit("table_commit.lost_acknowledgement")
    except CommitConflictError as conflict:
        raise translate(conflict, path=name, action="commit to") from conflict
    except LANCE_ERRORS as error:
        committed = _settle(dataset, transaction, name, error)
    version = require_version(committed, transaction)
    if version is not None:
        undoes = (transaction.transaction_properties or {}).get(TRANSACTION_ID) == UNDO
        record_commit(dataset, committed, transaction, version, undo=undoes)
    return committed


def _settle(dataset: LanceDataset, transaction: Transaction, name: str, error: Exception) -> LanceDataset:
    """The version that our transaction made although Lance reported an error; raises that error if there is none."""
    try:
        for version in range(transaction.read_version + 1, dataset.latest_version + 1):
            if _made_by(dataset, version, transaction):
                return dataset.checkout_version(version)
    except LANCE_ERRORS as unreadable:
        raise CommitUnknown(
            f"the store failed while committing to {name} and can not be asked whether it happened: {unreadable}",
            path=name,
        ) from error
    raise translate(error, path=name, action="commit to") from error


def _create(root: Root, path: str, transaction: Transaction) -> LanceDataset:
    """Commit a staged create; never touches an existing dataset."""
    try:
        with translated_panics(path, "create"):
            created = LanceDataset.commit(
                root.lance_uri(path),
                transaction,
                max_retries=0,
                enable_stable_row_ids=True,
                storage_options=root.storage_options,
            )
        failpoints.hit("table_commit.lost_acknowledgement")
    except LANCE_ERRORS as error:
        # Lance's error for an existing dataset mentions a missing manifest, so look at the store instead.
        created = _settle_create(root, path, transaction, error)
    version = require_version(created, transaction)
    if version is not None:
        record_commit(None, created, transaction, version, undo=False)
    return created


def _settle_create(root: Root, path: str, transaction: Transaction, error: Exception) -> LanceDataset:
    try:
        head = Tables(root).open_head(Location(path))
        if head is not None and _made_by(head.dataset, 1, transaction):
            return head.dataset.checkout_version(1)
    except (OmnigraphError, *LANCE_ERRORS) as unreadable:
        raise CommitUnknown(
            f"the store failed while creating {path} and can not be asked whether it happened: {unreadable}", path=path
        ) from error
    if head is not None:
        raise AlreadyExists(f"there is a table at {path} already", name=path) from error
    raise translate(error, path=path, action="create") from error


def _made_by(dataset: LanceDataset, version: int, transaction: Transaction) -> bool:
    try:
        found = transaction_of(dataset, version)
    except TypeError:
        # Lance can not rebuild the transaction of a compaction that remapped an index; such a transaction is never ours.
        return False
    return found is not None and found.uuid == transaction.uuid


def _tagged(transaction: Transaction, transaction_id: str) -> Transaction:
    return replace(transaction, transaction_properties={TRANSACTION_ID: transaction_id})


def _require_head(tables: Tables, location: Location, version: int) -> None:
    head = tables.head_version(location, likely=version)
    if head != version:
        raise _moved(location, version, head)


def _moved(location: Location, expected: int, actual: int | None) -> ExpectedVersionMismatch:
    return ExpectedVersionMismatch(
        f"{location} is at version {actual}, not at {expected}, which this write was prepared against; start again",
        table_key=location.path,
        expected=expected,
        actual=actual,
    )


# --- forks and tables -------------------------------------------------------------------------------------------------


def fork(tables: Tables, source: Location, version: int, branch_name: str) -> Location:
    """Make a Lance branch of a table at a version; an equal fork of that name made earlier is reused."""
    dataset = tables.open(source, version).dataset
    try:
        create_lance_branch(dataset, branch_name, version)
    except AlreadyExists:
        made = _branches(dataset).get(branch_name)
        if made is None or (made["parent_branch"], made["parent_version"]) != (source.branch, version):
            raise
    return Location(source.path, branch_name)


def drop_fork(tables: Tables, location: Location) -> None:
    """Remove a table's fork; does nothing if there is none."""
    if location.branch is None:
        raise BadRequest(f"{location} is the main line of a table, not a fork")
    try:
        delete_lance_branch(tables.open_dataset(Location(location.path)), location.branch)
    except Missing:
        return
    finally:
        tables.forget(location)


def remove_branch(tables: Tables, store: ObjectStore, location: Location) -> None:
    """Remove a Lance branch that no other branch was made from: its ref, which decides whether it exists, then its files.

    Lance would read the refs of all branches of the dataset first; here the caller knows that no branch depends on it. Files
    that can not be removed now are left for cleanup.
    """
    if location.branch is None:
        raise BadRequest(f"{location} is the main line of a table, not a branch")
    forget_line(tables.root, location)
    store.delete(ref_file(location))
    tables.forget(location)
    try:
        store.delete_prefix(location.dataset_path)
    except StorageError as error:
        _log.warning("the files of %s are left for cleanup: %s", location, error)


def drop_table(tables: Tables, path: str, delete_prefix: Callable[[str], object]) -> None:
    """Remove a table with all its forks, through the given object store."""
    forget(tables.root, f"{path}/")
    delete_prefix(path)
    tables.forget(Location(path))


def drop_history(tables: Tables, location: Location) -> None:
    """Remove all versions of a table except the newest, and the files only they need. Fork points are kept."""
    with translated(str(location), "remove old versions of"):
        # Lance keeps staged files, which belong to no version yet.
        tables.open_dataset(location).cleanup_old_versions(timedelta(0), error_if_tagged_old_versions=False)
    forget_missing(tables.root, f"{location.path}/")
    tables.forget(location)


# --- branches of one dataset -------------------------------------------------------------------------------------------


def create_lance_branch(dataset: LanceDataset, name: str, version: int) -> None:
    """Make a branch of a dataset at one of its versions; `AlreadyExists` if there is a branch of that name."""
    with translated(dataset.uri, f"create branch {name} of"):
        try:
            created = for_one_call(dataset).create_branch(name, version)
        except LANCE_ERRORS as error:
            if name in _branches(dataset):
                raise AlreadyExists(f"{dataset.uri} has a branch {name} already", name=name) from error
            if not _drop_tree_without_ref(dataset, name):
                raise
            created = for_one_call(dataset).create_branch(name, version)
    try:
        require_version(created)
    except ShortFile:
        delete_lance_branch(dataset, name)
        raise
    record_branch(dataset, name, version)


def delete_lance_branch(dataset: LanceDataset, name: str) -> None:
    """Delete a branch and its files; `Missing` if it has neither ref nor files, `BranchInUse` if others start from it."""
    forget_branch(dataset, name)
    with translated(dataset.uri, f"delete branch {name} of"):
        if name not in _branches(dataset):
            if not _drop_tree_without_ref(dataset, name):
                raise Missing(f"there is no branch {name} of {dataset.uri}", path=dataset.uri)
            return
        _while_refs_vanish(lambda: _delete_what_is_left(dataset, name))


def _delete_what_is_left(dataset: LanceDataset, name: str) -> None:
    """Finish a deletion: Lance may fail on another branch's ref after it has removed this ref and before the tree."""
    if name in _branches(dataset):
        dataset.branches.delete(name)
    else:
        _drop_tree_without_ref(dataset, name)


def _branches(dataset: LanceDataset) -> dict[str, Any]:
    """The branches of a dataset by name, with what Lance records about each."""
    return _while_refs_vanish(lambda: dict(dataset.branches.list()))


def _while_refs_vanish(call: Callable[[], Value]) -> Value:
    """Repeat a call that reads all refs of a dataset while other processes delete branches.

    Lance lists the refs and then reads each, and fails on a ref that was deleted in between. The next listing lacks it.
    """
    for _ in range(REFS_RETRY_BUDGET):
        try:
            return call()
        except LANCE_ERRORS as error:
            if not _REF_GONE.search(str(error)):
                raise
    return call()


def _drop_tree_without_ref(dataset: LanceDataset, name: str) -> bool:
    """Remove the tree that a crash left of a branch; returns whether there was one. Lance makes the tree before the ref."""
    branches = _branches(dataset)
    if any(other.startswith(f"{name}/") for other in branches):
        # The trees of these branches lie inside this one.
        return False
    own_suffix = next((f"/tree/{own}" for own in branches if dataset.uri.endswith(f"/tree/{own}")), "")
    tree, options = branch_path(dataset.uri.removesuffix(own_suffix), name), dataset.initial_storage_options
    try:
        lance.dataset(tree, storage_options=options)
    except LANCE_ERRORS as error:
        if isinstance(translate(error, path=tree, action="open"), Missing):
            return False
        raise
    LanceDataset.drop(tree, storage_options=options)
    return True
