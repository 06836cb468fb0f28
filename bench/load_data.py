"""The data of the load benchmark: people and whom they know, as one JSONL file and as CSV for the peer."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

EDGES_PER_NODE = 3
GROUPS = ("amber", "blue", "coral", "dune")
SCHEMA = f"""
node Person {{
  key: String @key
  name: String
  age: I32
  group: enum({", ".join(GROUPS)})
  born: Date
}}
edge Knows: Person -> Person @card(0..{EDGES_PER_NODE}) {{
  since: Date
  weight: I32
}}
"""
_BATCH = 100_000
_DAYS = 18_000


def write_jsonl(path: Path, nodes: int, *, first: int = 0, edges: bool = True, shift: int = 0) -> int:
    """Write nodes with these numbers, and three edges for each; returns how many entities there are."""
    with path.open("wb") as file:
        for numbers in _batches(first, nodes):
            file.write(_joined(_node_pieces(numbers, shift)))
        if edges:
            for numbers in _batches(0, nodes * EDGES_PER_NODE):
                file.write(_joined(_edge_pieces(numbers, nodes)))
    return nodes * (1 + EDGES_PER_NODE) if edges else nodes


def write_csv(folder: Path, nodes: int) -> tuple[Path, Path]:
    """The same data as two CSV files without headers, as the peer takes them."""
    people, knows = folder / "people.csv", folder / "knows.csv"
    with people.open("wb") as file:
        for numbers in _batches(0, nodes):
            file.write(_joined(_csv(*_node_columns(numbers, 0))))
    with knows.open("wb") as file:
        for numbers in _batches(0, nodes * EDGES_PER_NODE):
            file.write(_joined(_csv(*_edge_columns(numbers, nodes))))
    return people, knows


def _batches(first: int, count: int) -> Iterator[np.ndarray[tuple[int], np.dtype[np.int64]]]:
    for start in range(first, first + count, _BATCH):
        yield np.arange(start, min(start + _BATCH, first + count), dtype=np.int64)


def _node_columns(numbers: np.ndarray[tuple[int], np.dtype[np.int64]], shift: int) -> tuple[pa.Array, ...]:
    return (
        _keys(numbers),
        pc.binary_join_element_wise("name of ", _texts(numbers * 2654435761 % 1_000_003), ""),
        _texts((numbers + shift) % 90),
        pa.array(GROUPS).take(pa.array(numbers % len(GROUPS))),
        _dates(numbers * 31),
    )


def _edge_columns(numbers: np.ndarray[tuple[int], np.dtype[np.int64]], nodes: int) -> tuple[pa.Array, ...]:
    sources = numbers // EDGES_PER_NODE
    targets = (sources * 7919 + numbers % EDGES_PER_NODE * 104_729 + 1) % nodes
    return _keys(sources), _keys(targets), _dates(numbers * 17), _texts(numbers % 1000)


def _node_pieces(numbers: np.ndarray[tuple[int], np.dtype[np.int64]], shift: int) -> list[str | pa.Array]:
    key, name, age, group, born = _node_columns(numbers, shift)
    return [
        *('{"type":"Person","data":{"key":"', key, '","name":"', name, '","age":', age),
        *(',"group":"', group, '","born":"', born, '"}}\n'),
    ]


def _edge_pieces(numbers: np.ndarray[tuple[int], np.dtype[np.int64]], nodes: int) -> list[str | pa.Array]:
    source, target, since, weight = _edge_columns(numbers, nodes)
    return [
        *('{"edge":"Knows","from":"', source, '","to":"', target),
        *('","data":{"since":"', since, '","weight":', weight, "}}\n"),
    ]


def _csv(*columns: pa.Array) -> list[str | pa.Array]:
    pieces: list[str | pa.Array] = []
    for place, column in enumerate(columns):
        pieces += ["," if place else "", column]
    return [*pieces, "\n"]


def _joined(pieces: list[str | pa.Array]) -> bytes:
    texts = pc.binary_join_element_wise(*pieces, "")
    return "".join(texts.to_pylist()).encode()


def _keys(numbers: np.ndarray[tuple[int], np.dtype[np.int64]]) -> pa.Array:
    return pc.binary_join_element_wise("p", pc.utf8_lpad(_texts(numbers), 9, "0"), "")


def _texts(numbers: np.ndarray[tuple[int], np.dtype[np.int64]]) -> pa.Array:
    return pa.array(numbers).cast(pa.string())


def _dates(numbers: np.ndarray[tuple[int], np.dtype[np.int64]]) -> pa.Array:
    return pa.array((numbers % _DAYS).astype(np.int32)).cast(pa.date32()).cast(pa.string())
