"""Snapshots, blob values and baselines of a served graph."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import orjson

from omnigraph.errors import BadRequest, BlobRangeNotSatisfiable, ResourceLimit, Unavailable
from omnigraph.graph.blobs import LONGEST_RANGE
from omnigraph.storage.outputs import Output


@dataclass(frozen=True)
class RemoteSnapshot:
    """The graph as of one commit, as a server tells it."""

    id: str
    branch: str
    version: int
    commit: str
    #: Each table: its type key, version, branch and number of rows.
    tables: tuple[Mapping[str, Any], ...]

    def to_dict(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "branch": self.branch,
            "version": self.version,
            "commit": self.commit,
            "tables": [dict(table) for table in self.tables],
        }


def snapshot_from(told: Mapping[str, Any]) -> RemoteSnapshot:
    """A snapshot from the library's form."""
    return RemoteSnapshot(**{**told, "tables": tuple(told["tables"])})


@dataclass(frozen=True)
class RemoteBlob:
    """One blob cell at one snapshot. Managed bytes are read from the server; an external value is only a reference."""

    kind: Literal["managed", "external"]
    length: int | None
    etag: str | None
    uri: str | None
    snapshot_id: str
    #: Reads the bytes from a start to an end (exclusive).
    _fetch: Callable[[int, int], bytes]

    def read(self, start: int = 0, end: int | None = None) -> bytes:
        """The bytes from start to end (exclusive); at most 4 MiB at once."""
        if self.length is None:
            raise BadRequest(f"this blob is external; fetch it from {self.uri}")
        stop = self.length if end is None else end
        if start < 0 or stop < start or stop > self.length:
            raise BlobRangeNotSatisfiable(
                f"bytes {start} to {stop} are not within the {self.length} bytes of this blob",
                start=start,
                end=stop,
                length=self.length,
            )
        if stop - start > LONGEST_RANGE:
            raise ResourceLimit(
                f"one range has at most {LONGEST_RANGE} bytes, not {stop - start}; read the blob in parts",
                resource="Blob read range bytes",
                limit=LONGEST_RANGE,
                actual=stop - start,
            )
        return self._fetch(start, stop) if stop > start else b""

    def __iter__(self) -> Iterator[bytes]:
        """All bytes, in ranges."""
        for start in range(0, self.length or 0, LONGEST_RANGE):
            yield self.read(start, min(start + LONGEST_RANGE, self.length or 0))


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
