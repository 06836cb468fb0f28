"""Makes a fork find the files of the line it was made from, also after the graph was moved or copied.

Lance writes the absolute URI of every such line (a *base*) into each version of a fork, together with the line's name. The name
is enough: a fork only refers to lines of its own dataset, so the URIs follow from where the dataset lies now. A handle whose
bases point elsewhere is replaced by a handle with the same manifest and corrected URIs, which reads nothing; `relocated` makes
the same correction in the bytes of a version file.

The manifest is a protobuf message; its field 18 is a base: field 2 the name of the line (none for the main line), 4 its URI.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from lance import LanceDataset

from omnigraph.storage.root import Root
from omnigraph.storage.tables.lance_private import serialized_manifest
from omnigraph.storage.tables.location import Location, branch_path

_BASE, _NAME, _URI = 18, 2, 4
_LENGTH = struct.Struct("<I")
_FOOTER = struct.Struct("<QHH4s")  # offset of the message, Lance's versions, the magic
_MAGIC = b"LANC"

#: A field: its number, its bytes with the tag, and its content; the content is None for a number.
_Field = tuple[int, bytes, bytes | None]


def has_foreign_bases(dataset: LanceDataset, root: Root, path: str) -> bool:
    """Whether a version of the dataset at `path` refers to other lines outside of this root."""
    return any(base.path != _uri(root, path, base.name) for base in dataset.base_paths().values())


def with_bases_here(dataset: LanceDataset, root: Root, path: str) -> bytes:
    """The manifest of a handle with its bases under this root, for `LanceDataset(serialized_manifest=…)`."""
    return _message(serialized_manifest(dataset), root, path)


def relocated(version: bytes, root: Root, location: Location) -> bytes:
    """A version file with its bases under this root; the same bytes if they are there already.

    Everything before the manifest (indexes, the transaction) keeps its offset, so a reader that holds an older manifest of this
    version still finds it. Raises ValueError if the bytes are not a complete version file.
    """
    if len(version) < _FOOTER.size + _LENGTH.size:
        raise ValueError("it is too short")
    start, _, _, magic = _FOOTER.unpack_from(version, len(version) - _FOOTER.size)
    body = start + _LENGTH.size
    end = len(version) - _FOOTER.size
    if magic != _MAGIC or body > end or body + _LENGTH.unpack_from(version, start)[0] != end:
        raise ValueError("it is not whole")
    message = _message(version[body:end], root, location.path)
    return version[:start] + _LENGTH.pack(len(message)) + message + version[end:]


def _uri(root: Root, path: str, line: str | None) -> str:
    return root.lance_uri(path if line is None else branch_path(path, line))


def _message(data: bytes, root: Root, path: str) -> bytes:
    return b"".join(
        _tagged(_BASE, _base(content, root, path)) if number == _BASE and content is not None else raw
        for number, raw, content in _fields(data)
    )


def _base(data: bytes, root: Root, path: str) -> bytes:
    fields = list(_fields(data))
    name = next((content for number, _, content in fields if number == _NAME), None)
    uri = _uri(root, path, name.decode() if name else None)
    return b"".join(_tagged(_URI, uri.encode()) if number == _URI else raw for number, raw, _ in fields)


# --- protobuf ---------------------------------------------------------------------------------------------------------


def _fields(data: bytes) -> Iterator[_Field]:
    position = 0
    while position < len(data):
        start = position
        tag, position = _varint(data, position)
        content = None
        match tag & 7:
            case 0:
                _, position = _varint(data, position)
            case 1:
                position += 8
            case 2:
                length, position = _varint(data, position)
                content = data[position : position + length]
                position += length
            case 5:
                position += 4
            case kind:
                raise ValueError(f"a field of the unknown kind {kind}")
        if position > len(data):
            raise ValueError("it ends within a field")
        yield tag >> 3, data[start:position], content


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if position >= len(data):
            raise ValueError("it ends within a number")
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7


def _tagged(number: int, content: bytes) -> bytes:
    return _written(number << 3 | 2) + _written(len(content)) + content


def _written(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
