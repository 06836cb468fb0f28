"""What a call does, for whoever watches: spans (how long a part took) and events that are counted. Free while nobody does.

The engine names its parts with `span`, `begun` and `happened`, and knows nobody who watches. A server sets a watcher: its traces
and metrics are made there.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Protocol

#: What a span may say about itself.
About = str | int | float | bool
#: Ends a span that was begun, with what is known about it at its end.
End = Callable[..., None]

_NOTHING: AbstractContextManager[None] = nullcontext()
#: An attempt of a publish after the first; a write of a dead process that was settled; a job that was given to Spark.
RETRY, RECOVERY, SPARK_JOB = "retry", "recovery", "spark_job"


class Watcher(Protocol):
    """Who is told about spans. Its methods are called from any thread, and must be quick."""

    def span(self, name: str, about: dict[str, About]) -> AbstractContextManager[None]:
        """A part of a call; spans that are opened inside belong to it."""

    def begun(self, name: str, about: dict[str, About]) -> End:
        """A part that ends elsewhere; nothing that is opened meanwhile belongs to it."""


_watcher: Watcher | None = None
_counters: tuple[Callable[[str], None], ...] = ()


def span(name: str, **about: About) -> AbstractContextManager[None]:
    """A part of a call, as a block."""
    return _NOTHING if _watcher is None else _watcher.span(name, about)


def begun(name: str, **about: About) -> End | None:
    """Begin a part of a call that ends when the answer is called; None while nobody watches."""
    return None if _watcher is None else _watcher.begun(name, about)


def happened(event: str) -> None:
    """Count an event."""
    for count in _counters:
        count(event)


def watch_spans(watcher: Watcher | None) -> None:
    """Let one watcher know about all spans of this process; None: nobody."""
    global _watcher
    _watcher = watcher


def watch_events(count: Callable[[str], None]) -> Callable[[], None]:
    """Call a function for every event of this process; returns what ends that."""
    global _counters
    _counters = (*_counters, count)

    def stop() -> None:
        global _counters
        _counters = tuple(kept for kept in _counters if kept is not count)

    return stop
