"""The files of a dataset's versions, as Lance names them: counting down, so that the newest is the first of a listing."""

from __future__ import annotations

import json
import os

from omnigraph.storage.object_store import ObjectStore
from omnigraph.storage.root import Root
from omnigraph.storage.tables.location import Location

_COUNTS_DOWN_FROM = 2**64 - 1
_SUFFIX = ".manifest"
_BEYOND_THE_HINT = 5


def versions_path(location: Location) -> str:
    """The folder of a dataset's versions."""
    return f"{location.dataset_path}/_versions"


def version_file(location: Location, version: int) -> str:
    """The file of one version."""
    return f"{versions_path(location)}/{version_name(version)}"


def version_name(version: int) -> str:
    """The name of the file of one version."""
    return f"{_COUNTS_DOWN_FROM - version:020}{_SUFFIX}"


def version_of(path: str) -> int | None:
    """The version that a file of this name is; None when it is something else."""
    name = path.rpartition("/")[2]
    number = name.removesuffix(_SUFFIX)
    return _COUNTS_DOWN_FROM - int(number) if number != name and number.isdigit() else None


def is_newest_on_disk(root: Root, location: Location, version: int) -> bool:
    """On local disk, whether a version is there and the next one is not; False when that does not tell.

    Lance reads the whole folder to find the newest version, which takes longer with every version. Versions are made
    one after the other, so nothing above a missing successor is left, but where cleanup took some away.
    """
    if not root.is_local:
        return False
    folder = f"{root.uri}/{versions_path(location)}"
    return (
        _exists(f"{folder}/{version_name(version)}")
        and not _exists(f"{folder}/{version_name(version + 1)}")
        # Last: it is written before the first of those versions goes.
        and version > reclaimed_up_to(root, location)
    )


def _exists(place: str) -> bool:
    """Whether there is a file; every query asks, and a `Path` takes twice as long to tell."""
    try:
        os.stat(place)  # noqa: PTH116
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def newest_on_disk(root: Root, location: Location) -> int | None:
    """On local disk, the newest version, found from Lance's hint without reading the folder; None when it does not tell."""
    if not root.is_local:
        return None
    try:
        hint = root.local_path(f"{versions_path(location)}/latest_version_hint.json").read_bytes()
        version = int(json.loads(hint)["version"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    # The hint is written after the version, so a few may have come since.
    for likely in range(version, version + _BEYOND_THE_HINT):
        if is_newest_on_disk(root, location, likely):
            return likely
    return None


def note_reclaimed(store: ObjectStore, root: Root, location: Location, up_to: int) -> None:
    """Say, before versions are taken away, up to where some may be missing below one that is there."""
    if root.is_local and up_to > reclaimed_up_to(root, location):
        store.put(_reclaimed_path(location), json.dumps({"up_to": up_to}).encode())


def _reclaimed_path(location: Location) -> str:
    return f"{location.dataset_path}/_reclaimed.json"


def reclaimed_up_to(root: Root, location: Location) -> int:
    """Up to which version some may be missing below one that is there; very high where that can not be told."""
    path = _reclaimed_path(location)
    if not _exists(f"{root.uri}/{path}"):
        return 0
    try:
        return int(json.loads(root.local_path(path).read_bytes())["up_to"])
    except FileNotFoundError:
        return 0
    except (OSError, ValueError, KeyError, TypeError):
        # It can not be told, so the folder is asked.
        return _COUNTS_DOWN_FROM
