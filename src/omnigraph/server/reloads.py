"""SIGHUP during start-up: a reload requested too early is done later, instead of ending the process."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_asked: list[int] = []


def remember_reloads() -> None:
    """Record SIGHUP until the application is ready."""
    signal.signal(signal.SIGHUP, _remember)


def _remember(number: int, frame: FrameType | None) -> None:
    _asked.append(number)


def take_reload() -> bool:
    """Unblock SIGHUP; returns True when a reload was requested before."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGHUP})
    asked = bool(_asked)
    _asked.clear()
    return asked


@contextmanager
def held_reloads() -> Iterator[None]:
    """Block SIGHUP for processes started in the block, until they call `take_reload`."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGHUP})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGHUP})
