"""A person's whole way through what changes the graph: load, mend, compare, decide, merge, revert, schema, upkeep."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from playwright.sync_api import Page, expect

from omnigraph.policy.bundle import read_bundle
from tests.server.serving import Served, serving
from tests.studio.conftest import NewTab, Studio, settings_of

#: Everybody of the group reads main, and nothing else.
READS_MAIN = """
version: 1
groups: { some: [ann] }
protected_branches: [main]
rules:
  - { id: main, allow: { actors: { group: some }, actions: [read], branch_scope: protected } }
"""
BAD = """\
{"type":"Person","data":{"name":"Vera","age":900}}
{"type":"Person","data":{"name":"Ada","age":99}}
{"type":"Persn","data":{"name":"Wim"}}
"""


def ages(served: Served, branch: str = "main") -> dict[str, int]:
    told = served.http.post(
        "/graphs/team/query",
        json={"query": "query q() { match { $p: Person } return { $p.name, $p.age } }", "branch": branch},
    ).json()
    return {row["p.name"]: row["p.age"] for row in told["rows"]}


def _change(served: Served, age: int, branch: str = "main") -> None:
    text = f'query u() {{ update Person set {{ age: {age} }} where name = "Ada" }}'
    answer = served.http.post("/graphs/team/mutate", json={"query": text, "branch": branch})
    assert answer.status_code == 200, answer.text


def test_load_with_mistakes_mend_compare_decide_merge_and_revert(writer: Studio, own: Served, tmp_path: Path) -> None:
    (tmp_path / "people.jsonl").write_text(BAD)
    writer.allowed.append("400")
    page = writer.open("load")
    page.get_by_label("File to load").set_input_files(tmp_path / "people.jsonl")
    expect(page.get_by_label("Name of the branch")).to_have_value("load/people")
    page.get_by_role("button", name="Load", exact=True).click()
    expect(page.get_by_text("2 problems; nothing was written")).to_be_visible()
    expect(page.get_by_text("@range violation on Person.age: 900 is not in 0..150")).to_be_visible()
    expect(page.get_by_text("did you mean `Person`?")).to_be_visible()
    page.get_by_label("Line 1").fill('{"type":"Person","data":{"name":"Vera","age":90}}')
    page.get_by_label("Line 3").fill('{"type":"Person","data":{"name":"Wim"}}')
    page.get_by_role("button", name="Load again").first.click()
    expect(page.get_by_text("3 entities on")).to_be_visible()
    assert "Vera" not in ages(own)
    page.get_by_role("link", name="Compare with main").click()
    expect(page.get_by_text("3 entities differ")).to_be_visible()
    expect(page.get_by_role("cell", name="99", exact=True)).to_be_visible()
    _change(own, 50)
    page.get_by_role("link", name="Merge load/people into main").click()
    expect(page.get_by_text("1 conflict, 1 to decide")).to_be_visible()
    row = page.get_by_role("row", name="age 36")
    expect(row.get_by_role("cell")).to_have_count(4)
    expect(row).to_contain_text("50")
    expect(row).to_contain_text("99")
    expect(page.get_by_role("button", name="Merge load/people into main")).to_be_disabled()
    row.get_by_role("radio", name="age: take theirs").check()
    expect(page.get_by_text("1 conflict, all decided")).to_be_visible()
    page.get_by_role("button", name="Merge load/people into main").click()
    expect(page.get_by_text("load/people was merged into main")).to_be_visible()
    assert ages(own) | {"Ada": 99, "Vera": 90, "Wim": None} == ages(own)
    page.get_by_role("button", name="Revert this merge").click()
    page.get_by_role("dialog").get_by_role("button", name="Revert").click()
    expect(page.get_by_text("Done in commit")).to_be_visible()
    assert ages(own)["Ada"] == 50
    assert "Vera" not in ages(own)


def test_a_value_of_ones_own_decides(writer: Studio, own: Served) -> None:
    page = writer.open("merge?source=agent%2F1&target=main")
    page.get_by_label("age: another value").fill("40")
    expect(page.get_by_text("1 conflict, all decided")).to_be_visible()
    page.get_by_label("age: another value").fill("")
    expect(page.get_by_text("1 conflict, 1 to decide")).to_be_visible()
    page.get_by_label("age: another value").fill("40")
    page.get_by_role("button", name="Merge agent/1 into main").click()
    expect(page.get_by_text("agent/1 was merged into main")).to_be_visible()
    assert ages(own)["Ada"] == 40
    assert ages(own)["Uma"] == 33


def test_a_refused_value_is_told_and_nothing_is_written(writer: Studio, own: Served) -> None:
    writer.allowed.append("400|409")
    page = writer.open("merge?source=agent%2F1&target=main")
    page.get_by_label("age: another value").fill("4000")
    page.get_by_role("button", name="Merge agent/1 into main").click()
    expect(page.get_by_role("alert").first).to_be_visible()
    assert ages(own)["Ada"] == 36


def test_two_browsers_at_the_same_conflict(own: Served, new_tab: NewTab) -> None:
    one, other = new_tab(own), new_tab(own)
    first = one.open("merge?source=agent%2F1&target=main")
    second = other.open("merge?source=agent%2F1&target=main")
    expect(first.get_by_text("1 conflict, 1 to decide")).to_be_visible()
    second.get_by_label("age: another value").fill("41")
    expect(second.get_by_text("1 conflict, all decided")).to_be_visible()
    _change(own, 55)
    second.get_by_role("button", name="Merge agent/1 into main").click()
    expect(second.get_by_role("alert")).to_contain_text("Somebody has changed one of these branches meanwhile")
    expect(second.get_by_label("age: another value")).to_have_value("41")
    assert ages(own)["Ada"] == 55
    first.reload()
    first.get_by_role("button", name="Ours (main)").click()
    first.get_by_role("button", name="Merge agent/1 into main").click()
    expect(first.get_by_text("agent/1 was merged into main")).to_be_visible()
    second.get_by_role("button", name="Merge agent/1 into main").click()
    expect(second.get_by_text("main has everything of agent/1")).to_be_visible()
    assert ages(own)["Ada"] == 55


def test_branches_are_made_and_deleted(writer: Studio, own: Served) -> None:
    page = writer.open("branches")
    page.get_by_role("button", name="New branch").click()
    page.get_by_label("Name").fill("draft")
    page.get_by_role("button", name="Make the branch").click()
    expect(page.get_by_text("Branch draft was made")).to_be_visible()
    assert "branch=draft" in page.url
    page.get_by_role("link", name="Branches", exact=True).click()
    page.get_by_role("button", name="Delete draft").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete the branch").click()
    expect(page.get_by_role("link", name="draft", exact=True)).to_have_count(0)
    assert "draft" not in own.http.get("/graphs/team/branches").json()["branches"]


def test_a_mutation_asks_for_its_branch_and_says_what_it_did(writer: Studio, own: Served) -> None:
    page = writer.open("query?branch=agent%2F1")
    page.get_by_role("textbox", name="Query").fill(
        "query older($who: String, $age: I32) { update Person set { age: $age } where name = $who }"
    )
    page.get_by_label("$who").fill("Ben")
    page.get_by_label("$age").fill("60")
    page.get_by_role("button", name="Run on agent/1").click()
    expect(page.get_by_text("1 node and 0 edges on agent/1")).to_be_visible()
    assert ages(own, "agent/1")["Ben"] == 60
    assert ages(own)["Ben"] == 31


def test_a_commit_is_tagged_and_looked_at(writer: Studio) -> None:
    page = writer.open("history")
    page.get_by_role("list", name="Commits, newest first").get_by_text("Ada had a birthday").click()
    page.get_by_role("button", name="Tag", exact=True).click()
    page.get_by_label("Name").fill("v1")
    page.get_by_role("dialog").get_by_role("button", name="Tag").click()
    expect(page.get_by_text("Tagged as v1")).to_be_visible()
    page.get_by_label("Branch or commit").select_option(label="v1")
    expect(page.get_by_text("You look at the graph as it was")).to_be_visible()


def test_a_commit_is_picked_onto_another_branch(writer: Studio, own: Served) -> None:
    page = writer.open("history?branch=agent%2F1")
    page.get_by_role("list", name="Commits, newest first").get_by_text("A new person").click()
    page.get_by_role("button", name="Cherry-pick").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("On branch").select_option("main")
    dialog.get_by_role("button", name="Cherry-pick").click()
    expect(page.get_by_text("Done in commit")).to_be_visible()
    assert ages(own)["Uma"] == 33


def test_a_schema_change_is_planned_and_applied(writer: Studio, own: Served) -> None:
    page = writer.open("schema")
    editor = page.get_by_role("textbox", name="Schema")
    expect(editor).to_contain_text("node Person")
    source = own.http.get("/graphs/team/schema").json()["schema_source"]
    editor.fill(source.replace("country: String?", "country: Vector(3)?"))
    page.get_by_role("button", name="See what would happen").click()
    expect(page.get_by_text("its type can not change from String to Vector(3)")).to_be_visible()
    expect(page.get_by_text("refused", exact=True)).to_be_visible()
    expect(page.get_by_role("button", name="Apply the schema to main")).to_be_disabled()
    editor.fill(source.replace("age: I32?", "age: I64?"))
    page.get_by_role("button", name="See what would happen").click()
    expect(page.locator(".steps")).to_contain_text("Person.age I32 → I64")
    editor.fill(source.replace("country: String?", "country: String?  mayor: String?"))
    page.get_by_role("button", name="See what would happen").click()
    expect(page.get_by_text("1 step")).to_be_visible()
    page.get_by_role("button", name="Apply the schema to main").click()
    expect(page.get_by_text("The schema of main is applied")).to_be_visible()
    assert "mayor" in own.http.get("/graphs/team/schema").json()["schema_source"]


def test_each_branch_has_a_schema_of_its_own(writer: Studio, own: Served) -> None:
    """Changed on a branch, seen there only, compared, and taken over by a merge."""
    page = writer.open("schema?branch=fix")
    editor = page.get_by_role("textbox", name="Schema")
    expect(editor).to_contain_text("node Person")
    editor.press("Control+End")
    page.keyboard.insert_text("\nnode River { name: String @key }")
    page.get_by_role("button", name="See what would happen").click()
    page.get_by_role("button", name="Apply the schema to fix").click()
    expect(page.get_by_text("The schema of fix is applied")).to_be_visible()
    page = writer.open("overview?branch=fix")
    expect(page.get_by_label("Node types").get_by_text("River")).to_be_visible()
    page = writer.open("overview")
    expect(page.get_by_label("Node types").get_by_text("Person")).to_be_visible()
    expect(page.get_by_label("Node types").get_by_text("River")).to_have_count(0)
    page = writer.open("compare?before=main&after=fix")
    expect(page.get_by_role("heading", name="The schemas differ")).to_be_visible()
    expect(page.locator(".steps")).to_contain_text("River")
    page = writer.open("merge?source=fix&target=main")
    expect(page.locator(".steps")).to_contain_text("River")
    page.get_by_role("button", name="Merge fix into main").click()
    expect(page.get_by_text("fix was merged into main")).to_be_visible()
    assert "River" in own.http.get("/graphs/team/schema").json()["schema_source"]
    page = writer.open("history")
    page.get_by_text("Ada had a birthday").click()
    page.get_by_role("link", name="Compare with now").click()
    expect(page.get_by_role("heading", name="The schemas differ")).to_be_visible()
    expect(page.locator(".steps")).to_contain_text("add node type 'River'")


def test_a_conflict_of_schemas_is_settled(writer: Studio, own: Served) -> None:
    source = own.http.get("/graphs/team/schema").json()["schema_source"]
    for branch, kind in (("fix", "String"), ("main", "I32")):
        changed = source.replace("country: String?", f"country: String?  mayor: {kind}?")
        own.http.post(f"/graphs/team/schema/apply?branch={branch}", json={"schema_source": changed}).raise_for_status()
    page = writer.open("merge?source=fix&target=main")
    expect(page.get_by_text("mayor: String?", exact=True)).to_be_visible()
    expect(page.get_by_text("mayor: I32?", exact=True)).to_be_visible()
    expect(page.get_by_role("button", name="Merge fix into main")).to_be_disabled()
    page.get_by_role("button", name="Use this schema").click()
    expect(page.get_by_text("settled")).to_be_visible()
    page.get_by_role("button", name="Merge fix into main").click()
    expect(page.get_by_text("fix was merged into main")).to_be_visible()
    assert "mayor: I32?" in own.http.get("/graphs/team/schema").json()["schema_source"]


def test_a_schema_with_a_mistake_shows_its_place(writer: Studio) -> None:
    writer.allowed.append("400")
    page = writer.open("schema")
    page.get_by_role("textbox", name="Schema").fill("node Person { name: Strin @key }")
    expect(page.locator(".cm-lintRange-error")).to_be_visible()


def test_upkeep_says_what_it_would_gain_and_does_it(writer: Studio, own: Served) -> None:
    page = writer.open("upkeep")
    page.get_by_role("button", name="What would it gain?").click()
    page.get_by_role("button", name="Optimize now").click()
    expect(page.get_by_text("The tables are optimized")).to_be_visible()
    page.get_by_role("button", name="What would it gain?").click()
    expect(page.get_by_text("nothing to do")).to_be_visible()
    page.get_by_role("button", name="What would go?").click()
    expect(page.get_by_text("Kept for:").or_(page.get_by_text("nothing can go")).first).to_be_visible()


def _load(page: Page, file: Path, into: str) -> None:
    page.get_by_label("File to load").set_input_files(file)
    expect(page.get_by_label("Name of the branch")).to_have_value(into)
    page.get_by_role("button", name="Load", exact=True).click()


def test_a_csv_file_is_mapped(writer: Studio, own: Served, tmp_path: Path) -> None:
    (tmp_path / "staff.csv").write_text(
        'Full name,Age,Remark\n"Xena, the first",44,"a ""b"" c"\nYann,,\n', encoding="utf-8"
    )
    page = writer.open("load")
    page.get_by_label("File to load").set_input_files(tmp_path / "staff.csv")
    page.get_by_label("These rows are").select_option("Person")
    expect(page.get_by_label("Column of age")).to_have_value("Age")
    page.get_by_label("Column of name").select_option("Full name")
    page.get_by_label("Column of bio").select_option("Remark")
    page.get_by_role("button", name="Load", exact=True).click()
    expect(page.get_by_text("2 entities on")).to_be_visible()
    found = ages(own, "load/staff")
    assert found["Xena, the first"] == 44
    assert found["Yann"] is None


def test_a_row_of_a_table_is_mended_cell_by_cell(writer: Studio, own: Served, tmp_path: Path) -> None:
    (tmp_path / "person.csv").write_text("name,age\nXena,900\n,20\nYann,21\n")
    page = writer.open("load")
    _load(page, tmp_path / "person.csv", "load/person")
    expect(page.get_by_text("2 problems; nothing was written")).to_be_visible()
    age = page.get_by_role("group", name="Row 1").get_by_label("age")
    expect(age).to_have_attribute("aria-invalid", "true")
    age.fill("90")
    page.get_by_role("group", name="Row 2").get_by_label("name").fill("Zoe")
    page.get_by_role("button", name="Load again").last.click()
    expect(page.get_by_text("3 entities on")).to_be_visible()
    found = ages(own, "load/person")
    assert (found["Xena"], found["Zoe"], found["Yann"]) == (90, 20, 21)


def test_the_graph_at_an_earlier_time(writer: Studio, own: Served) -> None:
    """From any view by the picker at the top; then what has changed since."""
    page = writer.open("overview")
    page.wait_for_timeout(1200)
    moment = page.evaluate("new Date(Date.now() - new Date().getTimezoneOffset() * 60000).toISOString().slice(0, 19)")
    _change(own, 51)
    writer.allowed.append("404")
    page.get_by_label("Branch or commit").select_option("at a time…")
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name="A week ago").click()
    dialog.get_by_role("button", name="Look at it").click()
    expect(dialog.get_by_role("alert")).to_contain_text("main has no commit that is so old")
    dialog.get_by_label("Day and time").fill(moment)
    dialog.get_by_role("button", name="Look at it").click()
    expect(page.get_by_text("You look at the graph as it was")).to_be_visible()
    page.get_by_role("link", name="Explore", exact=True).click()
    page.get_by_label("Key or words").fill("ada")
    page.get_by_label("Type", exact=True).select_option("Person")
    page.get_by_role("button", name="Find", exact=True).click()
    page.get_by_role("list", name="Found nodes").get_by_text("Ada").click()
    expect(page.get_by_role("cell", name="36", exact=True)).to_be_visible()
    page = writer.open("history")
    page.get_by_text("Ada had a birthday").click()
    page.get_by_role("link", name="Compare with now").click()
    expect(page.get_by_role("cell", name="51", exact=True)).to_be_visible()


def test_edges_come_from_a_tsv_file(writer: Studio, own: Served, tmp_path: Path) -> None:
    (tmp_path / "knows.tsv").write_text("source\ttarget\tsince\nAda\tEva\t2024-01-01\n")
    page = writer.open("load")
    _load(page, tmp_path / "knows.tsv", "load/knows")
    expect(page.get_by_text("1 entity on")).to_be_visible()
    told = own.http.get(
        "/graphs/team/neighbours", params={"type": "Person", "id": "Ada", "branch": "load/knows"}
    ).json()
    assert "Eva" in {node["id"] for node in told["nodes"]}


def test_a_parquet_file_is_loaded(writer: Studio, own: Served, tmp_path: Path) -> None:
    pq.write_table(
        pa.table({"name": ["Zoe", "Abe"], "age": pa.array([20, 21], pa.int32())}), tmp_path / "person.parquet"
    )
    page = writer.open("load")
    _load(page, tmp_path / "person.parquet", "load/person")
    expect(page.get_by_text("2 entities on")).to_be_visible()
    assert ages(own, "load/person")["Abe"] == 21


def test_a_file_of_another_kind_is_refused(writer: Studio, tmp_path: Path) -> None:
    (tmp_path / "photo.gif").write_bytes(b"GIF89a")
    page = writer.open("load")
    page.get_by_label("File to load").set_input_files(tmp_path / "photo.gif")
    expect(page.get_by_role("alert")).to_contain_text("none of JSONL, CSV, TSV and Parquet")


def test_a_reader_without_rights_is_offered_nothing_that_changes(own: Served, new_tab: NewTab) -> None:
    with serving(settings_of(own.path, read_only=True)) as served:
        tab = new_tab(served)
        page = tab.open("branches")
        expect(page.get_by_text("read-only")).to_be_visible()
        for name in ("Merge", "Load"):
            expect(page.get_by_role("navigation").get_by_role("link", name=name)).to_have_count(0)
        expect(page.get_by_role("button", name="New branch")).to_have_count(0)
        expect(page.get_by_role("button", name="Delete agent/1")).to_have_count(0)
        page = tab.open("history")
        page.get_by_text("Ada had a birthday").click()
        expect(page.get_by_role("link", name="Look at the graph then")).to_be_visible()
        expect(page.get_by_role("button", name="Revert")).to_have_count(0)
        # What a merge would do is reading; only the merge itself is not offered.
        page = tab.open("merge?source=agent%2F1&target=main")
        page.wait_for_load_state("networkidle")
        expect(page.get_by_role("button", name="Merge agent/1 into main")).to_have_count(0)
        expect(page.get_by_role("alert")).to_have_count(0)


def test_who_may_read_main_alone_is_shown_main_alone(
    own: Served, new_tab: NewTab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Under a policy; what is refused is told in one line, and nothing else breaks."""
    monkeypatch.setenv("OMNIGRAPH_SERVER_BEARER_TOKENS_JSON", '{"ann":"ogt_ann"}')
    settings = settings_of(own.path, rights="default-deny", one_time_token=None)
    source = replace(settings.graphs[0], policy=read_bundle(READS_MAIN, "graph"))
    with serving(replace(settings, graphs=(source,))) as served:
        tab = new_tab(served, token="ogt_ann")
        tab.allowed.append("403")
        page = tab.open("overview")
        expect(page.get_by_role("link", name="Ada had a birthday")).to_be_visible()
        expect(page.get_by_text("agent/1")).to_have_count(0)
        for name in ("Merge", "Load"):
            expect(page.get_by_role("navigation").get_by_role("link", name=name)).to_have_count(0)
        page = tab.open("explore?type=Person&id=Ada")
        expect(page.get_by_role("cell", name="36", exact=True)).to_be_visible()
        page = tab.open("compare?before=main&after=agent%2F1")
        expect(page.get_by_role("alert")).to_contain_text("policy denied action 'read' on branch 'agent/1'")
        page = tab.open("upkeep")
        expect(page.get_by_text("Your token may not do this").first).to_be_visible()


def test_a_lost_connection_is_told_and_goes_on(writer: Studio) -> None:
    writer.allowed.append("ERR_INTERNET_DISCONNECTED|Failed to load")
    page = writer.open("query")
    page.get_by_role("textbox", name="Query").fill("query q() { match { $c: City } return { $c.name } }")
    writer.context.set_offline(True)
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.get_by_text("The connection to the server is lost")).to_be_visible()
    writer.context.set_offline(False)
    expect(page.get_by_text("The connection to the server is lost")).to_have_count(0)
    expect(page.get_by_role("textbox", name="Query")).to_contain_text("$c: City")
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.get_by_role("table", name="Result").get_by_text("Oslo")).to_be_visible()
