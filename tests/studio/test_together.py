"""Several people at once, and servers that go away: what others change is told, and nothing that somebody typed is lost."""

from __future__ import annotations

import re
import signal
from pathlib import Path

import httpx
from playwright.sync_api import Route, expect

from tests.server.serving import Served
from tests.server.test_process import Process, started
from tests.studio.conftest import NewTab, Studio, make_graph

MERGE = "merge?source=agent%2F1&target=main"
LOST = "The connection to the server is lost"
AGE = 'query u() { update Person set { age: 51 } where name = "Ada" }'


def tab_of(process: Process, new_tab: NewTab) -> Studio:
    """A tab on a server that runs in a process of its own, without tokens."""
    with httpx.Client(base_url=process.url) as http:
        served = Served(process.url, http, None, Path())  # type: ignore[arg-type]
        return new_tab(served, token=None)


def age_of_ada(url: str) -> int:
    text = 'query q() { match { $p: Person { name: "Ada" } } return { $p.age } }'
    return int(httpx.post(f"{url}/graphs/team/query", json={"query": text}).json()["rows"][0]["p.age"])


def messages(http: httpx.Client) -> list[str | None]:
    """The messages of the commits of main, newest first."""
    told = http.get("/graphs/team/commits", headers={"Accept": "application/vnd.omnigraph+json"}).json()
    return [commit["message"] for commit in told["library"]]


def test_who_looks_at_a_conflict_is_told_that_another_merged(own: Served, new_tab: NewTab) -> None:
    """Without touching anything; what was typed stays."""
    one, other = new_tab(own), new_tab(own)
    first, second = one.open(MERGE), other.open(MERGE)
    second.get_by_label("age: another value").fill("41")
    expect(second.get_by_text("1 conflict, all decided")).to_be_visible()
    first.get_by_role("button", name="Ours (main)").click()
    first.get_by_label("Message of the commit").fill("Ada stays")
    first.get_by_role("button", name="Merge agent/1 into main").click()
    expect(first.get_by_text("agent/1 was merged into main")).to_be_visible()
    expect(second.get_by_role("alert")).to_contain_text("main has a new commit: Ada stays, by default")
    expect(second.get_by_text("main has everything of agent/1")).to_be_visible()
    assert messages(own.http)[0] == "Ada stays"


def test_what_others_change_is_told_and_shown_when_one_wants(own: Served, new_tab: NewTab) -> None:
    page = new_tab(own).open("explore?type=Person&id=Ada")
    expect(page.get_by_role("cell", name="36", exact=True)).to_be_visible()
    own.http.post("/graphs/team/mutate", json={"query": AGE, "message": "A register"}).raise_for_status()
    told = page.get_by_role("status").filter(has_text="main has changed: A register, by default")
    expect(told).to_be_visible()
    expect(page.get_by_role("cell", name="36", exact=True)).to_be_visible()
    page.get_by_role("button", name="Show the newest").click()
    expect(page.get_by_role("cell", name="51", exact=True)).to_be_visible()
    expect(told).to_have_count(0)


def test_a_merge_goes_on_when_a_killed_server_is_back(tmp_path: Path, new_tab: NewTab) -> None:
    """It is sent again under its own key, so that it is done once."""
    make_graph(tmp_path / "team.omni")
    serve = (str(tmp_path / "team.omni"), "--unauthenticated")
    with started(tmp_path, *serve) as process:
        tab = tab_of(process, new_tab)
        tab.allowed.append("ERR_CONNECTION_REFUSED|Failed to load")
        page = tab.open(MERGE)
        page.get_by_label("age: another value").fill("41")
        expect(page.get_by_text("1 conflict, all decided")).to_be_visible()
        process.process.send_signal(signal.SIGKILL)
        process.process.wait()
        page.get_by_role("button", name="Merge agent/1 into main").click()
        expect(page.get_by_text(LOST)).to_be_visible()
        expect(page.get_by_label("age: another value")).to_have_value("41")
    with started(tmp_path, *serve, "--bind", process.url.removeprefix("http://")):
        expect(page.get_by_text("agent/1 was merged into main")).to_be_visible()
        expect(page.get_by_text(LOST)).to_have_count(0)
        assert age_of_ada(process.url) == 41
        with httpx.Client(base_url=process.url) as http:
            assert messages(http).count("Merge agent/1 into main") == 1


def test_a_change_whose_answer_is_lost_is_done_once(writer: Studio, own: Served) -> None:
    """Whatever it is: a branch is made, a commit is taken back; the server has done it, and the answer does not arrive."""
    writer.allowed.append("ERR_|Failed to load")
    lost: list[str] = []

    def lose(route: Route) -> None:
        if route.request.method != "POST" or "dry_run" in (route.request.post_data or "") or route.request.url in lost:
            route.fallback()
            return
        lost.append(route.request.url)
        assert route.fetch().ok
        route.abort()

    page = writer.open("branches")
    page.route(re.compile("/branches$|/revert$"), lose)
    page.get_by_role("button", name="New branch").click()
    page.get_by_label("Name").fill("draft")
    page.get_by_role("button", name="Make the branch").click()
    expect(page.get_by_text("Branch draft was made")).to_be_visible()
    page = writer.open("history")
    page.get_by_role("list", name="Commits, newest first").get_by_text("Ada had a birthday").click()
    page.get_by_role("button", name="Revert").click()
    page.get_by_role("dialog").get_by_role("button", name="Revert").click()
    expect(page.get_by_text("Done in commit")).to_be_visible()
    assert len(lost) == 2
    assert len([text for text in messages(own.http) if text and text.startswith("Revert")]) == 1


def test_a_server_that_is_silent_is_told(tmp_path: Path, new_tab: NewTab) -> None:
    """The connection is open and nothing comes: as when a machine sleeps, or a network forgets its connections."""
    make_graph(tmp_path / "team.omni")
    with started(tmp_path, str(tmp_path / "team.omni"), "--unauthenticated") as process:
        tab = tab_of(process, new_tab)
        tab.allowed.append("ERR_|Failed to load")
        page = tab.open("query")
        page.get_by_role("textbox", name="Query").fill("query q() { match { $c: City } return { $c.name } }")
        try:
            process.process.send_signal(signal.SIGSTOP)
            page.get_by_role("button", name="Run", exact=True).click()
            expect(page.get_by_text(LOST)).to_be_visible()
        finally:
            process.process.send_signal(signal.SIGCONT)
        expect(page.get_by_role("table", name="Result").get_by_text("Oslo")).to_be_visible()
        expect(page.get_by_text(LOST)).to_have_count(0)
