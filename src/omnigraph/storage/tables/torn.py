"""Versions that a power failure tore: Lance does not flush, so a manifest can be linked before its content is on disk.

Such a version was never acknowledged. It would make the dataset unreadable, so it is set aside (not destroyed), and the
newest readable version is the head again.
"""

from __future__ import annotations

import logging

from omnigraph.errors import StorageError
from omnigraph.storage.object_store import ObjectStore
from omnigraph.storage.tables.handles import Tables
from omnigraph.storage.tables.location import Location

#: Where torn manifests go.
ASIDE = "__recovery/torn"

_NEWEST_FIRST = 2**64 - 1
_log = logging.getLogger(__name__)


def set_torn_versions_aside(tables: Tables, store: ObjectStore, location: Location, *, above: int = 0) -> list[int]:
    """Set the unreadable versions at the top of a dataset aside, down to a version; returns their numbers."""
    torn = []
    for version, path in _versions(store, location):
        if version <= above or _readable(tables, location, version):
            break
        store.put(f"{ASIDE}/{path}", store.get(path))
        store.delete(path)
        torn.append(version)
        _log.warning("version %d of %s was torn by a power failure and set aside", version, location)
    tables.forget(location)
    return torn


def _versions(store: ObjectStore, location: Location) -> list[tuple[int, str]]:
    """The versions of a dataset with their manifest files, newest first. Lance names them counting down."""
    found = []
    for info in store.list(f"{location.dataset_path}/_versions"):
        name = info.path.rpartition("/")[2]
        if name.endswith(".manifest") and name.removesuffix(".manifest").isdigit():
            found.append((_NEWEST_FIRST - int(name.removesuffix(".manifest")), info.path))
    return sorted(found, reverse=True)


def _readable(tables: Tables, location: Location, version: int) -> bool:
    try:
        # A manifest of zeros decodes, as an empty version 0.
        return bool(tables.open_dataset(location, version).version == version)
    except StorageError as error:
        if error.kind in ("permanent", "not_found"):
            return False
        raise
