"""Keys on their way from the tasks that read to the tasks that check: by partition, through objects that all can reach.

Where all tasks run on one machine the objects are files of a scratch folder; elsewhere they lie in the graph's own storage,
under the job's scratch. A small load keeps them in memory. A task that is repeated writes the same object again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

import orjson
import pyarrow as pa

from omnigraph.storage.objects import ObjectStore, open_store
from omnigraph.storage.root import Root

Tables = Mapping[str, pa.Table]

_ALIGNMENT = 64


class Exchange(Protocol):
    """A place for tables by partition and role."""

    @property
    def partitions(self) -> int: ...

    def put(self, writer: str, partition: int, tables: Tables) -> None:
        """What one writer has for a partition, in place of what it put there before."""

    def get(self, partition: int) -> dict[str, pa.Table]:
        """What all writers have put for a partition, by role."""


@dataclass
class InMemory:
    """One partition, in this process."""

    partitions: int = 1
    _put: dict[str, Tables] = field(default_factory=dict)

    def put(self, writer: str, partition: int, tables: Tables) -> None:
        self._put[writer] = tables

    def get(self, partition: int) -> dict[str, pa.Table]:
        return together(list(self._put.values()))


@dataclass(frozen=True)
class InObjects:
    """Objects below a folder of a store; small enough to be sent to every task."""

    root: Root
    folder: str
    partitions: int

    @cached_property
    def _store(self) -> ObjectStore:
        return open_store(self.root)

    def __getstate__(self) -> dict[str, object]:
        return {"root": self.root, "folder": self.folder, "partitions": self.partitions}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state)

    def put(self, writer: str, partition: int, tables: Tables) -> None:
        self._store.put(f"{self.folder}/{partition:05d}/{writer}", encode(tables))

    def get(self, partition: int) -> dict[str, pa.Table]:
        found = self._store.list(f"{self.folder}/{partition:05d}")
        return together([decode(self._store.get(info.path)) for info in found])

    def clear(self) -> None:
        """Remove everything that was put."""
        self._store.delete_prefix(self.folder)


def together(listed: list[Tables]) -> dict[str, pa.Table]:
    """The tables of several writers, by role."""
    roles = dict.fromkeys(role for tables in listed for role in tables)
    return {role: pa.concat_tables([tables[role] for tables in listed if role in tables]) for role in roles}


def encode(tables: Tables) -> bytes:
    """Tables by role as bytes: a line of JSON with the length of each, then each as an Arrow stream."""
    streams: list[bytes] = []
    lengths = []
    for role, table in tables.items():
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        stream = sink.getvalue().to_pybytes()
        streams.append(stream + b"\0" * (-len(stream) % _ALIGNMENT))
        lengths.append([role, len(streams[-1])])
    head = orjson.dumps(lengths)
    # Arrow wants its buffers aligned, also when they are parts of one.
    return b"".join([head, b" " * (-(len(head) + 1) % _ALIGNMENT), b"\n", *streams])


def decode(data: bytes) -> dict[str, pa.Table]:
    """What `encode` was given."""
    head, _, _ = data.partition(b"\n")
    whole, start = pa.py_buffer(data), len(head) + 1
    tables = {}
    for role, length in orjson.loads(head):
        tables[role] = pa.ipc.open_stream(whole[start : start + length]).read_all()
        start += length
    return tables
