"""A lock between the threads of one process that serves them in the order they came."""

from __future__ import annotations

import threading
from collections import deque


class Turn:
    """One turn at a time, first come first served; the thread that has it may not ask again."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._queue: deque[object] = deque()
        self._owner: int | None = None

    @property
    def is_mine(self) -> bool:
        """Whether the calling thread has the turn."""
        return self._owner == threading.get_ident()

    def take(self, seconds: float) -> bool:
        """Wait at most so long for the turn; False when it did not come."""
        ticket = object()
        with self._changed:
            self._queue.append(ticket)
            try:
                came = self._changed.wait_for(lambda: self._owner is None and self._queue[0] is ticket, seconds)
                if came:
                    self._owner = threading.get_ident()
            finally:
                self._queue.remove(ticket)
                self._changed.notify_all()
            return came

    def give(self) -> None:
        """Give the turn to who waits longest."""
        with self._changed:
            self._owner = None
            self._changed.notify_all()
