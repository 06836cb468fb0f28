"""What outlives a query: derived data of table versions, bounded in number and shared by all queries of a handle.

Everything is known by the physical identity of the tables it was made from, so branches that share a table share it too, and
nothing in here can be stale.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

from omnigraph.storage.tables.table import Table

Value = TypeVar("Value")
Key = tuple[object, ...]


def identity_of(table: Table) -> Key:
    """What a table version is, physically."""
    return (table.location.path, table.location.branch, table.version)


class Bounded(Generic[Value]):
    """The most recently used values, each made once even when several threads ask at the same time."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._values: OrderedDict[Key, Value] = OrderedDict()
        self._making: dict[Key, threading.Lock] = {}
        self._lock = threading.Lock()

    def get(self, key: Key) -> Value | None:
        """A value that is there already."""
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
                return self._values[key]
            return None

    def get_or_make(self, key: Key, make: Callable[[], Value]) -> Value:
        """The value of a key; whoever comes first makes it, outside of the lock that other keys need."""
        found = self.get(key)
        if found is not None:
            return found
        with self._lock:
            turn = self._making.setdefault(key, threading.Lock())
        with turn:
            found = self.get(key)
            if found is None:
                found = make()
                with self._lock:
                    self._values[key] = found
                    while len(self._values) > self._most:
                        self._values.popitem(last=False)
            with self._lock:
                self._making.pop(key, None)
        return found

    def __len__(self) -> int:
        with self._lock:
            return len(self._values)
