"""The names of version files: Lance counts down, so that the newest version comes first in a listing."""

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
    """The folder of a dataset's version files."""
    return f"{location.dataset_path}/_versions"


def version_file(location: Location, version: int) -> str:
    """The path of the file of one version."""
    return f"{versions_path(location)}/{version_name(version)}"


def version_name(version: int) -> str:
    """The file name of one version."""
    return f"{_COUNTS_DOWN_FROM - version:020}{_SUFFIX}"


def version_of(path: str) -> int | None:
    """The version whose file has this path; None when it is another file."""
    name = path.rpartition("/")[2]
    number = name.removesuffix(_SUFFIX)
    return _COUNTS_DOWN_FROM - int(number) if number != name and number.isdigit() else None


def is_newest_on_disk(root: Root, location: Location, version: int) -> bool:
    """On local disk, whether a version exists and the next does not; False when this does not prove that it is the newest.

    Lance reads the whole folder to find the newest version, which takes longer with every version. Versions are made
    consecutively, so no version exists above a missing one, except where cleanup has removed versions.
    """
    if not root.is_local:
        return False
    folder = f"{root.uri}/{versions_path(location)}"
    return (
        _exists(f"{folder}/{version_name(version)}")
        and not _exists(f"{folder}/{version_name(version + 1)}")
        # Checked last: the note is written before the first of those versions is removed.
        and version > reclaimed_up_to(root, location)
    )


def _exists(place: str) -> bool:
    """Whether there is a file. Called by every query; a `Path` would take twice as long."""
    try:
        os.stat(place)  # noqa: PTH116
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def newest_on_disk(root: Root, location: Location) -> int | None:
    """On local disk, the newest version, from Lance's hint without reading the folder; None when the hint does not tell."""
    if not root.is_local:
        return None
    try:
        hint = root.local_path(f"{versions_path(location)}/latest_version_hint.json").read_bytes()
        version = int(json.loads(hint)["version"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    # The hint is written after the version, so a few newer versions may exist.
    for likely in range(version, version + _BEYOND_THE_HINT):
        if is_newest_on_disk(root, location, likely):
            return likely
    return None


def note_reclaimed(store: ObjectStore, root: Root, location: Location, up_to: int) -> None:
    """Note, before versions are removed, up to which version some may be missing."""
    if root.is_local and up_to > reclaimed_up_to(root, location):
        store.put(_reclaimed_path(location), json.dumps({"up_to": up_to}).encode())


def _reclaimed_path(location: Location) -> str:
    return f"{location.dataset_path}/_reclaimed.json"


def reclaimed_up_to(root: Root, location: Location) -> int:
    """The version up to which some may be missing below an existing one; a very high number when it is not known."""
    path = _reclaimed_path(location)
    if not _exists(f"{root.uri}/{path}"):
        return 0
    try:
        return int(json.loads(root.local_path(path).read_bytes())["up_to"])
    except FileNotFoundError:
        return 0
    except (OSError, ValueError, KeyError, TypeError):
        # Unreadable: the caller must read the folder.
        return _COUNTS_DOWN_FROM
