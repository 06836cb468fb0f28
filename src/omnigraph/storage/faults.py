"""A store that fails on purpose, so that tests can inject the failures of object stores.

store = FaultyStore(open_store(root), [error_after("create", "__recovery/*")])
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Literal, TypeVar

from omnigraph.errors import StorageError
from omnigraph.storage.object_store import ObjectInfo, ObjectStore

Result = TypeVar("Result")
Effect = Literal["error_before", "error_after", "latency", "torn_list", "stale_list", "unconditional"]


@dataclass(frozen=True)
class Fault:
    """The effect on the nth call of a verb on a matching path; `nth` None: on every such call."""

    effect: Effect
    verb: str
    path: str = "*"
    nth: int | None = 1
    kind: str = "transient"
    seconds: float = 0.0
    hidden: str = "*"


def error_before(verb: str, path: str = "*", *, nth: int | None = 1, kind: str = "transient") -> Fault:
    """A fault: the call fails and has no effect."""
    return Fault("error_before", verb, path, nth, kind=kind)


def error_after(verb: str, path: str = "*", *, nth: int | None = 1, kind: str = "unknown") -> Fault:
    """A fault: the call takes effect but its answer is lost."""
    return Fault("error_after", verb, path, nth, kind=kind)


def latency(verb: str, path: str = "*", *, seconds: float, nth: int | None = None) -> Fault:
    """A fault: the call takes `seconds` longer."""
    return Fault("latency", verb, path, nth, seconds=seconds)


def torn_list(prefix: str = "*", *, hidden: str, nth: int | None = 1) -> Fault:
    """A fault: a listing lacks the entries whose path matches `hidden`."""
    return Fault("torn_list", "list", prefix, nth, hidden=hidden)


def stale_list(prefix: str = "*", *, nth: int | None = 1) -> Fault:
    """A fault: a listing repeats the last correct listing of this prefix, or is empty when there was none."""
    return Fault("stale_list", "list", prefix, nth)


def unconditional(verb: Literal["create", "swap"], path: str = "*", *, nth: int | None = None) -> Fault:
    """A fault: a conditional write ignores its condition, as on a store without conditional writes."""
    return Fault("unconditional", verb, path, nth)


class FaultyStore(ObjectStore):
    """A store with injected faults around another store. `fired` lists the faults that took place, for tests to check."""

    def __init__(self, inner: ObjectStore, faults: Iterable[Fault] = ()) -> None:
        self.inner = inner
        self.fired: list[Fault] = []
        self._pending: list[tuple[Fault, int]] = []
        self._last_lists: dict[str, Sequence[ObjectInfo]] = {}
        self._matching = threading.Lock()
        for fault in faults:
            self.inject(fault)

    def inject(self, fault: Fault) -> None:
        """Add a fault; its calls are counted from now on."""
        with self._matching:
            self._pending.append((fault, 0))

    def clear(self) -> None:
        """Remove every fault."""
        with self._matching:
            self._pending.clear()

    @property
    def describe(self) -> str:
        return self.inner.describe

    @property
    def counts(self) -> Counter[str]:
        return self.inner.counts

    def get_tagged(self, path: str) -> tuple[bytes, str]:
        return self._call("get", path, lambda: self.inner.get_tagged(path))

    def stamp(self, path: str) -> str | None:
        return self._call("head", path, lambda: self.inner.stamp(path))

    def put(self, path: str, data: bytes) -> None:
        self._call("put", path, lambda: self.inner.put(path, data))

    def create(self, path: str, data: bytes) -> str:
        return self._call("create", path, lambda: self.inner.create(path, data), lambda: self._overwrite(path, data))

    def swap(self, path: str, data: bytes, tag: str) -> str:
        return self._call("swap", path, lambda: self.inner.swap(path, data, tag), lambda: self._overwrite(path, data))

    def list(self, prefix: str = "") -> list[ObjectInfo]:
        faults = self._due("list", prefix)
        _fail("error_before", faults, "list", prefix)
        found = self._seen(prefix, faults)
        _fail("error_after", faults, "list", prefix)
        hidden = [fault.hidden for fault in faults if fault.effect == "torn_list"]
        return [info for info in found if not any(fnmatchcase(info.path, pattern) for pattern in hidden)]

    def exists(self, path: str) -> bool:
        return self._call("exists", path, lambda: self.inner.exists(path))

    def has_more_than(self, count: int, prefix: str) -> bool:
        return self._call("list", prefix, lambda: self.inner.has_more_than(count, prefix))

    def delete(self, path: str) -> None:
        self._call("delete", path, lambda: self.inner.delete(path))

    def delete_prefix(self, prefix: str) -> None:
        self._call("delete_prefix", prefix, lambda: self.inner.delete_prefix(prefix))

    def sync(self, path: str) -> None:
        self._call("sync", path, lambda: self.inner.sync(path))

    def _call(
        self,
        verb: str,
        path: str,
        true: Callable[[], Result],
        careless: Callable[[], Result] | None = None,
    ) -> Result:
        """Make a call with the faults that are due. `careless`: the same call without its condition."""
        faults = self._due(verb, path)
        _fail("error_before", faults, verb, path)
        ignored = any(fault.effect == "unconditional" for fault in faults)
        result = careless() if ignored and careless else true()
        _fail("error_after", faults, verb, path)
        return result

    def _due(self, verb: str, path: str) -> tuple[Fault, ...]:
        """Count this call and return the faults that apply to it; delays happen here."""
        due: tuple[Fault, ...] = ()
        with self._matching:
            for at, (fault, calls) in enumerate(self._pending):
                if fault.verb in (verb, "*") and fnmatchcase(path, fault.path):
                    self._pending[at] = (fault, calls + 1)
                    if fault.nth in (None, calls + 1):
                        due += (fault,)
            self.fired += due
        time.sleep(sum(fault.seconds for fault in due))
        return due

    def _seen(self, prefix: str, faults: Iterable[Fault]) -> Sequence[ObjectInfo]:
        if any(fault.effect == "stale_list" for fault in faults):
            return self._last_lists.get(prefix, ())
        self._last_lists[prefix] = self.inner.list(prefix)
        return self._last_lists[prefix]

    def _overwrite(self, path: str, data: bytes) -> str:
        self.inner.put(path, data)
        return self.inner.get_tagged(path)[1]


def _fail(effect: Effect, faults: Iterable[Fault], verb: str, path: str) -> None:
    for fault in faults:
        if fault.effect == effect:
            raise StorageError(f"injected: {verb} of {path!r} failed", kind=fault.kind, path=path)
