"""How much history two versions of a table have in common: the lines they lie on, and where these were forked."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import quote

import orjson

from omnigraph.storage.objects import ObjectStore
from omnigraph.storage.tables.location import Location

#: A line of a table (None is the main line) and a version on it.
_Point = tuple[str | None, int]


def shared_until(store: ObjectStore, one: tuple[Location, int], other: tuple[Location, int]) -> int | None:
    """The last version that is in the history of both versions of a table; None when there is none, or it is unknown."""
    (here, version), (there, other_version) = one, other
    if here.path != there.path:
        return None
    if here.branch == there.branch:
        return min(version, other_version)
    known = dict(_origins(store, here, version))
    return next((min(at, known[line]) for line, at in _origins(store, there, other_version) if line in known), None)


def _origins(store: ObjectStore, location: Location, version: int) -> Iterator[_Point]:
    """The line of a version, the line that was forked from, and so on: each with the last version it has of it."""
    line, at = location.branch, version
    yield line, at
    while line is not None:
        fork = _fork(store, location.path, line)
        if fork is None:
            return
        line, at = fork
        yield line, at


def _fork(store: ObjectStore, path: str, line: str) -> _Point | None:
    """Where a line starts. None when its ref is gone or unreadable: then nothing is taken for granted."""
    data = store.get_or_none(f"{path}/_refs/branches/{quote(line, safe='')}.json")
    if data is None:
        return None
    try:
        ref = orjson.loads(data)
        return ref["parentBranch"], int(ref["parentVersion"])
    except (orjson.JSONDecodeError, KeyError, TypeError, ValueError):
        return None
