"""Copies files of a graph to another place, and keeps the inventory of a backup.

A task copies some files, digests them, compares the digests with those recorded when the files were written, and reads the
copies back. It may be repeated: a file gets its name only when it is complete.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from tempfile import SpooledTemporaryFile
from typing import Any

import orjson

from omnigraph import failpoints
from omnigraph.errors import NotFound, OmnigraphError, StorageError
from omnigraph.maintenance.verify_files import TASK_BYTES, TASK_FILES, chunks_of
from omnigraph.storage.digests import Digest, digest_chunks, digest_of, read_log
from omnigraph.storage.object_store import ObjectInfo, ObjectStore
from omnigraph.storage.objects import open_store
from omnigraph.storage.outputs import Output
from omnigraph.storage.root import Root

#: The folder of a backup's own files.
FOLDER = "__backup"
INVENTORY = f"{FOLDER}/files.json"
#: Copied files that do not have their final names yet, and the list of them.
NEXT = f"{FOLDER}/next"
PLAN = f"{FOLDER}/next.json"

#: Folders that belong to processes or to the place, or are made again when needed.
_LEFT_OUT = ("__locks/", "__recovery/", "__staging/", "__reclaim/", "__receipts/", "__forked/", f"{FOLDER}/")
_NOT_COPIED = frozenset({"__init_claim.json", "__root.json", "__digests.log"})
#: File names in these folders contain a number that is never reused.
_NAMED_ONCE = ("/data/", "/_deletions/", "/_indices/", "/_transactions/")

#: How many files a task copies concurrently.
_AT_ONCE = 8
#: Between two places on S3, up to this many bytes of a file are buffered in memory, the rest in a nameless file.
_IN_MEMORY = 8 << 20
_CHUNK = 8 << 20

failpoints.declare("backup.file_copied")


@dataclass(frozen=True, slots=True)
class KnownFile:
    """A file of a backup: its digest, and `mark`, the state of the original in the graph's store when it was copied."""

    digest: Digest
    mark: str


Inventory = Mapping[str, KnownFile]


def is_copied(path: str) -> bool:
    """Whether a file belongs to the graph, and not to a process, a place or a hint."""
    hint = path.endswith("/latest_version_hint.json") or path.rpartition("/")[2].startswith(".")
    return not path.startswith(_LEFT_OUT) and path not in _NOT_COPIED and not hint


def is_named_once(path: str) -> bool:
    """Whether a file of this name never changes: it is written before anything refers to it."""
    return any(folder in path for folder in _NAMED_ONCE)


def mark_of(info: ObjectInfo) -> str:
    """A text that changes whenever the file is written again."""
    return info.tag or f"{info.size}-{info.modified.timestamp():.6f}"


def is_unchanged(info: ObjectInfo, known: KnownFile | None) -> bool:
    """Whether a backup has this file unchanged."""
    if known is None or known.digest.size != info.size:
        return False
    return is_named_once(info.path) or known.mark == mark_of(info)


def encoded(files: Inventory) -> dict[str, list[Any]]:
    return {path: [file.digest.size, file.digest.hash, file.mark] for path, file in sorted(files.items())}


def decoded(value: Mapping[str, list[Any]]) -> dict[str, KnownFile]:
    return {path: KnownFile(Digest(size, hash), mark) for path, (size, hash, mark) in value.items()}


def read_inventory(store: ObjectStore) -> dict[str, KnownFile]:
    """The files of a backup by path; empty when no backup was completed."""
    data = store.get_or_none(INVENTORY)
    return {} if data is None else decoded(orjson.loads(data)["files"])


@dataclass(frozen=True, slots=True)
class CopySpec:
    """Files to copy: path, path below the target, size, and recorded digests (none: any content is accepted)."""

    source: Root
    target: Root
    files: tuple[tuple[str, str, int, tuple[Digest, ...]], ...]


@dataclass(frozen=True, slots=True)
class CopyResult:
    """The digests of the copied files by path, and the files that vanished or have another size."""

    copied: dict[str, Digest]
    gone: tuple[str, ...]

    @property
    def bytes(self) -> int:
        return sum(digest.size for digest in self.copied.values())


def copy_specs(
    source: Root, target: Root, files: Iterable[tuple[str, str, int, tuple[Digest, ...]]]
) -> Iterator[CopySpec]:
    """Group the files into tasks of bounded size, in the order of their paths."""
    group: list[tuple[str, str, int, tuple[Digest, ...]]] = []
    size = 0
    for file in sorted(files, key=lambda file: file[0]):
        if group and (size + file[2] > TASK_BYTES or len(group) >= TASK_FILES):
            yield CopySpec(source, target, tuple(group))
            group, size = [], 0
        group.append(file)
        size += file[2]
    if group:
        yield CopySpec(source, target, tuple(group))


def copy_files(spec: CopySpec) -> CopyResult:
    """Copy some files. A task, which runs in any process that can reach both places."""

    def one(file: tuple[str, str, int, tuple[Digest, ...]]) -> tuple[str, Digest | None]:
        path, there, size, recorded = file
        try:
            found = _copied(spec, path, there, size)
        except NotFound:
            return path, None
        except StorageError as error:
            if error.kind != "not_found":
                raise
            return path, None
        if found.size != size:
            return path, None
        if recorded and found not in recorded:
            if read_log(open_store(spec.source)).matches(path, found):
                # It was written again under its name after the point was captured.
                return path, None
            raise OmnigraphError(
                f"{path} of {spec.source.uri} is damaged: its bytes differ from what was written; "
                "see `omnigraph verify --deep`"
            )
        failpoints.hit("backup.file_copied")
        return path, found

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        results = list(pool.map(one, spec.files))
    copied = {path: found for path, found in results if found is not None}
    return CopyResult(copied, tuple(path for path, found in results if found is None))


def _copied(spec: CopySpec, path: str, there: str, size: int) -> Digest:
    """Copy one file and read the copy back; returns the digest."""
    read = _Digesting(chunks_of(spec.source, path, size))
    uri = f"{spec.target.uri}/{there}"
    output = Output(uri, Root(uri, spec.target.options))
    if spec.source.is_local or spec.target.is_local:
        output.write(read, parents=True)
    else:
        # The client that uploads chunks to S3 can not wait for another client that downloads them.
        with SpooledTemporaryFile(_IN_MEMORY) as spool:
            spool.writelines(read)
            spool.seek(0)
            output.write(iter(lambda: spool.read(_CHUNK), b""))
    found = read.digest()
    arrived = digest_chunks(chunks_of(spec.target, there, found.size))
    if arrived != found:
        raise OmnigraphError(
            f"{uri} is not what was written to it: {arrived.size} of {found.size} bytes; the store is at fault"
        )
    return found


class _Digesting:
    """Digests chunks while they are iterated."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        import xxhash

        self._chunks = chunks
        self._running, self._size = xxhash.xxh3_128(), 0

    def __iter__(self) -> Iterator[bytes]:
        for chunk in self._chunks:
            self._running.update(chunk)
            self._size += len(chunk)
            yield chunk

    def digest(self) -> Digest:
        return Digest(self._size, self._running.hexdigest()) if self._size else digest_of(b"")
