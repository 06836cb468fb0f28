"""Which files a write has made, how large each must be, and whether each is complete on disk.

Lance's local writer can lose the error of the last write to a file: on a disk that is briefly full it reports success for a
file that ends early. So before a staged write is committed, and before a table's new version is published, every new file
is compared with what Lance reports about it. Object stores store whole objects or nothing, so only local graphs are
checked.

    data          the size is in the fragment's metadata
    blob          a file beside a data file; blob descriptors say up to which byte it is used
    deletions     no size is recorded: the file is read back, and must have the end that its format gives it
    index         staged: one file with its size; of a version: the folder of one segment with the total size
    manifest      the version itself; its footer and the lengths of its sections say where it ends
    transaction   a copy of a section of the manifest, so it has the length of that section
"""

from __future__ import annotations

import json
import os
import re
import stat
import struct
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc
from lance import LanceDataset, LanceFragment, LanceOperation, Transaction
from lance.fragment import DeletionFile, FragmentMetadata

from omnigraph.errors import StorageError
from omnigraph.storage.root import Root
from omnigraph.storage.tables.blobs import blob_columns, blob_file_name
from omnigraph.storage.tables.lance_errors import translated
from omnigraph.storage.tables.lance_private import data_file_name
from omnigraph.storage.tables.location import Location
from omnigraph.storage.tables.staged import Rewrites, Staged
from omnigraph.storage.tables.version_files import version_file, version_name

FileKind = Literal["data", "blob", "deletions", "index", "manifest", "transaction"]

#: The kinds of blob descriptors whose bytes lie in a file beside the data file: 1 packed with others, 2 in its own file.
_IN_BLOB_FILES = (1, 2)
_FOOTER = struct.Struct("<QHH4s")
_MAGIC = b"LANC"
_LENGTH = struct.Struct("<I")
_TRANSACTION_FILE = re.compile(rb"[0-9]+-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\.txn")
_ARROW_MAGIC = b"ARROW1"
_ARROW_END = struct.Struct("<i6s")
#: The first bytes of a Roaring bitmap without run containers. Other programs may write other forms, which are not checked.
_BITMAP_COOKIE = struct.pack("<I", 12346)
_ARRAY_CONTAINER_LIMIT = 4096
_BITMAP_CONTAINER_BYTES = 8192


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """One file (for `index` of a version: one folder) that a write has made.

    `path` is below the graph root. `size` is in bytes, None if only the content tells; `marks` is the number of deleted
    rows that a deletion file must hold.
    """

    path: str
    kind: FileKind
    size: int | None
    marks: int | None = None


class ShortFile(StorageError):
    """Lance reported this file as written, but it is incomplete. `expected` and `found` are in bytes, None if unknown."""

    def __init__(self, message: str, *, path: str, expected: int | None, found: int | None) -> None:
        super().__init__(message, kind="permanent", path=path)
        self.expected = expected
        self.found = found


# --- the walk ---------------------------------------------------------------------------------------------------------


def files_of_staged(staged: Staged) -> Iterator[WrittenFile]:
    """The files that a staged write has made. Its blob files are known only after the commit: see `files_of_version`."""
    location, work = staged.location, staged.work
    if isinstance(work, Rewrites):
        for result in work.results:
            described: dict[str, Any] = json.loads(result.json())  # type: ignore[attr-defined]
            for fragment in described["new_fragments"]:
                for file in fragment["files"]:
                    yield _data_file(location, file["path"], file["file_size_bytes"])
        return
    match work.operation if isinstance(work, Transaction) else None:
        case (
            LanceOperation.Append(fragments) | LanceOperation.Overwrite(_, fragments) | LanceOperation.Merge(fragments)
        ):
            yield from _data_files(location, fragments)
        case LanceOperation.Update() as update:
            yield from _data_files(location, update.new_fragments or [])
            changed = update.updated_fragments or []
            yield from _data_files(location, changed if update.fields_modified else [])
            yield from _deletion_files(location, changed, staged.read_version)
        case LanceOperation.Delete(updated_fragments):
            yield from _deletion_files(location, updated_fragments, staged.read_version)
        case LanceOperation.CreateIndex(new_indices):
            for index in new_indices:
                for part in index.files or []:
                    path = f"{location.dataset_path}/_indices/{index.uuid}/{part.path}"
                    yield WrittenFile(path, "index", part.size_bytes)


def files_of_version(
    root: Root, location: Location, dataset: LanceDataset, since: LanceDataset | None = None
) -> Iterator[WrittenFile]:
    """The files on this line that a version has and the older version `since` has not; without `since`, all of them.

    The version's manifest and transaction file come first, for local graphs only. If the manifest is incomplete, its `size`
    is None and no other file follows.
    """
    with translated(str(location), f"read version {dataset.version} of"):
        if root.is_local:
            yield from version_files(root, location, dataset.version)
        known = _names(since)
        added = [part for part in dataset.get_fragments() if _names_of(part.metadata) - known]
        for part in added:
            metadata = part.metadata
            yield from (file for file in _data_files(location, [metadata]) if _name(file.path) not in known)
            marks = metadata.deletion_file
            if marks is not None and marks.base_id is None:
                file = _deletion_file(location, metadata.id, marks)
                if _name(file.path) not in known:
                    yield file
        for column in blob_columns(dataset.schema) if added else ():
            yield from _blob_files(root, location, dataset, added, column, known)
        for index in dataset.describe_indices():
            for segment in index.segments:
                if segment.base_id is None and segment.uuid not in known:
                    yield WrittenFile(
                        f"{location.dataset_path}/_indices/{segment.uuid}", "index", segment.size_bytes or None
                    )


def version_files(root: Root, location: Location, version: int) -> list[WrittenFile]:
    """The manifest of a version on local disk, and its transaction file; only the manifest if it is incomplete."""
    path = version_file(location, version)
    found = _manifest_extent(f"{root.uri}/{path}")
    if found is None:
        return [WrittenFile(path, "manifest", None)]
    manifest = WrittenFile(path, "manifest", len(found.content))
    name = found.transaction_name
    if name is None or found.last_section is None:
        return [manifest]
    transaction = f"{location.dataset_path}/_transactions/{name}"
    return [manifest, WrittenFile(transaction, "transaction", _transaction_size(root, transaction, found.last_section))]


def _transaction_size(root: Root, path: str, section: bytes) -> int | None:
    """The required size of a transaction file; None when there is no such file, or the section is not its copy.

    Other programs may write no section for the transaction: then the last section is that of the indexes.
    """
    try:
        content = root.local_path(path).read_bytes()
    except FileNotFoundError:
        return None
    return len(section) if section.startswith(content) else None


def _names(dataset: LanceDataset | None) -> set[str]:
    if dataset is None:
        return set()
    names = {name for part in dataset.get_fragments() for name in _names_of(part.metadata)}
    return names | {segment.uuid for index in dataset.describe_indices() for segment in index.segments}


def _names_of(fragment: FragmentMetadata) -> set[str]:
    names = {_name(data_file_name(file)) for file in fragment.files}
    if fragment.deletion_file is not None:
        names.add(_name(fragment.deletion_file.path(fragment.id)))
    return names


def _name(path: str) -> str:
    return path.rpartition("/")[2]


def _data_files(location: Location, fragments: Iterable[FragmentMetadata]) -> Iterator[WrittenFile]:
    for fragment in fragments:
        for file in fragment.files:
            if file.base_id is None:
                yield _data_file(location, data_file_name(file), file.file_size_bytes)


def _data_file(location: Location, path: str, size: int | None) -> WrittenFile:
    return WrittenFile(f"{location.dataset_path}/data/{path}", "data", size or None)


def _deletion_files(
    location: Location, fragments: Iterable[FragmentMetadata], read_version: int | None
) -> Iterator[WrittenFile]:
    for fragment in fragments:
        marks = fragment.deletion_file
        if marks is not None and marks.base_id is None and marks.read_version == read_version:
            yield _deletion_file(location, fragment.id, marks)


def _deletion_file(location: Location, fragment_id: int, marks: DeletionFile) -> WrittenFile:
    path = f"{location.dataset_path}/{marks.path(fragment_id)}"
    return WrittenFile(path, "deletions", None, marks.num_deleted_rows)


def _blob_files(
    root: Root,
    location: Location,
    dataset: LanceDataset,
    fragments: Sequence[LanceFragment],
    column: str,
    known: Collection[str],
) -> Iterator[WrittenFile]:
    """The blob files beside new data files, with the last byte that the descriptors of one blob column name as size."""
    field_id = next(field.id() for field in dataset.lance_schema.fields() if field.name() == column)
    for fragment in fragments:
        holder = next((file for file in fragment.metadata.files if field_id in file.fields), None)
        if holder is None or holder.base_id is not None or _name(holder.path) in known:
            continue
        folder = f"{location.dataset_path}/data/{holder.path.removesuffix('.lance')}"
        if root.is_local and not root.local_path(folder).is_dir():
            continue  # All values are small and lie in the data file.
        ends: dict[int, int] = {}
        for batch in dataset.scanner(columns=[column], fragments=[fragment]).to_batches():
            described = batch.column(column)
            beside = pc.is_in(described.field("kind"), pa.array(_IN_BLOB_FILES, pa.uint8()))
            for value in described.filter(pc.and_(pc.fill_null(beside, False), described.is_valid())).to_pylist():
                end = value["position"] + value["size"]
                ends[value["blob_id"]] = max(end, ends.get(value["blob_id"], 0))
        for blob_id, end in sorted(ends.items()):
            yield WrittenFile(f"{folder}/{blob_file_name(blob_id)}", "blob", end)


# --- the check --------------------------------------------------------------------------------------------------------


def require_whole(root: Root, files: Iterable[WrittenFile]) -> None:
    """Raise `ShortFile` for the first incomplete file. Files in an object store are not checked."""
    if root.is_local:
        for file in files:
            _require(root, file)


@dataclass(frozen=True, slots=True)
class VersionBytes:
    """The files by which a commit defines a version: the manifest as read back, and the transaction file.

    `transaction` is the copy inside the manifest; None when there is no such file.
    """

    manifest: bytes
    transaction: bytes | None


def require_whole_version(line: str, version: int, transaction: str | None = None) -> VersionBytes:
    """Raise `ShortFile` when the manifest of a version just committed, or its transaction file, is incomplete.

    `line`: the local folder of the dataset or of its branch. `transaction`: the name of the transaction file, if known;
    readers need only the copy in the manifest, so a missing file is no error.
    """
    place = f"{line}/_versions/{version_name(version)}"
    found = _manifest_extent(place)
    if found is None:
        raise _short(place, None, _size(place))
    if transaction is None or found.last_section is None:
        return VersionBytes(found.content, None)
    beside = f"{line}/_transactions/{transaction}"
    size = _size(beside)
    if size is None:
        return VersionBytes(found.content, None)
    if size != len(found.last_section):
        raise _short(beside, len(found.last_section), size)
    return VersionBytes(found.content, found.last_section)


def _require(root: Root, file: WrittenFile) -> None:
    # Not `local_path`, which validates user input: these are Lance's names, each used once.
    place = f"{root.uri}/{file.path}"
    found = _size(place)
    if file.kind == "manifest":
        whole = file.size is not None and found == file.size
    elif file.kind == "deletions":
        whole = bool(found) and _is_whole_deletion_file(place, file.marks)
    elif file.kind in ("blob", "index"):
        # A blob file may have bytes that no descriptor names, and an index folder may have files that Lance does not list.
        whole = found is not None and found >= (file.size or 0)
    elif file.kind == "transaction":
        whole = file.size is None or found == file.size
    else:
        whole = found is not None and file.size in (None, found)
    if not whole:
        raise _short(file.path, file.size, found)


def _short(path: str, expected: int | None, found: int | None) -> ShortFile:
    has = "is missing" if found is None else f"has {found} bytes"
    of = "" if expected is None else f" of {expected}"
    return ShortFile(
        f"{path} {has}{of} after it was written: the disk was full or failed for a moment; nothing was changed, free some "
        "space and repeat the write",
        path=path,
        expected=expected,
        found=found,
    )


def _size(place: str) -> int | None:
    """The size of a file, or of all files in a folder, in bytes; None when it does not exist."""
    try:
        found = os.stat(place)  # noqa: PTH116 — on the way of every commit
    except (FileNotFoundError, NotADirectoryError):
        return None
    if not stat.S_ISDIR(found.st_mode):
        return found.st_size
    return sum(part.stat().st_size for part in Path(place).rglob("*") if part.is_file())


def _content(place: str) -> bytes:
    """The bytes of a file; four times as fast as a file object."""
    descriptor = os.open(place, os.O_RDONLY | os.O_CLOEXEC)
    try:
        size = os.fstat(descriptor).st_size
        data = os.read(descriptor, size)
        while len(data) < size and (more := os.read(descriptor, size - len(data))):
            data += more
        return data
    finally:
        os.close(descriptor)


@dataclass(frozen=True, slots=True)
class _Extent:
    """A complete manifest, and its last section before the manifest proper, which is the transaction.

    `start`: the offset of the manifest proper.
    """

    content: bytes
    start: int
    last_section: bytes | None

    @property
    def transaction_name(self) -> str | None:
        """The name of the transaction file; None when the manifest names none."""
        named = _TRANSACTION_FILE.findall(self.content, self.start)
        return named[-1].decode() if named else None


def _manifest_extent(place: str) -> _Extent | None:
    """A manifest checked against the sizes it contains; None when the file is missing or ends early.

    A section is a length and as many bytes: indexes and the transaction if there are any, then the manifest proper, to
    which the footer points.
    """
    try:
        data = _content(place)
    except FileNotFoundError:
        return None
    size = len(data)
    if size < _FOOTER.size + _LENGTH.size:
        return None
    start, _, _, magic = _FOOTER.unpack_from(data, size - _FOOTER.size)
    if magic != _MAGIC or start + _LENGTH.size + _FOOTER.size > size:
        return None
    body = start + _LENGTH.size
    if body + _LENGTH.unpack_from(data, start)[0] + _FOOTER.size != size:
        return None
    last, position = None, 0
    while position < start:
        last = _LENGTH.unpack_from(data, position)[0]
        position += _LENGTH.size + last
    if position != start:
        return None
    return _Extent(data, body, None if last is None else data[start - last : start])


def _is_whole_deletion_file(place: str, marks: int | None) -> bool:
    """Whether a deletion file is complete: it has the footer of an Arrow file, or the expected marks of a bitmap."""
    data = _content(place)
    if place.endswith(".bin"):
        other_form = len(data) > 8 and data[:4] != _BITMAP_COOKIE
        return other_form or _marks_in_bitmap(data) == marks
    if len(data) < _ARROW_END.size + len(_ARROW_MAGIC) or not data.startswith(_ARROW_MAGIC):
        return False
    footer, magic = _ARROW_END.unpack_from(data, len(data) - _ARROW_END.size)
    return bool(magic == _ARROW_MAGIC and 0 < footer < len(data))


def _marks_in_bitmap(data: bytes) -> int | None:
    """The number of marks in a Roaring bitmap without run containers, the form Lance writes; None if it is cut off."""
    if len(data) < 8:
        return None
    containers = _LENGTH.unpack_from(data, 4)[0]
    header = 8 + 8 * containers
    if len(data) < header:
        return None
    sizes = [size + 1 for _, size in struct.iter_unpack("<HH", data[8 : 8 + 4 * containers])]
    body = sum(2 * size if size <= _ARRAY_CONTAINER_LIMIT else _BITMAP_CONTAINER_BYTES for size in sizes)
    return sum(sizes) if len(data) == header + body else None
