"""Snapshots, blob values, pages of changes and baselines of a served graph."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import orjson

from omnigraph.changes.commits import CommitChanges
from omnigraph.client.requests import Ask
from omnigraph.errors import Unavailable
from omnigraph.graph.blobs import LONGEST_RANGE, end_of_range
from omnigraph.storage.outputs import Output
from omnigraph.wire.failures import LIBRARY


@dataclass(frozen=True)
class RemoteTable:
    """One table of a snapshot: which version of which dataset, on which Lance branch of it (None: main's)."""

    key: str
    path: str
    version: int
    branch: str | None
    row_count: int


@dataclass(frozen=True)
class RemoteSnapshot:
    """The graph as of one commit, as a server tells it."""

    id: str
    branch: str
    version: int
    commit: str
    #: The version of the on-disk format.
    stamp: int
    tables: tuple[RemoteTable, ...]

    def entries(self) -> list[RemoteTable]:
        """The tables, by type key."""
        return list(self.tables)

    def to_dict(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "branch": self.branch,
            "version": self.version,
            "commit": self.commit,
            "tables": [
                {"key": table.key, "version": table.version, "branch": table.branch, "rows": table.row_count}
                for table in self.tables
            ],
        }


def snapshot_from(told: Mapping[str, Any]) -> RemoteSnapshot:
    """A snapshot from the answer of a server."""
    tables = (
        RemoteTable(
            f"{found['entity_kind']}:{found['type_name']}",
            found["dataset_path"],
            found["published_dataset_version"],
            found.get("native_dataset_branch"),
            found["entity_count"],
        )
        for found in told["datasets"]
    )
    about = {name: value for name, value in told[LIBRARY].items() if name != "tables"}
    return RemoteSnapshot(**about, stamp=told["internal_schema_version"], tables=tuple(tables))


@dataclass(frozen=True)
class BlobPlace:
    """One blob cell at one snapshot. Managed bytes are read from the server; an external value is only a reference."""

    kind: Literal["managed", "external"]
    length: int | None
    etag: str | None
    uri: str | None
    snapshot_id: str
    #: Asks for the bytes from a start to an end (exclusive); None for an external value.
    _fetch: Callable[[int, int], Ask[bytes]] | None

    def part(self, start: int, end: int | None) -> Ask[bytes]:
        """Ask for the bytes from start to end (exclusive); at most 4 MiB at once."""
        stop = end_of_range(self.length, self.uri, start, end)
        assert self._fetch is not None, "a blob with a length is managed"
        return (yield from self._fetch(start, stop)) if stop > start else b""

    def ranges(self) -> Iterator[tuple[int, int]]:
        """The ranges that are all of its bytes."""
        length = self.length or 0
        for start in range(0, length, LONGEST_RANGE):
            yield start, min(start + LONGEST_RANGE, length)


@dataclass(frozen=True)
class RemoteBlob(BlobPlace):
    """A blob value of a `RemoteGraph`."""

    _run: Callable[[Ask[bytes]], bytes]

    def read(self, start: int = 0, end: int | None = None) -> bytes:
        """The bytes from start to end (exclusive); at most 4 MiB at once."""
        return self._run(self.part(start, end))

    def __iter__(self) -> Iterator[bytes]:
        """All bytes, in ranges."""
        return (self.read(start, end) for start, end in self.ranges())


@dataclass(frozen=True)
class AsyncBlob(BlobPlace):
    """A blob value of an `AsyncGraph`."""

    _run: Callable[[Ask[bytes]], Awaitable[bytes]]

    async def read(self, start: int = 0, end: int | None = None) -> bytes:
        """The bytes from start to end (exclusive); at most 4 MiB at once."""
        return await self._run(self.part(start, end))

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """All bytes, in ranges."""
        for start, end in self.ranges():
            yield await self.read(start, end)


@dataclass(frozen=True)
class ChangePages:
    """A page of what a commit did; `follow` when the caller wants all pages, which `page` asks for."""

    first: CommitChanges
    page: Callable[[str | None], Ask[CommitChanges]]
    follow: bool

    def rest(self, shown: CommitChanges) -> Ask[CommitChanges] | None:
        """The page behind another one; None behind the last."""
        return None if shown.next_page_token is None else self.page(shown.next_page_token)


@dataclass(frozen=True)
class RemoteBaseline:
    """A captured snapshot: its commit, how many entities were written, and the cursor of the changes behind it."""

    snapshot: RemoteSnapshot
    commit: str
    cursor: str
    entities: int

    def to_dict(self) -> dict[str, Any]:
        return {"snapshot_commit_id": self.commit, "resume_cursor": self.cursor}


def captured_baseline(pieces: Iterator[bytes], out: Any) -> tuple[int, dict[str, str]]:
    """Write the entities of a baseline to `out`; returns how many there were, and what its last line says."""
    held = _AllButTheLast(pieces)
    if out is None:
        for _ in held:
            pass
        held.entities = 0
    elif isinstance(out, str | os.PathLike):
        Output.parse(os.fspath(out)).write(held, durable=True)
    else:
        take = out if callable(out) else out.write
        for piece in held:
            take(piece)
    return held.entities, held.handshake()


class _AllButTheLast:
    """The lines of a stream except the last one, which is kept."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._last = b""
        self.entities = 0

    def __iter__(self) -> Iterator[bytes]:
        waiting = b""
        for piece in self._pieces:
            waiting += piece
            # The last whole line may be the handshake, so it waits until another one follows.
            cut = waiting.rfind(b"\n", 0, len(waiting) - 1) + 1
            if cut:
                self.entities += waiting.count(b"\n", 0, cut)
                yield waiting[:cut]
                waiting = waiting[cut:]
        self._last = waiting

    def handshake(self) -> dict[str, str]:
        """What the last line says: the commit and the cursor."""
        try:
            told: dict[str, str] = orjson.loads(self._last)["baseline"]
        except (orjson.JSONDecodeError, KeyError, TypeError):
            raise Unavailable("the baseline broke off before its cursor; take it again", seconds=1) from None
        return told
