"""The files of a dataset's versions, as Lance names them: counting down, so that the newest is the first of a listing."""

from __future__ import annotations

from omnigraph.storage.root import Root
from omnigraph.storage.tables.location import Location

_COUNTS_DOWN_FROM = 2**64 - 1
_SUFFIX = ".manifest"


def versions_path(location: Location) -> str:
    """The folder of a dataset's versions."""
    return f"{location.dataset_path}/_versions"


def version_file(location: Location, version: int) -> str:
    """The file of one version."""
    return f"{versions_path(location)}/{_COUNTS_DOWN_FROM - version:020}{_SUFFIX}"


def version_of(path: str) -> int | None:
    """The version that a file of this name is; None when it is something else."""
    name = path.rpartition("/")[2]
    number = name.removesuffix(_SUFFIX)
    return _COUNTS_DOWN_FROM - int(number) if number != name and number.isdigit() else None


def is_newest_on_disk(root: Root, location: Location, version: int) -> bool:
    """On local disk, whether a version is there and the next one is not; False when that does not tell.

    Lance reads the whole folder to find the newest version, which takes longer with every version. Versions are made
    one after the other, and old ones are removed before newer ones: so nothing above a missing successor is left.
    """
    return (
        root.is_local
        and root.local_path(version_file(location, version)).exists()
        and not root.local_path(version_file(location, version + 1)).exists()
    )
