"""The least that loads the benchmark's file with the same checks: one process, pyarrow's JSON reader, Lance.

`python -m bench.bare_load FILE FOLDER`
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj
from lance.fragment import write_fragments

from bench.load_data import EDGES_PER_NODE, GROUPS

_BLOCK = 32 * 1024 * 1024
_DATA = pa.struct(
    [
        *((name, pa.string()) for name in ("key", "name")),
        ("age", pa.int32()),
        *((name, pa.string()) for name in ("group", "born", "since")),
        ("weight", pa.int32()),
    ]
)
_LINE = pa.schema([*((name, pa.string()) for name in ("type", "edge", "from", "to")), ("data", _DATA)])
_PERSON = pa.schema(
    [
        *(pa.field(name, pa.string(), nullable=False) for name in ("id", "key", "name")),
        pa.field("age", pa.int32(), nullable=False),
        pa.field("group", pa.string(), nullable=False),
        pa.field("born", pa.date32(), nullable=False),
    ]
)
_KNOWS = pa.schema(
    [
        *(pa.field(name, pa.string(), nullable=False) for name in ("id", "src", "dst")),
        pa.field("since", pa.date32(), nullable=False),
        pa.field("weight", pa.int32(), nullable=False),
    ]
)


def load(file: Path, folder: Path) -> int:
    """Load the file into two tables; returns how many entities it has."""
    options = pj.ParseOptions(explicit_schema=_LINE, unexpected_field_behavior="error")
    staged: dict[str, list[lance.FragmentMetadata]] = {"Person": [], "Knows": []}
    keys: list[pa.Array] = []
    ends: list[tuple[pa.Array, pa.Array]] = []
    count = 0
    for block in _blocks(file):
        lines = pj.read_json(pa.BufferReader(block), parse_options=options)
        _require(lines.num_rows == block.count(b"\n"), "a line is not one record")
        data = lines["data"].combine_chunks()
        is_node = lines["type"].is_valid().combine_chunks()
        for name, mask in (("Person", is_node), ("Knows", pc.invert(is_node))):
            chosen = lines.filter(mask)
            if chosen.num_rows:
                fields = data.filter(mask)
                rows = _people(chosen, fields) if name == "Person" else _knows(chosen, fields, count)
                if name == "Person":
                    keys.append(rows["key"])
                else:
                    ends.append((rows["src"], rows["dst"]))
                staged[name] += write_fragments(rows, str(folder / name), mode="create")
                count += rows.num_rows
    _check(keys, ends)
    for name, schema in (("Person", _PERSON), ("Knows", _KNOWS)):
        lance.LanceDataset.commit(str(folder / name), lance.LanceOperation.Overwrite(schema, staged[name]))
    return count


def _people(lines: pa.Table, fields: pa.StructArray) -> pa.Table:
    _require(pc.all(pc.equal(lines["type"], "Person")).as_py(), "an unknown type")
    key, group = fields.field("key"), fields.field("group")
    _require(pc.all(pc.is_in(group, pa.array(GROUPS))).as_py(), "an unknown group")
    columns = [key, key, fields.field("name"), fields.field("age"), group, fields.field("born").cast(pa.date32())]
    return _table(columns, _PERSON)


def _knows(lines: pa.Table, fields: pa.StructArray, first: int) -> pa.Table:
    _require(pc.all(pc.equal(lines["edge"], "Knows")).as_py(), "an unknown edge")
    ids = pc.binary_join_element_wise("e", pa.array(np.arange(first, first + len(lines))).cast(pa.string()), "")
    ends = [lines[name].combine_chunks() for name in ("from", "to")]
    return _table([ids, *ends, fields.field("since").cast(pa.date32()), fields.field("weight")], _KNOWS)


def _table(columns: list[pa.Array], schema: pa.Schema) -> pa.Table:
    for column in columns:
        _require(column.null_count == 0, "a required value is missing")
    return pa.Table.from_arrays(columns, schema=schema)


def _check(keys: list[pa.Array], ends: list[tuple[pa.Array, pa.Array]]) -> None:
    """No key twice, no end missing, no more edges of a source than declared."""
    known = pa.chunked_array([chunk for key in keys for chunk in key.chunks])
    unique = pc.unique(known)
    _require(len(unique) == len(known), "a key twice")
    sources = pa.chunked_array([chunk for source, _ in ends for chunk in source.chunks])
    for _, targets in ends:
        _require(pc.all(pc.is_in(targets, unique)).as_py(), "an end is missing")
    places = pc.index_in(sources, unique)
    _require(places.null_count == 0, "an end is missing")
    counts = np.bincount(places.to_numpy())
    _require(int(counts.max()) <= EDGES_PER_NODE, "too many edges of a node")


def _blocks(file: Path) -> Iterator[bytes]:
    """The file in pieces that end with a line."""
    with file.open("rb") as opened:
        rest = b""
        while piece := opened.read(_BLOCK):
            end = piece.rfind(b"\n") + 1
            yield rest + piece[:end]
            rest = piece[end:]
        if rest:
            yield rest + b"\n"


def _require(holds: bool, problem: str) -> None:
    if not holds:
        raise ValueError(problem)


if __name__ == "__main__":
    start = time.perf_counter()
    entities = load(Path(sys.argv[1]), Path(sys.argv[2]))
    print(entities, time.perf_counter() - start)
