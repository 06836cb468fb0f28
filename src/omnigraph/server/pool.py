"""Threads for the engine's calls: a bounded number, and a queue in which nobody waits forever."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from omnigraph.errors import Unavailable
from omnigraph.server.admission import FairSlots

Value = TypeVar("Value")


class Pool:
    """Some threads and the requests that wait for one. Used from the event loop only."""

    def __init__(self, name: str, threads: int, queue_seconds: float) -> None:
        self.name = name
        self.threads = threads
        self.running = 0
        #: Called when more or fewer calls run or wait.
        self.changed: Callable[[], None] = lambda: None
        self._seconds = queue_seconds
        self._slots = FairSlots(threads, lambda: self.changed())
        self._executor = ThreadPoolExecutor(threads, thread_name_prefix=f"omnigraph-{name}")

    @property
    def waiting(self) -> int:
        """How many calls wait for a thread."""
        return self._slots.waiting

    async def run(self, actor: str | None, work: Callable[[], Value], *, seconds: float | None = None) -> Value:
        """What a call returns that is made in a thread. `seconds`: how long it waits for one, if less than usual.

        The slot is given back when the call has ended, even if nobody waits for its value any more.
        """
        wait = self._seconds if seconds is None else min(seconds, self._seconds)
        if not await self._slots.acquire(actor or "", wait):
            raise Unavailable(
                f"the server is busy: no thread was free within {wait:g} s; try again in a moment", seconds=1
            )
        self.running += 1
        self.changed()
        loop = asyncio.get_running_loop()
        # The thread knows which request it works for, as the event loop does.
        context = contextvars.copy_context()
        future = loop.run_in_executor(self._executor, context.run, work)
        future.add_done_callback(self._ended)
        return await asyncio.shield(future)

    def _ended(self, future: asyncio.Future[Value]) -> None:
        self.running -= 1
        self._slots.release()
        self.changed()
        if not future.cancelled():
            # An error that nobody waits for any more is no news.
            future.exception()

    def close(self) -> None:
        """Take no more calls; running calls end by themselves."""
        self._executor.shutdown(wait=False, cancel_futures=True)
