"""Input files that callers name for a load: local or on S3, read whole or by byte ranges. They are never written."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from glob import glob, has_magic
from pathlib import Path
from typing import Any

import obstore
from obstore.exceptions import BaseError

from omnigraph.errors import BadRequest, NotFound, OmnigraphError, StorageError
from omnigraph.storage.object_errors import from_obstore, from_os
from omnigraph.storage.objects import s3_client
from omnigraph.storage.root import Root


@dataclass(frozen=True)
class InputFile:
    """One input file: the caller's name for it, where it lies, and its size in bytes."""

    name: str
    root: Root
    #: The local path, or the key in the bucket of `root`.
    path: str
    size: int

    @property
    def suffixes(self) -> list[str]:
        """The lower-case parts after the dots of its name: `["jsonl", "gz"]` for `a/b.jsonl.gz`."""
        return self.path.rpartition("/")[2].lower().split(".")[1:]

    def read(self, start: int, end: int) -> bytes:
        """The bytes from `start` up to `end`, or to the end of the file."""
        end = min(end, self.size)
        if end <= start:
            return b""
        with _reading(self.name):
            if self.root.is_local:
                with Path(self.path).open("rb") as file:
                    file.seek(start)
                    return file.read(end - start)
            return bytes(obstore.get_range(s3_client(self.root), self.path, start=start, end=end))

    @contextmanager
    def opened(self) -> Iterator[Any]:
        """The file as a seekable binary stream."""
        with _reading(self.name):
            if self.root.is_local:
                with Path(self.path).open("rb") as file:
                    yield file
            else:
                yield obstore.open_reader(s3_client(self.root), self.path)


@contextmanager
def _reading(name: str) -> Iterator[None]:
    try:
        yield
    except OmnigraphError:
        raise
    except FileNotFoundError:
        raise NotFound(f"there is no file {name}") from None
    except OSError as error:
        raise from_os(error, action="read", location=name, writes=False) from error
    except BaseError as error:
        raise from_obstore(error, action="read", location=name, writes=False) from error


def find_files(given: str, endings: Sequence[str], storage_options: Mapping[str, str] | None = None) -> list[InputFile]:
    """The files that a path, folder, glob or `s3://` URI names, sorted; of a folder only files with one of the endings."""
    if given.startswith("s3://"):
        return _on_s3(given, endings, storage_options)
    path = Path(given.removeprefix("file://"))
    if path.is_dir():
        found = sorted(file for file in path.rglob("*") if _is_meant(file.relative_to(path).parts, endings))
        return [_local(file) for file in _required(found, f"folder {given} holds no file ending in {_listed(endings)}")]
    if path.exists() or not has_magic(str(path)):
        return [_local(path)]
    # Path.glob accepts no absolute pattern.
    matched = sorted(Path(name) for name in glob(str(path), recursive=True) if Path(name).is_file())  # noqa: PTH207
    return [_local(file) for file in _required(matched, f"no file matches {given}")]


def _is_meant(parts: tuple[str, ...], endings: Sequence[str]) -> bool:
    # Other programs name their auxiliary files like this.
    hidden = any(part.startswith((".", "_")) for part in parts)
    return not hidden and parts[-1].lower().endswith(tuple(endings))


def _required(found: list[Any], message: str) -> list[Any]:
    if not found:
        raise BadRequest(message)
    return found


def _listed(endings: Sequence[str]) -> str:
    return ", ".join(endings)


def _local(path: Path) -> InputFile:
    try:
        status = path.stat()
    except FileNotFoundError:
        raise NotFound(f"there is no file {path}") from None
    except OSError as error:
        raise StorageError(f"can not read {path}: {error.strerror}", kind="configuration", path=str(path)) from error
    if not path.is_file():
        raise BadRequest(f"{path} is neither a file nor a folder")
    if not os.access(path, os.R_OK):
        raise StorageError(f"can not read {path}: permission denied", kind="configuration", path=str(path))
    return InputFile(str(path), Root(os.path.realpath(path.parent)), os.path.realpath(path), status.st_size)


def _on_s3(given: str, endings: Sequence[str], storage_options: Mapping[str, str] | None) -> list[InputFile]:
    fixed = given.split("*")[0].split("?")[0].split("[")[0]
    prefix = fixed if fixed == given else fixed.rpartition("/")[0]
    root = Root.parse(prefix, storage_options)
    with _reading(given):
        listed = [
            (str(item["path"]), int(item["size"]))
            for batch in obstore.list(s3_client(root), root.prefix or None)
            for item in batch
        ]
        if not listed and fixed == given:
            try:
                listed = [(root.prefix, int(obstore.head(s3_client(root), root.prefix)["size"]))]
            except FileNotFoundError:
                raise NotFound(f"there is nothing at {given}") from None
    wanted = given.partition("://")[2].partition("/")[2]
    chosen = [
        (path, size)
        for path, size in sorted(listed)
        if path == wanted
        or (fixed != given and fnmatchcase(path, wanted))
        or (
            fixed == given
            and path.startswith(f"{wanted.rstrip('/')}/")
            and _is_meant(tuple(path.removeprefix(wanted).strip("/").split("/")), endings)
        )
    ]
    found = [InputFile(f"s3://{root.bucket}/{path}", root, path, size) for path, size in chosen]
    return _required(found, f"{given} holds no file ending in {_listed(endings)}")
