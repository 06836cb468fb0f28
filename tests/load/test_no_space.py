"""A disk that is full, of the graph or of the temporary files: one clear line, nothing written, nothing left, and no wedge."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pytest

import omnigraph as og
from omnigraph.errors import StorageError
from tests.load.loading import content, files

SCHEMA = "node P { name: String @key note: String } edge K: P -> P"
MIB = 1 << 20
Mount = Callable[[int], Path]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Mount]:
    """A file system of a few bytes; only where this process may mount one."""
    folder = tmp_path / "small"

    def mount(size: int) -> Path:
        folder.mkdir()
        made = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder], check=False)
        if made.returncode != 0:
            pytest.skip("this process may not mount a file system")
        return folder

    yield mount
    if folder.exists() and folder.is_mount():
        subprocess.run(["umount", "-l", folder], check=True)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """More text than a load holds in memory, with notes that can not be compressed."""
    path = tmp_path / "data.jsonl"
    with path.open("wb") as file:
        for number in range(20_000):
            note = os.urandom(150).hex()
            file.write(orjson.dumps({"type": "P", "data": {"name": f"p{number:06}", "note": note}}) + b"\n")
            file.write(orjson.dumps({"edge": "K", "from": f"p{number:06}", "to": f"p{19_999 - number:06}"}) + b"\n")
    return path


ONE = b'{"type":"P","data":{"name":"one","note":"x"}}\n{"edge":"K","from":"one","to":"one"}\n'


@pytest.mark.parametrize("engine", ["local", "spark"])
def test_no_space_for_the_graph(small_disk: Mount, data: Path, engine: Any) -> None:
    graph = og.init(small_disk(3 * MIB) / "g", SCHEMA)
    there = files(graph)
    with pytest.raises(StorageError, match="No space left on device.*free some space and try again"):
        graph.load(data, engine=engine)
    assert files(graph) == there
    graph.load(ONE, engine="local")
    assert len(content(graph)["node:P"]) == 1


@pytest.mark.parametrize("engine", ["local", "spark"])
def test_no_space_for_keys(
    small_disk: Mount, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: Any
) -> None:
    """The keys of a large load wait in the folder for temporary files."""
    place = small_disk(MIB // 2)
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    graph = og.init(tmp_path / "g", SCHEMA)
    there = files(graph)
    with pytest.raises(StorageError, match="can not keep temporary files in .*No space left.*set TMPDIR") as told:
        graph.load(data, engine=engine)
    assert str(place) in told.value.message
    assert files(graph) == there
    assert list(place.iterdir()) == []
    graph.load(ONE, engine="local")


def test_no_space_as_a_command(small_disk: Mount, data: Path, tmp_path: Path) -> None:
    graph = og.init(tmp_path / "g", SCHEMA)
    there = files(graph)
    environment = {**os.environ, "TMPDIR": str(small_disk(MIB // 2))}
    command = [sys.executable, "-m", "omnigraph", "load", "--data", str(data), "--mode", "append", "--engine", "local"]
    for given in ([*command, graph.uri], [*command, graph.uri, "--data", "-"]):
        with data.open("rb") as stream:
            done = subprocess.run(given, env=environment, stdin=stream, capture_output=True, text=True, check=False)
        assert done.returncode == 1, done.stderr
        assert "Error: can not keep temporary files in" in done.stderr
        assert "Traceback" not in done.stderr
        assert files(graph) == there


def _full(*_: object, **__: object) -> object:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("seam", ["pyarrow.OSFile", "pyarrow.memory_map", "tempfile.mkdtemp"])
def test_no_space_injected(tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch, seam: str) -> None:
    """The same wherever the system first says so, also where no small file system can be had."""
    (tmp_path / "t").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "t"))
    graph = og.init(tmp_path / "g", SCHEMA)
    there = files(graph)
    with monkeypatch.context() as full:
        full.setattr(seam, _full)
        with pytest.raises(StorageError, match="can not keep temporary files in"):
            graph.load(data, engine="local")
    assert files(graph) == there
    assert list((tmp_path / "t").iterdir()) == []
    graph.load(data, engine="local")
    assert len(content(graph)["edge:K"]) == 20_000


def test_no_space_for_a_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A large table in memory waits in a file, too."""
    graph = og.init(tmp_path / "g", SCHEMA)
    table = pa.table({"name": ["a", "b"], "note": ["x", "y"]})
    monkeypatch.setattr("omnigraph.load.inputs.RANGE_BYTES", 1)
    with monkeypatch.context() as full:
        full.setattr("pyarrow.ipc.new_file", _full)
        with pytest.raises(StorageError, match="can not keep temporary files in"):
            graph.load(table, type="P", engine="local")
    graph.load(table, type="P", engine="local")
    assert len(content(graph)["node:P"]) == 2
