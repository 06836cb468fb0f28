"""The object store on `obstore`: for S3 and memory; `local.py` extends it for local disk."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import islice

import obstore
from obstore.store import ObjectStore as Client

from omnigraph.errors import StorageError
from omnigraph.storage.object_errors import from_obstore
from omnigraph.storage.object_store import ObjectInfo, ObjectStore
from omnigraph.storage.root import Root, relative

_CONDITIONAL_TRIES = 5
_GETS_AT_ONCE = 32
_DELETE_BATCH = 1000  # the most keys one S3 request can delete


class ObstoreObjects(ObjectStore):
    """Objects through two obstore clients: one that retries by itself, and one that never retries.

    Conditional writes use the second. If the answer to a first try is lost, an automatic second try would be refused because
    of the first, and a write that took effect would be reported as failed.
    """

    def __init__(self, root: Root, client: Client, once: Client) -> None:
        self._root = root
        self._client = client
        self._once = once
        self._counts: Counter[str] = Counter()
        self._counting = threading.Lock()

    @property
    def describe(self) -> str:
        return self._root.uri

    @property
    def counts(self) -> Counter[str]:
        return self._counts

    def get_tagged(self, path: str) -> tuple[bytes, str]:
        with self._request("get", "read", path):
            result = obstore.get(self._client, self._key(path))
            data = bytes(result.bytes())
            return data, self._tag(data, result.meta["e_tag"])

    def get_many(self, paths: Sequence[str]) -> Iterable[bytes | None]:
        if self._root.scheme != "s3":
            return super().get_many(paths)
        with ThreadPoolExecutor(_GETS_AT_ONCE, thread_name_prefix="get") as requests:
            return list(requests.map(self.get_or_none, paths))

    def stamp(self, path: str) -> str | None:
        try:
            with self._request("head", "look for", path):
                return obstore.head(self._client, self._key(path))["e_tag"]
        except StorageError as error:
            if error.kind != "not_found":
                raise
            return None

    def stamps(self, paths: Sequence[str]) -> tuple[str | None, ...]:
        if self._root.scheme != "s3":
            return super().stamps(paths)
        with ThreadPoolExecutor(_GETS_AT_ONCE, thread_name_prefix="head") as requests:
            return tuple(requests.map(self.stamp, paths))

    def put(self, path: str, data: bytes) -> None:
        with self._request("put", "write", path, writes=True):
            # One request whatever the size: a multipart upload needs three and is not atomic everywhere.
            obstore.put(self._client, self._key(path), data, use_multipart=False)

    def create(self, path: str, data: bytes) -> str:
        def attempt() -> str:
            with self._request("create", "create", path, writes=True):
                return self._tag(data, obstore.put(self._once, self._key(path), data, mode="create")["e_tag"])

        return _persist(attempt)

    def swap(self, path: str, data: bytes, tag: str) -> str:
        def attempt() -> str:
            with self._request("swap", "replace", path, writes=True):
                return self._tag(data, obstore.put(self._once, self._key(path), data, mode={"e_tag": tag})["e_tag"])

        return _persist(attempt)

    def list(self, prefix: str = "") -> list[ObjectInfo]:
        return sorted(self._below(prefix), key=lambda info: info.path)

    def exists(self, path: str) -> bool:
        return (path != "" and self._has_object(path)) or next(self._below(path), None) is not None

    def has_more_than(self, count: int, prefix: str) -> bool:
        return next(islice(self._below(prefix), count, None), None) is not None

    def delete(self, path: str) -> None:
        try:
            with self._request("delete", "delete", path, writes=True):
                obstore.delete(self._client, self._key(path))
        except StorageError as error:
            if error.kind != "not_found":
                raise

    def delete_all(self, paths: Iterable[str]) -> None:
        self._delete_keys([self._key(path) for path in paths], "")

    def delete_prefix(self, prefix: str) -> None:
        self._delete_keys([self._key(info.path) for info in self._below(prefix)], prefix)

    def _delete_keys(self, keys: Sequence[str], prefix: str) -> None:
        for start in range(0, len(keys), _DELETE_BATCH):
            with self._request("delete", "delete", prefix, writes=True):
                obstore.delete(self._client, keys[start : start + _DELETE_BATCH])

    def sync(self, path: str) -> None:
        """Does nothing: S3 acknowledges only durable writes, and memory is never durable."""

    def _tag(self, data: bytes, e_tag: str | None) -> str:
        """The tag of an object: the ETag of the store."""
        if e_tag is None:
            raise StorageError(
                f"{self.describe} gives no ETag, so nothing can be replaced safely; use a store that does",
                kind="configuration",
                path=self.describe,
            )
        return e_tag

    def _has_object(self, path: str) -> bool:
        return self.stamp(path) is not None

    def _below(self, prefix: str) -> Iterator[ObjectInfo]:
        """The objects below a prefix, as the store lists them."""
        base = self._root.prefix + "/" if self._root.prefix else ""
        key = self._key(prefix) if prefix else self._root.prefix
        with self._request("list", "list", prefix):
            for batch in obstore.list(self._client, key or None):
                for meta in batch:
                    # S3 consoles put an empty object at `folder/`, which is listed as the folder itself.
                    if key and not meta["path"].startswith(key + "/"):
                        continue
                    yield ObjectInfo(
                        meta["path"].removeprefix(base),
                        meta["size"],
                        self._listed_tag(meta["e_tag"]),
                        meta["last_modified"],
                    )

    def _listed_tag(self, e_tag: str | None) -> str | None:
        """The tag of an object as given in a listing."""
        return e_tag

    def _key(self, path: str) -> str:
        checked = relative(path)
        return f"{self._root.prefix}/{checked}" if self._root.prefix else checked

    def _location(self, path: str) -> str:
        return f"{self.describe.rstrip('/')}/{path}".rstrip("/")

    def _count(self, verb: str) -> None:
        with self._counting:
            self._counts[verb] += 1

    @contextmanager
    def _request(self, verb: str, action: str, path: str, *, writes: bool = False) -> Iterator[None]:
        """Count one request, and turn its failure into a StorageError."""
        self._count(verb)
        try:
            yield
        except (obstore.exceptions.BaseError, OSError, ValueError) as error:
            raise from_obstore(error, action=action, location=self._location(path), writes=writes) from error


def _persist(attempt: Callable[[], str]) -> str:
    """Repeat a conditional write while the store rejects it temporarily; any other error is raised to the caller."""
    for tries in range(1, _CONDITIONAL_TRIES):
        try:
            return attempt()
        except StorageError as error:
            if error.kind != "transient":
                raise
            time.sleep(random.uniform(0.02, 0.1) * 2**tries)
    return attempt()
