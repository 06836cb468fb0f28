"""Limits of what is read at once: a line, a value, the expansion of a compressed file. Each is a problem with its place."""

from __future__ import annotations

import gzip
import re
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import omnigraph as og
from omnigraph.errors import BadRequest, LoadRejected
from omnigraph.load import fast, foreign, parsed, text
from tests.load.loading import ids, rows

SCHEMA = "node P { name: String @key text: String? }"
GOOD = b'{"type":"P","data":{"name":"good%d"}}\n'


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    return og.init(tmp_path / "g", SCHEMA)


def limit_lines(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    for module in (parsed, fast, text):
        monkeypatch.setattr(module, "LONGEST_LINE", size)


def line(size: int) -> bytes:
    return b'{"type":"P","data":{"name":"' + b"x" * size + b'"}}\n'


@pytest.mark.parametrize("kind", ["file", "memory", "gz"])
def test_a_line_has_a_limit(graph: og.Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    """In a file it may begin in one range and end in another."""
    limit_lines(monkeypatch, 100_000)
    monkeypatch.setattr("omnigraph.load.inputs.SMALLEST_RANGE", 50_000)
    monkeypatch.setattr("omnigraph.load.inputs.RANGE_BYTES", 50_000)
    monkeypatch.setattr(text, "WINDOW_BYTES", 1000)
    data = GOOD % 1 + line(400_000) + GOOD % 2
    path = tmp_path / ("in.jsonl.gz" if kind == "gz" else "in.jsonl")
    path.write_bytes(gzip.compress(data) if kind == "gz" else data)
    with pytest.raises(LoadRejected, match="this line is longer than 100000 bytes") as rejected:
        graph.load(data if kind == "memory" else path, engine="local")
    assert [place for _, place, _ in rejected.value.errors] == [2]
    assert rows(graph, "node:P") == []
    path.write_bytes(gzip.compress(GOOD % 1 + line(90_000)) if kind == "gz" else GOOD % 1 + line(90_000))
    graph.load(path, engine="local")
    assert len(ids(graph, "node:P")) == 2


def test_a_value_of_a_table_has_a_limit(graph: og.Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(foreign, "LONGEST_VALUE", 1000)
    table = pa.table({"name": ["a", "b"], "text": ["x", "y" * 1001]})
    pq.write_table(table, tmp_path / "in.parquet")
    for given in (table, tmp_path / "in.parquet"):
        with pytest.raises(LoadRejected, match="the value is longer than") as rejected:
            graph.load(given, type="P", engine="local")
        assert [place for _, place, _ in rejected.value.errors] == [2]


def test_a_dictionary_that_would_fill_memory_is_refused(graph: og.Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(foreign, "LARGEST_DECODED", 10_000)
    small = pa.DictionaryArray.from_arrays(pa.array([0] * 1000), pa.array(["x" * 100]))
    with pytest.raises(
        LoadRejected, match="the column expands to more than 10000 bytes up to here; decode"
    ) as rejected:
        graph.load(pa.table({"name": [str(number) for number in range(1000)], "text": small}), type="P", engine="local")
    assert [place for _, place, _ in rejected.value.errors] == [101]


def test_a_parquet_file_that_expands_too_much_is_refused(
    graph: og.Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parsed, "SMALLEST_EXPANDED", 1 << 20)
    pq.write_table(
        pa.table({"name": ["x" * 4_000_000]}), tmp_path / "in.parquet", compression="zstd", use_dictionary=False
    )
    with pytest.raises(BadRequest, match="expands to more than 200 times"):
        graph.load(tmp_path / "in.parquet", type="P", engine="local")


BLANKS = """
import resource, sys
import omnigraph as og
from omnigraph.errors import OmnigraphError
graph = og.open(sys.argv[1])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    graph.load(sys.argv[2], engine="local", lenient=sys.argv[3] == "lenient")
except OmnigraphError as error:
    print(type(error).__name__, error.message.replace(chr(10), " "))
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


@pytest.mark.parametrize(
    ("blanks", "reading", "message"),
    [
        (b" ", "strict", "LoadRejected .*in.jsonl.gz:1: this line is longer than 134217728 bytes"),
        (b" ", "lenient", "ResourceLimit this line is longer than 134217728 bytes"),
        (b" " * 1023 + b"\n", "strict", "LoadRejected .*expands to more than 200 times its size; decompress it first"),
    ],
)
def test_two_gigabytes_of_blanks_take_little_memory(
    graph: og.Graph, tmp_path: Path, blanks: bytes, reading: str, message: str
) -> None:
    """In a gz of 2 MB; on one line they took 3.3 GB."""
    path = tmp_path / "in.jsonl.gz"
    path.write_bytes(gzip.compress(blanks * ((16 << 20) // len(blanks))) * 128)
    command = [sys.executable, "-c", BLANKS, graph.uri, str(path), reading]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    said, megabytes = done.stdout.splitlines()
    assert re.match(message, said)
    assert int(megabytes) < 600
