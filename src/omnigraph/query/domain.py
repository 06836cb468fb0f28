"""Domains: ids in a fixed order, so that the engine can count with positions instead of comparing texts."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from itertools import count

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.query.cache import Key, identity_of
from omnigraph.query.rows import Domain, Integers
from omnigraph.storage.tables.table import ROW_ADDRESS, Table

#: Up to here ids are looked up one by one in the sorted array; beyond, one hash table for all is faster.
_FEW = 64
#: Tells domains apart that were made for one traversal only.
_serial = count()


@dataclass(frozen=True, eq=False)
class SortedIds:
    """The ids that some edges lead from or to, in order of their text."""

    key: Key
    ids: pa.Array

    def positions(self, ids: pa.Array | pa.ChunkedArray) -> Integers:
        """Where these ids are; -1 for one that is not there."""
        if len(ids) > _FEW:
            return positions_in(self.ids, ids)
        return np.fromiter((self._position(text) for text in ids.to_pylist()), np.int64, len(ids))

    def _position(self, text: str) -> int:
        wanted = text.encode()
        place = bisect_left(self.ids, wanted, key=lambda scalar: scalar.as_buffer().to_pybytes())
        return place if place < len(self.ids) and self.ids[place].as_py() == text else -1


@dataclass(frozen=True, eq=False)
class TableIds:
    """The ids of a node table in the order of its rows, with the address of each row."""

    key: Key
    ids: pa.Array
    addresses: npt.NDArray[np.uint64]

    def positions_at(self, addresses: npt.NDArray[np.uint64]) -> Integers:
        """Where the rows at these addresses are."""
        return np.searchsorted(self.addresses, addresses)


class NodeIndex:
    """Where the node with an id lies, without asking the table."""

    def __init__(self, nodes: TableIds) -> None:
        order = pc.sort_indices(nodes.ids)
        self._sorted = SortedIds(("by id", *nodes.key), nodes.ids.take(order))
        self._addresses = nodes.addresses[order.to_numpy()]

    def find(self, ids: pa.Array) -> pa.Table:
        """Those of some ids that there are, with the address of each."""
        places = self._sorted.positions(ids)
        there = places >= 0
        return pa.table({"id": ids.filter(pa.array(there)), ROW_ADDRESS: pa.array(self._addresses[places[there]])})


def read_table_ids(table: Table) -> TableIds:
    """All ids of a node table."""
    found = table.read(["id"], with_row_address=True)
    addresses = found[ROW_ADDRESS].to_numpy()
    order = np.argsort(addresses, kind="stable")
    ids = found["id"].combine_chunks()
    in_order = bool((order == np.arange(len(order))).all())
    return TableIds(identity_of(table), ids if in_order else ids.take(pa.array(order)), addresses[order])


def sorted_ids(key: Key, *columns: pa.ChunkedArray) -> SortedIds:
    """The domain of all ids that occur in some columns."""
    values = pa.chunked_array([chunk for column in columns for chunk in column.chunks], pa.string())
    distinct = pc.unique(values)
    return SortedIds(key, distinct.take(pc.sort_indices(distinct)))


def passing_key() -> Key:
    """A key for a domain that lives as long as one traversal."""
    return ("passing", next(_serial))


def positions_in(ids: pa.Array, wanted: pa.Array | pa.ChunkedArray) -> Integers:
    """Where some ids are among others; -1 for one that is not there."""
    found = pc.fill_null(pc.index_in(wanted, value_set=ids), -1)
    array = found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found
    return np.asarray(array.to_numpy(zero_copy_only=False), dtype=np.int64)


def make_bridge(source: Domain, target: Domain) -> Integers:
    """For each position of one domain, the position of the same id in another; -1 where it has none."""
    return positions_in(target.ids, source.ids)
