"""`Picture`: a drawing as plain data, and its output formats."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from omnigraph.errors import BadRequest


@dataclass(frozen=True)
class Mark:
    """A node: `group` decides its colour, `detail` is shown when it is pointed at."""

    key: str
    label: str
    group: str
    detail: str = ""


@dataclass(frozen=True)
class Line:
    """An edge between two marks, named by their keys."""

    source: str
    target: str
    label: str


@dataclass(frozen=True)
class Picture:
    """A drawn graph. In a notebook it shows itself; `save` writes it as .html, .svg or .png."""

    title: str
    marks: tuple[Mark, ...]
    lines: tuple[Line, ...]
    is_complete: bool = True
    #: All groups that the graph has, in an order that decides their colours; those of the picture, by name, unless given.
    groups: tuple[str, ...] = ()

    @property
    def colours(self) -> tuple[str, ...]:
        """The groups in the order of their colours."""
        others = sorted({mark.group for mark in self.marks} - set(self.groups))
        return (*self.groups, *others)

    def to_svg(self) -> str:
        """The picture as SVG."""
        from omnigraph.drawing.svg import svg

        return svg(self)

    def to_html(self) -> str:
        """The picture as a page of its own, which can be moved and zoomed."""
        from omnigraph.drawing.svg import page

        return page(self)

    def to_png(self) -> bytes:
        """The picture as PNG; Pillow is an optional extra."""
        from omnigraph.drawing.png import png

        return png(self)

    def save(self, path: str | Path) -> None:
        """Write the picture in the form that the name of the file asks for."""
        from omnigraph.storage.outputs import Output

        content = self.content(path)
        Output.parse(path).write([content])

    def content(self, path: str | Path) -> bytes:
        """The bytes of a file of this name."""
        return drawer_of(path)(self)

    def to_dict(self) -> dict[str, Any]:
        """The picture as plain data."""
        return {
            "title": self.title,
            "nodes": [
                {"id": mark.key, "label": mark.label, "group": mark.group, "detail": mark.detail} for mark in self.marks
            ],
            "edges": [{"from": line.source, "to": line.target, "label": line.label} for line in self.lines],
            "is_complete": self.is_complete,
        }

    def _repr_html_(self) -> str:
        return self.to_svg()


_FORMS: Mapping[str, Callable[[Picture], bytes]] = {
    ".html": lambda picture: picture.to_html().encode(),
    ".svg": lambda picture: picture.to_svg().encode(),
    ".png": Picture.to_png,
}


def drawer_of(path: str | Path) -> Callable[[Picture], bytes]:
    """The function that draws a file of this name; raises BadRequest for an unknown suffix."""
    suffix = Path(path).suffix.lower()
    if suffix not in _FORMS:
        raise BadRequest(f"'{path}' does not say what to draw: end its name with .html, .svg or .png")
    return _FORMS[suffix]
