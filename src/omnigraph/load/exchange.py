"""Carries keys from the tasks that read to the tasks that check: by partition, through a place that all tasks can reach.

Where all tasks run on one machine, the place is a scratch folder; elsewhere it is the graph's own storage, below the job's
scratch. A small load keeps its keys in memory. A task that is repeated, or runs twice at once, writes the same content under
the same name. A later reading of its chunk writes under another name, and counts even if the earlier reading ends last.
Keys that a task puts after the load has ended are removed again. A writer makes one file for all partitions; each check reads
its part of the file.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Protocol

import numpy as np
import pyarrow as pa

from omnigraph.commit.staging_jobs import scratch_folder, take_back_when_over
from omnigraph.ids import new_ulid
from omnigraph.storage.files import InputFile
from omnigraph.storage.objects import ObjectStore, at_once, open_store
from omnigraph.storage.root import Root
from omnigraph.storage.scratch import in_scratch

Tables = Mapping[str, pa.Table]
#: Tables by partition.
Parts = Mapping[int, Tables]

_ROLE = b"role"


@dataclass(frozen=True, order=True)
class Writer:
    """The author of a file: a chunk or a column, and the number of this reading of it."""

    name: str
    reading: int = 0

    @property
    def file_name(self) -> str:
        return f"{self.name}.{self.reading}"

    @classmethod
    def of(cls, file_name: str) -> Writer:
        name, _, reading = file_name.rpartition(".")
        return cls(name, int(reading))


def latest(file_names: Iterable[str]) -> list[str]:
    """The file names that count: the last reading of each writer."""
    newest: dict[str, Writer] = {}
    for writer in sorted(Writer.of(name) for name in file_names):
        newest[writer.name] = writer
    return [writer.file_name for writer in newest.values()]


class Exchange(Protocol):
    """Holds tables by partition and role."""

    @property
    def partitions(self) -> int: ...

    def put(self, writer: Writer, parts: Parts) -> None:
        """Store the tables of one writer for all partitions, replacing its earlier tables; to be called once per writer."""

    def get(self, partition: int) -> dict[str, pa.Table]:
        """The tables that all writers have put for a partition, by role."""


@dataclass
class InMemory:
    """One partition, in the memory of this process."""

    partitions: int = 1
    _put: dict[str, Tables] = field(default_factory=dict)

    def put(self, writer: Writer, parts: Parts) -> None:
        self._put[writer.name] = parts.get(0, {})

    def get(self, partition: int) -> dict[str, pa.Table]:
        return together(self._put.values())


@dataclass(frozen=True)
class InFiles:
    """Files in a folder of this machine, one per writer; they are mapped into memory, not read."""

    folder: Path
    partitions: int

    def put(self, writer: Writer, parts: Parts) -> None:
        with in_scratch(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            # Names that begin with a dot are ignored, so the unfinished file of a task that died does no harm.
            unfinished = self.folder / f".{writer.file_name}.{new_ulid()}"
            with pa.OSFile(str(unfinished), "wb") as sink:
                write_parts(sink, parts, self.partitions)
            unfinished.rename(self.folder / writer.file_name)

    def get(self, partition: int) -> dict[str, pa.Table]:
        with in_scratch(self.folder):
            found = latest(path.name for path in self.folder.glob("[!.]*"))
            return together([self._part(name, partition) for name in found])

    def _part(self, name: str, partition: int) -> dict[str, pa.Table]:
        mapped = pa.memory_map(str(self.folder / name))
        mapped.seek(mapped.size() - bounds_size(self.partitions))
        start, end = _bounds(mapped.read(), partition)
        mapped.seek(start)
        return read_tables(pa.BufferReader(mapped.read_buffer(end - start)))


@dataclass(frozen=True)
class InObjects:
    """Objects in the scratch of a job, one per writer. This description is small enough to be sent to every task."""

    root: Root
    job_id: str
    partitions: int

    @cached_property
    def _store(self) -> ObjectStore:
        return open_store(self.root)

    def __getstate__(self) -> dict[str, object]:
        return {"root": self.root, "job_id": self.job_id, "partitions": self.partitions}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state)

    def put(self, writer: Writer, parts: Parts) -> None:
        sink = pa.BufferOutputStream()
        write_parts(sink, parts, self.partitions)
        self._store.put(f"{self._folder}/{writer.file_name}", sink.getvalue().to_pybytes())
        take_back_when_over(self._store, self.job_id)

    def get(self, partition: int) -> dict[str, pa.Table]:
        sizes = {info.path.rpartition("/")[2]: info.size for info in self._store.list(self._folder)}
        with at_once(self.root) as requests:
            read = partial(self._part, partition)
            return together(list(requests.map(read, [self._file(name, sizes[name]) for name in latest(sizes)])))

    def _part(self, partition: int, file: InputFile) -> dict[str, pa.Table]:
        start, end = _bounds(_all_bounds(file, self.partitions), partition)
        return read_tables(pa.BufferReader(file.read(start, end))) if end > start else {}

    def _file(self, name: str, size: int) -> InputFile:
        """The object `name` of the job as a file that can be read by byte ranges."""
        place = Root(f"{self.root.uri.rstrip('/')}/{self._folder}/{name}", self.root.options)
        return InputFile(name, place, place.uri if place.is_local else place.prefix, size)

    @property
    def _folder(self) -> str:
        return f"{scratch_folder(self.job_id)}/keys"


# --- one writer's file ------------------------------------------------------------------------------------------------

#: The bounds of the partitions in an object, by its address and size: a task reads a part of every object.
_known_bounds: dict[tuple[str, int], bytes] = {}
_MOST_KNOWN = 4096


def bounds_size(partitions: int) -> int:
    """How many bytes at the end of a file hold the bounds of its partitions."""
    return 8 * (partitions + 1)


def write_parts(sink: pa.NativeFile, parts: Parts, partitions: int) -> None:
    """Write the tables of all partitions one after the other, then the offset of each partition and the end of the last."""
    bounds = [sink.tell()]
    for partition in range(partitions):
        write_tables(sink, parts.get(partition, {}))
        bounds.append(sink.tell())
    sink.write(np.array(bounds, "<i8").tobytes())


def _bounds(written: bytes, partition: int) -> tuple[int, int]:
    start, end = np.frombuffer(written, "<i8")[partition : partition + 2].tolist()
    return start, end


def _all_bounds(file: InputFile, partitions: int) -> bytes:
    """The bounds at the end of an object, cached: an object that is written again has the same content."""
    key = (file.root.uri, file.size)
    if key not in _known_bounds:
        if len(_known_bounds) >= _MOST_KNOWN:
            _known_bounds.clear()
        _known_bounds[key] = file.read(file.size - bounds_size(partitions), file.size)
    return _known_bounds[key]


# --- tables as bytes --------------------------------------------------------------------------------------------------


def together(parts: Iterable[Tables]) -> dict[str, pa.Table]:
    """The tables of several writers, concatenated by role."""
    listed = list(parts)
    roles = dict.fromkeys(role for tables in listed for role in tables)
    return {role: pa.concat_tables([tables[role] for tables in listed if role in tables]) for role in roles}


def write_tables(sink: pa.NativeFile, tables: Tables) -> None:
    """Write tables as Arrow streams, one after the other; the role of each stands in the metadata of its schema."""
    for role, table in tables.items():
        schema = table.schema.with_metadata({_ROLE: role.encode()})
        with pa.ipc.new_stream(sink, schema) as writer:
            writer.write_table(table.cast(schema))


def read_tables(source: pa.NativeFile) -> dict[str, pa.Table]:
    """The tables that `write_tables` wrote, by role, without copying them."""
    tables = {}
    while source.tell() < source.size():
        table = pa.ipc.open_stream(source).read_all()
        tables[table.schema.metadata[_ROLE].decode()] = table.replace_schema_metadata(None)
    return tables
