"""A bounded pool of threads for the engine's calls, with a queue with a timeout."""

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
    """A pool of threads and its queue. Used from the event loop only."""

    def __init__(self, name: str, threads: int, queue_seconds: float) -> None:
        self.name = name
        self.threads = threads
        self.running = 0
        #: Called when the number of running or waiting calls changes.
        self.changed: Callable[[], None] = lambda: None
        self._seconds = queue_seconds
        self._slots = FairSlots(threads, lambda: self.changed())
        self._executor = ThreadPoolExecutor(threads, thread_name_prefix=f"omnigraph-{name}")

    @property
    def waiting(self) -> int:
        """The number of calls that wait for a thread."""
        return self._slots.waiting

    async def run(self, actor: str | None, work: Callable[[], Value], *, seconds: float | None = None) -> Value:
        """The result of a call in a thread. `seconds`: the longest wait for a thread, if shorter than the default.
        The slot is released when the call has ended, even if its caller was cancelled.
        """
        wait = self._seconds if seconds is None else min(seconds, self._seconds)
        if not await self._slots.acquire(actor or "", wait):
            raise Unavailable(
                f"the server is busy: no thread was free within {wait:g} s; try again in a moment", seconds=1
            )
        self.running += 1
        self.changed()
        loop = asyncio.get_running_loop()
        # The thread gets the context variables of the request.
        context = contextvars.copy_context()
        future = loop.run_in_executor(self._executor, context.run, work)
        future.add_done_callback(self._ended)
        return await asyncio.shield(future)

    def _ended(self, future: asyncio.Future[Value]) -> None:
        self.running -= 1
        self._slots.release()
        self.changed()
        if not future.cancelled():
            # Retrieves the error, so that asyncio does not log it when the caller was cancelled.
            future.exception()

    def close(self) -> None:
        """Accept no more calls; running calls are completed."""
        self._executor.shutdown(wait=False, cancel_futures=True)
