"""SIGHUP while a process starts: whoever is told to reload before it can do so does it later, and does not die of it."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_asked: list[int] = []


def remember_reloads() -> None:
    """Keep in mind that somebody has asked, until the application is there."""
    signal.signal(signal.SIGHUP, _remember)


def _remember(number: int, frame: FrameType | None) -> None:
    _asked.append(number)


def take_reload() -> bool:
    """Let signals through that have waited; True when somebody has asked before that."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGHUP})
    asked = bool(_asked)
    _asked.clear()
    return asked


@contextmanager
def held_reloads() -> Iterator[None]:
    """Start a process that lets SIGHUP wait from its first moment on, until it calls `take_reload`."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGHUP})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGHUP})
