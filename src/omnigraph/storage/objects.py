"""The one door to a graph's control files: `open_store(root)`."""

from __future__ import annotations

from datetime import timedelta

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
    """A client for reading whatever lies in the bucket of a root."""
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
