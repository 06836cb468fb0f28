"""`omnigraph blob …`."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.cli.main import run

Capture = pytest.CaptureFixture[bytes]

SCHEMA = "node Doc { title: String @key content: Blob? }"
PUT = "query q($t: String, $c: Blob?) { insert Doc { title: $t, content: $c } }"
CONTENT = b"Hello\x00\xffWorld\n"


@dataclass(frozen=True)
class Outcome:
    code: int
    out: bytes
    err: str


def blob(capture: Capture, verb: str, title: str, *flags: str) -> Outcome:
    code = run(["blob", verb, "--store", "g.omni", "node", "Doc", title, "content", *flags])
    captured = capture.readouterr()
    return Outcome(code, captured.out, captured.err.decode())


@pytest.fixture
def graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> og.Graph:
    """A graph with a document, an empty one, one without content and one whose content is elsewhere."""
    monkeypatch.chdir(tmp_path)
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "f.bin").write_bytes(b"external")
    graph = og.init("g.omni", SCHEMA, external_blobs=[f"file://{outside}/"])
    for title, content in (("doc", CONTENT), ("empty", b"")):
        graph.mutate(PUT, params={"t": title, "c": f"base64:{base64.b64encode(content).decode()}"})
    graph.mutate(PUT, params={"t": "null", "c": None})
    graph.mutate(PUT, params={"t": "external", "c": f"file://{outside}/f.bin"})
    return graph


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ((), CONTENT),
        (("--offset", "7"), CONTENT[7:]),
        (("--offset", "2", "--length", "4"), CONTENT[2:6]),
        (("--length", "5"), CONTENT[:5]),
        (("--offset", "10", "--length", "1000"), CONTENT[10:]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_get(capsysbinary: Capture, graph: og.Graph, flags: tuple[str, ...], expected: bytes) -> None:
    assert blob(capsysbinary, "get", "doc", *flags) == Outcome(0, expected, "")


def test_get_of_an_empty_blob(capsysbinary: Capture, graph: og.Graph) -> None:
    assert blob(capsysbinary, "get", "empty") == Outcome(0, b"", "")


def test_get_into_a_file(capsysbinary: Capture, graph: og.Graph, tmp_path: Path) -> None:
    (tmp_path / "out.bin").write_bytes(b"old")
    with (tmp_path / "out.bin").open("rb") as reader:
        assert blob(capsysbinary, "get", "doc", "--out", "out.bin") == Outcome(0, b"", "")
        assert reader.read() == b"old", "the file is replaced as a whole, never written over"
    assert (tmp_path / "out.bin").read_bytes() == CONTENT
    assert [path.name for path in tmp_path.iterdir() if path.name.endswith(".part")] == []


def test_get_into_a_device(capsysbinary: Capture, graph: og.Graph) -> None:
    assert blob(capsysbinary, "get", "doc", "--out", os.devnull).code == 0
    assert not Path(os.devnull).is_file()


def test_get_as_a_process(graph: og.Graph) -> None:
    arguments = ["blob", "get", "node", "Doc", "doc", "content", "--store", "g.omni"]
    done = subprocess.run([sys.executable, "-m", "omnigraph", *arguments], capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, CONTENT, b"")


def test_get_of_an_old_snapshot(capsysbinary: Capture, graph: og.Graph) -> None:
    before = graph.head().id
    graph.mutate('query q() { delete Doc where title = "doc" }')
    assert blob(capsysbinary, "get", "doc", "--snapshot", before).out == CONTENT
    assert "not found" in blob(capsysbinary, "get", "doc").err


@pytest.mark.parametrize(
    ("title", "flags", "message"),
    [
        ("doc", ("--length", "0"), "--length must be at least 1"),
        ("doc", ("--offset", "13"), "are not within the 13 bytes"),
        ("doc", ("--length", str(2**64)), "are not within the 13 bytes"),
        ("doc", ("--offset", "1", "--length", str(2**63 - 1)), "are not within the 13 bytes"),
        ("empty", ("--offset", "1"), "are not within the 0 bytes"),
        ("null", (), "content is null"),
        ("nobody", (), "not found"),
        ("external", (), "see `omnigraph blob stat`"),
        ("doc", ("--branch", "nope"), "branch 'nope' not found"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_failures_leave_the_file(
    capsysbinary: Capture, graph: og.Graph, tmp_path: Path, title: str, flags: tuple[str, ...], message: str
) -> None:
    (tmp_path / "out.bin").write_bytes(b"old")
    outcome = blob(capsysbinary, "get", title, "--out", "out.bin", *flags)
    assert (outcome.code, outcome.out) == (1, b"")
    assert message in outcome.err
    assert (tmp_path / "out.bin").read_bytes() == b"old"


def test_a_folder_that_is_missing(capsysbinary: Capture, graph: og.Graph) -> None:
    outcome = blob(capsysbinary, "get", "doc", "--out", "no/out.bin")
    message = f"Error: can not write {Path('no/out.bin').resolve()}: it does not exist; check the path\n"
    assert (outcome.code, outcome.err) == (1, message)


@pytest.mark.parametrize(
    "flags", [("--offset", "-1"), ("--length", "x"), ("--branch", "a", "--snapshot", "b")], ids=" ".join
)
def test_usage(capsysbinary: Capture, graph: og.Graph, flags: tuple[str, ...]) -> None:
    assert blob(capsysbinary, "get", "doc", *flags).code == 2


def test_stat(capsysbinary: Capture, graph: og.Graph) -> None:
    value = graph.read_blob("node", "Doc", "doc", "content")
    shown = json.loads(blob(capsysbinary, "stat", "doc", "--json").out)
    assert shown == {
        "selector": {"entity": "node", "type": "Doc", "id": "doc", "property": "content"},
        "kind": "managed",
        "size": 13,
        "etag": value.etag,
        "target": {"branch": "main", "resolved_snapshot": graph.snapshot().id},
    }
    assert blob(capsysbinary, "stat", "doc").out.decode().splitlines() == [
        "entity: node",
        "type: Doc",
        "id: doc",
        "property: content",
        "kind: managed",
        "size: 13",
        f"etag: {value.etag}",
        "branch: main",
        f"resolved_snapshot: {graph.snapshot().id}",
    ]


def test_stat_of_an_external_blob_at_a_snapshot(capsysbinary: Capture, graph: og.Graph, tmp_path: Path) -> None:
    head = graph.head().id
    shown = json.loads(blob(capsysbinary, "stat", "external", "--json", "--snapshot", head).out)
    assert (shown["kind"], shown["uri"]) == ("external", f"file://{tmp_path}/outside/f.bin")
    assert "size" not in shown
    assert shown["target"] == {"snapshot": head, "resolved_snapshot": graph.snapshot().id}


def test_stat_of_nothing(capsysbinary: Capture, graph: og.Graph) -> None:
    assert blob(capsysbinary, "stat", "nobody").code == 1


@pytest.mark.parametrize(("type_name", "property"), [("Doc", "title"), ("Nope", "content"), ("Doc", "nope")])
def test_not_a_blob(capsysbinary: Capture, graph: og.Graph, type_name: str, property: str) -> None:
    assert run(["blob", "stat", "--store", "g.omni", "node", type_name, "doc", property]) == 1
    assert b"is not a Blob property" in capsysbinary.readouterr().err
