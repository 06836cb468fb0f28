"""Studio in a real browser: how long a frame takes while a large picture is dragged, beside the same data in a bare sigma page.

Chromium renders without a graphics card here, so the numbers say how much Studio adds, not how fast a person's machine is.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

import omnigraph as og
from bench.measure import Floor, Measure, Row, benchmark, scratch_folder, summary
from tests.server.serving import TOKEN, serving
from tests.studio.browser import ARGUMENTS, ROOT, chromium, studio_built
from tests.studio.conftest import settings_of

NODES, EDGES, DRAGS, SECONDS = 5_000, 10_000, 5, 2.0
SCHEMA = "node Dot { name: String @key }\nedge Line: Dot -> Dot"
QUERY = "query q() { match { $a: Dot  $a $l: line $b } return { $a, $b, $l.@id } limit 20000 }"
BARE = """
<style>html, body, #place { margin: 0; width: 1000px; height: 680px }</style><div id="place"></div>
"""
#: Draws the same data with sigma alone, where Studio has placed the nodes at random too.
DRAW = """
lines => {
  const graph = new graphology.Graph({ multi: true });
  const about = name => ({ label: name, size: 8, color: "#4477aa", x: Math.random(), y: Math.random() });
  const add = name => graph.hasNode(name) || graph.addNode(name, about(name));
  for (const [a, b] of lines) { add(a); add(b); graph.addEdge(a, b, { size: 1.5, type: "arrow" }); }
  const sigma = new Sigma(graph, document.getElementById("place"));
  let frames = 0;
  sigma.on("afterRender", () => frames++);
  window.studioPicture = { frames: () => frames };
}
"""


def _lines() -> list[tuple[str, str]]:
    chance = random.Random(7)
    names = [f"n{number:04}" for number in range(NODES)]
    joined = [(names[place], names[(place + 1) % NODES]) for place in range(NODES)]
    return joined + [(chance.choice(names), chance.choice(names)) for _ in range(EDGES - NODES)]


@contextmanager
def _browser() -> Iterator[Browser]:
    path, environment = chromium()
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=path, args=ARGUMENTS, env={**environment})
        yield running
        running.close()


def _dragged(page: Page, place: str) -> Measure:
    """The seconds of a frame while the picture is dragged to and fro."""
    box = page.locator(place).bounding_box()
    assert box is not None
    x, y = box["x"] + 20, box["y"] + 20
    found = []
    for _ in range(DRAGS):
        page.mouse.move(x, y)
        page.mouse.down()
        before, start = page.evaluate("[window.studioPicture.frames(), performance.now()]")
        step, end = 0, start
        while end - start < SECONDS * 1000:
            step += 1
            page.mouse.move(x + step % 40 * 5, y + step % 30 * 4)
            end = page.evaluate("performance.now()")
        after = page.evaluate("window.studioPicture.frames()")
        page.mouse.up()
        found.append((end - start) / 1000 / max(1, after - before))
    return summary(found)


def _in_studio(browser: Browser, folder: Path, lines: list[tuple[str, str]]) -> Measure:
    names = dict.fromkeys(name for line in lines for name in line)
    rows = [json.dumps({"type": "Dot", "data": {"name": name}}) for name in names]
    rows += [json.dumps({"edge": "Line", "from": a, "to": b, "data": {}}) for a, b in lines]
    with og.init(folder / "team.omni", SCHEMA) as graph:
        graph.load("\n".join(rows).encode())
    with serving(settings_of(folder / "team.omni", stored="")) as served:
        context = browser.new_context(viewport={"width": 1280, "height": 900})
        context.set_default_timeout(120_000)
        context.add_init_script(f"sessionStorage.setItem('omnigraph.token', {TOKEN!r})")
        page = context.new_page()
        page.goto(f"{served.url}/g/team/query")
        page.get_by_role("textbox", name="Query").fill(QUERY)
        page.get_by_role("button", name="Run", exact=True).click()
        page.get_by_role("tab", name="Graph").click()
        page.get_by_role("button", name="Draw them anyway").click()
        page.locator(".graph-canvas canvas").first.wait_for()
        # Until it is laid out; a drag of the whole picture would otherwise be measured together with that.
        page.wait_for_timeout(30_000)
        measured = _dragged(page, ".graph-canvas")
        context.close()
    return measured


def _bare(browser: Browser, lines: list[tuple[str, str]]) -> Measure:
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    page.set_content(BARE)
    packages = ROOT / "studio" / "node_modules"
    page.add_script_tag(path=packages / "graphology" / "dist" / "graphology.umd.min.js")
    page.add_script_tag(path=packages / "sigma" / "dist" / "sigma.min.js")
    page.evaluate(DRAW, lines)
    page.wait_for_timeout(2_000)
    measured = _dragged(page, "#place")
    context.close()
    return measured


@benchmark("studio.drag")
def drag() -> list[Row]:
    """A frame of a dragged picture of 5,000 nodes and 10,000 edges."""
    studio_built()
    lines = _lines()
    with scratch_folder() as folder, _browser() as browser:
        ours = _in_studio(browser, folder, lines)
        floor = Floor("bare sigma", _bare(browser, lines))
    speeds = f"{1 / ours.median:.1f} frames per second, bare sigma {1 / floor.measure.median:.1f}"
    return [Row(f"a frame while {NODES:,} nodes and {EDGES:,} edges are dragged ({speeds})", ours, floor)]
