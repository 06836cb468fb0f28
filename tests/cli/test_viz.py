"""`omnigraph viz`: a picture in a file."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.cli.calling import call

Capsys = pytest.CaptureFixture[str]


def test_a_page_of_a_neighbourhood(capsys: Capsys, org: Path) -> None:
    outcome = call(capsys, "viz", "org.omni", "--type", "Staff", "--id", "ada", "--out", "g.html")
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out == "drew 4 nodes and 3 edges of org.omni to g.html\n"
    page = Path("g.html").read_text()
    assert "cleo" in page
    assert "Mentors" in page


def test_the_schema(capsys: Capsys, org: Path) -> None:
    outcome = call(capsys, "viz", "org.omni", "--out", "schema.svg", "--json")
    assert json.loads(outcome.out) == {
        "uri": "org.omni",
        "out": "schema.svg",
        "nodes": 2,
        "edges": 2,
        "is_complete": True,
    }
    assert Path("schema.svg").read_text().startswith("<svg ")


def test_more_than_fits_is_said(capsys: Capsys, org: Path) -> None:
    outcome = call(capsys, "viz", "org.omni", "--type", "Staff", "--limit", "2", "--out", "g.svg")
    assert outcome.code == 0
    assert "only 2 nodes are drawn" in outcome.err


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ((), 2, "Missing option '--out'"),
        (("--out", "g.gif"), 1, "'g.gif' does not say what to draw: end its name with .html, .svg or .png"),
        (("--out", "g.svg", "--id", "ada"), 2, "--id needs --type"),
        (("--out", "g.svg", "--type", "Nope"), 1, "the schema has no node type 'Nope'"),
        (("--out", "g.svg", "--type", "Staff", "--id", "zoe"), 1, "there is no Staff with the id 'zoe'"),
        (("--out", "g.svg", "--type", "Staff", "--depth", "9"), 1, "depth is a number of edges"),
        (("--out", "g.svg", "--branch", "b", "--snapshot", "s"), 2, "exclude each other"),
        (("--out", "g.svg", "--branch", "nope"), 1, "branch 'nope' not found"),
        (("--out", "no/g.svg"), 1, "no/g.svg: it does not exist; check the path"),
        (("--out", "g.svg", "--as", "me"), 2, "`viz` is a direct (storage-native) command; `--as` names the actor"),
    ],
)
def test_refused(capsys: Capsys, org: Path, arguments: tuple[str, ...], code: int, message: str) -> None:
    before = sorted(path.name for path in org.iterdir())
    outcome = call(capsys, "viz", "org.omni", *arguments)
    assert (outcome.code, outcome.out) == (code, "")
    assert message in outcome.err
    assert sorted(path.name for path in org.iterdir()) == before


def test_png_without_pillow(capsys: Capsys, org: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    outcome = call(capsys, "viz", "org.omni", "--out", "g.png")
    assert outcome.code == 1
    assert "pip install 'omnigraph[viz]'" in outcome.err
    assert not Path("g.png").exists()
