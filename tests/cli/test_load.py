"""`omnigraph load` and `omnigraph ingest`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.cli.progress import shown_progress
from omnigraph.load.model import Progress
from omnigraph.wire.shapes import commit_output
from tests.cli.calling import call, spawn
from tests.mutation.org_graph import ids, pairs

Capsys = pytest.CaptureFixture[str]

EVE = '{"type":"Staff","data":{"handle":"eve","level":22}}\n{"edge":"Mentors","from":"eve","to":"ada"}\n'


@pytest.fixture
def data(org: Path) -> Path:
    (org / "eve.jsonl").write_text(EVE)
    return org


def graph() -> og.Graph:
    return og.open("org.omni", "ro")


def test_what_people_see(capsys: Capsys, data: Path) -> None:
    outcome = call(capsys, "load", "org.omni", "--data", "eve.jsonl", "--mode", "append", "--as", "me")
    assert outcome.code == 0
    assert outcome.out == (
        "loaded org.omni on branch main with append: 2 entities across 1 node types and 1 edge types\nactor_id: me\n"
    )
    assert outcome.err == "omnigraph load → org.omni (direct, local)\n"
    assert "eve" in ids(graph(), "node:Staff")
    assert ("eve", "ada") in pairs(graph(), "Mentors")


def test_json(capsys: Capsys, data: Path) -> None:
    outcome = call(capsys, "load", "org.omni", "--data=eve.jsonl", "--mode=merge", "--json", "--quiet")
    assert (outcome.code, outcome.err) == (0, "")
    shown = json.loads(outcome.out)
    assert shown["commit"] == commit_output(graph().commits()[0])
    report = shown["report"]
    assert (report["engine"], report["rows"], report["lines"]) == ("local", 2, 2)
    assert report["why"] == "0.0 MiB of input is too little for Spark"
    assert set(report["seconds"]) == {"read", "check", "stage", "commit"}
    assert min(report["bytes"], report["peak_memory"]) > 0
    assert {key: value for key, value in shown.items() if key not in ("commit", "report")} == {
        "uri": "org.omni",
        "branch": "main",
        "mode": "merge",
        "branch_created": False,
        "nodes": [{"name": "Staff", "entities_loaded": 1}],
        "edges": [{"name": "Mentors", "entities_loaded": 1}],
        "total_entities": 2,
    }


def test_a_branch_that_is_created_with_the_load(capsys: Capsys, data: Path) -> None:
    missing = call(capsys, "load", "org.omni", "--data=eve.jsonl", "--mode=append", "--branch=new")
    assert missing.code == 1
    assert "branch 'new' not found" in missing.err
    outcome = call(capsys, "load", "org.omni", "--data=eve.jsonl", "--mode=append", "--branch=new", "--from=main")
    assert outcome.out.endswith("\nbranch new created from main\n")
    assert "eve" in ids(graph(), "node:Staff", "new")
    assert "eve" not in ids(graph(), "node:Staff")


def test_a_load_that_fails_changes_nothing(capsys: Capsys, data: Path) -> None:
    (data / "bad.jsonl").write_text('{"edge":"Mentors","from":"ada","to":"Missing"}\nnonsense\n')
    before = graph().head()
    outcome = call(capsys, "load", "org.omni", "--data=bad.jsonl", "--mode=append", "--branch=b", "--from=main")
    assert (outcome.code, outcome.out) == (1, "")
    assert "bad.jsonl:1: edge Mentors: `to` node Staff 'Missing' not found" in outcome.err
    assert "bad.jsonl:2: not valid JSON" in outcome.err
    assert graph().head() == before
    assert graph().branches() == ["main"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--data=eve.jsonl"], "--mode"),
        (["--mode=append"], "--data"),
        (["--data=eve.jsonl", "--mode=upsert"], "upsert"),
        (["--data=eve.jsonl", "--mode=append", "--type=A", "--edge=B"], "exclude each other"),
    ],
)
def test_usage(capsys: Capsys, data: Path, arguments: list[str], message: str) -> None:
    outcome = call(capsys, "load", "org.omni", *arguments)
    assert outcome.code == 2
    assert message in outcome.err


def test_ingest(capsys: Capsys, data: Path) -> None:
    (data / "loose.json").write_text('{"type": "Staff",\n "data": {"handle": "eve", "mood": "good"}}')
    outcome = call(capsys, "ingest", "org.omni", "--data=loose.json", "--branch=agent/1", "--json")
    assert outcome.code == 0
    assert "warning: `ingest` reads permissively" in outcome.err
    assert "1 unknown propert(ies)" in outcome.err
    shown = json.loads(outcome.out)
    assert (shown["branch"], shown["base_branch"], shown["branch_created"]) == ("agent/1", "main", True)
    assert (shown["mode"], shown["total_entities"]) == ("merge", 1)
    again = call(capsys, "ingest", "org.omni", "--data=loose.json", "--branch=agent/1")
    assert again.code == 0
    assert "created from" not in again.out


def test_an_overwrite_of_a_remote_graph_is_asked_for(capsys: Capsys, data: Path) -> None:
    outcome = call(capsys, "load", "s3://bucket/graph", "--data=eve.jsonl", "--mode=overwrite", "--json")
    assert outcome.code == 1
    assert "refusing destructive `load --mode overwrite` against non-local target" in outcome.err


def test_tables(capsys: Capsys, data: Path) -> None:
    (data / "staff.csv").write_text("who,level\nfay,1\n")
    (data / "map.json").write_text('{"who": "handle"}')
    tabular = ["--data=staff.csv", "--format=csv", "--type=Staff", "--map=map.json", "--mode=append"]
    assert call(capsys, "load", "org.omni", *tabular).code == 0
    assert "fay" in ids(graph(), "node:Staff")
    (data / "map.json").write_text("[]")
    assert "maps columns to names" in call(capsys, "load", "org.omni", *tabular).err


def test_standard_input_and_an_idempotency_key(data: Path) -> None:
    for _ in range(2):
        outcome = spawn("load", "org.omni", "--data=-", "--mode=append", "--idempotency-key=k", "--json", input=EVE)
        assert outcome.returncode == 0, outcome.stderr
        assert json.loads(outcome.stdout)["total_entities"] == 2
    assert ids(graph(), "node:Staff").count("eve") == 1


@pytest.mark.parametrize("terminal", [True, False])
def test_progress(capsys: Capsys, monkeypatch: pytest.MonkeyPatch, terminal: bool) -> None:
    clock = iter(range(0, 1000, 10))
    monkeypatch.setattr("omnigraph.cli.progress.time.monotonic", lambda: next(clock))
    monkeypatch.setattr("sys.stderr.isatty", lambda: terminal)
    with shown_progress(quiet=True) as silent:
        assert silent is None
    with shown_progress(quiet=False) as shown:
        assert shown is not None
        shown(Progress("read", 50, 100, 2000))
    text = capsys.readouterr().err
    assert "read" in text
    assert " 50%  2,000 rows  200 rows/s" in text
    assert ("\r" in text) == terminal


def test_a_branch_that_is_not_there_can_come_with_the_load(capsys: pytest.CaptureFixture[str], org: Path) -> None:
    (org / "more.jsonl").write_text('{"type": "Team", "data": {"code": "new"}}\n')
    load = ("load", "org.omni", "--data", "more.jsonl", "--mode", "append", "--branch", "b", "--quiet")
    outcome = call(capsys, *load)
    assert (outcome.code, outcome.out) == (1, "")
    assert outcome.err == "Error: branch 'b' not found; pass --from main to create it with the load\n"
    assert call(capsys, *load, "--from", "main").code == 0
    outcome = call(capsys, *load[:6], "--branch", "c", "--from", "nowhere", "--quiet")
    assert outcome.err == "Error: branch 'nowhere' not found\n"


def test_rows_that_exist_name_the_mode_that_updates_them(capsys: pytest.CaptureFixture[str], org: Path) -> None:
    known = '{"type": "Team", "data": {"code": "core"}}\n'
    (org / "more.jsonl").write_text(known + '{"edge": "MemberOf", "from": "nobody", "to": "core"}\n')
    load = ("load", "org.omni", "--data", "more.jsonl", "--quiet", "--mode")
    outcome = call(capsys, *load, "append")
    assert (outcome.code, outcome.out) == (1, "")
    assert "more.jsonl:1: node:Team 'core' exists already\n" in outcome.err
    assert outcome.err.endswith("pass --mode update to change existing rows, or --mode merge to replace whole rows\n")
    assert "append adds" not in call(capsys, *load, "merge").err
    (org / "more.jsonl").write_text(known)
    assert "load with mode=merge" in call(capsys, *load, "append").err


def test_update_merge_and_their_warnings(capsys: pytest.CaptureFixture[str], org: Path) -> None:
    (org / "some.jsonl").write_text('{"type": "Staff", "data": {"handle": "ada"}}\n')
    load = ("load", "org.omni", "--data", "some.jsonl", "--quiet", "--mode")
    outcome = call(capsys, *load, "update")
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.startswith("loaded org.omni on branch main with update: 1 entities")
    outcome = call(capsys, *load, "merge")
    assert outcome.err == (
        "warning: merge replaced whole rows: 1 stored value(s) that the input does not give are null now (Staff.level 1); "
        "--mode update keeps them\n"
    )
    assert call(capsys, *load, "merge").err == ""


def test_edges_loaded_twice_are_told_once(capsys: pytest.CaptureFixture[str], org: Path) -> None:
    (org / "edges.jsonl").write_text('{"edge": "Mentors", "from": "ada", "to": "ben"}\n')
    outcome = call(capsys, "load", "org.omni", "--data", "edges.jsonl", "--quiet", "--mode", "append")
    assert outcome.code == 0
    assert outcome.err.count("warning: ") == 1
    assert "declare `@key(src, dst)`" in outcome.err


def test_columns_on_the_line(capsys: pytest.CaptureFixture[str], org: Path) -> None:
    (org / "s.csv").write_text("who;rank;junk\nzoe;4;x\n")
    load = ("load", "org.omni", "--data", "s.csv", "--type", "Staff", "--quiet", "--mode", "append")
    outcome = call(capsys, *load)
    assert "the columns 'who', 'rank', 'junk' of s.csv are no properties of Staff" in outcome.err
    outcome = call(capsys, *load, "--map", "who=handle", "--map", "rank=level", "--ignore-extra")
    assert (outcome.code, outcome.err) == (0, "")
    outcome = call(capsys, *load, "--map", "who=handle", "--delimiter", ",")
    assert outcome.code == 1
    assert call(capsys, *load, "--delimiter", "::").code == 2
    (org / "t.csv").write_text("who\trank\nyan\t4\n")
    assert (
        call(capsys, *load[:3], "t.csv", *load[4:], "--map=who=handle", "--map=rank=level", "--delimiter=tab").code == 0
    )
