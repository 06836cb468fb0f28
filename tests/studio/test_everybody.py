"""For everybody: tokens, keyboard, screen readers, themes, small screens, and how much has to be loaded."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.server.serving import TOKEN, Served, serving
from tests.studio.browser import AXE, ROOT
from tests.studio.conftest import NewTab, Studio, make_graph, settings_of

VIEWS = {
    "overview": "overview",
    "explore": "explore?type=Person&id=Ada",
    "search": "search?words=maths&way=both",
    "query": "query?text=query+q%28%29+%7B+match+%7B+%24c%3A+City+%7D+return+%7B+%24c.name+%7D+%7D",
    "branches": "branches",
    "compare": "compare?before=main&after=agent%2F1",
    "merge": "merge?source=agent%2F1&target=main",
    "history": "history?branch=agent%2F1",
    "load": "load",
    "schema": "schema",
    "upkeep": "upkeep",
}
#: Pictures of every view are kept here by each run.
PICTURES = ROOT / ".tmp" / "studio-pictures"


def test_a_token_is_asked_for_once_and_kept_for_the_tab(shared: Served, new_tab: NewTab) -> None:
    tab = new_tab(shared, token=None)
    tab.allowed.append("401")
    page = tab.page
    page.goto(f"{shared.url}/g/team/overview")
    page.get_by_role("textbox", name="Token").fill("ogt_wrong")
    page.get_by_role("button", name="Continue").click()
    expect(page.get_by_role("alert")).to_contain_text("does not know this token")
    page.get_by_role("textbox", name="Token").fill(TOKEN)
    page.get_by_role("button", name="Continue").click()
    expect(page.get_by_role("heading", name="Overview")).to_be_visible()
    assert TOKEN not in page.url
    assert page.evaluate("JSON.stringify(localStorage)").find(TOKEN) < 0
    page.reload()
    expect(page.get_by_role("heading", name="Overview")).to_be_visible()
    page.get_by_role("button", name="Forget the token of this tab").click()
    expect(page.get_by_role("textbox", name="Token")).to_be_visible()


def test_the_one_time_key_opens_one_tab(own: Served, new_tab: NewTab) -> None:
    tab = new_tab(own, token=None)
    tab.page.goto(f"{own.url}/#key=ogt_key")
    expect(tab.page.get_by_role("heading", name="Overview")).to_be_visible()
    assert "key" not in tab.page.url
    again = new_tab(own, token=None)
    again.allowed.append("401")
    again.page.goto(f"{own.url}/#key=ogt_key")
    expect(again.page.get_by_role("textbox", name="Token")).to_be_visible()


def test_what_was_typed_outlives_a_token_that_is_refused(tmp_path: Path, new_tab: NewTab) -> None:
    """The server is started anew with other tokens while somebody writes a query."""
    make_graph(tmp_path / "team.omni")
    with serving(settings_of(tmp_path / "team.omni")) as served:
        tab = new_tab(served)
        tab.allowed += ["401", "ERR_|Failed to load"]
        page = tab.open("query")
        page.get_by_role("textbox", name="Query").fill("query q() { match { $c: City } return { $c.name } }")
    port = int(served.url.rpartition(":")[2])
    with serving(settings_of(tmp_path / "team.omni", one_time_token="ogt_other", port=port)):
        # Found out by the look at what others do.
        expect(page.locator("input[type=password]")).to_be_visible()
        expect(page.get_by_role("textbox", name="Query")).to_have_count(0)
        page.locator("input[type=password]").fill("ogt_other")
        page.get_by_role("button", name="Continue").click()
        expect(page.get_by_role("textbox", name="Query")).to_contain_text("$c: City")
        page.get_by_role("button", name="Run", exact=True).click()
        expect(page.get_by_role("table", name="Result").get_by_text("Oslo")).to_be_visible()


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("view", VIEWS)
def test_axe_finds_nothing_serious(shared: Served, new_tab: NewTab, view: str, theme: str) -> None:
    """Also keeps a picture of the view."""
    tab = new_tab(shared, color_scheme=theme)
    page = tab.open(VIEWS[view])
    page.wait_for_load_state("networkidle")
    if view == "query":
        page.get_by_role("button", name="Run", exact=True).click()
        expect(page.get_by_role("table", name="Result")).to_be_visible()
    assert page.evaluate("document.documentElement.dataset.theme") == theme
    found = page.evaluate(
        AXE.read_text() + ";axe.run(document, {resultTypes: ['violations']})"
        ".then(told => told.violations.filter(each => ['serious', 'critical'].includes(each.impact))"
        ".map(each => [each.id, each.help, each.nodes.map(node => node.html.slice(0, 160) + ' ' + node.failureSummary)]))"
    )
    PICTURES.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=PICTURES / f"{view}-{theme}.png")
    assert found == []


def test_the_token_form_is_fit_for_axe(shared: Served, new_tab: NewTab) -> None:
    tab = new_tab(shared, token=None)
    tab.page.goto(shared.url)
    expect(tab.page.get_by_role("textbox", name="Token")).to_be_visible()
    found = tab.page.evaluate(AXE.read_text() + ";axe.run().then(told => told.violations.map(each => each.id))")
    assert found == []


@pytest.mark.parametrize("view", VIEWS)
def test_it_can_be_used_at_390_pixels(shared: Served, new_tab: NewTab, view: str) -> None:
    tab = new_tab(shared, viewport={"width": 390, "height": 780}, has_touch=True)
    page = tab.open(VIEWS[view])
    page.wait_for_load_state("networkidle")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    PICTURES.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=PICTURES / f"{view}-390.png")
    page.get_by_role("button", name="Menu").click()
    page.get_by_role("navigation").get_by_role("link", name="Upkeep").click()
    expect(page.get_by_role("heading", name="Upkeep")).to_be_visible()
    expect(page.get_by_role("navigation")).not_to_be_visible()


def test_the_theme_is_chosen_and_kept(reader: Studio) -> None:
    page = reader.open("overview")
    page.get_by_role("button", name="Use the dark theme").click()
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    page.reload()
    expect(page.get_by_role("button", name="Use the light theme")).to_be_visible()


def test_everything_is_reached_with_the_keyboard(reader: Studio) -> None:
    page = reader.open("branches")
    page.keyboard.press("Tab")
    expect(page.get_by_text("Skip to the content")).to_be_focused()
    seen: set[str] = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        seen.add(
            page.evaluate(
                "(document.activeElement.getAttribute('aria-label') ?? document.activeElement.textContent).trim()"
            )
        )
    assert {"Explore", "New branch", "Compare agent/1 with main", "Merge agent/1", "Delete agent/1"} <= seen
    page.get_by_role("button", name="New branch").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_label("Name")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_a_node_is_opened_with_the_keyboard_alone(reader: Studio) -> None:
    page = reader.open("explore?type=City")
    expect(page.get_by_role("list", name="Found nodes").get_by_text("Paris")).to_be_visible()
    page.get_by_role("list", name="Found nodes").get_by_role("button", name="Paris").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Paris")).to_be_visible()
    page.get_by_role("tab", name="Graph").focus()
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("tab", name="Table")).to_be_focused()
    expect(page.get_by_role("table", name="Nodes")).to_be_visible()


def test_the_editor_can_be_left_with_the_keyboard(reader: Studio) -> None:
    page = reader.open("query")
    page.get_by_role("textbox", name="Query").focus()
    page.keyboard.press("Escape")
    page.keyboard.press("Tab")
    expect(page.get_by_role("textbox", name="Query")).not_to_be_focused()


def test_the_first_view_is_small(reader: Studio) -> None:
    page = reader.open("overview")
    page.wait_for_load_state("networkidle")
    loaded = page.evaluate(
        "performance.getEntriesByType('resource').filter(each => each.name.endsWith('.js'))"
        ".map(each => [each.name.split('/').at(-1), each.encodedBodySize])"
    )
    assert 0 < sum(size for _, size in loaded) < 400_000
    assert not any(name.startswith(("graphview", "editor")) for name, _ in loaded)


def test_a_picture_can_be_dragged(reader: Studio) -> None:
    """It is drawn anew while it is dragged."""
    page = reader.open("explore?type=Person&id=Ada")
    expect(page.get_by_text("6 nodes, 5 edges")).to_be_visible()
    page.locator(".graph-canvas canvas").first.wait_for()
    before = page.evaluate("window.studioPicture.frames()")
    box = page.locator(".graph-canvas").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 30, box["y"] + 30)
    page.mouse.down()
    for step in range(20):
        page.mouse.move(box["x"] + 30 + step * 4, box["y"] + 30 + step * 2)
    page.mouse.up()
    page.wait_for_function("before => window.studioPicture.frames() > before", arg=before)


def test_studio_is_started_by_one_command(own: Served, tmp_path: Path) -> None:
    """`omnigraph studio` prints an address with a key that works once."""
    import subprocess
    import sys

    import httpx

    with subprocess.Popen(
        [sys.executable, "-m", "omnigraph", "studio", str(own.path), "--no-open", "--read-only"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMNIGRAPH_HOME": str(tmp_path)},
    ) as running:
        try:
            assert running.stdout is not None
            address, _, key = running.stdout.readline().strip().partition("/#key=")
            assert "OmniGraph Studio" in httpx.get(address).text
            token = httpx.post(f"{address}/studio/session", json={"key": key}).json()["token"]
            told = httpx.get(f"{address}/graphs/team/permissions", headers={"Authorization": f"Bearer {token}"}).json()
            assert told["read_only"] is True
        finally:
            running.terminate()
