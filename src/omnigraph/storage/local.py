"""The object store on local disk: every write happens under a lock, so that it can depend on the current content."""

from __future__ import annotations

import hashlib
import os
import random
import re
import shutil
import stat
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path

import obstore
from obstore.store import LocalStore

from omnigraph import failpoints
from omnigraph.errors import StorageError
from omnigraph.storage import file_lock
from omnigraph.storage.object_errors import from_os
from omnigraph.storage.object_store import ObjectInfo
from omnigraph.storage.obstore_objects import ObstoreObjects
from omnigraph.storage.root import Root, relative

failpoints.declare("objects.swap_compared")

# Can not collide with a branch's lock, whose name has no dot.
WRITE_LOCK = "__locks/.objects"

_LOCK_SECONDS = 30.0
# obstore may escape other characters.
_SAME_NAME = re.compile(r"[A-Za-z0-9_./-]+")
# The suffix of temporary files that obstore writes before renaming them.
_BEING_WRITTEN = re.compile(r"#\d+$")
# Two writes within one tick of the file system's clock look alike, so a file written this recently is read instead.
_AT_REST_NS = 1_000_000_000


class LocalObjects(ObstoreObjects):
    """Objects as files. obstore writes a temporary file and renames it, so a reader never sees a partial object.

    It has no compare-and-swap for files: here that is compare and rename under an flock that every write takes. A tag is a
    hash of the content, because inode numbers and file times can repeat within a few milliseconds.
    """

    def __init__(self, root: Root, files: LocalStore) -> None:
        super().__init__(root, files, files)
        #: By the path given to `sync`: the stamps of the files flushed there.
        self._flushed: dict[str, frozenset[int]] = {}

    def get_tagged(self, path: str) -> tuple[bytes, str]:
        data = self._content(path)
        return super().get_tagged(path) if data is None else (data, self._tag(data, None))

    def _content(self, path: str) -> bytes | None:
        """Read a file directly, ten times as fast as obstore; None when obstore must be used."""
        if not _SAME_NAME.fullmatch(path):
            return None
        try:
            data = self._root.local_path(path).read_bytes()
        except OSError:
            return None
        self._count("get")
        return data

    def stamp(self, path: str) -> str | None:
        """A stamp from the file's status if it has not changed recently, else its tag; None when there is no file."""
        found = self._status(path)
        if found is None:
            return None
        if time.time_ns() - max(found.st_mtime_ns, found.st_ctime_ns) < _AT_REST_NS:
            tagged = self.get_tagged_or_none(path)
            return None if tagged is None else tagged[1]
        return f"{found.st_ino}-{found.st_size}-{found.st_mtime_ns}-{found.st_ctime_ns}"

    def put(self, path: str, data: bytes) -> None:
        with self._writing(relative(path)):
            super().put(path, data)

    def create(self, path: str, data: bytes) -> str:
        with self._writing(relative(path)):
            return super().create(path, data)

    def swap(self, path: str, data: bytes, tag: str) -> str:
        with self._writing(relative(path)), self._request("swap", "replace", path, writes=True):
            key = self._key(path)
            if not self._has_tag(key, tag):
                raise StorageError(
                    f"can not replace {self._location(path)}: it has changed or is gone; read it and decide again",
                    kind="precondition",
                    path=self._location(path),
                )
            failpoints.hit("objects.swap_compared")
            obstore.put(self._client, key, data, use_multipart=False)
        return self._tag(data, None)

    def has_more_than(self, count: int, prefix: str) -> bool:
        """Avoids obstore, which lists at least a thousand files."""
        with self._files("list", "list", prefix, writes=False):
            return next(islice(_files_below(self._place(prefix)), count, None), None) is not None

    def delete(self, path: str) -> None:
        # obstore may escape other characters in names; and it reports no error for a missing file.
        is_there = self._root.local_path(path).is_file
        if not _SAME_NAME.fullmatch(path) or self._look(is_there, "delete", path):
            with self._writing(path):
                super().delete(path)

    def delete_all(self, paths: Iterable[str]) -> None:
        for path in paths:
            with self._files("delete", "delete", path):
                self._root.local_path(path).unlink(missing_ok=True)

    def delete_prefix(self, prefix: str) -> None:
        """Remove a folder with all its contents, including temporary files of killed writes."""
        place = self._place(prefix)
        if self._look(place.is_dir, "delete", prefix):
            with self._writing(prefix), self._files("delete", "delete", prefix):
                for entry in [place] if prefix else place.iterdir():
                    _remove(entry)

    def sync(self, path: str) -> None:
        """Flush a file, or every file of a folder (`""`: all), and the folders above it.

        Files that were flushed before and have not changed are skipped, so the cost follows what a commit adds.
        """
        root, place = self._place(""), self._place(path)
        with self._files("sync", "flush", path):
            known, seen = self._flushed.get(path, frozenset()), set()
            for part in place.rglob("*"):
                with suppress(FileNotFoundError):  # cleanup has removed it meanwhile
                    stamp = _stamp(part)
                    if stamp not in known:
                        _fsync(part)
                    seen.add(stamp)
            self._flushed[path] = frozenset(seen)
            _fsync(place)
            for folder in place.parents[: len(place.relative_to(root).parts)]:
                _fsync(folder)
            with suppress(PermissionError):  # a user who can not read the folder above did not create the root either
                _fsync(root.parent)

    def _tag(self, data: bytes, e_tag: str | None) -> str:
        return hashlib.sha256(data).hexdigest()

    def _listed_tag(self, e_tag: str | None) -> str | None:
        return None

    def _has_object(self, path: str) -> bool:
        return self._status(path) is not None

    def _status(self, path: str) -> os.stat_result | None:
        """The status of a file; None when there is no file."""
        place = self._root.local_path(path)
        self._count("head")
        try:
            found = os.stat(place)  # noqa: PTH116 — every query asks three times
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise from_os(error, action="look for", location=self._location(path), writes=False) from error
        return found if stat.S_ISREG(found.st_mode) else None

    def _below(self, prefix: str) -> Iterator[ObjectInfo]:
        try:
            yield from (info for info in super()._below(prefix) if info.path != WRITE_LOCK)
        except StorageError as error:
            # obstore treats a missing folder as empty, but fails for a folder below a file.
            if error.kind != "not_found" or self._look(self._place(prefix).is_dir, "list", prefix):
                raise

    def _place(self, prefix: str) -> Path:
        return self._root.local_path(prefix) if prefix else Path(self._root.uri)

    def _has_tag(self, key: str, tag: str) -> bool:
        try:
            return self._tag(bytes(obstore.get(self._client, key).bytes()), None) == tag
        except FileNotFoundError:
            return False

    @contextmanager
    def _writing(self, path: str) -> Iterator[None]:
        """Hold the write lock of this graph's control files, for one small write."""
        descriptor = self._lock(path)
        try:
            yield
        finally:
            file_lock.unlock(descriptor)

    def _lock(self, path: str) -> int:
        lock = self._root.local_path(WRITE_LOCK)
        deadline = time.monotonic() + _LOCK_SECONDS
        while True:
            try:
                descriptor = file_lock.try_lock(lock)
            except OSError as error:
                raise from_os(error, action="write", location=self._location(path), writes=False) from error
            if descriptor is not None:
                return descriptor
            if time.monotonic() > deadline:
                raise StorageError(
                    f"can not write {self._location(path)}: {lock} has been locked by another process for "
                    f"{_LOCK_SECONDS:.0f} s; look for a stopped one",
                    kind="transient",
                    path=self._location(path),
                )
            time.sleep(random.uniform(0.0005, 0.003))

    def _look(self, question: Callable[[], bool], action: str, path: str) -> bool:
        """Ask the file system a question before an action that is skipped when the answer is no."""
        try:
            return question()
        except OSError as error:
            raise from_os(error, action=action, location=self._location(path), writes=False) from error

    @contextmanager
    def _files(self, verb: str, action: str, path: str, *, writes: bool = True) -> Iterator[None]:
        """Count one request that is made without obstore, and turn its OSError into a StorageError."""
        with self._request(verb, action, path, writes=writes):
            try:
                yield
            except OSError as error:
                raise from_os(error, action=action, location=self._location(path), writes=writes) from error


def _remove(entry: Path) -> None:
    if entry.is_dir() and not entry.is_symlink():
        shutil.rmtree(entry)
    else:
        entry.unlink()


def _files_below(folder: Path) -> Iterator[str]:
    """The files below a folder at any depth, unordered, without obstore's temporary files."""

    def refuse(error: OSError) -> None:
        if not isinstance(error, FileNotFoundError | NotADirectoryError):
            raise error

    for at, _, names in os.walk(folder, onerror=refuse):
        yield from (f"{at}/{name}" for name in names if not _BEING_WRITTEN.search(name))


def _stamp(place: Path) -> int:
    """A number that changes when a file or folder changes; a number, because many are kept."""
    found = place.stat()
    return hash((found.st_ino, found.st_mtime_ns, found.st_ctime_ns, found.st_size))


def _fsync(place: Path) -> None:
    descriptor = os.open(place, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
