"""Blob columns: from bytes to what Lance writes, and from stored descriptors back to writable values.

A scan of a blob column returns descriptors, which say where the bytes lie in *this* table and can not be written to another
table. Code that copies rows must carry the bytes or the external reference, never the descriptor. Null, empty and bytes
stay distinct.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc
from lance import LanceDataset
from lance.blob import BlobType

from omnigraph.errors import BadRequest, StorageError
from omnigraph.storage.tables.lance_errors import Corrupt, translated
from omnigraph.storage.tables.lance_private import data_file_name

# The `kind` of a descriptor whose value lies outside the table; kinds 0, 1 and 2 are inline, packed and in its own file.
EXTERNAL = 3
#: The largest blob in bytes; no object store holds a larger object.
_LARGEST = 50 * 1024**4
#: The deadline of a read: this many seconds, plus the time for the blob's bytes at the speed of a very slow network.
READ_SECONDS = 120.0
_SLOWEST_BYTES_PER_SECOND = 256 * 1024

T = TypeVar("T")

_STORAGE = list(BlobType().storage_type)


def blob_columns(schema: pa.Schema) -> tuple[str, ...]:
    """The names of the blob columns of a table schema."""
    return tuple(field.name for field in schema if isinstance(field.type, BlobType))


def to_blobs(column: pa.Array, name: str) -> pa.Array:
    """A column of bytes as a blob column; a blob column is returned as it is."""
    if isinstance(column.type, BlobType):
        return column
    if not (pa.types.is_binary(column.type) or pa.types.is_large_binary(column.type) or pa.types.is_null(column.type)):
        raise BadRequest(
            f"blob column {name!r} needs bytes or blob values, not {column.type}; read it with blobs='values'"
        )
    return _blob_array(column.cast(pa.large_binary()))


def carry_blobs(dataset: LanceDataset, batch: pa.RecordBatch, names: tuple[str, ...]) -> pa.RecordBatch:
    """A scanned batch with `_rowaddr`, with its blob descriptors replaced by writable values."""
    for name in names:
        index = batch.schema.get_field_index(name)
        values = _values(dataset, name, batch.column(index), batch.column("_rowaddr"))
        batch = batch.set_column(index, pa.field(name, values.type, nullable=True), values)
    return batch


def read_blob_range(dataset: LanceDataset, name: str, address: int, start: int, end: int) -> bytes:
    """A byte range of the stored blob in one row; the rest is not read."""
    with translated(dataset.uri, f"read a blob of {name} in"):
        (file,) = dataset.take_blobs(name, addresses=[address])
        if file is None or start == end:
            return b""

        def read() -> bytes:
            with file:
                file.seek(start)
                return bytes(file.read(end - start))

        return in_time(read, end - start, dataset.uri)


def require_readable(dataset: LanceDataset, name: str, descriptors: pa.Array, addresses: pa.Array) -> int:
    """The total size in bytes of the stored blobs that descriptors name; `Corrupt` when a descriptor is impossible.

    A descriptor has no checksum. For a damaged one Lance might read every block of a blob of 2^47 bytes and never return.
    """
    kinds = descriptors.field("kind")
    stored = pc.and_(pc.fill_null(pc.less(kinds, EXTERNAL), False), descriptors.is_valid())
    if pc.any(pc.and_(pc.fill_null(pc.greater(kinds, EXTERNAL), False), descriptors.is_valid())).as_py():
        raise _untrue(dataset, name, "of an unknown kind")
    total = 0
    rows = zip(descriptors.filter(stored).to_pylist(), addresses.filter(stored).to_pylist(), strict=True)
    sizes: dict[tuple[int, int, int], int | None] = {}
    for value, address in rows:
        end = value["position"] + value["size"]
        if end > _LARGEST:
            raise _untrue(dataset, name, f"of {value['size']} bytes")
        file = (address >> 32, value["kind"], value["blob_id"])
        if file not in sizes:
            sizes[file] = _size_on_disk(dataset, name, *file)
        size = sizes[file]
        if size is not None and end > size:
            raise _untrue(dataset, name, f"up to byte {end} of a file of {size} bytes")
        total += value["size"]
    return total


def blob_file_name(blob_id: int) -> str:
    """The name of a blob file in the folder of its data file: the 32 bits of its id, lowest first."""
    return f"{blob_id:032b}"[::-1] + ".blob"


def _size_on_disk(dataset: LanceDataset, name: str, fragment_id: int, kind: int, blob_id: int) -> int | None:
    """The size of the local file that holds a blob; None when it is not local, or not found."""
    fragment = dataset.get_fragment(fragment_id)
    field_id = next(field.id() for field in dataset.lance_schema.fields() if field.name() == name)
    file = next((file for file in fragment.metadata.files if field_id in file.fields), None) if fragment else None
    if file is None:
        return None
    if kind == 0:
        return file.file_size_bytes or None
    line = dataset.uri if file.base_id is None else dataset.base_paths()[file.base_id].path
    place = Path(line) / "data" / data_file_name(file).removesuffix(".lance") / blob_file_name(blob_id)
    return place.stat().st_size if "://" not in line and place.is_file() else None


def _untrue(dataset: LanceDataset, name: str, what: str) -> Corrupt:
    return Corrupt(
        f"{dataset.uri} says that a value of {name} is a blob {what}, which can not be true: its data file is damaged; "
        "restore the file or run `omnigraph repair`",
        path=dataset.uri,
    )


def in_time(read: Callable[[], T], size: int, path: str) -> T:
    """The result of reading `size` bytes; `StorageError` when it takes longer than any working store would.

    A read that hangs can not be stopped: its thread is left behind.
    """
    done: list[T] = []
    failed: list[BaseException] = []

    def run() -> None:
        try:
            done.append(read())
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=run, name=f"read of {path}", daemon=True)
    thread.start()
    seconds = READ_SECONDS + size / _SLOWEST_BYTES_PER_SECOND
    thread.join(seconds)
    if failed:
        raise failed[0]
    if not done:
        raise StorageError(
            f"a read of {path} has not ended after {seconds:.0f} s; look at the disk or the store and try again, and if it "
            "does not end either run `omnigraph verify`",
            kind="transient",
            path=path,
        )
    return done[0]


def _values(dataset: LanceDataset, name: str, descriptors: pa.Array, addresses: pa.Array) -> pa.Array:
    external = pc.equal(descriptors.field("kind"), EXTERNAL)
    external = pc.and_(pc.fill_null(external, False), descriptors.is_valid())
    stored = pc.and_not(descriptors.is_valid(), external)
    data: list[bytes | None] = [None] * len(descriptors)
    wanted = pc.filter(addresses, stored)
    if len(wanted):
        size = require_readable(dataset, name, descriptors, addresses)
        with translated(dataset.uri, f"read blobs of {name} in"):
            places = wanted.to_pylist()
            read = in_time(lambda: dataset.read_blobs(name, addresses=places, preserve_order=True), size, dataset.uri)
        for position, (_, value) in zip(pc.indices_nonzero(stored).to_pylist(), read, strict=True):
            data[position] = value
    # A whole external object is stored with size 0, which would be refused as a range.
    ranged = pc.and_(external, pc.greater(descriptors.field("size"), 0))
    return _blob_array(
        pa.array(data, pa.large_binary()),
        uri=pc.if_else(external, descriptors.field("blob_uri"), None),
        position=pc.if_else(ranged, descriptors.field("position"), None),
        size=pc.if_else(ranged, descriptors.field("size"), None),
    )


def _blob_array(
    data: pa.Array, uri: pa.Array | None = None, position: pa.Array | None = None, size: pa.Array | None = None
) -> pa.Array:
    columns = [
        given if given is not None else pa.nulls(len(data), field.type)
        for field, given in zip(_STORAGE, (data, uri, position, size), strict=True)
    ]
    absent = pc.and_(columns[0].is_null(), columns[1].is_null())
    storage = pa.StructArray.from_arrays(columns, fields=_STORAGE, mask=absent)
    return pa.ExtensionArray.from_storage(BlobType(), storage)
