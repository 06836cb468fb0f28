"""Versions whose files are not whole: torn by a power failure, or cut by a full disk while their writer died.

Lance does not flush, so after a power failure a file can have its name before its content; and its local writer can lose
the error of a full disk (`written`). Such a version was never acknowledged. It would make the dataset unreadable, so it is
set aside, and the newest whole version is the head again.
"""

from __future__ import annotations

import logging

from lance import LanceDataset

from omnigraph.errors import StorageError
from omnigraph.storage.object_store import ObjectStore
from omnigraph.storage.tables.handles import Tables
from omnigraph.storage.tables.lance_errors import translated
from omnigraph.storage.tables.location import Location
from omnigraph.storage.tables.version_files import version_of, versions_path
from omnigraph.storage.tables.written import files_of_version, require_whole

#: Where torn manifests go.
ASIDE = "__recovery/torn"

_log = logging.getLogger(__name__)


def set_torn_versions_aside(
    tables: Tables, store: ObjectStore, location: Location, *, above: int | None, with_data: bool = False
) -> list[int]:
    """Set the versions at the top of a dataset that are not whole aside and return their numbers.

    `above`: a version that is not touched; 0 for a table that was being made, of which nothing need be readable. None
    when it is not known: then one that can be read must remain, because a dataset without any is damaged, not torn.
    `with_data`: a version whose new data can not be read is torn too.
    """
    torn = []
    for version, path in _versions(store, location):
        if version <= (above or 0) or _is_whole(tables, location, version, above, with_data):
            break
        torn.append((version, path))
    else:
        torn = [] if above is None else torn
    for version, path in torn:
        try:
            store.put(f"{ASIDE}/{path}", store.get(path))
        except StorageError as error:
            # A copy helps nobody read it; a disk that is full again must not keep the dataset unreadable.
            _log.warning("no copy of version %d of %s is kept: %s", version, location, error)
        store.delete(path)
        _log.warning("version %d of %s was not whole and was set aside", version, location)
    tables.forget(location)
    return [version for version, _ in torn]


def _versions(store: ObjectStore, location: Location) -> list[tuple[int, str]]:
    """The versions of a dataset with their files, newest first."""
    listed = ((version_of(info.path), info.path) for info in store.list(versions_path(location)))
    return sorted(((version, path) for version, path in listed if version is not None), reverse=True)


def _is_whole(tables: Tables, location: Location, version: int, pin: int | None, with_data: bool) -> bool:
    """Whether a version can be opened and has all its files. Given the pin it was made on: all files it added.

    `with_data`: all data it added must be readable too, because a power failure leaves files of the right size.
    """
    try:
        dataset = tables.open_dataset(location, version)
        since = tables.open_dataset(location, pin) if pin else None
        require_whole(tables.root, files_of_version(tables.root, location, dataset, since))
        if with_data and pin is not None:
            _read_what_is_new(dataset, since)
        # A manifest of zeros decodes, as an empty version 0.
        return bool(dataset.version == version)
    except StorageError as error:
        if error.kind in ("permanent", "not_found"):
            return False
        raise


def _read_what_is_new(dataset: LanceDataset, pinned: LanceDataset | None) -> None:
    known = {str(fragment.metadata) for fragment in pinned.get_fragments()} if pinned else set()
    with translated(dataset.uri, "read"):
        for fragment in dataset.get_fragments():
            if str(fragment.metadata) not in known:
                for _ in fragment.to_batches():
                    pass
