"""The place of a graph: where it lies and which graph it is, in `__root.json`.

A graph whose record names another place than where it was opened was moved, renamed or copied; these can not be told apart.
It can be read as it is, because forks find their files by name (`storage/tables/bases`). Its first write *settles* it: the
versions of forks are updated, and the graph gets a new identity, in case the graph at the old place lives on. Texts that were
sealed with earlier identities (cursors, page tokens) are still accepted, as far as they name commits that exist here.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import orjson

from omnigraph import failpoints
from omnigraph.commit.branch_refs import SCHEMA_APPLY_LOCK, list_names
from omnigraph.commit.model import MAIN
from omnigraph.errors import BadRequest, ManifestContention, StorageError
from omnigraph.ids import new_ulid
from omnigraph.storage.digests import digest_of, fold_log, note
from omnigraph.storage.objects import ObjectStore
from omnigraph.storage.root import Root
from omnigraph.storage.tables.bases import relocated
from omnigraph.storage.tables.location import Location
from omnigraph.storage.tables.version_files import version_of

if TYPE_CHECKING:
    from omnigraph.commit.context import CommitContext

ROOT_RECORD = "__root.json"
#: How many version files are read and written concurrently.
_AT_ONCE = 16
#: How often the locks are taken again because a branch was made meanwhile.
_LOCK_ATTEMPTS = 5
_FORK_VERSION = re.compile(r"(?P<path>__manifest|(?:nodes|edges)/[^/]+)/tree/(?P<branch>.+)/_versions/[^/]+")

failpoints.declare("place.before_roots", "place.root_written", "place.before_record", "place.recorded")

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class PlaceRecord:
    """The contents of `__root.json`. `identity`: the graph's own identity; None while the one in the schema files applies.

    `backup`: which point of which graph this is a backup of; None when it is no backup.
    """

    uri: str
    identity: str | None = None
    earlier: tuple[str, ...] = ()
    backup: dict[str, Any] | None = None

    def to_json(self) -> bytes:
        value: dict[str, Any] = {"uri": self.uri}
        if self.identity is not None:
            value |= {"identity": self.identity, "earlier": list(self.earlier)}
        if self.backup is not None:
            value["backup"] = self.backup
        return orjson.dumps(value)


def read_record(store: ObjectStore) -> PlaceRecord | None:
    """The place record of a graph; None when there is none."""
    data = store.get_or_none(ROOT_RECORD)
    if data is None:
        return None
    try:
        value = orjson.loads(data)
        record = PlaceRecord(value["uri"], value.get("identity"), tuple(value.get("earlier", ())), value.get("backup"))
        texts = [record.uri, *record.earlier, *([] if record.identity is None else [record.identity])]
        if all(isinstance(text, str) for text in texts) and isinstance(record.backup, dict | None):
            return record
    except (orjson.JSONDecodeError, KeyError, TypeError, AttributeError):
        pass
    raise StorageError(
        f"{ROOT_RECORD} does not say where this graph lay; remove it if it lies there still, or restore it from a backup",
        kind="permanent",
        path=ROOT_RECORD,
    )


class Place:
    """The place record of one open graph. Cached once it names this place, read again each time until it does."""

    def __init__(self, store: ObjectStore, root: Root) -> None:
        self._store = store
        self._root = root
        self._settled: PlaceRecord | None = None

    def look(self) -> PlaceRecord | None:
        """The current record, or the cached record that names this place; None when there is none."""
        if self._settled is not None:
            return self._settled
        found = read_record(self._store)
        if found is not None and found.uri == self._root.uri and found.backup is None:
            self._settled = found
        return found

    @property
    def is_settled(self) -> bool:
        """Whether this process knows that the record names this place; makes no request."""
        return self._settled is not None

    def identities(self, original: str) -> tuple[str, ...]:
        """The identity of this graph, then its earlier identities. `original`: the identity in its schema files."""
        record = self.look()
        if record is None or record.identity is None:
            return (original,)
        return (record.identity, *record.earlier)

    def write(self, record: PlaceRecord) -> None:
        """Write the record; its digest is noted first, so that it never looks damaged."""
        data = record.to_json()
        note(self._root, {ROOT_RECORD: digest_of(data)})
        self._store.put(ROOT_RECORD, data)
        self._settled = record


def settle(context: CommitContext, identity: str) -> None:
    """Make sure, before a write, that the record names this place. Costs nothing once it does.

    `identity`: the identity in the schema files. A process that dies here has changed nothing that readers see, and the
    next write continues; of two concurrent writers one waits for the other and finds the work done.
    """
    place = context.place
    if place.is_settled:
        return
    record = place.look()
    if record is not None and record.backup is not None:
        raise BadRequest(
            f"{context.root.uri} is a backup and can only be read; restore it to write (`omnigraph restore`)"
        )
    if place.is_settled:
        return
    with _everybody_still(context):
        record = place.look()
        if place.is_settled:
            return
        if record is None:
            place.write(PlaceRecord(context.root.uri))
            return
        failpoints.hit("place.before_roots")
        _bring_roots_up_to_date(context)
        failpoints.hit("place.before_record")
        known = (identity,) if record.identity is None else (record.identity, *record.earlier)
        place.write(PlaceRecord(context.root.uri, new_ulid(), known))
        context.make_durable("")
        failpoints.hit("place.recorded")
    _log.warning(
        "this graph lay at %s and is written at %s now: it has an identity of its own from here on",
        record.uri,
        context.root.uri,
    )


@contextmanager
def _everybody_still(context: CommitContext) -> Iterator[None]:
    """Hold the locks of all branches, so that none is written, made or deleted."""
    for _ in range(_LOCK_ATTEMPTS):
        names = [MAIN, *list_names(context.store)]
        with context.locks.hold_all([*names, SCHEMA_APPLY_LOCK]):
            if names == [MAIN, *list_names(context.store)]:
                yield
                return
    raise ManifestContention("branches are made and deleted all the time; try again")


def _bring_roots_up_to_date(context: CommitContext) -> None:
    """Rewrite every version file of a fork whose bases point elsewhere, atomically. A second run finds nothing to do."""
    paths = [info.path for info in context.store.list() if version_of(info.path) is not None]
    forks = [(path, found) for path in paths if (found := _FORK_VERSION.fullmatch(path)) is not None]
    if not context.root.is_local:
        # On S3 a digest log can not be appended to, so drop the lines of these files. A file without a line is not damage.
        fold_log(context.store, without={ROOT_RECORD, *(path for path, _ in forks)})
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        list(pool.map(lambda fork: _rewrite(context, fork[0], Location(fork[1]["path"], fork[1]["branch"])), forks))


def _rewrite(context: CommitContext, path: str, location: Location) -> None:
    data = context.store.get_or_none(path)
    if data is None:
        return
    try:
        here = relocated(data, context.root, location)
    except ValueError as error:
        # It was not readable before either; `verify` says so.
        _log.warning("the version %s was left as it is: %s", path, error)
        return
    if here != data:
        note(context.root, {path: digest_of(here)})
        context.store.put(path, here)
        failpoints.hit("place.root_written")
