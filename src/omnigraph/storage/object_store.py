"""The contract of the store for a graph's control files, the same on disk, on S3 and in memory.

Paths are relative to the graph's root, segments joined by `/`. Errors are `StorageError`; its kind says what a caller
may conclude: `not_found` and `precondition` are answers, `transient` may be tried again, `configuration` and
`permanent` need a person, and `unknown` means that a write may have happened.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime

from omnigraph.errors import StorageError
from omnigraph.ids import new_ulid


@dataclass(frozen=True)
class ObjectInfo:
    """One entry of a listing. `tag` is None on disk, where it is known only by reading the object."""

    path: str
    size: int
    tag: str | None
    modified: datetime


class ObjectStore(ABC):
    """Small objects with atomic writes, create-if-absent and compare-and-swap.

    A tag identifies content, not a moment: an object that changes and changes back has its old tag again.
    """

    @property
    @abstractmethod
    def describe(self) -> str:
        """Where this store is, for messages."""

    @property
    @abstractmethod
    def counts(self) -> Counter[str]:
        """How many requests of each verb were made: get, head, put, create, swap, list, delete, sync."""

    @abstractmethod
    def get_tagged(self, path: str) -> tuple[bytes, str]:
        """The content of an object, and its tag for `swap`."""

    @abstractmethod
    def stamp(self, path: str) -> str | None:
        """A cheap fingerprint that changes with every write of the object; None when there is no object."""

    def stamps(self, paths: Sequence[str]) -> tuple[str | None, ...]:
        """The stamps of objects, in order. Some stores ask for several concurrently."""
        return tuple(map(self.stamp, paths))

    @abstractmethod
    def put(self, path: str, data: bytes) -> None:
        """Write an object unconditionally; readers see the old or the new content, never a part."""

    @abstractmethod
    def create(self, path: str, data: bytes) -> str:
        """Write an object that must not exist yet and return its tag; `precondition` when it exists."""

    @abstractmethod
    def swap(self, path: str, data: bytes, tag: str) -> str:
        """Replace an object that still has this tag and return its new tag; `precondition` when it changed or is gone."""

    @abstractmethod
    def list(self, prefix: str = "") -> list[ObjectInfo]:
        """Every object below a prefix (`""`: all), at any depth, sorted by path."""

    @abstractmethod
    def exists(self, path: str) -> bool:
        """Whether there is an object at this path or below it; raises if the store can not be asked."""

    @abstractmethod
    def has_more_than(self, count: int, prefix: str) -> bool:
        """Whether there are more than `count` objects below a prefix; reads at most one page of a listing."""

    @abstractmethod
    def delete(self, path: str) -> None:
        """Remove an object; no error if there is none."""

    def delete_all(self, paths: Iterable[str]) -> None:
        """Remove objects; no error if some do not exist."""
        for path in paths:
            self.delete(path)

    @abstractmethod
    def delete_prefix(self, prefix: str) -> None:
        """Remove every object below a prefix (`""`: all)."""

    @abstractmethod
    def sync(self, path: str) -> None:
        """Make an object, or all objects below a prefix (`""`: all), survive a power failure; does nothing on S3."""

    def get(self, path: str) -> bytes:
        """The content of an object; `not_found` when there is none."""
        return self.get_tagged(path)[0]

    def get_or_none(self, path: str) -> bytes | None:
        """The content of an object, or None when there is none."""
        found = self.get_tagged_or_none(path)
        return None if found is None else found[0]

    def get_many(self, paths: Sequence[str]) -> Iterable[bytes | None]:
        """The contents of objects, in order; None for missing objects. Some stores read several concurrently."""
        return (self.get_or_none(path) for path in paths)

    def get_tagged_or_none(self, path: str) -> tuple[bytes, str] | None:
        """The content and the tag of an object, or None when there is none."""
        try:
            return self.get_tagged(path)
        except StorageError as error:
            if error.kind != "not_found":
                raise
            return None

    def probe_create_if_absent(self) -> None:
        """Raise unless `create` refuses an existing object, on which every commit depends. Leaves nothing behind."""
        # A unique name: no object of another process is ever read, trusted or deleted.
        path = f"__probe-{new_ulid()}"
        try:
            fault = self._fault_of_create(path)
        except StorageError:
            with suppress(StorageError):  # the first error says more
                self.delete(path)
            raise
        self.delete(path)
        if fault:
            raise StorageError(
                f"{self.describe} can not be written safely: it has no atomic create-if-absent ({fault}); "
                "move the graph to a local disk or to an S3 store with conditional puts",
                kind="configuration",
                path=self.describe,
            )

    def _fault_of_create(self, path: str) -> str | None:
        """What is wrong with `create`, tested at an unused path; None when it works. Raises when nothing can be written."""
        try:
            self.create(path, b"first")
        except StorageError as error:
            if error.kind in ("transient", "unknown"):
                raise
            self.put(path, b"first")  # also fails when the store is full or not writable: then that is the error
            return error.message
        try:
            self.create(path, b"second")
        except StorageError as error:
            if error.kind != "precondition":
                raise
            return None if self.get(path) == b"first" else "a refused create replaced the object"
        return "a second create of one object was accepted"
