"""A picture as SVG."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape

from omnigraph.drawing.layout import RADIUS, Placed, place
from omnigraph.drawing.picture import Picture
from omnigraph.drawing.shape import INK, MOST_STRONG, PAPER, THREAD, Point, colour_of, short, ways

#: Characters that XML does not allow, even escaped.
_FORBIDDEN = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


def svg(picture: Picture) -> str:
    """The picture as self-contained SVG, without scripts and external resources."""
    placed = place(picture)
    size = f"{placed.width:.0f} {placed.height:.0f}"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size}" width="{placed.width:.0f}" '
        f'height="{placed.height:.0f}" font-family="sans-serif" font-size="12">',
        # An outline in the background colour keeps a label readable on top of a line.
        f"<style>text{{paint-order:stroke;stroke:{PAPER};stroke-width:3px}}</style>",
        f"<title>{clean(picture.title)}</title>",
        f'<rect width="100%" height="100%" fill="{PAPER}"/>',
        *_lines(placed),
        *_marks(placed),
        *_legend(placed),
        "</svg>",
    ]
    return "\n".join(parts)


def clean(text: str) -> str:
    """A text escaped for XML and HTML, without forbidden characters."""
    return escape(_FORBIDDEN.sub("\N{REPLACEMENT CHARACTER}", text))


def _lines(placed: Placed) -> Iterator[str]:
    faint = ' stroke-opacity="0.5"' if len(placed.picture.lines) > MOST_STRONG else ""
    for line, way in ways(placed):
        bow = f"M{_at(way.start)} Q{_at(way.control)} {_at(way.end)}"
        yield f'<path d="{bow}" fill="none" stroke="{THREAD}"{faint}/>'
        yield f'<polygon points="{" ".join(map(_at, way.arrow))}" fill="{THREAD}"/>'
        if way.label is None:
            yield f'<path d="{bow}" fill="none" stroke="transparent" stroke-width="9"><title>{clean(line.label)}</title></path>'
            continue
        x, y = way.label
        yield f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="middle" fill="{THREAD}">{clean(short(line.label))}</text>'


def _marks(placed: Placed) -> Iterator[str]:
    for mark in placed.picture.marks:
        x, y = placed.places[mark.key]
        told = f"{mark.group} {mark.label}" + (f"\n{mark.detail}" if mark.detail else "")
        yield (
            f'<g><title>{clean(told)}</title><circle cx="{x:.1f}" cy="{y:.1f}" r="{RADIUS:.0f}" '
            f'fill="{colour_of(placed, mark.group)}" stroke="{PAPER}" stroke-width="2"/>'
            f'<text x="{x:.1f}" y="{y + RADIUS + 14:.1f}" text-anchor="middle" fill="{INK}">'
            f"{clean(short(mark.label))}</text></g>"
        )


def _legend(placed: Placed) -> Iterator[str]:
    yield f'<text x="12" y="20" fill="{INK}" font-weight="bold">{clean(placed.picture.title)}</text>'
    for at, group in enumerate(placed.groups):
        y = 38 + 18 * at
        yield f'<circle cx="18" cy="{y - 4}" r="6" fill="{colour_of(placed, group)}"/>'
        yield f'<text x="30" y="{y}" fill="{INK}">{clean(group)}</text>'


def _at(point: Point) -> str:
    return f"{point[0]:.1f},{point[1]:.1f}"


#: The page moves the picture by its view box; its content security policy forbids all requests.
_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'">
<title>{title}</title>
<style>html,body{{margin:0;height:100%}}svg{{width:100%;height:100%;cursor:grab}}</style>
</head>
<body>
{picture}
<script>
const svg = document.querySelector("svg"), box = svg.viewBox.baseVal;
let from = null;
svg.addEventListener("pointerdown", event => {{ from = event; svg.setPointerCapture(event.pointerId); }});
svg.addEventListener("pointerup", () => {{ from = null; }});
svg.addEventListener("pointermove", event => {{
  if (!from) return;
  const scale = Math.max(box.width / svg.clientWidth, box.height / svg.clientHeight);
  box.x -= (event.clientX - from.clientX) * scale;
  box.y -= (event.clientY - from.clientY) * scale;
  from = event;
}});
svg.addEventListener("wheel", event => {{
  event.preventDefault();
  const factor = Math.exp(event.deltaY / 500);
  const x = box.x + box.width * event.offsetX / svg.clientWidth;
  const y = box.y + box.height * event.offsetY / svg.clientHeight;
  box.x = x - (x - box.x) * factor;
  box.y = y - (y - box.y) * factor;
  box.width *= factor;
  box.height *= factor;
}}, {{passive: false}});
</script>
</body>
</html>
"""


def page(picture: Picture) -> str:
    """The picture in a page that needs no network."""
    return _PAGE.format(title=clean(picture.title), picture=svg(picture))
