"""What the README shows can be typed in: its schema, then its Python blocks, one after the other."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

README = Path(__file__).resolve().parent.parent / "README.md"


def blocks(language: str) -> list[str]:
    """The fenced blocks of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```", README.read_text(), re.MULTILINE | re.DOTALL)


def test_the_tour_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    for kind in ("pg", "gq"):
        (text,) = blocks(kind)
        Path(f"team.{kind}").write_text(text)
    names: dict[str, object] = {}
    for block in blocks("python"):
        exec(block, names)
    printed = capsys.readouterr().out.splitlines()
    promised = [
        line.split("#")[1].strip() for block in blocks("python") for line in block.splitlines() if "print(" in line
    ]
    assert len(printed) == len(promised)
    shown_values = [
        (line, promise) for line, promise in zip(printed, promised, strict=True) if promise[0] in "[0123456789"
    ]
    assert len(shown_values) >= 3
    assert all(line == promise for line, promise in shown_values)
