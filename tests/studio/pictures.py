"""Pictures of every view of Studio in both themes, for docs/studio.md: `python -m tests.studio.pictures [FOLDER]`.

A real server on a graph of its own, a real Chromium. The pictures are made again when a view has changed.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import FilePayload, Page, expect, sync_playwright

import omnigraph as og
from omnigraph.server.settings import GraphSource, Settings
from tests.server.serving import TOKEN, serving
from tests.studio.browser import ARGUMENTS, chromium, studio_built
from tests.studio.conftest import NAMES, SCHEMA

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "pictures"
#: The views with what they are opened with.
VIEWS = {
    "overview": "overview",
    "explore": "explore?type=Person&id=Ada",
    "search": "search?words=maths+sea&way=both",
    "query": "query",
    "branches": "branches",
    "compare": "compare?before=main&after=agent/1",
    "merge": "merge?source=agent/1&target=main",
    "history": "history",
    "load": "load",
    "schema": "schema",
    "upkeep": "upkeep",
}
QUERY = "match { $p: Person  $p worksAt $c }\nreturn { $p.name, $p.age, $c.name }\norder { $p.age desc }\nlimit 8"


def make_graph(path: Path) -> None:
    """A small team; `agent/1` and main have changed Ada differently."""
    os.environ["OMNIGRAPH_EMBED_PROVIDER"] = "mock"
    with og.init(path, SCHEMA, actor="mia") as graph:
        graph.load([*_rows()], actor="mia")
        graph.create_branch("agent/1")
        update = 'query u($age: I32) { update Person set { age: $age } where name = "Ada" }'
        graph.mutate(update, params={"age": 77}, branch="agent/1", actor="agent-1", message="Ada from the register")
        new = 'insert Person { name: "Uma", age: 33 } insert LivesIn { from: "Uma", to: "Oslo" }'
        graph.mutate(new, branch="agent/1", actor="agent-1", message="A new person")
        graph.mutate(update, params={"age": 36}, actor="mia", message="Ada had a birthday")
        graph.create_branch("fix")
        graph.mutate(
            'update City set { country: "Norge" } where name = "Oslo"', branch="fix", actor="ben", message="Countries"
        )
        graph.merge("fix", actor="mia")
        graph.tag("quarter-1", graph.head().id)
        graph.ensure_indices()


def _rows() -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    for place, name in enumerate(NAMES):
        likes = "maths" if place % 2 else "music"
        rows.append(
            {"type": "Person", "data": {"name": name, "age": 30 + place, "bio": f"{name} likes {likes} and the sea"}}
        )
    rows += [
        {"type": "City", "data": {"name": city, "country": land}}
        for city, land in (("Oslo", "Norway"), ("Paris", "France"))
    ]
    rows.append({"type": "Company", "data": {"name": "Acme", "founded": "1999-01-01"}})
    for place, name in enumerate(NAMES):
        rows.append({"edge": "Knows", "from": name, "to": NAMES[(place + 1) % 12], "data": {"since": "2020-05-01"}})
        rows.append({"edge": "LivesIn", "from": name, "to": "Oslo" if place % 2 else "Paris", "data": {}})
        rows.append({"edge": "WorksAt", "from": name, "to": "Acme", "data": {"role": "engineer"}})
    return rows


def prepare(view: str, page: Page) -> None:
    """Bring a view to where it has something to show."""
    if view == "query":
        editor = page.get_by_role("textbox", name="Query")
        editor.click()
        page.keyboard.press("ControlOrMeta+a")
        page.keyboard.insert_text(QUERY)
        page.get_by_role("button", name="Run", exact=True).click()
        expect(page.get_by_role("table", name="Result")).to_be_visible()
    if view == "load":
        people = ({"name": "Nia", "age": 28}, {"name": "Omar", "age": "old"})
        lines = "".join(json.dumps({"type": "Person", "data": one}) + "\n" for one in people).encode()
        payload: FilePayload = {"name": "people.jsonl", "mimeType": "text/plain", "buffer": lines}
        page.locator("input[type=file]").set_input_files(payload)
        page.get_by_role("button", name="Load", exact=True).click()
        expect(page.locator(".faults")).to_be_visible()
        page.evaluate("scrollTo(0, 0)")
    if view == "history":
        page.get_by_text("Ada had a birthday").click()
        expect(page.locator(".before-after")).to_be_visible()


def main(folder: Path) -> None:
    studio_built()
    path, environment = chromium()
    with tempfile.TemporaryDirectory() as scratch, sync_playwright() as playwright:
        place = Path(scratch) / "team.omni"
        make_graph(place)
        source = GraphSource("team", str(place), ())
        settings = Settings((source,), port=0, one_time_token=TOKEN, studio=True, studio_key="ogt_key", drain_seconds=1)
        browser = playwright.chromium.launch(executable_path=path, args=ARGUMENTS, env={**environment})
        with serving(settings) as served:
            for theme in ("light", "dark"):
                context = browser.new_context(viewport={"width": 1280, "height": 800}, color_scheme=theme)
                context.add_init_script(f"sessionStorage.setItem('omnigraph.token', {TOKEN!r})")
                for view, address in VIEWS.items():
                    page = context.new_page()
                    page.goto(f"{served.url}/g/team/{address}")
                    expect(page.locator("main h1")).to_be_visible()
                    page.wait_for_load_state("networkidle")
                    prepare(view, page)
                    # Until pictures are laid out and what was said at the bottom is gone.
                    page.wait_for_timeout(4000 if view == "explore" else 1500)
                    name = f"studio-{view}{'-dark' if theme == 'dark' else ''}.png"
                    page.screenshot(path=folder / name)
                    print(name, flush=True)
                    page.close()
                context.close()
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)
