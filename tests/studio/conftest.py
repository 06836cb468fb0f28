"""A real server with the built page, a real Chromium, and the graph of these tests, copied for each test that writes."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

import omnigraph as og
from omnigraph.server.settings import GraphSource, Settings
from tests.server.serving import TOKEN, Served, serving
from tests.studio.browser import ARGUMENTS, CanNotBuild, chromium, studio_built

HOSTILE = '<img src=x onerror="window.hacked=1">'
RTL = "\u202eשלום <b>x</b>"
SCHEMA = """
node Person {
  name: String @key
  age: I32? @range(age, 0..150)
  bio: String? @index
  vec: Vector(8)? @embed(bio)
}
node City { name: String @key  country: String?  people: I64? }
node Company { name: String @key  founded: Date? }
edge Knows: Person -> Person { since: Date? }
edge LivesIn: Person -> City @card(0..1)
edge WorksAt: Person -> Company { role: String? }
"""
NAMES = ["Ada", "Ben", "Cleo", "Dov", "Eva", "Finn", "Gus", "Hana", "Ivo", "Jun", "Kim", "Lea"]
STORED = """
query people() @description("All people, oldest first.") {
  match { $p: Person } return { $p.name, $p.age } order { $p.age desc }
}
"""

#: Milliseconds that anything may take on a machine that does much else at the same time.
PATIENCE = 120_000
expect.set_options(timeout=PATIENCE)


def rows() -> Iterator[dict[str, Any]]:
    """The entities of the graph, with values that a careless page would take for markup."""
    for place, name in enumerate(NAMES):
        likes = "maths" if place % 2 else "music"
        yield {"type": "Person", "data": {"name": name, "age": 30 + place, "bio": f"{name} likes {likes} and the sea"}}
    yield {"type": "Person", "data": {"name": HOSTILE, "age": 5, "bio": RTL}}
    yield {"type": "Person", "data": {"name": "Long", "bio": "long " * 200_000}}
    for city, country in (("Oslo", "Norway"), ("Paris", "France")):
        yield {"type": "City", "data": {"name": city, "country": country}}
    yield {"type": "Company", "data": {"name": "Acme", "founded": "1999-01-01"}}
    for place, name in enumerate(NAMES):
        yield {"edge": "Knows", "from": name, "to": NAMES[(place + 1) % 12], "data": {"since": "2020-05-01"}}
        yield {"edge": "LivesIn", "from": name, "to": "Oslo" if place % 2 else "Paris", "data": {}}
        yield {"edge": "WorksAt", "from": name, "to": "Acme", "data": {"role": "engineer"}}
    yield {"edge": "Knows", "from": "Ada", "to": HOSTILE, "data": {}}


def make_graph(path: Path) -> None:
    """Two branches: `agent/1` conflicts with main about Ada, `fix` is merged already."""
    os.environ["OMNIGRAPH_EMBED_PROVIDER"] = "mock"
    with og.init(path, SCHEMA, actor="mia") as graph:
        graph.load("\n".join(map(json.dumps, rows())).encode(), actor="mia")
        graph.create_branch("agent/1")
        update = 'query u($age: I32) { update Person set { age: $age } where name = "Ada" }'
        graph.mutate(update, params={"age": 77}, branch="agent/1", actor="agent-1", message="Ada from the register")
        new = 'query n() { insert Person { name: "Uma", age: 33 } insert LivesIn { from: "Uma", to: "Oslo" } }'
        graph.mutate(new, branch="agent/1", actor="agent-1", message="A new person")
        graph.mutate(update, params={"age": 36}, actor="mia", message="Ada had a birthday")
        graph.create_branch("fix")
        country = 'query c() { update City set { country: "Norge" } where name = "Oslo" }'
        graph.mutate(country, branch="fix", actor="ben", message="Countries")
        graph.merge("fix", actor="mia")


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    try:
        studio_built()
        path, environment = chromium()
    except CanNotBuild as problem:
        pytest.skip(f"Studio is not tested here: {problem}")
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=path, args=ARGUMENTS, env={**environment})
        yield running
        running.close()


def settings_of(path: Path, stored: str = STORED, **changes: Any) -> Settings:
    queries = path.parent / "queries"
    queries.mkdir(exist_ok=True)
    (queries / "stored.gq").write_text(stored)
    given: dict[str, Any] = {
        "port": 0,
        "one_time_token": TOKEN,
        "studio": True,
        "studio_key": "ogt_key",
        "drain_seconds": 1,
    }
    return Settings((GraphSource("team", str(path), (str(queries),)),), **given | changes)


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory, browser: Browser) -> Iterator[Served]:
    """A server whose graph tests only read."""
    path = tmp_path_factory.mktemp("studio") / "team.omni"
    make_graph(path)
    with serving(settings_of(path)) as served:
        yield served


@pytest.fixture
def own(tmp_path: Path, browser: Browser) -> Iterator[Served]:
    """A server with a graph of its own, for a test that writes."""
    make_graph(tmp_path / "team.omni")
    with serving(settings_of(tmp_path / "team.omni")) as served:
        yield served


@dataclass
class Studio:
    """One tab of a browser on a server, and what went wrong in it."""

    url: str
    page: Page
    context: BrowserContext
    problems: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    #: Chromium's own editing of a text of several lines makes styled elements, which the policy blocks, and the editor removes.
    allowed: list[str] = field(default_factory=lambda: ["Applying inline style"])

    def open(self, view: str) -> Page:
        """Open a view and wait until it shows itself."""
        self.page.goto(f"{self.url}/g/team/{view}")
        expect(self.page.locator("main h1")).to_be_visible()
        return self.page


NewTab = Callable[..., Studio]


@pytest.fixture
def new_tab(browser: Browser) -> Iterator[NewTab]:
    """Opens tabs that have the token; at the end none of them has complained or asked elsewhere."""
    opened: list[Studio] = []

    def make(served: Served, *, token: str | None = TOKEN, **options: Any) -> Studio:
        context = browser.new_context(**({"viewport": {"width": 1280, "height": 860}} | options))
        context.set_default_timeout(PATIENCE)
        if token is not None:
            kept = f"sessionStorage.setItem('omnigraph.token', {token!r})"
            context.add_init_script(f"sessionStorage.getItem('omnigraph.token') ?? {kept}")
        page = context.new_page()
        tab = Studio(served.url, page, context)
        page.on("console", lambda told: tab.problems.append(told.text) if told.type == "error" else None)
        page.on("pageerror", lambda error: tab.problems.append(str(error)))
        page.on("request", lambda request: tab.requests.append(request.url))
        opened.append(tab)
        return tab

    yield make
    for tab in opened:
        # An answer with an error status is told by the console too; those that a test expects, it names.
        told = [text for text in tab.problems if not any(re.search(part, text) for part in tab.allowed)]
        assert told == []
        assert [url for url in tab.requests if not url.startswith((tab.url, "data:", "blob:"))] == []
        assert tab.page.evaluate("window.hacked") is None
        tab.context.close()


@pytest.fixture
def reader(shared: Served, new_tab: NewTab) -> Studio:
    """A tab on the shared server."""
    return new_tab(shared)


@pytest.fixture
def writer(own: Served, new_tab: NewTab) -> Studio:
    """A tab on a server of its own."""
    return new_tab(own)
