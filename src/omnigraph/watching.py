"""Observation of calls: spans (the duration of a part) and counted events. Without a watcher it costs nothing.

The engine reports its parts with `span`, `begun` and `happened`, and does not know the watchers. A server sets a watcher, which
makes traces and metrics.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Protocol

#: The value of an attribute of a span.
About = str | int | float | bool
#: Ends a span, with attributes that are known at its end.
End = Callable[..., None]

_NOTHING: AbstractContextManager[None] = nullcontext()
#: Events: a repeated attempt of a publish; a healed write of a dead process; a job given to Spark.
RETRY, RECOVERY, SPARK_JOB = "retry", "recovery", "spark_job"


class Watcher(Protocol):
    """Receives the spans. Its methods are called from any thread and must be quick."""

    def span(self, name: str, about: dict[str, About]) -> AbstractContextManager[None]:
        """A span around a block; spans opened inside belong to it."""

    def begun(self, name: str, about: dict[str, About]) -> End:
        """A span that the returned function ends; spans opened meanwhile do not belong to it."""


_watcher: Watcher | None = None
_counters: tuple[Callable[[str], None], ...] = ()


def span(name: str, **about: About) -> AbstractContextManager[None]:
    """A span around a block."""
    return _NOTHING if _watcher is None else _watcher.span(name, about)


def begun(name: str, **about: About) -> End | None:
    """Begin a span; returns the function that ends it, or None without a watcher."""
    return None if _watcher is None else _watcher.begun(name, about)


def happened(event: str) -> None:
    """Count an event."""
    for count in _counters:
        count(event)


def watch_spans(watcher: Watcher | None) -> None:
    """Set the watcher of all spans of this process; None removes it."""
    global _watcher
    _watcher = watcher


def watch_events(count: Callable[[str], None]) -> Callable[[], None]:
    """Call a function for every event of this process; returns a function that stops this."""
    global _counters
    _counters = (*_counters, count)

    def stop() -> None:
        global _counters
        _counters = tuple(kept for kept in _counters if kept is not count)

    return stop
