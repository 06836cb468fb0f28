"""`omnigraph fmt`: files are replaced whole or not at all."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from omnigraph import failpoints
from tests.cli.calling import call

Capsys = pytest.CaptureFixture[str]

QUERIES = "query q(){match{$s:Staff}return{$s.name}} // end\r\n"
LAID_OUT = "query q() {\r\n  match {\r\n    $s: Staff\r\n  }\r\n  return {\r\n    $s.name\r\n  }\r\n} // end\r\n"
SCHEMA = "nodeStaff{name:String@key}"
SCHEMA_LAID_OUT = "node Staff {\n  name: String @key\n}\n"
BROKEN = "node Staff { name String }\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "a.gq").write_bytes(QUERIES.encode())
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "b.pg").write_text(SCHEMA)
    (tmp_path / "deep" / "note.txt").write_text("x")
    return tmp_path


def test_files_and_folders_are_laid_out_once(capsys: Capsys, folder: Path) -> None:
    (folder / "a.gq").chmod(0o640)
    outcome = call(capsys, "fmt", str(folder))
    names = [str(folder / "a.gq"), str(folder / "deep" / "b.pg")]
    assert (outcome.code, outcome.out.splitlines(), outcome.err) == (0, [f"laid out {name}" for name in names], "")
    assert (folder / "a.gq").read_bytes() == LAID_OUT.encode()
    assert (folder / "deep" / "b.pg").read_text() == SCHEMA_LAID_OUT
    assert (folder / "a.gq").stat().st_mode & 0o777 == 0o640
    again = call(capsys, "fmt", *names)
    assert (again.code, again.out, again.err) == (0, "", "")
    assert call(capsys, "fmt", "--check", *names).code == 0


def test_check_and_diff_change_nothing(capsys: Capsys, folder: Path) -> None:
    file = folder / "deep" / "b.pg"
    outcome = call(capsys, "fmt", "--check", str(file))
    assert (outcome.code, outcome.out) == (1, f"not laid out: {file}\n")
    outcome = call(capsys, "fmt", "--diff", str(file))
    assert outcome.code == 0
    assert "-nodeStaff{name:String@key}\n\\ No newline at end of file\n+node Staff {\n" in outcome.out
    assert call(capsys, "fmt", "--diff", "--check", str(file)).code == 1
    assert file.read_text() == SCHEMA


@pytest.mark.parametrize(("text", "expected"), [(QUERIES, LAID_OUT), (f"// x\n{SCHEMA}", f"// x\n{SCHEMA_LAID_OUT}")])
def test_standard_input_is_printed(
    capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch, text: str, expected: str
) -> None:
    from omnigraph.cli.main import run

    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    assert run(["fmt", "-"]) == 0
    assert capfdbinary.readouterr().out == expected.encode()


def test_a_broken_file_is_reported_like_lint_does_and_the_others_are_laid_out(capsys: Capsys, folder: Path) -> None:
    broken = folder / "broken.pg"
    broken.write_text(BROKEN)
    outcome = call(capsys, "fmt", str(broken), str(folder / "deep" / "b.pg"))
    assert outcome.code == 1
    assert broken.read_text() == BROKEN
    linted = call(capsys, "lint", "--schema", str(broken), "--query", str(folder / "a.gq"))
    assert outcome.err == linted.err
    assert "^" in outcome.err
    assert (folder / "deep" / "b.pg").read_text() == SCHEMA_LAID_OUT


@pytest.mark.parametrize(
    "content", [b"\xff", b"\xef\xbb\xbfnode A { a: String }", b"node A { id: String }", b"/* open"]
)
def test_what_can_not_be_read_stays(capsys: Capsys, tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "a.pg"
    file.write_bytes(content)
    outcome = call(capsys, "fmt", str(file))
    assert (outcome.code, outcome.out) == (1, "")
    assert outcome.err.startswith("Error: ")
    assert file.read_bytes() == content


def test_a_failure_while_writing_leaves_the_file(capsys: Capsys, folder: Path) -> None:
    with failpoints.armed("outputs.written"):
        assert call(capsys, "fmt", str(folder / "a.gq")).code == 1
    assert (folder / "a.gq").read_bytes() == QUERIES.encode()
    assert [path.name for path in folder.iterdir() if path.name.startswith(".")] == []


def test_usage(capsys: Capsys, folder: Path) -> None:
    assert call(capsys, "fmt").code == 2
    outcome = call(capsys, "fmt", str(folder / "deep" / "note.txt"))
    assert (outcome.code, "neither a schema (.pg) nor queries (.gq)" in outcome.err) == (1, True)
    assert call(capsys, "fmt", str(folder / "missing.gq")).code == 1
