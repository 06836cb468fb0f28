"""Inputs that are broken on purpose, through the command: exit code 1, one line with file and line, nothing written."""

from __future__ import annotations

import gzip
import os
import shutil
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pytest

import omnigraph as og
from omnigraph.cli.main import run
from tests.load.loading import files

SCHEMA = """
node P {
  name: String @key
  level: I32? f: F64? u: U64? big: I64? tags: [String]? v: Vector(2)? d: Date? t: DateTime? b: Bool?
}
edge K: P -> P
"""
GOOD = b'{"type":"P","data":{"name":"good%d"}}\n'


def named(name: bytes) -> bytes:
    return b'{"type":"P","data":{"name":"%s"}}' % name


def with_(properties: bytes) -> bytes:
    return b'{"type":"P","data":{"name":"x",%s}}' % properties


#: A line between two good ones, and what is said of it; None where it is right.
LINES: dict[str, tuple[bytes, str | None]] = {
    "invalid UTF-8": (named(b"\xc3\x28"), "not valid UTF-8 at byte 29 of the line"),
    "overlong UTF-8": (named(b"\xc0\xaf"), "not valid UTF-8"),
    "surrogate as UTF-8": (named(b"\xed\xa0\x80"), "not valid UTF-8"),
    "lone high surrogate": (named(b"\\ud800"), "no low surrogate"),
    "lone low surrogate": (named(b"a\\udc00b"), "surrogate"),
    "pair of surrogates": (named(b"\\ud83d\\ude00"), None),
    "NUL escaped": (named(b"a\\u0000b"), None),
    "NUL": (named(b"a\x00b"), "control character"),
    "tab in a text": (named(b"a\tb"), "control character"),
    "line separator": (named("a\u2028b".encode()), None),
    "duplicate key": (with_(b'"level":1,"level":2'), "the key 'level' stands twice"),
    "duplicate key escaped": (with_(b'"level":1,"l\\u0065vel":2'), "the key 'level' stands twice"),
    "NaN": (with_(b'"f":NaN'), "NaN is not a number"),
    "Infinity": (with_(b'"f":Infinity'), "Infinity is not a number"),
    "-Infinity": (with_(b'"f":-Infinity'), "Infinity is not a number"),
    "NaN in a vector": (with_(b'"v":[NaN,1]'), "NaN is not a number"),
    "1e400": (with_(b'"f":1e400'), "infinity"),
    "1e-400": (with_(b'"f":1e-400'), None),
    "vector beyond F32": (with_(b'"v":[1e39,1]'), "outside the range of F32"),
    "400 digits as F64": (with_(b'"f":' + b"9" * 400), "infinity"),
    "400 digits as I32": (with_(b'"level":' + b"9" * 400), "not valid JSON"),
    "beyond I64": (with_(b'"big":9223372036854775808'), "outside the range of I64"),
    "beyond U64": (with_(b'"u":18446744073709551616'), "P.u (U64?)"),
    "largest U64": (with_(b'"u":18446744073709551615'), None),
    "leading zero": (with_(b'"level":01'), "leading zero"),
    "plus sign": (with_(b'"level":+1'), "not valid JSON"),
    "hexadecimal": (with_(b'"level":0x1'), "not valid JSON"),
    "True": (with_(b'"b":True'), "not valid JSON"),
    "trailing comma": (with_(b'"level":1,'), "trailing comma"),
    "comment in a line": (b'{"type":"P", /* x */ "data":{"name":"a"}}', "not valid JSON"),
    "deep array": (with_(b'"tags":' + b"[" * 5000 + b"]" * 5000), "depth limit"),
    "very deep array": (with_(b'"tags":' + b"[" * 200_000 + b"]" * 200_000), "depth limit"),
    "deep object": (b'{"a":' * 3000 + b"1" + b"}" * 3000, "depth limit"),
    "no day": (with_(b'"d":"2024-02-30"'), "is not a day of the calendar"),
    "year zero": (with_(b'"d":"0000-01-01"'), "is not a day of the calendar"),
    "no time": (with_(b'"t":"2024-01-01T25:00:00Z"'), "is not a time of day"),
    "CRLF": (named(b"x") + b"\r", None),
    "CR alone": (named(b"x") + b"\r" + named(b"y"), "unexpected content"),
    "BOM within": (b"\xef\xbb\xbf" + named(b"x"), "BOM"),
    "two on a line": (named(b"x") + b" " + named(b"y"), "unexpected content"),
    "no object": (b"null", "expected a JSON object, got null"),
    "type escaped": (b'{"typ\\u0065":"\\u0050","data":{"name":"x"}}', None),
    "null id": (b'{"type":"P","data":{"name":"x","id":null}}', "P.id is a text, got null"),
}
_MANY = b"".join(GOOD % number for number in range(1000))
#: Whole files, and what is said of them; None where they are right.
FILES: dict[str, tuple[bytes, str | None]] = {
    "bom.jsonl": (b"\xef\xbb\xbf" + named(b"x"), None),
    "bom-twice.jsonl": (
        b"\xef\xbb\xbf\xef\xbb\xbf" + named(b"x"),
        "bom-twice.jsonl:1: not valid JSON: UTF-8 byte order mark",
    ),
    "utf16.jsonl": ("\ufeff{}\n".encode("utf-16-le"), "utf16.jsonl:1: not valid UTF-8"),
    "empty.jsonl": (b"", None),
    "blank.jsonl": (b"\n \n\r\n", None),
    "bom-only.jsonl": (b"\xef\xbb\xbf", None),
    "cut.jsonl.gz": (gzip.compress(_MANY)[:500], "cut.jsonl.gz can not be decompressed"),
    "check.jsonl.gz": (gzip.compress(_MANY)[:-8] + bytes(8), "check.jsonl.gz can not be decompressed"),
    "tail.jsonl.gz": (gzip.compress(_MANY) + b"garbage", "tail.jsonl.gz can not be decompressed"),
    "other.jsonl.gz": (GOOD % 1, "other.jsonl.gz can not be decompressed"),
    "nothing.jsonl.gz": (b"", "nothing.jsonl.gz can not be decompressed: it is empty"),
    "two.jsonl.gz": (gzip.compress(GOOD % 1) + gzip.compress(GOOD % 2), None),
    "line.jsonl.gz": (gzip.compress(GOOD % 1 + b"nonsense\n"), "line.jsonl.gz:2: not valid JSON"),
    "cut.jsonl.zst": (pa.compress(_MANY, "zstd", asbytes=True)[:200], "cut.jsonl.zst can not be decompressed"),
    "other.jsonl.zst": (GOOD % 1, "other.jsonl.zst can not be decompressed"),
}


class Answer(NamedTuple):
    """What the command did: its exit code, whether anything was written, what it said."""

    code: int
    wrote: bool
    said: str


@pytest.fixture
def prepared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A graph to copy, in the working directory."""
    monkeypatch.chdir(tmp_path)
    og.init("empty", SCHEMA)
    return tmp_path


def answer(capfd: pytest.CaptureFixture[str], data: str, engine: str) -> Answer:
    """Load into a copy of the graph."""
    shutil.rmtree("g", ignore_errors=True)
    shutil.copytree("empty", "g")
    graph = og.open("g")
    before = files(graph)
    capfd.readouterr()
    code = run(["load", "--data", data, "--mode", "append", "--engine", engine, "--quiet", "g"])
    return Answer(code, files(graph) != before, capfd.readouterr().err)


def judge(found: Answer, expected: str | None) -> None:
    assert "Traceback" not in found.said
    if expected is None:
        assert (found.code, found.wrote) == (0, True), found.said
        return
    assert (found.code, found.wrote) == (1, False), found.said
    assert expected in found.said
    assert len(found.said) < 400


@pytest.mark.parametrize("case", LINES)
def test_lines(prepared: Path, capfd: pytest.CaptureFixture[str], case: str) -> None:
    line, message = LINES[case]
    Path("in.jsonl").write_bytes(GOOD % 1 + line + b"\n" + GOOD % 2)
    found = answer(capfd, "in.jsonl", "local")
    judge(found, message)
    assert message is None or "  in.jsonl:2: " in found.said


@pytest.mark.parametrize("name", FILES)
def test_files(prepared: Path, capfd: pytest.CaptureFixture[str], name: str) -> None:
    data, message = FILES[name]
    Path(name).write_bytes(data)
    judge(answer(capfd, name, "local"), message)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        pytest.param(lambda: None, "there is no file in.jsonl", id="missing"),
        pytest.param(lambda: Path("in.jsonl").mkdir(), "folder in.jsonl holds no file", id="empty folder"),
        pytest.param(lambda: Path("in.jsonl").symlink_to("in.jsonl"), "can not read in.jsonl", id="link to itself"),
        pytest.param(lambda: os.mkfifo("in.jsonl"), "is neither a file nor a folder", id="pipe"),
    ],
)
@pytest.mark.parametrize("engine", ["local", "spark"])
def test_no_file(prepared: Path, capfd: pytest.CaptureFixture[str], make: object, message: str, engine: str) -> None:
    assert callable(make)
    make()
    judge(answer(capfd, "in.jsonl", engine), message)


def test_spark_says_the_same(
    prepared: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every line and file once more, staged by Spark's workers."""
    monkeypatch.setenv("OMNIGRAPH_HELD_LOAD_BYTES", "0")
    for case, (line, message) in LINES.items():
        Path("in.jsonl").write_bytes(GOOD % 1 + line + b"\n" + GOOD % 2)
        local = answer(capfd, "in.jsonl", "local")
        assert answer(capfd, "in.jsonl", "spark") == local, case
        judge(local, message)
    for name, (data, message) in FILES.items():
        Path(name).write_bytes(data)
        local = answer(capfd, name, "local")
        assert answer(capfd, name, "spark") == local, name
        judge(local, message)


@pytest.mark.long
@pytest.mark.parametrize("engine", ["local", "spark"])
def test_a_line_of_100_megabytes(prepared: Path, capfd: pytest.CaptureFixture[str], engine: str) -> None:
    """In a file that is cut into ranges: it is one line all the same."""
    long = b'{"type":"P","data":{"name":"' + b"x" * 100_000_000 + b'"}}\n'
    Path("in.jsonl").write_bytes(GOOD % 1 + long + GOOD % 2)
    judge(answer(capfd, "in.jsonl", engine), None)
    Path("in.jsonl").write_bytes(GOOD % 1 + long.replace(b'"}}', b"}}") + GOOD % 2)
    judge(answer(capfd, "in.jsonl", engine), "in.jsonl:2: not valid JSON")
