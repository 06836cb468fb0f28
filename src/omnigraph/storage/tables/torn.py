"""Versions with incomplete files: torn by a power failure, or cut off by a full disk while their writer died.

Lance does not flush, so after a power failure a file can have its name without its content; and its local writer can lose
the error of a full disk (`written`). Such a version was never acknowledged. It would make the dataset unreadable, so it is
set aside, and the newest complete version is the head again.
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

#: The folder to which torn manifests are moved.
ASIDE = "__recovery/torn"

_log = logging.getLogger(__name__)


def set_torn_versions_aside(
    tables: Tables, store: ObjectStore, location: Location, *, above: int | None, with_data: bool = False
) -> list[int]:
    """Set the incomplete versions at the top of a dataset aside; returns their numbers.

    `above`: versions up to this one are not touched; 0 for a new table, of which no version need be readable. None when it is
    not known: then a readable version must remain, because a dataset without any is damaged, not torn.
    `with_data`: a version whose new data can not be read counts as torn too.
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
            # The copy is not needed for reading; a full disk must not keep the dataset unreadable.
            _log.warning("no copy of version %d of %s is kept: %s", version, location, error)
        store.delete(path)
        _log.warning("version %d of %s was not whole and was set aside", version, location)
    tables.forget(location)
    return [version for version, _ in torn]


def _versions(store: ObjectStore, location: Location) -> list[tuple[int, str]]:
    """The versions of a dataset with the paths of their files, newest first."""
    listed = ((version_of(info.path), info.path) for info in store.list(versions_path(location)))
    return sorted(((version, path) for version, path in listed if version is not None), reverse=True)


def _is_whole(tables: Tables, location: Location, version: int, pin: int | None, with_data: bool) -> bool:
    """Whether a version can be opened and its files are complete. With a pin, only files added since the pin are checked.

    `with_data`: its new data must be readable too, because a power failure can leave files of the right size without content.
    """
    try:
        dataset = tables.open_dataset(location, version)
        since = tables.open_dataset(location, pin) if pin else None
        require_whole(tables.root, files_of_version(tables.root, location, dataset, since))
        if with_data and pin is not None:
            _read_what_is_new(dataset, since)
        # A manifest of zeros is decoded as an empty version 0.
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
