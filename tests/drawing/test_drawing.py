"""Pictures: laid out the same every time, drawn in forms that hold any text."""

from __future__ import annotations

import struct
import sys
from itertools import combinations
from math import dist
from pathlib import Path
from xml.etree import ElementTree

import pytest

from omnigraph.drawing.layout import RADIUS, place
from omnigraph.drawing.picture import Line, Mark, Picture
from omnigraph.drawing.shape import ways
from omnigraph.errors import BadRequest

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = '</title><script>alert(1)</script>&"\x00\x1b[31m\ud800'


def ring(count: int) -> Picture:
    marks = tuple(Mark(str(at), f"mark {at}", f"group {at % 3}") for at in range(count))
    lines = tuple(Line(str(at), str((at + 1) % count), "next") for at in range(count))
    return Picture("ring", marks, lines)


@pytest.mark.parametrize("count", [0, 1, 2, 5, 60])
def test_marks_stand_apart_and_inside(count: int) -> None:
    placed = place(ring(count) if count else Picture("nothing", (), ()))
    assert len(placed.places) == count
    for x, y in placed.places.values():
        assert 0 < x < placed.width
        assert 0 < y < placed.height
    assert all(dist(one, other) > 2 * RADIUS for one, other in combinations(placed.places.values(), 2))
    assert place(placed.picture) == placed, "the same picture every time"


def test_what_is_joined_stands_nearer() -> None:
    marks = tuple(Mark(str(at), str(at), "g") for at in range(6))
    lines = (Line("0", "1", ""), Line("1", "2", ""), Line("3", "4", ""), Line("4", "5", ""))
    places = place(Picture("two parts", marks, lines)).places
    assert dist(places["0"], places["1"]) < dist(places["0"], places["3"])


def test_lines_between_the_same_marks_do_not_lie_on_each_other() -> None:
    marks = (Mark("a", "a", "g"), Mark("b", "b", "g"))
    lines = (Line("a", "b", "1"), Line("a", "b", "2"), Line("b", "a", "3"), Line("a", "a", "4"), Line("a", "a", "5"))
    drawn = [way for _, way in ways(place(Picture("p", marks, lines)))]
    middles = [way.at(0.5) for way in drawn]
    assert all(dist(one, other) > 10 for one, other in combinations(middles, 2))
    assert all(way.label is not None for way in drawn)


def test_names_of_lines_lie_on_no_mark_and_on_no_other_name() -> None:
    """Forty marks around two of them, as when a topic is explored."""
    marks = tuple(Mark(str(at), f"mark {at:04}", "g") for at in range(42))
    lines = tuple(Line(str(at), str(40 + at % 2), "About") for at in range(40))
    placed = place(Picture("hubs", marks, lines))
    names = [way.label for _, way in ways(placed) if way.label is not None]
    assert len(names) >= 36
    assert all(abs(x - other_x) > 30 or abs(y - other_y) > 12 for (x, y), (other_x, other_y) in combinations(names, 2))
    for x, y in names:
        assert all(dist((x, y - 4), where) > RADIUS for where in placed.places.values())


def test_a_picture_lies_across() -> None:
    """A chain of marks, which no page has room for when it stands."""
    marks = tuple(Mark(str(at), str(at), "g") for at in range(6))
    placed = place(Picture("chain", marks, tuple(Line(str(at), str(at + 1), "next") for at in range(5))))
    assert placed.width > 2 * placed.height


def test_svg_has_every_mark_and_line() -> None:
    root = ElementTree.fromstring(ring(5).to_svg())
    assert len(root.findall(f"{SVG}g")) == 5
    assert len(root.findall(f"{SVG}path")) == 5
    assert [text.text for text in root.iter(f"{SVG}text") if text.text in ("group 0", "group 1", "group 2")] == [
        "group 0",
        "group 1",
        "group 2",
    ]


def test_texts_stay_texts() -> None:
    picture = Picture(HOSTILE, (Mark("a", HOSTILE, HOSTILE, HOSTILE),), (Line("a", "a", HOSTILE),))
    ElementTree.fromstring(picture.to_svg())
    assert picture.to_html().count("<script>") == 1
    picture.to_html().encode()


def test_a_page_needs_no_network() -> None:
    page = ring(3).to_html()
    assert "default-src 'none'" in page
    for word in ("src=", "href=", "@import", "url("):
        assert word not in page


def test_a_notebook_shows_the_picture() -> None:
    assert ring(3)._repr_html_().startswith("<svg ")


def test_plain_data() -> None:
    shown = ring(2).to_dict()
    assert shown["nodes"][0] == {"id": "0", "label": "mark 0", "group": "group 0", "detail": ""}
    assert shown["edges"] == [{"from": "0", "to": "1", "label": "next"}, {"from": "1", "to": "0", "label": "next"}]


@pytest.mark.parametrize("name", ["p.html", "p.svg", "P.SVG"])
def test_saving(tmp_path: Path, name: str) -> None:
    ring(3).save(tmp_path / name)
    assert "<svg " in (tmp_path / name).read_text()


def test_an_unknown_form(tmp_path: Path) -> None:
    with pytest.raises(BadRequest, match="end its name with .html, .svg or .png"):
        ring(3).save(tmp_path / "p.jpeg")
    assert list(tmp_path.iterdir()) == []


def test_png() -> None:
    pytest.importorskip("PIL")
    marks = (*ring(12).marks, Mark("x", "γειά \U0001f600", "group 0"))
    content = Picture("ring", marks, ring(12).lines).to_png()
    assert content.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = struct.unpack(">II", content[16:24])
    placed = place(Picture("ring", marks, ring(12).lines))
    assert (width, height) == (int(placed.width * 2), int(placed.height * 2))


def test_png_without_pillow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "PIL", None)
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    with pytest.raises(BadRequest, match=r"pip install 'omnigraph\[viz\]'"):
        ring(3).to_png()
