"""A picture as a page of its own: drag to move, turn the wheel to zoom."""

from __future__ import annotations

from omnigraph.drawing.picture import Picture
from omnigraph.drawing.svg import clean, svg

#: The picture is moved by its view box; nothing is fetched, and the content security policy of the page says so.
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
