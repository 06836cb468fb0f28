"""Values as they are: integers beyond 2^53 to the last digit on every way in and out, and hostile texts in every place."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

import omnigraph as og
from tests.server.serving import Served, serving
from tests.studio.conftest import HOSTILE, RTL, NewTab, Studio, make_graph, settings_of

LARGEST = 2**63 - 1
#: 2^53 + 1: the first integer that a JavaScript number can not hold.
ODD = 2**53 + 1
#: Markup, text that turns direction, a null byte, letters of several code points, a long text.
TEXTS = [
    HOSTILE,
    RTL,
    "zero\x00byte",
    "👩‍👩‍👧‍👦 🇳🇴 é",
    "w" * 10_000,
    "'; DROP TABLE people --",
    "${1}`{{x}}",
    "</script><script>hacked=1</script>",
]


def change(served: Served, text: str, branch: str = "main", message: str | None = None, **params: Any) -> None:
    body = {"query": text, "params": params, "branch": branch, "message": message}
    answer = served.http.post("/graphs/team/mutate", json=body)
    assert answer.status_code == 200, answer.text


def population(served: Served, branch: str = "main") -> int:
    text = 'query q() { match { $c: City { name: "Oslo" } } return { $c.people } }'
    told = served.http.post("/graphs/team/query", json={"query": text, "branch": branch}).json()
    return int(told["rows"][0]["c.people"])


def settle(served: Served, value: int, branch: str) -> None:
    change(served, 'query u($n: I64) { update City set { people: $n } where name = "Oslo" }', branch, n=value)


def test_large_integers_are_shown_exactly(writer: Studio, own: Served, tmp_path: Path) -> None:
    settle(own, LARGEST, "main")
    page = writer.open("explore?type=City&id=Oslo")
    expect(page.get_by_role("cell", name=str(LARGEST))).to_be_visible()
    page.get_by_role("tab", name="JSON").click()
    expect(page.locator("pre.json")).to_contain_text(f'"people": {LARGEST}')
    page = writer.open("query")
    text = "query q($n: I64) { match { $c: City  $c.people = $n } return { $c.name, $c.people } }"
    page.get_by_role("textbox", name="Query").fill(text)
    page.get_by_label("$n").fill(str(LARGEST))
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.get_by_role("table", name="Result").get_by_text(str(LARGEST))).to_be_visible()
    for button in ("CSV", "JSON"):
        with page.expect_download() as started:
            page.get_by_role("button", name=button, exact=True).click()
        started.value.save_as(tmp_path / button)
        assert str(LARGEST) in (tmp_path / button).read_text()
    assert json.loads((tmp_path / "JSON").read_text()) == [{"c.name": "Oslo", "c.people": LARGEST}]
    page.get_by_role("textbox", name="Query").fill(
        "query q($all: [I64]) { match { $c: City  $c.people in $all } return { $c.name, $c.people } }"
    )
    page.get_by_label("$all").fill(f"[{LARGEST}, 1]")
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.get_by_role("table", name="Result").get_by_role("row")).to_have_count(2)
    page.get_by_role("row", name="Oslo").click()
    expect(page.get_by_role("dialog").get_by_role("cell", name=str(LARGEST))).to_be_visible()


def test_large_integers_are_compared_decided_and_loaded_exactly(writer: Studio, own: Served, tmp_path: Path) -> None:
    settle(own, ODD, "agent/1")
    settle(own, ODD + 1, "main")
    page = writer.open("compare?before=main&after=agent%2F1&only=node%3ACity")
    expect(page.get_by_role("cell", name=str(ODD + 1), exact=True)).to_be_visible()
    expect(page.get_by_role("cell", name=str(ODD), exact=True)).to_be_visible()
    page = writer.open("merge?source=agent%2F1&target=main")
    page.get_by_label("people: another value").fill(str(LARGEST))
    page.get_by_role("radio", name="age: take theirs").check()
    page.get_by_role("button", name="Merge agent/1 into main").click()
    expect(page.get_by_text("agent/1 was merged into main")).to_be_visible()
    assert population(own) == LARGEST
    (tmp_path / "city.csv").write_text(f"name,people\nOslo,{LARGEST - 1}\n")
    page = writer.open("load")
    page.get_by_label("File to load").set_input_files(tmp_path / "city.csv")
    page.get_by_role("button", name="Load", exact=True).click()
    expect(page.get_by_text("1 entity on")).to_be_visible()
    assert population(own, "load/city") == LARGEST - 1


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory, browser: Browser) -> Iterator[Served]:
    """A graph whose names, values, messages, actors and conflicts are hostile; the tests only read it."""
    path = tmp_path_factory.mktemp("hostile") / "team.omni"
    make_graph(path)
    with og.open(path) as graph:
        graph.mutate('insert City { name: "By somebody" }', actor=HOSTILE, message="An actor is text too")
        graph.tag("hostile", graph.head().id)
    with serving(settings_of(path)) as served:
        _fill(served)
        yield served


def _fill(own: Served) -> None:
    add = "query n($n: String, $b: String) { insert Person { name: $n, bio: $b } }"
    both = "query u($b: String) { update Person set { bio: $b } where age = 5 }"
    for number, text in enumerate(TEXTS):
        # A message holds no control characters; everything else it may hold.
        change(own, add, message=re.sub("[\x00\u202e]", "", text[:400]), n=f"{number} {text}", b=text)
    change(own, both, "agent/1", message=HOSTILE, b=HOSTILE)
    change(own, both, b="</td></table><svg onload=window.hacked=1>")
    change(own, add, "agent/1", message=HOSTILE, n=f"new {HOSTILE}", b=HOSTILE)


def _only_text(page: Page) -> None:
    """Nothing of a value has become a part of the page, and nothing sticks out of it."""
    page.wait_for_load_state("networkidle")
    assert page.locator("img[src=x], main svg[onload], main script").count() == 0
    assert page.evaluate("window.hacked") is None
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize("width", [1280, 390])
def test_hostile_values_are_text_in_every_view(hostile: Served, new_tab: NewTab, tmp_path: Path, width: int) -> None:
    tab = new_tab(hostile, viewport={"width": width, "height": 800})
    tab.allowed.append("400")
    page = tab.open("overview")
    expect(page.get_by_role("link", name=TEXTS[-1]).first).to_be_visible()
    _only_text(page)
    page = tab.open("explore?type=Person")
    for number in range(len(TEXTS)):
        page.get_by_label("Key or words").fill(f"{number} {TEXTS[number][:4]}")
        page.get_by_role("button", name="Find", exact=True).click()
        found = page.get_by_role("list", name="Found nodes").get_by_role("button")
        expect(found).to_have_count(1)
        expect(found).to_contain_text(f"{number} ")
        found.click()
        expect(page.locator(".node-title")).to_contain_text(f"{number} ")
        _only_text(page)
    page = tab.open("query")
    page.get_by_role("textbox", name="Query").fill(
        "query q() { match { $p: Person  $p knows $o } return { $p, $o, $p.bio, $o.bio as bio } }"
    )
    page.get_by_role("button", name="Run", exact=True).click()
    for shown in ("Table", "Graph", "JSON"):
        page.get_by_role("tab", name=shown).click()
        _only_text(page)
    for address in (
        f"search?words={HOSTILE}",
        "branches",
        "compare?before=main&after=agent%2F1",
        "merge?source=agent%2F1&target=main",
        "history",
        "schema",
        "upkeep",
    ):
        page = tab.open(address)
        page.wait_for_load_state("networkidle")
        _only_text(page)
    page = tab.open("merge?source=agent%2F1&target=main")
    expect(page.locator(".conflict", has_text=HOSTILE).first).to_be_visible()
    page = tab.open("history")
    page.get_by_role("list", name="Commits, newest first").get_by_text(HOSTILE).first.click()
    expect(page.locator(".facts")).to_contain_text(HOSTILE)
    _only_text(page)
    page.get_by_role("list", name="Commits, newest first").get_by_text("An actor is text too").click()
    expect(page.locator(".facts")).to_contain_text(HOSTILE)
    _only_text(page)
    # A file is called as its sender likes.
    file = tmp_path / '<img src=x onerror="window.hacked=1">.jsonl'
    file.write_text(json.dumps({"type": HOSTILE, "data": {"name": RTL}}) + "\n")
    page = tab.open("load")
    page.get_by_label("File to load").set_input_files(file)
    page.get_by_role("button", name="Load", exact=True).click()
    expect(page.locator(".faults")).to_contain_text(HOSTILE)
    expect(page.locator(".drop")).to_contain_text("<img src=x")
    _only_text(page)
    table = tmp_path / "person.csv"
    table.write_text(f'name,"{HOSTILE.replace(chr(34), chr(34) * 2)}",age\n"{RTL}",x,900\n')
    page.get_by_label("File to load").set_input_files(table)
    expect(page.get_by_text("Not loaded: 1 column")).to_contain_text("<img src=x")
    page.get_by_role("button", name="Load", exact=True).click()
    expect(page.locator(".faults")).to_contain_text("900")
    _only_text(page)
