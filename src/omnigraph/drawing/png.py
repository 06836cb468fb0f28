"""A picture as PNG, drawn with Pillow."""

from __future__ import annotations

from importlib import import_module
from io import BytesIO
from typing import Any

from omnigraph.drawing.layout import RADIUS, Placed, place
from omnigraph.drawing.picture import Picture
from omnigraph.drawing.shape import FAINT, INK, MOST_STRONG, PAPER, THREAD, Point, colour_of, short, ways
from omnigraph.errors import BadRequest

#: The scale at which a picture is drawn for smooth lines; not applied to pictures of more pixels than _MOST_PIXELS.
SCALE = 2
_MOST_PIXELS = 6_000_000
_STEPS = 24


def png(picture: Picture) -> bytes:
    """The picture as the bytes of a PNG file."""
    try:
        images, drawings, fonts = (import_module(f"PIL.{name}") for name in ("Image", "ImageDraw", "ImageFont"))
    except ImportError:
        raise BadRequest(
            "a PNG picture needs Pillow: run `pip install 'omnigraph[viz]'`, or write .html or .svg"
        ) from None
    placed = place(picture)
    scale = SCALE if placed.width * placed.height <= _MOST_PIXELS else 1
    image = images.new("RGB", (int(placed.width * scale), int(placed.height * scale)), PAPER)
    _draw(placed, drawings.Draw(image), fonts.load_default(12 * scale), scale)
    sink = BytesIO()
    image.save(sink, "PNG")
    return sink.getvalue()


def _draw(
    placed: Placed, pen: Any, font: Any, scale: int
) -> None:  # Pillow is optional, so its types are not known here
    def _scaled(point: Point) -> Point:
        return point[0] * scale, point[1] * scale

    def text(place: Point, content: str, colour: str, anchor: str) -> None:
        rim = {"stroke_width": scale, "stroke_fill": PAPER}
        pen.text(_scaled(place), content, fill=colour, font=font, anchor=anchor, **rim)

    thread = FAINT if len(placed.picture.lines) > MOST_STRONG else THREAD
    for line, way in ways(placed):
        pen.line([_scaled(way.at(step / _STEPS)) for step in range(_STEPS + 1)], fill=thread, width=scale)
        pen.polygon([_scaled(point) for point in way.arrow], fill=THREAD)
        if way.label is not None:
            text(way.label, short(line.label), THREAD, "ms")
    for mark in placed.picture.marks:
        x, y = placed.places[mark.key]
        corners = [_scaled((x - RADIUS, y - RADIUS)), _scaled((x + RADIUS, y + RADIUS))]
        pen.ellipse(corners, fill=colour_of(placed, mark.group), outline=PAPER, width=2 * scale)
        text((x, y + RADIUS + 14), short(mark.label), INK, "ms")
    text((12, 20), placed.picture.title, INK, "ls")
    for at, group in enumerate(placed.groups):
        y = 38.0 + 18 * at
        pen.ellipse([_scaled((12, y - 10)), _scaled((24, y + 2))], fill=colour_of(placed, group))
        text((30, y), group, INK, "ls")
