"""What outlives a query: derived data of table versions, bounded in number and shared by all queries of a handle.

The key of each value is the physical identity of the tables it was made from. Branches that share a table therefore share its
values, and no value can be stale.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

Value = TypeVar("Value")
Key = tuple[object, ...]


#: Costs are counted, not timed, so that plans and `explain` do not depend on how busy a machine is. The unit is reading one edge
#: into memory, about 0.2 microseconds. These are one look-up through an index or by row, and each id or row of it.
LOOKUP = 7_500.0
PER_ID = 100.0


class Spending:
    """What has been spent so far on doing without a structure (an adjacency, a column in memory), by the key of the structure.
    A caller that builds the structure once it has spent the cost of building it never pays much more than twice the optimum.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._spent: OrderedDict[Key, float] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, key: Key) -> float:
        """The cost spent so far on doing without the structure with this key; 0.0 when nothing was spent."""
        with self._lock:
            return self._spent.get(key, 0.0)

    def add(self, key: Key, cost: float) -> None:
        """Add the cost of one more operation that did without the structure."""
        with self._lock:
            self._spent[key] = self._spent.pop(key, 0.0) + cost
            while len(self._spent) > self._most:
                self._spent.popitem(last=False)


class Bounded(Generic[Value]):
    """The most recently used values, each made once even when several threads ask at the same time.

    They are bounded in number and, when `size` is given, in bytes; the newest value is kept whatever its size.
    """

    def __init__(self, most: int, most_bytes: int = 0, size: Callable[[Value], int] = lambda _: 0) -> None:
        self._most = most
        self._most_bytes = most_bytes
        self._size = size
        self._values: OrderedDict[Key, Value] = OrderedDict()
        self._making: dict[Key, threading.Lock] = {}
        self._lock = threading.Lock()

    def get(self, key: Key) -> Value | None:
        """The value of a key if it is kept, else None."""
        with self._lock:
            found = self._values.get(key)
            if found is not None:
                self._values.move_to_end(key)
            return found

    def get_or_make(self, key: Key, make: Callable[[], Value]) -> Value:
        """The value of a key. The first caller makes it, outside of the lock, so that other keys are not blocked."""
        found = self.get(key)
        if found is not None:
            return found
        with self._lock:
            turn = self._making.setdefault(key, threading.Lock())
        with turn:
            found = self.get(key)
            if found is None:
                found = make()
                self.put(key, found)
            with self._lock:
                self._making.pop(key, None)
        return found

    def put(self, key: Key, value: Value) -> None:
        """Keep a value, and drop the least recently used values that exceed the bounds."""
        with self._lock:
            self._values[key] = value
            self._values.move_to_end(key)
            while len(self._values) > 1 and (len(self._values) > self._most or self._held() > self._most_bytes):
                self._values.popitem(last=False)

    def _held(self) -> int:
        return sum(map(self._size, self._values.values()))

    @property
    def nbytes(self) -> int:
        """The bytes of all kept values; 0 when the cache was given no `size` function."""
        with self._lock:
            return self._held()

    def __len__(self) -> int:
        with self._lock:
            return len(self._values)
