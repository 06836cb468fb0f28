"""Keys by role and partition. A role is the purpose of a key; equal keys of one role meet in one partition.

id <type>          ids that may equal another id, and `order`
src|dst <edge>     ends of edges
unique<n> <type>   the columns of a unique rule, with the row's id
refused <node>     ids of nodes whose lines were refused
goneN-…            the same for stored rows that the load replaces, as found by its check number N
keptN-id|src|unique<n> <type>   the same for all stored rows, handed out when looking them up one by one would cost more
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.language.schema.catalog import EdgeType
from omnigraph.load.batches import ORDER
from omnigraph.load.kept import NULLS
from omnigraph.load.parsed import Entity
from omnigraph.validation.sets import comparable

_MIX = np.uint64(0x9E3779B97F4A7C15)


def is_counted(edge: EdgeType) -> bool:
    """Whether the cardinality of an edge type bounds the number of edges per source."""
    return edge.cardinality.minimum > 0 or edge.cardinality.maximum is not None


def roles(entity: Entity, keys: pa.Table) -> Iterator[tuple[str, pa.Table, pa.Array]]:
    """The keys of a batch by role, each with the texts whose hash decides the partition."""
    may_meet = keys["may_meet"]
    met = keys if pc.all(may_meet, min_count=0).as_py() else keys.filter(may_meet)
    if met.num_rows:
        besides = [NULLS] if NULLS in keys.column_names else []
        yield f"id {entity.type_key}", met.select(["id", ORDER, *besides]), _flat(met["id"])
    if isinstance(entity, EdgeType) and keys.num_rows:
        yield f"src {entity.type_key}", keys.select(["src", ORDER]), _flat(keys["src"])
        yield f"dst {entity.type_key}", keys.select(["dst", ORDER]), _flat(keys["dst"])
    yield from unique_roles(entity, keys, [ORDER])


def unique_roles(
    entity: Entity, rows: pa.Table, besides: list[str], prefix: str = ""
) -> Iterator[tuple[str, pa.Table, pa.Array]]:
    """The values of every unique rule, without rows that have a null in its columns."""
    for number, columns in enumerate(entity.uniques):
        names = list(dict.fromkeys(["id", *columns, *besides]))
        given = rows.select(names)
        for name in columns:
            given = given.filter(pc.is_valid(given[name]))
        if given.num_rows:
            yield f"{prefix}unique{number} {entity.type_key}", given, value_texts(given, columns)


def value_texts(rows: pa.Table, columns: tuple[str, ...]) -> pa.Array:
    """One text per row for the values of some columns: equal for equal values; different values may share a text."""
    plain = comparable(rows.select(list(dict.fromkeys(columns))), columns)
    texts = [_flat(plain[name].cast(pa.string())) for name in columns]
    return texts[0] if len(texts) == 1 else pc.binary_join_element_wise(*texts, "\x1f")


def partition_of(texts: pa.Array, partitions: int) -> npt.NDArray[np.int64]:
    """The partition of each text, by a hash of its first and last bytes and its length; it only has to spread well."""
    count = len(texts)
    if partitions == 1 or not count:
        return np.zeros(count, np.int64)
    offsets = np.frombuffer(texts.buffers()[1], np.int32)[texts.offset : texts.offset + count + 1].astype(np.int64)
    stored = texts.buffers()[2]
    # Eight bytes of padding on both sides, so that eight bytes can be read around any text.
    padded = b"\0" * 8 + (stored.to_pybytes() if stored is not None else b"") + b"\0" * 8
    eights: npt.NDArray[np.uint64] = np.ndarray((len(padded) - 7,), np.uint64, padded, 0, (1,))
    starts, ends = offsets[:-1] + 8, offsets[1:] + 8
    lengths = np.minimum(ends - starts, 8).astype(np.uint64)
    beyond = (np.uint64(8) - lengths) * np.uint64(8)
    # A shift by 64 bits is undefined, so empty texts are handled apart.
    empty = lengths == 0
    beyond[empty] = 0
    last = eights[ends - 8] >> beyond
    first = eights[starts] << beyond
    last[empty] = 0
    first[empty] = 0
    mixed = (last ^ (first * np.uint64(31)) ^ (ends - starts).astype(np.uint64)) * _MIX
    mixed ^= mixed >> np.uint64(29)
    mixed *= _MIX
    parts: npt.NDArray[np.int64] = ((mixed >> np.uint64(33)) % np.uint64(partitions)).astype(np.int64)
    return parts


def split(table: pa.Table, texts: pa.Array, partitions: int) -> Iterator[tuple[int, pa.Table]]:
    """The rows of each partition that has any, as pairs of partition and rows."""
    if partitions == 1:
        if table.num_rows:
            yield 0, table
        return
    parts = partition_of(texts, partitions)
    places = np.argsort(parts.astype(np.int16 if partitions < 1 << 15 else np.int64), kind="stable")
    ordered = table.take(pa.array(places))
    ends = np.cumsum(np.bincount(parts, minlength=partitions))
    for part in range(partitions):
        start = int(ends[part - 1]) if part else 0
        if ends[part] > start:
            yield part, ordered.slice(start, int(ends[part]) - start)


def _flat(column: pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks()
