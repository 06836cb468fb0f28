"""A handle of `connect_async` that scenarios call like any other: each verb is awaited on an event loop in a thread."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any

import omnigraph as og
from omnigraph.client.aio import AsyncTransaction
from omnigraph.client.values import AsyncBlob

Run = Callable[[Coroutine[Any, Any, Any]], Any]


@contextmanager
def connected_on_loop(url: str, graph: str, token: str) -> Iterator[OnLoop]:
    """A served graph whose verbs run on a loop of their own while the block runs."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    def run(work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, loop).result()

    try:
        handle = run(og.connect_async(url, graph=graph, token=token))
        yield OnLoop(handle, run)
        run(handle.close())
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


class OnLoop:
    """An object of the asynchronous client; what it gives is waited for."""

    def __init__(self, behind: Any, run: Run) -> None:
        self._behind = behind
        self._run = run

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._behind, name)
        return self._called(found) if callable(found) else found

    def _called(self, verb: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any, **named: Any) -> Any:
            return self._shown(verb(*given, **named))

        return call

    def _shown(self, found: Any) -> Any:
        if inspect.iscoroutine(found):
            return self._shown(self._run(found))
        if isinstance(found, AsyncIterator):
            return iter(self._run(_all(found)))
        return OnLoop(found, self._run) if isinstance(found, og.AsyncGraph | AsyncBlob | AsyncTransaction) else found

    def retrying(self, work: Callable[[Any], Any], **options: Any) -> Any:
        """`work` is written for a blocking handle, so it runs beside the loop."""

        async def awaited(handle: Any) -> Any:
            return await asyncio.to_thread(work, OnLoop(handle, self._run))

        return self._run(self._behind.retrying(awaited, **options))

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._run(_all(aiter(self._behind))))

    def __enter__(self) -> OnLoop:
        return OnLoop(self._run(self._behind.__aenter__()), self._run)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._run(self._behind.__aexit__(kind, error, trace))


async def _all(pieces: AsyncIterator[Any]) -> list[Any]:
    return [piece async for piece in pieces]
