"""Domains: ids in a fixed order, so that the engine compares positions instead of texts."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.query.cache import Key
from omnigraph.query.rows import Domain, Integers, Narrow, Values, chunks_of
from omnigraph.query.scan.table_columns import in_row_order
from omnigraph.storage.tables.table import ROW_ADDRESS, Table
from omnigraph.values.columns import whole

#: Up to so many ids are looked up one by one in the sorted array; for more, one hash table for all is faster.
FEW_IDS = 64
#: Measured: one search in the sorted array takes as long as putting so many ids into a hash table.
_PER_SEARCH = 256
#: How many leading bytes of an id are packed into a number.
_PREFIX = 8


class _Texts:
    """Ids read directly from Arrow's buffers: for a few ids three times as fast as through Arrow."""

    ids: pa.Array

    def text(self, position: int) -> bytes:
        """The id at a position."""
        offsets, texts = self._bytes
        return texts[offsets[position] : offsets[position + 1]].tobytes()

    def sortable(self, positions: Integers) -> pa.Array:
        """An array that sorts as the ids at these positions do."""
        if len(positions) > FEW_IDS:
            return self.ids.take(pa.array(positions))
        texts = [self.text(position) for position in positions.tolist()]
        places = {text: place for place, text in enumerate(sorted(set(texts)))}
        return pa.array([places[text] for text in texts], pa.int64())

    @cached_property
    def _bytes(self) -> tuple[memoryview[int], memoryview[int]]:
        """The offsets of the ids, and the bytes of all ids."""
        _, begins, texts = self.ids.buffers()
        return memoryview(begins or b"").cast("i")[self.ids.offset :], memoryview(texts or b"")


@dataclass(frozen=True, eq=False)
class SortedIds(_Texts):
    """The ids of the nodes at one end of some edges, sorted."""

    key: Key
    ids: pa.Array

    @property
    def nbytes(self) -> int:
        """The bytes in memory, with the numeric prefixes used for look-ups."""
        return int(self.ids.nbytes) + _PREFIX * len(self.ids)

    def sortable(self, positions: Integers) -> pa.Array:
        return pa.array(positions)

    def positions(self, ids: pa.Array | pa.ChunkedArray) -> Integers:
        """The position of each id; -1 for an id that is not in the domain."""
        if len(ids) > max(FEW_IDS, len(self.ids) // _PER_SEARCH):
            return positions_in(self.ids, ids)
        if ids.null_count:
            # Rows without a node have a null id, which the search one by one can not handle.
            return positions_in(self.ids, ids)
        return self.positions_of([text.encode() for text in ids.to_pylist()])

    def positions_of(self, texts: Sequence[bytes]) -> Integers:
        """The positions of a few ids, given as UTF-8 bytes; -1 for an id that is not in the domain."""
        if len(texts) == 1:
            (text,) = texts
            begin = np.uint64(int.from_bytes(text[:_PREFIX].ljust(_PREFIX, b"\0")))
            return np.array([self._position(text, begin, int(self._prefixes.searchsorted(begin)))])
        begins = np.frombuffer(b"".join(text[:_PREFIX].ljust(_PREFIX, b"\0") for text in texts), ">u8").astype(
            np.uint64
        )
        lows = self._prefixes.searchsorted(begins).tolist()
        return np.array([self._position(*found) for found in zip(texts, begins, lows, strict=True)], np.int64)

    def _position(self, wanted: bytes, begin: np.uint64, low: int) -> int:
        """The position of an id, searched from `low`, the first id with the same prefix; -1 when it is not there."""
        first = self.text(low) if low < len(self.ids) else None
        if first is None or first >= wanted:
            return low if first == wanted else -1
        high = int(self._prefixes.searchsorted(begin, "right"))
        place = bisect_left(range(len(self.ids)), wanted, low, high, key=self.text)
        return place if place < high and self.text(place) == wanted else -1

    @cached_property
    def _prefixes(self) -> npt.NDArray[np.uint64]:
        """The first 8 bytes of each id as a number: they tell most ids apart, and NumPy searches numbers fast."""
        prefixes = np.zeros(len(self.ids), np.uint64)
        if not len(self.ids):
            return prefixes
        offsets, texts = (np.frombuffer(part, kind) for part, kind in zip(self._bytes, ("i4", "u1"), strict=True))
        begins, ends = offsets[: len(self.ids)], offsets[1 : len(self.ids) + 1]
        for place in range(_PREFIX):
            inside = begins + place < ends
            prefixes <<= np.uint64(8)
            prefixes[inside] |= texts[begins[inside] + place]
        return prefixes


@dataclass(frozen=True, eq=False)
class TableIds(_Texts):
    """The ids of a node table in the order of its rows, with the address of each row."""

    key: Key
    ids: pa.Array
    addresses: npt.NDArray[np.uint64]

    @property
    def nbytes(self) -> int:
        """How much memory it takes."""
        return int(self.ids.nbytes + self.addresses.nbytes)

    def positions_at(self, addresses: npt.NDArray[np.uint64]) -> Integers:
        """The positions of the rows at these addresses."""
        return np.searchsorted(self.addresses, addresses)


class NodeIndex:
    """An index in memory from id to position in the table."""

    def __init__(self, nodes: TableIds) -> None:
        order = pc.sort_indices(nodes.ids)
        self.nodes = nodes
        self._sorted = SortedIds(("by id", *nodes.key), nodes.ids.take(order))
        self._rows: Integers = order.to_numpy().astype(np.int64)

    @property
    def nbytes(self) -> int:
        """How much memory it takes."""
        return self._sorted.nbytes + self._rows.nbytes

    def find(self, id_: str) -> Integers:
        """An array with the position of the node with this id; empty when there is no such node."""
        places = self._sorted.positions_of([id_.encode()])
        return self._rows[places[places >= 0]]


def read_table_ids(table: Table) -> TableIds:
    """All ids of a node table."""
    found = table.read(["id"], with_row_address=True)
    order, addresses = in_row_order(found[ROW_ADDRESS].to_numpy())
    ids = found["id"].combine_chunks()
    return TableIds(table.identity, ids if order is None else ids.take(pa.array(order)), addresses)


def numbered_ids(key: Key, *columns: Values) -> tuple[SortedIds, list[Narrow]]:
    """A new domain of all ids in the columns, and for each column the positions of its ids."""
    chunks = [chunk for column in columns for chunk in chunks_of(column)]
    encoded = pa.chunked_array(chunks, pa.string()).dictionary_encode()
    if not len(encoded):
        return SortedIds(key, pa.array([], pa.string())), [np.zeros(0, np.int32) for _ in columns]
    # All chunks share one dictionary, whose order is that of first appearance.
    distinct = encoded.chunk(0).dictionary
    order = pc.sort_indices(distinct)
    ranks = np.empty(len(distinct), np.int32)
    ranks[order.to_numpy()] = np.arange(len(distinct), dtype=np.int32)
    positions = ranks[np.concatenate([chunk.indices.to_numpy() for chunk in encoded.chunks])]
    ends = np.cumsum([len(column) for column in columns])[:-1]
    return SortedIds(key, distinct.take(order)), np.split(positions, ends)


def passing_key() -> Key:
    """A unique key for a domain that is used by one traversal only."""
    return ("passing", object())


def positions_in(ids: pa.Array, wanted: pa.Array | pa.ChunkedArray) -> Integers:
    """The place of each wanted id in `ids`; -1 for an id that is not there."""
    found = pc.fill_null(pc.index_in(wanted, value_set=ids), -1)
    return np.asarray(whole(found).to_numpy(zero_copy_only=False), dtype=np.int64)


def make_bridge(source: Domain, target: Domain) -> Integers:
    """For each position in `source` the position of the same id in `target`; -1 when it is not there."""
    return positions_in(target.ids, source.ids)
