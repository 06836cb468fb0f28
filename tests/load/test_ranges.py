"""CSV files and streams of JSON values in ranges: the same rows, and the same lines in messages, as in one piece."""

from __future__ import annotations

import csv
import io
import json
import random
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.commit.context import HELD_BYTES_VARIABLE
from omnigraph.errors import LoadRejected, OmnigraphError
from omnigraph.load.csv_ranges import record_ranges
from omnigraph.spark.runner import Inline
from omnigraph.storage.files import find_files
from tests.load.loading import rows

SCHEMA = "node P { name: String @key n: I32? note: String? }"
#: What makes it hard to find where a record ends.
HARD = ["plain", "", 'say ""', "two\nlines", 'a "quoted\n" word', ",", "\r\n", "ünïcode\n", '"', "x" * 300]


@pytest.fixture
def in_ranges(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are read in ranges of some hundred bytes."""
    monkeypatch.setenv(HELD_BYTES_VARIABLE, "0")
    monkeypatch.setattr("omnigraph.load.inputs.RANGE_BYTES", 400)
    monkeypatch.setattr("omnigraph.load.inputs.SMALLEST_RANGE", 1)


def outcome(graph: og.Graph, path: Path, **options: Any) -> Any:
    """What a load leaves, or the errors that it ends with."""
    try:
        graph.load(path, engine="local", **options)
    except LoadRejected as error:
        return error.total, error.errors
    return rows(graph, "node:P")


def a_csv(path: Path, seed: int, *, clean: bool, line_end: str) -> None:
    drawn = random.Random(seed)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator=line_end, quoting=drawn.choice([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]))
    writer.writerow(["name", "n", "note"])
    for number in range(120):
        count = "x" if not clean and drawn.random() < 0.03 else number
        writer.writerow([f"p{number}", count, drawn.choice(HARD)])
    path.write_bytes(text.getvalue().encode())


@pytest.mark.parametrize("line_end", ["\n", "\r\n"], ids=["lf", "crlf"])
@pytest.mark.parametrize("clean", [True, False], ids=["clean", "mistakes"])
@pytest.mark.parametrize("seed", range(3))
def test_a_csv_file_in_ranges(tmp_path: Path, in_ranges: None, seed: int, clean: bool, line_end: str) -> None:
    path = tmp_path / "p.csv"
    a_csv(path, seed, clean=clean, line_end=line_end)
    (file,) = find_files(str(path), ())
    found = record_ranges(file, ",", 400, Inline())
    assert len(found) > 4
    assert [start for start, _ in found[1:]] == [end for _, end in found[:-1]]
    in_parts = outcome(og.init(tmp_path / "parts", SCHEMA), path, type="P")
    with pytest.MonkeyPatch.context() as whole:
        whole.setattr("omnigraph.load.inputs.RANGE_BYTES", 1 << 20)
        whole.setattr("omnigraph.load.inputs.SMALLEST_RANGE", 1 << 20)
        assert outcome(og.init(tmp_path / "whole", SCHEMA), path, type="P") == in_parts
    assert isinstance(in_parts, list) == clean


@pytest.mark.parametrize(
    "text",
    [
        pytest.param('name,note\n5" pipe,x\nb,"two\nlines"\n' + "c,d\n" * 200, id="a quote within a field"),
        pytest.param("name,note\na,x\n" * 1 + 'b,"never closed\n' + "c,d\n" * 200, id="a quote that is not closed"),
        pytest.param("name,note\n" + "x" * 2000, id="no record ends"),
    ],
)
def test_a_file_that_quotes_do_not_tell_about(tmp_path: Path, text: str) -> None:
    path = tmp_path / "p.csv"
    path.write_text(text)
    (file,) = find_files(str(path), ())
    assert record_ranges(file, ",", 100, Inline()) == [(0, file.size)]


@pytest.mark.parametrize("step", [100, 1 << 20], ids=["several ranges", "one"])
def test_a_csv_file_that_is_cut_off_within_a_quote(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int) -> None:
    """Its last text would be whatever the quote had swallowed: all rows behind it, or half of a text."""
    monkeypatch.setattr("omnigraph.load.inputs.RANGE_BYTES", step)
    monkeypatch.setattr("omnigraph.load.inputs.SMALLEST_RANGE", 1)
    monkeypatch.setattr("omnigraph.load.csv_ranges._LOOK_BYTES", 70)
    path = tmp_path / "p.csv"
    graph = og.init(tmp_path / "g", SCHEMA)
    whole = "name,n,note\na,1,plain\n" + "".join(f'p{number},2,"quoted, text"\n' for number in range(20))
    path.write_text(f'{whole}b,3,"half of a te')
    with pytest.raises(LoadRejected) as rejected:
        graph.load(path, type="P", engine="local")
    assert rejected.value.errors == [
        (str(path), 23, "a quote of this row is never closed; the file is cut off or damaged")
    ]
    path.write_text(f'{whole}b,3,5" pipe\n')
    assert graph.load(path, type="P", engine="local").nodes_loaded == 22


def test_a_row_of_a_csv_file_has_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("omnigraph.load.foreign._CSV_BLOCK", 1000)
    path = tmp_path / "p.csv"
    path.write_text(f"name,note\na,x\nb,{'x' * 3000}\n")
    graph = og.init(tmp_path / "g", SCHEMA)
    with pytest.raises(OmnigraphError, match="a row is longer than 1000 bytes; give such rows as Parquet"):
        graph.load(path, type="P", engine="local")


def test_without_quotes_every_line_will_do(tmp_path: Path, in_ranges: None) -> None:
    path = tmp_path / "p.tsv"
    path.write_text("name\tn\n" + "".join(f"p{number}\t{number}\n" for number in range(500)) + "\n\n\n")
    graph = og.init(tmp_path / "g", SCHEMA)
    loaded = graph.load(path, type="P", engine="local")
    assert (loaded.nodes_loaded, loaded.report.bytes) == (500, path.stat().st_size)


def a_stream(path: Path, seed: int, *, clean: bool) -> None:
    """JSON values in all layouts: on a line, over many lines, several on a line, with comments and empty lines between."""
    drawn = random.Random(seed)
    parts = []
    for number in range(80):
        note = drawn.choice(["x", "}\n{", "// no comment", None])
        value = {"type": "P", "data": {"name": f"p{number}", "n": number, "note": note}, "more": [{"a": 1}, {"b": {}}]}
        parts.append(json.dumps(value, indent=drawn.choice([None, None, 2])))
        parts.append(drawn.choice(["\n", "\n", "\n\n", " ", "\n// a comment }\n", " // }\n"]))
        if not clean and drawn.random() < 0.05:
            parts.append("nonsense }\n")
    path.write_text("".join(parts))


@pytest.mark.parametrize("clean", [True, False], ids=["clean", "mistakes"])
@pytest.mark.parametrize("seed", range(3))
def test_a_stream_in_ranges(tmp_path: Path, in_ranges: None, seed: int, clean: bool) -> None:
    path = tmp_path / "p.json"
    a_stream(path, seed, clean=clean)
    in_parts = outcome(og.init(tmp_path / "parts", SCHEMA), path, lenient=True)
    with pytest.MonkeyPatch.context() as whole:
        whole.setattr("omnigraph.load.inputs.RANGE_BYTES", 1 << 20)
        whole.setattr("omnigraph.load.inputs.SMALLEST_RANGE", 1 << 20)
        assert outcome(og.init(tmp_path / "whole", SCHEMA), path, lenient=True) == in_parts
    if clean:
        assert len(in_parts) == 80


def test_ranges_on_spark(tmp_path: Path, in_ranges: None) -> None:
    """The same on Spark; the file of values is read by the tasks, and is no part of their description."""
    table, stream = tmp_path / "p.csv", tmp_path / "q.json"
    a_csv(table, 7, clean=True, line_end="\n")
    a_stream(stream, 7, clean=True)
    for path, options in ((table, {"type": "P"}), (stream, {"lenient": True})):
        here = og.init(tmp_path / f"{path.stem}-here", SCHEMA)
        there = og.init(tmp_path / f"{path.stem}-there", SCHEMA)
        here.load(path, engine="local", **options)
        report = there.load(path, engine="spark", **options).report
        assert report.engine == "spark"
        assert rows(there, "node:P") == rows(here, "node:P")
