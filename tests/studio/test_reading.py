"""Finding one's way: overview, explore, search, query and history, in a real browser."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.studio.conftest import HOSTILE, Studio


def test_the_overview_shows_types_commits_and_branches(reader: Studio) -> None:
    page = reader.open("overview")
    expect(page.get_by_role("group", name="6 types and how they connect")).to_be_visible()
    expect(page.get_by_label("Node types").get_by_text("Person")).to_be_visible()
    expect(page.get_by_role("link", name="Ada had a birthday")).to_be_visible()
    expect(page.get_by_text("2 ahead")).to_be_visible()
    expect(page.get_by_text("3 behind")).to_be_visible()


def test_a_type_in_the_picture_leads_to_its_nodes(reader: Studio) -> None:
    page = reader.open("overview")
    page.locator("a.box", has_text="City").click()
    expect(page.get_by_role("list", name="Found nodes").get_by_text("Oslo")).to_be_visible()
    assert "type=City" in page.url


def test_find_expand_and_query(reader: Studio) -> None:
    """A person's way: find a node by a word, open it, add the neighbours of a neighbour, look at it as a query, run it."""
    page = reader.open("explore?type=Person")
    page.get_by_label("Key or words").fill("cleo")
    page.get_by_role("button", name="Find", exact=True).click()
    found = page.get_by_role("list", name="Found nodes")
    expect(found.get_by_role("button")).to_have_count(1)
    found.get_by_text("Cleo").click()
    expect(page.get_by_role("heading", name="Cleo")).to_be_visible()
    expect(page.get_by_text("5 nodes, 4 edges")).to_be_visible()
    page.get_by_role("button", name="Acme").click()
    expect(page.get_by_role("heading", name="Acme")).to_be_visible()
    page.get_by_role("button", name="More WorksAt from Person").click()
    expect(page.get_by_text("12 of 12")).to_be_visible()
    page.get_by_role("tab", name="Table").click()
    expect(page.get_by_role("table", name="Nodes").get_by_text("Hana", exact=True).first).to_be_visible()
    page.get_by_role("tab", name="JSON").click()
    shown = json.loads(page.locator("pre.json").inner_text())
    assert {"type": "Company", "id": "Acme"}.items() <= shown["nodes"][3].items() or any(
        node["id"] == "Acme" for node in shown["nodes"]
    )
    page.get_by_role("link", name="Show as a query").click()
    expect(page.get_by_role("textbox", name="Query")).to_contain_text('$n: Company { name: "Acme" }')
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.get_by_role("table", name="Result").get_by_text("1999-01-01")).to_be_visible()


def test_a_node_can_be_pinned_hidden_and_kept_as_a_file(reader: Studio, tmp_path: Path) -> None:
    page = reader.open("explore?type=Person&id=Ada")
    expect(page.get_by_text("6 nodes, 5 edges")).to_be_visible()
    page.get_by_role("button", name="Pin").click()
    expect(page.get_by_role("button", name="Unpin")).to_be_visible()
    with page.expect_download() as started:
        page.get_by_role("button", name="PNG").click()
    started.value.save_as(tmp_path / "graph.png")
    assert (tmp_path / "graph.png").read_bytes().startswith(b"\x89PNG")
    page.get_by_role("button", name="Ben", exact=True).first.click()
    expect(page.get_by_role("heading", name="Ben")).to_be_visible()
    page.get_by_role("button", name="Hide").click()
    expect(page.get_by_text("5 nodes, 4 edges")).to_be_visible()


def test_search_by_words_and_by_meaning(reader: Studio) -> None:
    page = reader.open("search")
    page.get_by_label("Words", exact=True).first.fill("maths")
    page.get_by_role("button", name="Search").click()
    expect(page.locator(".hits > li")).to_have_count(6)
    expect(page.locator("mark").first).to_have_text("maths")
    page.get_by_role("radio", name="Both").check()
    expect(page.get_by_text("meaning #1", exact=True)).to_be_visible()
    expect(page.get_by_text("words #1", exact=True)).to_be_visible()
    page.get_by_text("Filter").click()
    page.get_by_label("Condition").fill("$n.age > 40")
    page.get_by_role("button", name="Search").click()
    expect(page.locator(".hits > li")).to_have_count(1)
    page.get_by_role("link", name="Show as a query").click()
    expect(page.get_by_role("textbox", name="Query")).to_contain_text("$n.age > 40")


def test_a_search_of_several_types_stands_for_a_query_of_each(reader: Studio) -> None:
    page = reader.open("search?words=oslo")
    expect(page.locator(".hits > li").first).to_contain_text("Oslo")
    page.get_by_role("link", name="Show as a query: City").click()
    expect(page.get_by_role("textbox", name="Query")).to_contain_text("$n: City")


def test_one_starts_with_a_type_and_chooses_what_it_is_called_by(reader: Studio) -> None:
    page = reader.open("explore?type=City")
    page.get_by_role("button", name="Draw these 2 and how they connect").click()
    expect(page.get_by_text("10 nodes, 8 edges")).to_be_visible()
    page.get_by_label("What nodes of City are called by").select_option("country")
    page.get_by_role("list", name="Found nodes").get_by_text("Oslo").click()
    expect(page.get_by_role("heading", name="Norge")).to_be_visible()
    page.reload()
    expect(page.get_by_role("heading", name="Norge")).to_be_visible()


def test_a_query_is_checked_while_it_is_typed(reader: Studio) -> None:
    page = reader.open("query")
    editor = page.get_by_role("textbox", name="Query")
    editor.fill(
        "query q($who: String, $least: I32?) {\n match { $p: Persn { name: $who } } return { $p.name, $p.age } }"
    )
    expect(page.locator(".cm-lintRange-error")).to_be_visible()
    page.locator(".cm-lintRange-error").first.hover()
    expect(page.get_by_text("did you mean `Person`?")).to_be_visible()
    editor.fill(
        "query q($who: String, $least: I32?) {\n match { $p: Person { name: $who } } return { $p.name, $p.age } }"
    )
    page.get_by_label("$who").fill("Ada")
    page.get_by_role("button", name="Run", exact=True).click()
    result = page.get_by_role("table", name="Result")
    expect(result.get_by_role("row")).to_have_count(2)
    expect(result.get_by_text("36")).to_be_visible()


def test_names_are_completed_from_the_schema(reader: Studio) -> None:
    page = reader.open("query")
    editor = page.get_by_role("textbox", name="Query")
    editor.fill("query q() { match { $p: Person } return { $p.")
    editor.press("Control+Space")
    expect(page.locator(".cm-tooltip-autocomplete")).to_contain_text("age")
    editor.press("Escape")
    editor.fill("query q() { match { $p: ")
    editor.press_sequentially("Per")
    expect(page.locator(".cm-tooltip-autocomplete")).to_contain_text("Person")


def test_answers_as_table_graph_json_and_files(reader: Studio, tmp_path: Path) -> None:
    page = reader.open("query")
    text = "query q() { match { $p: Person  $p livesIn $c } return { $p, $c, $p.age } order { $p.age } }"
    page.get_by_role("textbox", name="Query").fill(text)
    page.keyboard.press("Control+Enter")
    result = page.get_by_role("table", name="Result")
    expect(result).to_have_attribute("aria-rowcount", "13")
    result.get_by_role("button", name="p.age").click()
    result.get_by_role("button", name="p.age").click()
    expect(result.get_by_role("row").nth(1)).to_contain_text("Lea")
    for button, first in (("CSV", b"p,c,p.age"), ("JSON", b"["), ("Parquet", b"PAR1")):
        with page.expect_download() as started:
            page.get_by_role("button", name=button, exact=True).click()
        started.value.save_as(tmp_path / "file")
        assert (tmp_path / "file").read_bytes().startswith(first)
    page.get_by_role("tab", name="Graph").click()
    expect(page.get_by_role("img", name="A picture of 14 nodes and 12 edges")).to_be_visible()
    page.get_by_role("button", name="Measure").click()
    expect(page.locator(".plan")).to_contain_text("NodeScan")
    expect(page.locator(".plan")).to_contain_text("rows,")


def test_a_stored_query_and_ones_own_history(reader: Studio) -> None:
    page = reader.open("query")
    page.get_by_role("button", name="people All people, oldest first.").click()
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.get_by_role("table", name="Result").get_by_role("row").nth(1)).to_contain_text("Lea")
    page.get_by_role("button", name="Back to the editor").click()
    page.get_by_role("textbox", name="Query").fill("query mine() { match { $c: City } return { $c.name } }")
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.get_by_role("table", name="Result").get_by_text("Oslo")).to_be_visible()
    page.reload()
    expect(page.get_by_role("button", name="query mine()")).to_be_visible()


def test_a_hundred_thousand_rows_scroll(reader: Studio) -> None:
    page = reader.open("query")
    people = " ".join(f"$p{n}: Person" for n in range(5))
    text = f"query q() {{ match {{ {people} }} return {{ $p0.name as a, $p1.name as b }} limit 100000 }}"
    page.get_by_role("textbox", name="Query").fill(text)
    page.get_by_role("button", name="Run", exact=True).click()
    result = page.get_by_role("table", name="Result")
    expect(result).to_have_attribute("aria-rowcount", "100001")
    assert page.locator(".grid-body .grid-row").count() < 60
    result.evaluate("place => { place.scrollTop = place.scrollHeight }")
    expect(page.locator('.grid-row[aria-rowindex="100001"]')).to_be_visible()


def test_a_query_can_be_cancelled(reader: Studio) -> None:
    page = reader.open("query")
    people = " ".join(f"$p{n}: Person" for n in range(8))
    text = f'query q() {{ match {{ {people} $p0.name + $p1.name + $p7.name = "x" }} return {{ $p0.name as a }} }}'
    page.get_by_role("textbox", name="Query").fill(text)
    page.get_by_role("button", name="Run", exact=True).click()
    page.get_by_role("button", name="Cancel").click()
    expect(page.get_by_text("The query was cancelled")).to_be_visible()
    expect(page.get_by_role("button", name="Run", exact=True)).to_be_enabled()


def test_the_history_shows_a_commit_and_the_graph_as_it_was(reader: Studio) -> None:
    page = reader.open("history")
    log = page.get_by_role("list", name="Commits, newest first")
    expect(log.get_by_role("listitem")).to_have_count(7)
    log.get_by_text("Ada had a birthday").click()
    expect(page.get_by_role("cell", name="30", exact=True)).to_be_visible()
    expect(page.get_by_role("cell", name="36", exact=True)).to_be_visible()
    assert "commit=" in page.url
    log.locator("li", has_text="load").first.click()
    expect(page.get_by_text("50 changes and more")).to_be_visible()
    page.get_by_role("link", name="Look at the graph then").click()
    expect(page.get_by_text("You look at the graph as it was")).to_be_visible()
    page.get_by_role("link", name="Explore", exact=True).click()
    page.get_by_label("Type", exact=True).select_option("Person")
    page.get_by_label("Key or words").fill("ada")
    page.get_by_role("button", name="Find", exact=True).click()
    page.get_by_role("list", name="Found nodes").get_by_text("Ada").click()
    expect(page.get_by_role("cell", name="30", exact=True)).to_be_visible()
    page.get_by_role("link", name="Back to main").click()
    expect(page.get_by_role("cell", name="36", exact=True)).to_be_visible()


@pytest.mark.parametrize(
    "address",
    [
        "overview?branch=agent%2F1",
        "explore?type=Person&id=Ada",
        "search?words=maths&way=both",
        "query?text=query+q%28%29+%7B+match+%7B+%24c%3A+City+%7D+return+%7B+%24c.name+%7D+%7D",
        "branches",
        "compare?before=main&after=agent%2F1",
        "merge?source=agent%2F1&target=main",
        "history?branch=agent%2F1",
        "load",
        "schema",
        "upkeep",
    ],
)
def test_every_address_works_after_a_reload(reader: Studio, address: str) -> None:
    page = reader.open(address)
    title = page.locator("main h1").inner_text()
    page.reload()
    expect(page.locator("main h1")).to_have_text(title)
    assert page.url.endswith(address)


def test_one_goes_back_and_forth_within_a_view(reader: Studio) -> None:
    """A node that was opened, a commit that was looked at, words that were searched: each is a step back."""
    page = reader.open("explore?type=City&id=Oslo")
    expect(page.get_by_role("heading", name="Oslo")).to_be_visible()
    page.get_by_role("list", name="Found nodes").get_by_text("Paris").click()
    expect(page.get_by_role("heading", name="Paris")).to_be_visible()
    page.go_back()
    expect(page.get_by_role("heading", name="Oslo")).to_be_visible()
    page.go_forward()
    expect(page.get_by_role("heading", name="Paris")).to_be_visible()
    page.get_by_role("link", name="History", exact=True).click()
    page.get_by_text("Ada had a birthday").click()
    expect(page.get_by_role("heading", name="Commit", exact=True)).to_be_visible()
    page.go_back()
    expect(page.get_by_role("heading", name="Commit", exact=True)).to_have_count(0)
    page.get_by_role("link", name="Search", exact=True).click()
    words = page.get_by_label("Words", exact=True).first
    for given in ("maths", "music"):
        words.fill(given)
        page.get_by_role("button", name="Search").click()
        expect(page.locator("mark").first).to_have_text(given)
    page.go_back()
    expect(words).to_have_value("maths")
    expect(page.locator("mark").first).to_have_text("maths")


def test_an_address_that_names_nothing_leads_on(reader: Studio) -> None:
    reader.allowed.append("404|400")
    page = reader.page
    page.goto(f"{reader.url}/g/team/schema?branch=gone")
    expect(page.get_by_role("alert")).to_contain_text("branch 'gone' not found")
    page.get_by_role("link", name="Go to main").click()
    expect(page.get_by_role("heading", name="Schema")).to_be_visible()
    page.goto(f"{reader.url}/g/team/overview?at=nothing")
    expect(page.get_by_role("alert")).to_contain_text("'nothing' names no snapshot")
    page.get_by_role("link", name="Go to main").click()
    expect(page.get_by_role("heading", name="Overview")).to_be_visible()
    page.goto(f"{reader.url}/g/%E0%A4%A/overview")
    expect(page.get_by_role("alert")).to_be_visible()
    page.get_by_role("link", name="team").click()
    expect(page.get_by_role("heading", name="Overview")).to_be_visible()


def test_a_state_in_an_address_becomes_its_commit(reader: Studio) -> None:
    page = reader.open("overview?at=main~1")
    expect(page.get_by_text("You look at the graph as it was")).to_be_visible()
    assert "main~1" not in page.url
    page.get_by_role("link", name="Load", exact=True).click()
    expect(page.get_by_text("An old commit can not be changed")).to_be_visible()


def test_an_unknown_view_and_graph(reader: Studio) -> None:
    reader.allowed.append("404")
    page = reader.page
    page.goto(f"{reader.url}/g/team/nothing")
    expect(page.get_by_text("There is no such view")).to_be_visible()
    page.goto(f"{reader.url}/g/nobody/overview")
    expect(page.get_by_role("alert")).to_contain_text("graph 'nobody' not found")


def test_hostile_values_are_text_everywhere(reader: Studio) -> None:
    page = reader.open("explore?type=Person")
    page.get_by_label("Key or words").fill("<img")
    page.get_by_role("button", name="Find", exact=True).click()
    page.get_by_role("list", name="Found nodes").get_by_text(HOSTILE).click()
    expect(page.get_by_role("heading", name=HOSTILE)).to_be_visible()
    for tab in ("Table", "JSON", "Graph"):
        page.get_by_role("tab", name=tab).click()
    page = reader.open("query")
    page.get_by_role("textbox", name="Query").fill("query q() { match { $p: Person } return { $p.name, $p.bio } }")
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.get_by_role("table", name="Result").get_by_text(HOSTILE)).to_be_visible()
    page = reader.open(f"search?words={HOSTILE}")
    page.wait_for_load_state("networkidle")
    page = reader.open(f"compare?before=main&after=agent%2F1&only={HOSTILE}&ops={HOSTILE}")
    expect(page.get_by_role("heading", name="All changes")).to_be_visible()
    page.wait_for_load_state("networkidle")
    assert page.locator("img[src=x]").count() == 0


def test_a_text_of_a_megabyte_is_cut(reader: Studio) -> None:
    page = reader.open("explore?type=Person&id=Long")
    page.get_by_role("button", name="all 1,000,000 characters").click()
    expect(page.get_by_role("button", name="less")).to_be_visible()


def test_the_content_security_policy_is_in_force(reader: Studio) -> None:
    page = reader.open("overview")
    reader.allowed += ["Content Security Policy", "violates"]
    page.evaluate(
        "() => { const s = document.createElement('script'); s.textContent = 'window.inline=1'; document.head.append(s); }"
    )
    assert page.evaluate("window.inline") is None
    reached = page.evaluate("() => fetch('http://127.0.0.1:9/').then(() => 'yes', () => 'no')")
    assert reached == "no"
    reader.requests[:] = [url for url in reader.requests if ":9/" not in url]
