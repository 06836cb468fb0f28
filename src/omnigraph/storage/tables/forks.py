"""Branches of a Lance dataset: made, deleted, and cleared of what a crash has left; forks of tables, and tables that go.

Beside `commit` the only module that calls an API of Lance which changes what a dataset is.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any, TypeVar

import lance
from lance import LanceDataset

from omnigraph.errors import AlreadyExists, BadRequest, StorageError
from omnigraph.storage.digests import forget, forget_missing
from omnigraph.storage.objects import ObjectStore
from omnigraph.storage.tables.commit import require_version
from omnigraph.storage.tables.handles import Tables
from omnigraph.storage.tables.lance_errors import LANCE_ERRORS, Missing, translate, translated
from omnigraph.storage.tables.location import Location, branch_path
from omnigraph.storage.tables.recording import forget_branch, forget_line, record_branch, ref_file
from omnigraph.storage.tables.written import ShortFile

#: How many branches may be deleted by others while one process reads the refs of a dataset.
REFS_RETRY_BUDGET = 20
_REF_GONE = re.compile(r"[Nn]ot found.*/_refs/branches/|/_refs/branches/.*[Nn]ot found")

Value = TypeVar("Value")
_log = logging.getLogger(__name__)


def fork(tables: Tables, source: Location, version: int, branch_name: str) -> Location:
    """A Lance branch of a table at a version; a fork of that name made there before is taken as it is."""
    dataset = tables.open(source, version).dataset
    try:
        create_lance_branch(dataset, branch_name, version)
    except AlreadyExists:
        made = _branches(dataset).get(branch_name)
        if made is None or (made["parent_branch"], made["parent_version"]) != (source.branch, version):
            raise
    return Location(source.path, branch_name)


def drop_fork(tables: Tables, location: Location) -> None:
    """Remove a table's fork; nothing happens when there is none."""
    if location.branch is None:
        raise BadRequest(f"{location} is the main line of a table, not a fork")
    try:
        delete_lance_branch(tables.open_dataset(Location(location.path)), location.branch)
    except Missing:
        return
    finally:
        tables.forget(location)


def remove_branch(tables: Tables, store: ObjectStore, location: Location) -> None:
    """Remove a Lance branch that no other was made from: its ref, which is the authority, then its files.

    Lance reads the refs of all branches of a dataset before it deletes one; here the caller knows that nobody needs it. Files
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
    """Remove a table with all its forks, through the object store that is given."""
    forget(tables.root, f"{path}/")
    delete_prefix(path)
    tables.forget(Location(path))


def drop_history(tables: Tables, location: Location) -> None:
    """Remove all versions of a table but the newest, and the files only they need. Where forks start is kept."""
    with translated(str(location), "remove old versions of"):
        # Staged files belong to no version yet, and are left alone.
        tables.open_dataset(location).cleanup_old_versions(timedelta(0), error_if_tagged_old_versions=False)
    forget_missing(tables.root, f"{location.path}/")
    tables.forget(location)


# --- branches of one dataset -------------------------------------------------------------------------------------------


def create_lance_branch(dataset: LanceDataset, name: str, version: int) -> None:
    """Branch a dataset at one of its versions; `AlreadyExists` when there is a branch of that name."""
    with translated(dataset.uri, f"create branch {name} of"):
        try:
            created = dataset.create_branch(name, version)
        except LANCE_ERRORS as error:
            if name in _branches(dataset):
                raise AlreadyExists(f"{dataset.uri} has a branch {name} already", name=name) from error
            if not _drop_tree_without_ref(dataset, name):
                raise
            created = dataset.create_branch(name, version)
    try:
        require_version(created)
    except ShortFile:
        delete_lance_branch(dataset, name)
        raise
    record_branch(dataset, name, version)


def delete_lance_branch(dataset: LanceDataset, name: str) -> None:
    """Delete a branch and its files; `Missing` when there is neither, `BranchInUse` when others start from it."""
    forget_branch(dataset, name)
    with translated(dataset.uri, f"delete branch {name} of"):
        if name not in _branches(dataset):
            if not _drop_tree_without_ref(dataset, name):
                raise Missing(f"there is no branch {name} of {dataset.uri}", path=dataset.uri)
            return
        _while_refs_vanish(lambda: _delete_what_is_left(dataset, name))


def _delete_what_is_left(dataset: LanceDataset, name: str) -> None:
    """Lance may fail on the ref of another branch after it has removed this one's, and before it removes the tree."""
    if name in _branches(dataset):
        dataset.branches.delete(name)
    else:
        _drop_tree_without_ref(dataset, name)


def _branches(dataset: LanceDataset) -> dict[str, Any]:
    """The branches of a dataset with what Lance records about each."""
    return _while_refs_vanish(lambda: dict(dataset.branches.list()))


def _while_refs_vanish(call: Callable[[], Value]) -> Value:
    """Repeat a call that reads all refs of a dataset while others delete branches.

    Lance lists the refs and then reads each, and fails on one that went in between. The next listing does not have it.
    """
    for _ in range(REFS_RETRY_BUDGET):
        try:
            return call()
        except LANCE_ERRORS as error:
            if not _REF_GONE.search(str(error)):
                raise
    return call()


def _drop_tree_without_ref(dataset: LanceDataset, name: str) -> bool:
    """Remove what a crash left of a branch: Lance creates the tree before the ref and deletes it after the ref."""
    branches = _branches(dataset)
    if any(other.startswith(f"{name}/") for other in branches):
        # The trees of those branches lie inside this one.
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
