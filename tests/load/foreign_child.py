"""Loads hostile Arrow data in a process of its own, because data like this has taken processes down.

`hostile FOLDER`: every case of `CASES`; prints a line of JSON for each as soon as it is over.
`corrupt FOLDER SEED COUNT`: random damage to tables and Parquet files; each ends in a typed error or in rows that read back.
"""

from __future__ import annotations

import ctypes
import random
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.parquet as pq

import omnigraph as og
from omnigraph.errors import LoadRejected, OmnigraphError
from tests.load.loading import rows

SCHEMA = """
node T {
  key: String @key
  text: String? small: I32? real: F64? yes: Bool? day: Date? at: DateTime?
  words: [String]? numbers: [I64]? days: [Date]? vector: Vector(3)? blob: Blob?
}
"""
LATIN = b"caf\xe9"


def column(kind: pa.DataType, values: list[bytes]) -> pa.Array:
    """Bytes as a column of texts, whether they are texts or not."""
    wide = pa.types.is_large_string(kind)
    ends = np.cumsum([0, *map(len, values)]).astype(np.int64 if wide else np.int32)
    return pa.Array.from_buffers(
        kind, len(values), [None, pa.py_buffer(ends.tobytes()), pa.py_buffer(b"".join(values))]
    )


def changed(array: pa.Array, buffer: int, offset: int, data: bytes) -> pa.Array:
    """An array whose buffer is changed behind Arrow's back."""
    buffers = [None if one is None else bytearray(one.to_pybytes()) for one in array.buffers()]
    made = pa.Array.from_buffers(
        array.type, len(array), [None if one is None else pa.py_buffer(one) for one in buffers]
    )
    target = buffers[buffer]
    assert target is not None
    target[offset : offset + len(data)] = data
    return made


def int32(number: int) -> bytes:
    return number.to_bytes(4, "little", signed=True)


def table(**columns: Any) -> pa.Table:
    count = len(next(iter(columns.values())))
    return pa.table({"key": [f"k{number}" for number in range(count)], **columns})


def _views(values: list[bytes], offset: int, data: bytes) -> pa.Array:
    made = pa.array(values, pa.binary_view())
    buffers = [None if one is None else bytearray(one.to_pybytes()) for one in made.buffers()]
    array = pa.Array.from_buffers(
        pa.string_view(), len(values), [None if one is None else pa.py_buffer(one) for one in buffers]
    )
    assert buffers[1] is not None
    buffers[1][offset : offset + len(data)] = data
    return array


def _runs() -> pa.Table:
    made = pa.RunEndEncodedArray.from_arrays(pa.array([1, 3], pa.int32()), pa.array(["a", "b"]))
    whole = table(text=made)
    ctypes.memmove(made.run_ends.buffers()[1].address + 4, int32(0), 4)
    return whole


def _vendor(values: pa.Array) -> pa.Array:
    return pa.ExtensionArray.from_storage(pa.opaque(values.type, "type", "vendor"), values)


def parquet(folder: Path, data: pa.Table, **options: Any) -> Path:
    path = folder / "in.parquet"
    pq.write_table(data, path, **options)
    return path


def _flipped(folder: Path, data: pa.Table, find: bytes, **options: Any) -> Path:
    path = parquet(folder, data, **options)
    content = bytearray(path.read_bytes())
    content[content.index(find)] ^= 1
    path.write_bytes(content)
    return path


def _arrow(folder: Path, data: pa.Table, find: bytes, instead: bytes) -> Path:
    """An Arrow file whose contents are changed after it was written."""
    path = folder / "in.arrow"
    with pa.ipc.new_file(str(path), data.schema) as writer:
        writer.write_table(data)
    content = path.read_bytes()
    assert content.count(find) == 1
    path.write_bytes(content.replace(find, instead))
    return path


def _csv(folder: Path, data: bytes) -> Path:
    (folder / "in.csv").write_bytes(data)
    return folder / "in.csv"


_TEXTS = [b"good", LATIN, b"fine"]
_UTF8 = "not valid UTF-8"
_DAMAGED = "damaged"
_YEARS = "outside the years 0001 to 9999"
#: What is loaded, a part of what is said of it, and the rows that are named, counted from 1.
CASES: dict[str, tuple[Callable[[Path], Any], str, list[int]]] = {
    "text": (lambda _: table(text=column(pa.string(), _TEXTS)), _UTF8, [2]),
    "large text": (lambda _: table(text=column(pa.large_string(), _TEXTS)), _UTF8, [2]),
    "a view": (lambda _: table(text=_views([b"x" * 30, b"\xe9" * 30, b"y"], 0, b"")), _UTF8, [2]),
    "a key": (lambda _: pa.table({"key": column(pa.string(), _TEXTS)}), _UTF8, [2]),
    "a surrogate": (lambda _: table(text=column(pa.string(), [b"\xed\xa0\x80"])), _UTF8, [1]),
    "a slice": (lambda _: table(text=column(pa.string(), [LATIN, *_TEXTS]).slice(1)), _UTF8, [2]),
    "a list of texts": (
        lambda _: table(
            words=pa.ListArray.from_arrays(pa.array([0, 1, 2, 3], pa.int32()), column(pa.string(), _TEXTS))
        ),
        _UTF8,
        [2],
    ),
    "offsets of a list in an Arrow file": (
        lambda folder: _arrow(
            folder,
            table(words=pa.array([["a"] * 301, ["b"] * 402])),
            int32(301) + int32(703),
            int32(1 << 28) + int32(1 << 29),
        ),
        _DAMAGED,
        [1, 2],
    ),
    "extensions of extensions": (
        lambda _: table(
            words=pa.ListArray.from_arrays(pa.array([0, 1], pa.int32()), _vendor(_vendor(pa.array(["x"]))))
        ),
        "an extension type of an extension type",
        [1],
    ),
    "an entry of a dictionary": (
        lambda _: table(
            text=pa.DictionaryArray.from_arrays(pa.array([0, 2, 1, 1]), column(pa.string(), _TEXTS), safe=False)
        ),
        _UTF8,
        [3, 4],
    ),
    # Looking at all of its entries would never end.
    "the length of a dictionary": (
        lambda folder: _arrow(
            folder,
            table(text=pa.DictionaryArray.from_arrays(pa.array([0, 300]), pa.array(["x"] * 301))),
            (301).to_bytes(16, "little"),
            (1 << 40).to_bytes(16, "little"),
        ),
        _DAMAGED,
        [1],
    ),
    "an index of a dictionary": (
        lambda _: table(text=pa.DictionaryArray.from_arrays(pa.array([0, 99, -3]), pa.array(["x"]), safe=False)),
        "dictionary is out of range",
        [2, 3],
    ),
    "offsets that go down": (
        lambda _: table(text=changed(pa.array(["aa", "bb", "cc"]), 1, 4, int32(-5))),
        _DAMAGED,
        [1, 2],
    ),
    "offsets beyond the end": (
        lambda _: table(text=changed(pa.array(["aa", "bb", "cc"]), 1, 8, int32(1 << 30))),
        _DAMAGED,
        [2, 3],
    ),
    "offsets of a list": (
        lambda _: table(
            numbers=pa.ListArray.from_arrays(
                changed(pa.array([0, 1, 2], pa.int32()), 1, 4, int32(1 << 28)), pa.array([1, 2])
            )
        ),
        _DAMAGED,
        [1, 2],
    ),
    "a view beyond the end": (
        lambda _: table(text=_views([b"x" * 30, b"y" * 30], 12, int32(1 << 28))),
        _DAMAGED,
        [1],
    ),
    "a view of no buffer": (lambda _: table(text=_views([b"x" * 30, b"y" * 30], 24, int32(70))), _DAMAGED, [2]),
    "run ends": (lambda _: _runs(), _DAMAGED, [1, 2, 3]),
    "days": (lambda _: table(day=pa.array([0, 2_932_897, -719_163], pa.date32())), _YEARS, [2, 3]),
    "days as milliseconds": (lambda _: table(day=pa.array([0, 86_400_000 * 2_932_897], pa.date64())), _YEARS, [2]),
    "days of a list": (lambda _: table(days=pa.array([[0], [0, 2**31 - 1]], pa.list_(pa.date32()))), _YEARS, [2]),
    "instants": (lambda _: table(at=pa.array([0, 2**62, -(2**62)], pa.timestamp("ms", "UTC"))), _YEARS, [2, 3]),
    "instants in seconds": (lambda _: table(at=pa.array([0, 2**62], pa.timestamp("s"))), _YEARS, [2]),
    "a microsecond": (
        lambda _: table(at=pa.array([1000, 1], pa.timestamp("us", "UTC"))),
        "finer than a millisecond",
        [2],
    ),
    "a nanosecond": (lambda _: table(at=pa.array([10**6, 1], pa.timestamp("ns"))), "finer than a millisecond", [2]),
    "noon as a day": (lambda _: table(day=pa.array([0, 43_200_000], pa.timestamp("ms"))), "is not a whole day", [2]),
    "a far day in a text": (
        lambda _: table(text=pa.array([2**31 - 1], pa.date32())),
        "expected a text, got a date32",
        [1],
    ),
    "a zone that is nowhere": (
        lambda _: table(text=pa.array([1], pa.timestamp("ms", "Nowhere/Bad"))),
        "expected a text, got a timestamp",
        [1],
    ),
    "a null in a vector": (
        lambda _: table(vector=pa.array([[1.0, 2.0, 3.0], [1.0, None, 3.0]], pa.list_(pa.float32(), 3))),
        "elements must be numeric",
        [2],
    ),
    "infinity in a vector": (
        lambda _: table(vector=pa.array([[1.0, 2.0, 3.0], [1.0, float("inf"), 3.0]], pa.list_(pa.float32(), 3))),
        "not a finite number",
        [2],
    ),
    "text in Parquet": (lambda folder: parquet(folder, table(text=column(pa.string(), _TEXTS))), _UTF8, [2]),
    "a list in Parquet": (
        lambda folder: parquet(
            folder,
            table(words=pa.ListArray.from_arrays(pa.array([0, 1, 2, 3], pa.int32()), column(pa.string(), _TEXTS))),
        ),
        _UTF8,
        [2],
    ),
    "a day in Parquet": (lambda folder: parquet(folder, table(day=pa.array([2_932_897], pa.date32()))), _YEARS, [1]),
    "a flipped bit under a checksum": (
        lambda folder: _flipped(
            folder,
            table(text=["first", "second"]),
            b"econd",
            use_dictionary=False,
            compression="none",
            write_page_checksum=True,
            write_statistics=False,
        ),
        "can not be read from this row on",
        [1],
    ),
    "a flipped bit in a compressed page": (
        lambda folder: _flipped(folder, table(text=["x" * 500]), b"\x28\xb5\x2f\xfd", compression="zstd"),
        "can not be read from this row on",
        [1],
    ),
    "text in CSV": (lambda folder: _csv(folder, b"key,text\na,b\nc," + LATIN + b"\nd,e\n"), _UTF8, [3]),
}


def hostile(folder: Path) -> None:
    og.init(folder / "empty", SCHEMA)
    for name, (make, _, _) in CASES.items():
        graph = _copy(folder)
        found: dict[str, Any] = {"case": name}
        try:
            graph.load(make(folder), type="T", engine="local")
            found["said"] = "loaded"
        except LoadRejected as error:
            found |= {"said": error.message, "rows": [line for _, line, _ in error.errors]}
        except Exception as error:
            found["said"] = f"{type(error).__name__}: {error}"
        found["stored"] = len(rows(graph, "node:T"))
        print(orjson.dumps(found).decode(), flush=True)


def _copy(folder: Path) -> og.Graph:
    shutil.rmtree(folder / "g", ignore_errors=True)
    shutil.copytree(folder / "empty", folder / "g")
    return og.open(folder / "g")


# --- random damage ----------------------------------------------------------------------------------------------------


def corrupt(folder: Path, seed: int, count: int) -> None:
    """Damage `count` inputs; prints how many were refused and how many were loaded."""
    og.init(folder / "empty", SCHEMA)
    refused = loaded = 0
    for number in range(count):
        chance = random.Random(f"{seed}-{number}")
        graph = _copy(folder)
        given = _damaged_table(chance) if number % 2 else _damaged_parquet(folder, chance)
        try:
            graph.load(given, type="T", engine="local")
            loaded += 1
        except OmnigraphError:
            refused += 1
        # Whatever was taken is read back and written out completely.
        rows(graph, "node:T")
        graph.export(folder / "out.jsonl")
    print(orjson.dumps({"refused": refused, "loaded": loaded}).decode(), flush=True)


def _whole_table() -> pa.Table:
    count = 40
    numbers = range(count)
    return pa.table(
        {
            "key": pa.array([f"key {number}" for number in numbers]),
            "text": pa.array([f"ä{number}" if number % 3 else None for number in numbers]).dictionary_encode(),
            "small": pa.array([number if number % 4 else None for number in numbers], pa.int32()),
            "real": pa.array([number / 7 for number in numbers]),
            "yes": pa.array([number % 2 == 0 for number in numbers]),
            "day": pa.array(list(numbers), pa.date32()),
            "at": pa.array(list(numbers), pa.timestamp("ms", "UTC")),
            "words": pa.array([["a", f"b{number}"] if number % 5 else None for number in numbers]),
            "numbers": pa.array([[number] * (number % 3) for number in numbers], pa.list_(pa.int64())),
            "vector": pa.array([[1.0, 2.0, number] for number in numbers], pa.list_(pa.float32(), 3)),
        }
    )


def _damaged_table(chance: random.Random) -> pa.Table:
    """A table that came over a wire: some bytes of its buffers are others."""
    sink = pa.BufferOutputStream()
    whole = _whole_table()
    with pa.ipc.new_stream(sink, whole.schema) as writer:
        writer.write_table(whole)
    data = bytearray(sink.getvalue().to_pybytes())
    made = pa.ipc.open_stream(pa.py_buffer(data)).read_all()
    # The arrays lie in `data`; only what they hold is changed, not how the message describes it.
    spans = [(one.address, one.size) for one in _buffers(made)]
    for _ in range(chance.randrange(1, 4)):
        address, size = chance.choice([span for span in spans if span[1]])
        at = address - pa.py_buffer(data).address + chance.randrange(size)
        data[at] ^= 1 << chance.randrange(8) if chance.random() < 0.5 else chance.randrange(1, 256)
    return made


def _buffers(made: pa.Table) -> Iterator[pa.Buffer]:
    for chunked in made.columns:
        for chunk in chunked.chunks:
            arrays = [chunk.indices, chunk.dictionary] if isinstance(chunk, pa.DictionaryArray) else [chunk]
            for array in arrays:
                yield from (one for one in array.buffers() if one is not None)


def _damaged_parquet(folder: Path, chance: random.Random) -> Path:
    """A Parquet file with some other bytes, or with its end missing."""
    options = {
        "compression": chance.choice(["none", "snappy", "zstd"]),
        "use_dictionary": chance.random() < 0.5,
        "write_page_checksum": chance.random() < 0.3,
    }
    path = parquet(folder, _whole_table(), **options)
    data = bytearray(path.read_bytes())
    for _ in range(chance.randrange(1, 4)):
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    if chance.random() < 0.05:
        data = data[: chance.randrange(len(data))]
    path.write_bytes(data)
    return path


if __name__ == "__main__":
    where = Path(sys.argv[2])
    if sys.argv[1] == "hostile":
        hostile(where)
    else:
        corrupt(where, int(sys.argv[3]), int(sys.argv[4]))
