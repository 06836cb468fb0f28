"""Opens the store of a graph's control files: `open_store(root)`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from datetime import timedelta
from typing import Any, ParamSpec, TypeVar

from obstore.exceptions import BaseError
from obstore.store import LocalStore, MemoryStore, S3Store

from omnigraph.errors import BadRequest
from omnigraph.storage.local import LocalObjects
from omnigraph.storage.object_store import ObjectInfo, ObjectStore
from omnigraph.storage.obstore_objects import ObstoreObjects
from omnigraph.storage.root import Root

__all__ = ["ObjectInfo", "ObjectStore", "open_store", "s3_client"]

_RETRIES = 6
_RETRY_TIMEOUT = timedelta(seconds=30)
_REQUEST_TIMEOUT = "20s"


def open_store(root: Root, *, retries: int = _RETRIES) -> ObjectStore:
    """The object store of a graph; opening it makes no request and no folder."""
    if root.is_local:
        return LocalObjects(root, LocalStore())
    if root.scheme == "memory":
        memory = MemoryStore()
        return ObstoreObjects(root, memory, memory)
    return ObstoreObjects(root, _s3(root, retries), _s3(root, 0))


def s3_client(root: Root) -> S3Store:
    """A client for reading anything in the bucket of a root."""
    return _s3(root, _RETRIES)


def _s3(root: Root, retries: int) -> S3Store:
    try:
        return S3Store(
            root.bucket,
            config=root.storage_options,  # type: ignore[arg-type]  # the keys are checked by obstore itself
            client_options={"timeout": _REQUEST_TIMEOUT},
            retry_config={"max_retries": retries, "retry_timeout": _RETRY_TIMEOUT},
        )
    except BaseError as error:
        raise BadRequest(f"can not open {root.uri}: {str(error).partition(chr(10))[0]}") from error


AT_ONCE = 8

P = ParamSpec("P")
T = TypeVar("T")


def at_once(root: Root) -> Executor:
    """An executor for independent requests to a store: concurrent where a request is a round trip, else one by one."""
    return ONE_BY_ONE if root.is_local else ThreadPoolExecutor(AT_ONCE, thread_name_prefix="request")


class _OneByOne(Executor):
    """Runs each submitted call immediately, in order: a local file is read faster than a thread starts."""

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
        # No result is ever pending, so no futures are needed.
        return iter([call(*args) for args in zip(*columns, strict=False)])


ONE_BY_ONE: Executor = _OneByOne()
