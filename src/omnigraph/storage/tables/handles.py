"""Open table handles: one shared Lance session, a small cache of opened versions, look-ups of heads."""

from __future__ import annotations

import threading
from collections import OrderedDict
from contextlib import suppress
from copy import copy

import lance
from lance import LanceDataset, Transaction

from omnigraph.storage.root import Root
from omnigraph.storage.tables.bases import has_foreign_bases, with_bases_here
from omnigraph.storage.tables.lance_errors import Corrupt, Missing, translated
from omnigraph.storage.tables.location import Location, Part
from omnigraph.storage.tables.table import Table
from omnigraph.storage.tables.version_files import is_newest_on_disk, newest_on_disk

TRANSACTION_ID = "omnigraph.transaction_id"
#: The transaction id of a commit that undoes another commit.
UNDO = "undo"
CACHED_HANDLES = 256
#: The cache limits of a session in bytes. Every version has a manifest that names all its fragments, so a process that commits
#: for days would fill any limit; Lance's own limits are several gigabytes.
METADATA_CACHE_BYTES = 256 * 1024 * 1024
INDEX_CACHE_BYTES = 2 * 1024 * 1024 * 1024


#: Path, Lance branch, part and version. A plain tuple: every query looks up each of its tables, and this hash is computed in C.
_Key = tuple[str, str | None, Part | None, int]


class Tables:
    """The tables below one graph root. Thread-safe."""

    def __init__(self, root: Root) -> None:
        self.root = root
        # All handles share one session, so that a further handle finds manifests and index pages in memory.
        self.session = lance.Session(  # type: ignore[attr-defined]  # re-exported by Lance without saying so
            index_cache_size_bytes=INDEX_CACHE_BYTES, metadata_cache_size_bytes=METADATA_CACHE_BYTES
        )
        self._handles: OrderedDict[_Key, Table] = OrderedDict()
        self._lock = threading.Lock()

    def open(self, location: Location, version: int) -> Table:
        """The table at one version; raises `Missing` if that version does not exist."""
        key = (location.path, location.branch, location.part, version)
        with self._lock:
            known = self._handles.get(key)
            if known is not None:
                self._handles.move_to_end(key)
                return known
        if location.part is not None:
            # A part is used only by readers of a single commit within a group.
            from omnigraph.storage.tables.parts import open_part

            return self._kept(key, open_part(self, location, location.part, version))
        return self.keep(Table(location, self.open_dataset(location, version)))

    def keep(self, table: Table) -> Table:
        """Cache an opened version, such as one just committed, so that opening it makes no request."""
        location = table.location
        return self._kept((location.path, location.branch, location.part, table.version), table)

    def _kept(self, key: _Key, table: Table) -> Table:
        with self._lock:
            self._handles[key] = table
            while len(self._handles) > CACHED_HANDLES:
                self._handles.popitem(last=False)
        return table

    def open_head(self, location: Location) -> Table | None:
        """The table at its newest version, read afresh; None if the dataset or the branch does not exist."""
        try:
            return Table(location, self.open_dataset(location))
        except Missing:
            return None

    def open_dataset(self, location: Location, version: int | None = None) -> LanceDataset:
        """A new Lance handle, at one version or at the newest."""
        if version is None:
            newest = newest_on_disk(self.root, location)
            with suppress(Missing):  # cleanup, or a branch that was created again, came in between
                if newest is not None:
                    return self._open_dataset(location, newest)
        return self._open_dataset(location, version)

    def _open_dataset(self, location: Location, version: int | None) -> LanceDataset:
        with translated(str(location), "open" if version is None else f"open version {version} of"):
            dataset = lance.dataset(
                self.root.lance_uri(location.dataset_path),
                version=version,
                storage_options=self.root.storage_options,
                session=self.session,
            )
        if dataset.version < 1:
            # Lance opens a manifest of zero bytes, as a power failure leaves it, as an empty dataset at version 0.
            raise Corrupt(
                f"the newest version of {location} is not a manifest; run `omnigraph repair`", path=location.path
            )
        if location.branch is not None and has_foreign_bases(dataset, self.root, location.path):
            # The graph was moved or copied after this version was made.
            return self.reopened(dataset, location.path)
        return dataset

    def reopened(self, dataset: LanceDataset, path: str) -> LanceDataset:
        """A handle of the same version whose bases for the dataset at `path` point to where this graph lies now."""
        with translated(dataset.uri, "open"):
            return LanceDataset(
                dataset.uri,
                version=dataset.version,
                serialized_manifest=with_bases_here(dataset, self.root, path),
                storage_options=self.root.storage_options,
                session=self.session,
            )

    def head_version(self, location: Location, likely: int | None = None) -> int | None:
        """The newest version number; None if the dataset or the branch does not exist. `likely`: a guess that saves time."""
        if likely is not None and is_newest_on_disk(self.root, location, likely):
            return likely
        # Opening costs the same as asking: one listing; manifests known to the session are not read again.
        head = self.open_head(location)
        return None if head is None else head.version

    def created_by(self, location: Location, version: int) -> str | None:
        """Our transaction id in the commit that made a version; None when it is not ours or can not be read."""
        try:
            dataset = self.open(location, version).dataset
        except (Missing, Corrupt):
            return None
        return read_transaction_id(dataset, version)

    def exists(self, path: str) -> bool:
        """Whether there is a table at this path."""
        return self.open_head(Location(path)) is not None

    def forget(self, location: Location) -> None:
        """Drop the cached handles of a removed fork, or of a table with all its forks."""
        with self._lock:
            for key in list(self._handles):
                path, branch, _, _ = key
                if path == location.path and location.branch in (None, branch):
                    del self._handles[key]


def read_transaction_id(dataset: LanceDataset, version: int) -> str | None:
    """The transaction id that OmniGraph wrote into the commit of this version; None when there is none."""
    with translated(dataset.uri, f"read the transaction of version {version} of"):
        try:
            transaction = transaction_of(dataset, version)
        except TypeError:
            # Lance can not rebuild the transaction of a compaction that remapped an index; such a commit is never ours.
            return None
    return own_id(transaction)


def transaction_of(dataset: LanceDataset, version: int) -> Transaction | None:
    """The Lance transaction that made a version of this dataset, None when there is none."""
    return for_one_call(dataset).read_transaction(version)


def for_one_call(dataset: LanceDataset) -> LanceDataset:
    """A copy of a shared handle, for a call that has the handle to itself.

    While a handle reads a transaction, builds an index or makes a branch or a clone, Lance refuses every other use of it
    ("Already mutably borrowed"), and refuses these calls while others use it. The copy takes 1 µs and shares the session.
    """
    return copy(dataset)


def own_id(transaction: Transaction | None) -> str | None:
    """The transaction id that OmniGraph wrote into a Lance transaction; None when there is none."""
    return None if transaction is None else (transaction.transaction_properties or {}).get(TRANSACTION_ID)
