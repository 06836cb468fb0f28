"""Requests that do not wait for each other: on an object store a write takes as long as its round trips in sequence."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from typing import Any, ParamSpec, TypeVar

from omnigraph.storage.root import Root

AT_ONCE = 8

P = ParamSpec("P")
T = TypeVar("T")


def at_once(root: Root) -> Executor:
    """Where independent requests to a store are submitted: they overlap where each is a round trip."""
    return ONE_BY_ONE if root.is_local else ThreadPoolExecutor(AT_ONCE, thread_name_prefix="request")


class _OneByOne(Executor):
    """Runs what is submitted at once and in order: a local file is read faster than a thread starts."""

    def submit(self, call: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        outcome: Future[T] = Future()
        try:
            outcome.set_result(call(*args, **kwargs))
        except Exception as error:
            outcome.set_exception(error)
        return outcome

    def map(
        self, call: Callable[..., T], /, *columns: Iterable[Any], timeout: float | None = None, chunksize: int = 1
    ) -> Iterator[T]:
        # Nothing is ever pending, so that nobody needs a future.
        return iter([call(*args) for args in zip(*columns, strict=False)])


ONE_BY_ONE: Executor = _OneByOne()
