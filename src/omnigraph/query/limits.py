"""The bounds of a query: memory, time and cancelling.
`Limits` are the values that a caller sets. `Cancel` is a handle with which another thread stops queries. A `Budget` belongs to
one run: operators charge it with the bytes of the rows they are about to make, and release them when the rows are dropped.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from queue import Empty, Full, Queue
from time import monotonic
from typing import Any, Final, TypeVar, cast

import numpy as np
import numpy.typing as npt

from omnigraph.errors import BadRequest, Cancelled, DeadlineExceeded, ResourceLimit

MEMORY_VARIABLE = "OMNIGRAPH_QUERY_MEMORY"

Value = TypeVar("Value")
#: One byte that compiled loops look at: not 0 when they must stop.
StopFlag = npt.NDArray[np.uint8]

#: Seconds between two looks at the clock and at the flag while another thread works.
_POLL = 0.02
#: How many items a scan thread holds ready for their reader.
_AHEAD = 2
#: Bytes of memory for each row of a batch, so that batches shrink with the memory limit.
_BYTES_PER_BATCH_ROW = 1024
#: The most bytes of a batch that is read from a table, and the divisor of the memory limit that bounds it too.
_MOST_BATCH_BYTES = 2**26
_BATCHES_IN_MEMORY = 8

_UNITS: Final = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}
_SIZE = re.compile(r"(?P<number>[0-9]{1,15}(\.[0-9]{1,6})?)\s*(?P<unit>[kmgt]?)(i?b)?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Limits:
    """The bounds of a query run."""

    #: Bytes that the rows of a query may take at the same time.
    memory: int = 2**30
    #: Seconds a query may take; None for as long as it needs.
    timeout: float | None = None
    #: Rows that an operator makes at a time; fewer when the memory limit is small.
    batch_rows: int = 2**20
    #: Work of at least so many steps (rows of a table, or iterations of a loop) runs in a thread that a stopped run abandons.
    long_work: int = 20_000_000

    @property
    def rows_at_once(self) -> int:
        """The most rows of a batch."""
        return max(1, min(self.batch_rows, self.memory // _BYTES_PER_BATCH_ROW))

    def with_request(self, memory: int | str | None, timeout: float | None) -> Limits:
        """These limits with the values of one request: `memory` as bytes or text, `timeout` in seconds; None: unchanged."""
        if memory is None and timeout is None:
            return self
        return replace(
            self,
            memory=self.memory if memory is None else parse_size(memory, "memory_limit"),
            timeout=self.timeout if timeout is None else _seconds(timeout),
        )


def limits_from_environment() -> Limits:
    """The default limits of a handle: the built-in values, or the memory limit of the environment variable."""
    text = os.environ.get(MEMORY_VARIABLE)
    return Limits(memory=parse_size(text, MEMORY_VARIABLE)) if text else Limits()


def parse_size(value: int | str, name: str) -> int:
    """A number of bytes: an integer, or a text such as `512MiB` or `2g`, in powers of 1024."""
    if isinstance(value, str):
        found = _SIZE.fullmatch(value.strip())
        number = 0 if found is None else int(float(found["number"]) * _UNITS[found["unit"].lower()])
    else:
        number = 0 if isinstance(value, bool) or not isinstance(value, int) else value
    if number <= 0:
        raise BadRequest(f"{name} is a number of bytes such as 536870912 or 512MiB, not {value!r}")
    return number


def _seconds(value: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 2**31:
        raise BadRequest(f"timeout is a number of seconds above 0, not {value!r}")
    return float(value)


class Cancel:
    """Stops queries from another thread: give it to `query(…, cancel=…)` and call `cancel()`.

    It stops every query it is given to, also queries that start later, and can not be reset.
    """

    def __init__(self) -> None:
        self._cancelled = False
        self._flags: list[StopFlag] = []
        self._lock = threading.Lock()

    @property
    def cancelled(self) -> bool:
        """Whether `cancel` was called."""
        return self._cancelled

    def cancel(self) -> None:
        """Stop the queries; each raises `Cancelled` in its own thread. Safe to call from any thread and any number of times."""
        with self._lock:
            self._cancelled = True
            for flag in self._flags:
                flag[0] = 1

    def _watch(self, flag: StopFlag) -> None:
        with self._lock:
            self._flags.append(flag)
            if self._cancelled:
                flag[0] = 1

    def _forget(self, flag: StopFlag) -> None:
        with self._lock:
            self._flags = [one for one in self._flags if one is not flag]


class Budget:
    """The limits of one run, and how much of them it uses. Other threads write only the stop flag."""

    __slots__ = ("_cancel", "_deadline", "held", "limits", "rows", "stop")

    def __init__(self, limits: Limits, cancel: Cancel | None = None) -> None:
        self.limits = limits
        #: Rows that an operator makes at a time.
        self.rows = limits.rows_at_once
        #: The bytes that are charged at present.
        self.held = 0
        self.stop: StopFlag = np.zeros(1, np.uint8)
        self._deadline = None if limits.timeout is None else monotonic() + limits.timeout
        self._cancel = cancel
        if cancel is not None:
            cancel._watch(self.stop)

    def close(self) -> None:
        """End the run: its `Cancel` no longer sets the stop flag."""
        if self._cancel is not None:
            self._cancel._forget(self.stop)

    @property
    def batch_bytes(self) -> int:
        """The most bytes of a batch of a scan."""
        return min(_MOST_BATCH_BYTES, max(1, self.limits.memory // _BATCHES_IN_MEMORY))

    # --- memory -----------------------------------------------------------------------------------------------------

    def charge(self, size: int) -> int:
        """Charge `size` bytes before they are allocated, and return `size`; raises ResourceLimit when the limit is exceeded."""
        self.check()
        if self.held + size > self.limits.memory:
            raise _too_much(self.limits.memory, self.held + size)
        self.held += size
        return size

    def release(self, size: int) -> None:
        """Give back bytes that were charged."""
        self.held -= size

    # --- time -------------------------------------------------------------------------------------------------------

    def check(self) -> None:
        """Raise when the query was cancelled or is out of time."""
        if self._deadline is not None and monotonic() > self._deadline:
            self.stop[0] = 1
            raise DeadlineExceeded(
                f"the query did not end within {self.limits.timeout:g} s; add conditions or a limit, or raise timeout",
                seconds=self.limits.timeout or 0.0,
            )
        if self.stop[0]:
            raise Cancelled("the query was cancelled")

    @property
    def is_watched(self) -> bool:
        """Whether something besides Ctrl-C can end the run early: a deadline, or a `Cancel`."""
        return self._deadline is not None or self._cancel is not None

    def patiently(self, work: Callable[[], Value], steps: int) -> Value:
        """The value of `work()`, a call that checks neither signals nor the clock.
        Work of many steps is done in a second thread, so that this thread can be interrupted. On an interrupt the stop flag is
        set: compiled loops stop at it, other calls run on in their thread and nobody waits for them.
        """
        if steps < self.limits.long_work:
            return work()
        found: list[Any] = []

        def job() -> None:
            try:
                found.append((work(), None))
            except BaseException as error:
                found.append((None, error))

        thread = threading.Thread(target=job, name="omnigraph-query", daemon=True)
        thread.start()
        try:
            while thread.is_alive():
                thread.join(_POLL)
                self.check()
        except BaseException:
            self.stop[0] = 1
            raise
        value, error = found[0]
        if error is not None:
            raise error
        return cast("Value", value)

    def pulled(self, source: Iterator[Value], rows: int) -> Iterator[Value]:
        """The items of `source`, the scan of a table of `rows` rows.

        The scan of a large table is driven by a thread when the run has a deadline or can be cancelled: a single call of
        Lance may take longer than either allows. Ctrl-C needs no thread, since Lance itself looks at signals.
        """
        if rows * 100 < self.limits.long_work or not self.is_watched:
            for item in source:
                self.check()
                yield item
            return
        ready: Queue[tuple[Value | None, BaseException | None, bool]] = Queue(_AHEAD)
        left = threading.Event()

        def offer(item: tuple[Value | None, BaseException | None, bool]) -> bool:
            while not left.is_set():
                try:
                    ready.put(item, timeout=_POLL)
                    return True
                except Full:
                    continue
            return False

        def drive() -> None:
            try:
                for item in source:
                    if not offer((item, None, False)):
                        return
                offer((None, None, True))
            except BaseException as error:
                offer((None, error, True))

        threading.Thread(target=drive, name="omnigraph-scan", daemon=True).start()
        try:
            while True:
                self.check()
                try:
                    made, error, last = ready.get(timeout=_POLL)
                except Empty:
                    continue
                if error is not None:
                    raise error
                if last:
                    return
                yield cast("Value", made)
        finally:
            left.set()


def out_of_memory(budget: Budget) -> ResourceLimit:
    """The error for a failed allocation: the machine has less memory than the query was allowed."""
    return ResourceLimit(
        f"the process is out of memory although this query may take {_shown(budget.limits.memory)}; add conditions or a "
        f"limit, or lower memory_limit ({MEMORY_VARIABLE}) so that it ends earlier",
        resource="query memory bytes",
        limit=budget.limits.memory,
        actual=budget.held,
    )


def _too_much(limit: int, actual: int) -> ResourceLimit:
    return ResourceLimit(
        f"the query needs more than the {_shown(limit)} of memory it may take (at least {_shown(actual)}); add conditions or "
        f'a limit, return less, raise memory_limit ({MEMORY_VARIABLE}), or run it with engine="spark"',
        resource="query memory bytes",
        limit=limit,
        actual=actual,
    )


def _shown(size: int) -> str:
    for unit, factor in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if size >= factor:
            return f"{size / factor:.3g} {unit}" if size < 1000 * factor else f"{size // factor} {unit}"
    return f"{size} bytes"
