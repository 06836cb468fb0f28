"""Domains: ids in a fixed order, so that the engine can count with positions instead of comparing texts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import count

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.query.cache import Key, identity_of
from omnigraph.query.rows import Domain, Integers, Narrow, Values, chunks_of
from omnigraph.query.table_columns import in_row_order
from omnigraph.storage.tables.table import ROW_ADDRESS, Table
from omnigraph.values.columns import whole

#: Up to here ids are looked up one by one in the sorted array; beyond, one hash table for all is faster.
FEW_IDS = 64
#: So many ids are put into a hash table while one is looked up, measured.
_PER_SEARCH = 256
#: Tells domains apart that were made for one traversal only.
_serial = count()


@dataclass(frozen=True, eq=False)
class SortedIds:
    """The ids that some edges lead from or to, in order of their text."""

    key: Key
    ids: pa.Array

    def positions(self, ids: pa.Array | pa.ChunkedArray) -> Integers:
        """Where these ids are; -1 for one that is not there."""
        if len(ids) > max(FEW_IDS, len(self.ids) // _PER_SEARCH):
            return positions_in(self.ids, ids)
        return self.positions_of(ids.to_pylist())

    def positions_of(self, texts: Sequence[str]) -> Integers:
        """Where a few ids are."""
        return np.array([self._position(text) for text in texts], np.int64)

    def _position(self, text: str) -> int:
        wanted = text.encode()
        offsets, texts = self._bytes
        low, high = 0, len(self.ids)
        while low < high:
            middle = (low + high) // 2
            if texts[offsets[middle] : offsets[middle + 1]].tobytes() < wanted:
                low = middle + 1
            else:
                high = middle
        return low if low < len(self.ids) and self.ids[low].as_py() == text else -1

    @cached_property
    def _bytes(self) -> tuple[memoryview[int], memoryview[int]]:
        """Where each id begins, and the bytes of all, as Arrow holds them: a third of the time of asking it for each."""
        _, begins, texts = self.ids.buffers()
        return memoryview(begins).cast("i")[self.ids.offset :], memoryview(texts or b"")


@dataclass(frozen=True, eq=False)
class TableIds:
    """The ids of a node table in the order of its rows, with the address of each row."""

    key: Key
    ids: pa.Array
    addresses: npt.NDArray[np.uint64]

    @property
    def nbytes(self) -> int:
        """How much memory it takes."""
        return int(self.ids.nbytes + self.addresses.nbytes)

    def positions_at(self, addresses: npt.NDArray[np.uint64]) -> Integers:
        """Where the rows at these addresses are."""
        return np.searchsorted(self.addresses, addresses)


class NodeIndex:
    """Where the node with an id lies, without asking the table."""

    def __init__(self, nodes: TableIds) -> None:
        order = pc.sort_indices(nodes.ids)
        self.nodes = nodes
        self._sorted = SortedIds(("by id", *nodes.key), nodes.ids.take(order))
        self._rows: Integers = order.to_numpy().astype(np.int64)

    @property
    def nbytes(self) -> int:
        """How much memory it takes."""
        return int(self._sorted.ids.nbytes + self._rows.nbytes)

    def find(self, ids: pa.Array) -> Integers:
        """The positions of those of some ids that there are."""
        places = self._sorted.positions(ids)
        return self._rows[places[places >= 0]]


def read_table_ids(table: Table) -> TableIds:
    """All ids of a node table."""
    found = table.read(["id"], with_row_address=True)
    order, addresses = in_row_order(found[ROW_ADDRESS].to_numpy())
    ids = found["id"].combine_chunks()
    return TableIds(identity_of(table), ids if order is None else ids.take(pa.array(order)), addresses)


def numbered_ids(key: Key, *columns: Values) -> tuple[SortedIds, list[Narrow]]:
    """The domain of all ids that occur in some columns, and for each column the positions of its ids."""
    chunks = [chunk for column in columns for chunk in chunks_of(column)]
    encoded = pa.chunked_array(chunks, pa.string()).dictionary_encode()
    if not len(encoded):
        return SortedIds(key, pa.array([], pa.string())), [np.zeros(0, np.int32) for _ in columns]
    # One dictionary serves all chunks. Its order is that of first appearance.
    distinct = encoded.chunk(0).dictionary
    order = pc.sort_indices(distinct)
    ranks = np.empty(len(distinct), np.int32)
    ranks[order.to_numpy()] = np.arange(len(distinct), dtype=np.int32)
    positions = ranks[np.concatenate([chunk.indices.to_numpy() for chunk in encoded.chunks])]
    ends = np.cumsum([len(column) for column in columns])[:-1]
    return SortedIds(key, distinct.take(order)), np.split(positions, ends)


def passing_key() -> Key:
    """A key for a domain that lives as long as one traversal."""
    return ("passing", next(_serial))


def positions_in(ids: pa.Array, wanted: pa.Array | pa.ChunkedArray) -> Integers:
    """Where some ids are among others; -1 for one that is not there."""
    found = pc.fill_null(pc.index_in(wanted, value_set=ids), -1)
    return np.asarray(whole(found).to_numpy(zero_copy_only=False), dtype=np.int64)


def make_bridge(source: Domain, target: Domain) -> Integers:
    """For each position of one domain, the position of the same id in another; -1 where it has none."""
    return positions_in(target.ids, source.ids)
