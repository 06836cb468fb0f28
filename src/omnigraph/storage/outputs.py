"""Output files for users: local or on S3. A file gets its name only when it is complete."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

import obstore
from obstore.exceptions import BaseError, PermissionDeniedError, UnauthenticatedError

from omnigraph import failpoints
from omnigraph.errors import BadRequest
from omnigraph.ids import new_ulid
from omnigraph.storage.object_errors import from_obstore, from_os
from omnigraph.storage.objects import s3_client
from omnigraph.storage.root import Root

#: Files that exist only in the folder of a graph: manifest, schema record, claim of an unfinished creation.
GRAPH_MARKS = ("__manifest", "__schema_state.json", "__init_claim.json")

#: The folders of a graph, below it; what others keep beside them is theirs.
_OWN_FOLDER = re.compile(r"_|nodes/|edges/")

failpoints.declare("outputs.written", "outputs.folder_written")


@dataclass(frozen=True)
class Output:
    """A place to write to: a local file or folder, or an object or prefix on S3."""

    uri: str
    root: Root

    @classmethod
    def parse(cls, uri: str | os.PathLike[str], storage_options: Mapping[str, str] | None = None) -> Output:
        """Parse a place as a user writes it: a path, file:// or s3://. Places inside a graph are refused."""
        text = os.fspath(uri)
        if "://" in text:
            root = Root.parse(text, storage_options if text.startswith("s3://") else None)
        else:
            root = Root(_local_place(text))
        if root.scheme == "memory":
            raise BadRequest(f"can not write to {text!r}; use a local path, file://… or s3://bucket/key")
        if root.scheme == "s3" and not root.prefix:
            raise BadRequest(f"{text!r} names a bucket only; write s3://bucket/key")
        graph = _graph_around(root)
        if graph is not None:
            raise BadRequest(
                f"can not write to {text!r}: it lies inside the graph {graph}, whose files belong to it alone; "
                "choose a place outside"
            )
        return cls(text, root)

    @property
    def path(self) -> Path:
        return Path(self.root.uri)

    def child(self, *names: str) -> Output:
        """A place below this one."""
        below = "/".join([self.root.uri, *names])
        return Output(below, Root(below, self.root.options))

    def write(self, chunks: Iterable[bytes], *, parents: bool = False, durable: bool = False) -> None:
        """Write a complete file, replacing any existing file; `parents` creates missing folders.

        `durable`: a local file is flushed to disk before it gets its name.
        """
        if self.root.is_local:
            if parents:
                with _local_errors(self.path):
                    self.path.parent.mkdir(parents=True, exist_ok=True)
            _write_file(self.path, chunks, durable)
            return
        stream = _Stream(chunks)
        try:
            obstore.put(s3_client(self.root), self.root.prefix, stream)
        except (BaseError, OSError, ValueError) as error:
            if stream.error is not None:
                # The content failed, not the store.
                raise stream.error from None
            raise from_obstore(error, action="write", location=self.uri, writes=True) from error

    @contextmanager
    def scratch(self) -> Iterator[Output]:
        """A temporary folder beside a local file that is to be written, removed at the end of the block."""
        folder = self.path.with_name(f".{self.path.name}.{new_ulid()}.runs")
        with _local_errors(self.path):
            folder.mkdir()
        try:
            yield Output(str(folder), Root(str(folder)))
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    @contextmanager
    def folder(self) -> Iterator[Output]:
        """A folder to fill: it gets its name when the block succeeds; on S3, a failure removes what was written."""
        if self.root.is_local:
            with _folder(self.path) as filled:
                yield Output(str(filled), Root(str(filled)))
            return
        client = s3_client(self.root)
        with _s3_errors(self.uri):
            found = next((batch for batch in obstore.list(client, self.root.prefix) if len(batch)), None)
        if found is not None:
            raise BadRequest(f"'{self.uri}' is not empty; choose another place, or remove what is there")
        try:
            yield self
        except BaseException:
            with suppress(BaseError, OSError):  # the first error says more
                for batch in obstore.list(client, self.root.prefix):
                    obstore.delete(client, [meta["path"] for meta in batch])
            raise


def _local_place(path: str) -> str:
    """The absolute path with symbolic links resolved; a device or a pipe keeps the path it was given by."""
    if not path:
        raise BadRequest("the place to write to is empty; give a local path, file://… or s3://bucket/key")
    try:
        if Path(path).exists() and not (Path(path).is_file() or Path(path).is_dir()):
            return os.path.abspath(path)  # noqa: PTH100 — resolving /dev/stdout would lose what it leads to
        return os.path.realpath(path)
    except ValueError as error:
        raise BadRequest(f"can not write to {path!r}: {error}") from None


def refuse_inside_graph(root: Root) -> None:
    """Raise BadRequest when a place for a graph, or for a backup of one, lies in a folder that another graph made for itself."""
    above = root.uri.rstrip("/").rpartition("/")[0]
    if root.scheme == "memory" or not above or above == "s3:/":
        return
    graph = _graph_around(replace(root, uri=above))
    if graph is not None and _OWN_FOLDER.match(root.uri, len(graph) + 1):
        raise BadRequest(
            f"{root.uri} lies inside the graph {graph}, whose files belong to it alone; choose a place outside"
        )


def _graph_around(root: Root) -> str | None:
    """The graph that contains a place, or is that place; None outside of every graph."""
    if root.is_local:
        place = Path(root.uri)
        for folder in (place, *place.parents):
            if any((folder / mark).exists() for mark in GRAPH_MARKS):
                return str(folder)
        return None
    client, parts = s3_client(root), root.prefix.split("/") if root.prefix else []
    with _s3_errors(root.uri):
        for depth in range(len(parts), -1, -1):
            manifest = "/".join([*parts[:depth], GRAPH_MARKS[0], ""])
            # A user who may not list a prefix has no graph there, but may be allowed to write below it.
            with suppress(PermissionDeniedError, UnauthenticatedError):
                if any(len(batch) for batch in obstore.list(client, manifest, chunk_size=1)):
                    return "/".join([f"s3://{root.bucket}", *parts[:depth]])
    return None


class _Stream:
    """An iterator that remembers the exception it raised, because the client that consumes it hides the cause."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks = iter(chunks)
        self.error: BaseException | None = None

    def __iter__(self) -> _Stream:
        return self

    def __next__(self) -> bytes:
        try:
            return next(self._chunks)
        except StopIteration:
            raise
        except BaseException as error:
            self.error = error
            raise


def _write_file(path: Path, chunks: Iterable[bytes], durable: bool) -> None:
    if path.is_dir():
        raise BadRequest(f"cannot write '{path}': it is a folder; name a file")
    if path.exists() and not path.is_file():
        # A device or a pipe can not be replaced, so it is written in place.
        with _local_errors(path), path.open("wb") as pipe:
            pipe.writelines(chunks)
        return
    temporary = path.with_name(f".{path.name}.{new_ulid()}.part")
    try:
        with _local_errors(path):
            file = temporary.open("xb")
        try:
            for chunk in chunks:
                with _local_errors(path):
                    file.write(chunk)
            with _local_errors(path):
                # Data that a full disk refuses may still be in the buffer.
                file.flush()
                if durable:
                    os.fsync(file.fileno())
        finally:
            with suppress(OSError):  # unflushed data has been reported already
                file.close()
        failpoints.hit("outputs.written")
        with _local_errors(path):
            temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def _folder(path: Path) -> Iterator[Path]:
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise BadRequest(f"'{path}' exists and is not an empty folder; choose another place, or remove it")
    temporary = path.with_name(f".{path.name}.{new_ulid()}.part")
    with _local_errors(path):
        temporary.mkdir()
    try:
        yield temporary
        failpoints.hit("outputs.folder_written")
        with _local_errors(path):
            os.rename(temporary, path)  # noqa: PTH104 — replaces an empty folder, which Path.replace does not promise
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


@contextmanager
def _local_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise from_os(error, action="write", location=str(path), writes=False) from error


@contextmanager
def _s3_errors(uri: str) -> Iterator[None]:
    try:
        yield
    except (BaseError, OSError, ValueError) as error:
        raise from_obstore(error, action="write", location=uri, writes=False) from error
