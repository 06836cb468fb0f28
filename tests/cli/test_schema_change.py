"""`omnigraph schema plan` and `omnigraph schema apply`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import omnigraph as og
from tests.cli.calling import call
from tests.mutation.org_graph import SCHEMA

WIDER = SCHEMA.replace("node Team {", "node Team {\n  motto: String?")
NARROWER = SCHEMA.replace("level: I32?", "level: Bool?")


@pytest.fixture
def wanted(org: Path) -> Path:
    return org / "wanted.pg"


def test_plan_shows_the_steps(capsys: pytest.CaptureFixture[str], wanted: Path) -> None:
    wanted.write_text(WIDER)
    outcome = call(capsys, "schema", "plan", "org.omni", "--schema", "wanted.pg")
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.splitlines() == [
        "schema plan for org.omni",
        "supported: yes",
        "- add property 'Team.motto' (String?)",
    ]
    outcome = call(capsys, "schema", "plan", "--store", "org.omni", "--schema", "wanted.pg", "--json")
    step = {
        "kind": "add_property",
        "type_kind": "node",
        "type_name": "Team",
        "property_name": "motto",
        "property_type": "String?",
    }
    assert json.loads(outcome.out) == {"uri": "org.omni", "supported": True, "step_count": 1, "steps": [step]}
    assert og.open("org.omni").schema() == SCHEMA


def test_an_unsupported_plan_is_shown_and_exits_3(capsys: pytest.CaptureFixture[str], wanted: Path) -> None:
    wanted.write_text(NARROWER)
    outcome = call(capsys, "schema", "plan", "org.omni", "--schema", "wanted.pg")
    assert outcome.code == 3
    assert outcome.err == ""
    assert outcome.out.splitlines()[1] == "supported: no"
    assert "- unsupported change on node:Staff.level: its type can not change from I32 to Bool" in outcome.out
    assert "[OG-MF-106]" in outcome.out
    outcome = call(capsys, "schema", "plan", "org.omni", "--schema", "wanted.pg", "--json")
    assert outcome.code == 3
    (step,) = json.loads(outcome.out)["steps"]
    assert (step["kind"], step["code"]) == ("unsupported_change", "OG-MF-106")


def test_rows_in_the_way_make_a_plan_exit_3(capsys: pytest.CaptureFixture[str], wanted: Path) -> None:
    wanted.write_text(SCHEMA.replace("level: I32?", "level: I32? @range(level, 0..10)"))
    outcome = call(capsys, "schema", "plan", "org.omni", "--schema", "wanted.pg")
    assert outcome.code == 3
    assert "- unsupported change on node:Staff: rows break it: @range violation on Staff.level" in outcome.out


def test_a_plan_points_out_a_rename(capsys: pytest.CaptureFixture[str], wanted: Path) -> None:
    wanted.write_text(SCHEMA.replace("level: I32?", "grade: I32?"))
    outcome = call(capsys, "schema", "plan", "org.omni", "--schema", "wanted.pg")
    assert outcome.code == 0
    assert outcome.out.splitlines()[-1] == (
        "hint: 'Staff.level' is dropped and 'grade' is added; if that is a rename, "
        'write: grade: I32? @rename_from("level")'
    )


def test_backfill(capsys: pytest.CaptureFixture[str], wanted: Path) -> None:
    wanted.write_text(SCHEMA.replace("level: I32?", "level: I32?\n  loud: String @unique\n  twice: I64?"))
    asked = ("org.omni", "--schema", "wanted.pg", "--backfill", "Staff.loud = upper(handle)")
    outcome = call(capsys, "schema", "plan", *asked, "--backfill", "Staff.twice = 2 * level")
    assert (outcome.code, outcome.err) == (0, "")
    assert "- backfill 'Staff.loud' with upper(handle)" in outcome.out
    assert call(capsys, "schema", "apply", *asked, "--backfill", "Staff.twice = 2 * level", "--quiet").code == 0
    rows = og.open("org.omni").query("query q() { match { $s: Staff } return { $s.handle, $s.loud } }").to_dicts()
    assert rows
    assert all(row["s.loud"] == row["s.handle"].upper() for row in rows)
    outcome = call(
        capsys, "schema", "plan", "org.omni", "--schema", "wanted.pg", "--backfill", "Staff.loud = uper(handle)"
    )
    assert outcome.code == 1
    assert outcome.err.startswith("Error: backfill:1:14: parse error: unknown function `uper`")


@pytest.mark.parametrize(("flags", "mode"), [((), "soft"), (("--allow-data-loss",), "hard")], ids=["soft", "hard"])
def test_plan_says_how_it_drops(
    capsys: pytest.CaptureFixture[str], wanted: Path, flags: tuple[str, ...], mode: str
) -> None:
    wanted.write_text(SCHEMA.replace("level: I32?", ""))
    outcome = call(capsys, "schema", "plan", "org.omni", "--schema", "wanted.pg", "--json", *flags)
    (step,) = json.loads(outcome.out)["steps"]
    assert (step["kind"], step["mode"], step["code"]) == ("drop_property", mode, "OG-DS-104")


def test_plan_of_the_same_schema(capsys: pytest.CaptureFixture[str], wanted: Path) -> None:
    wanted.write_text(SCHEMA)
    outcome = call(capsys, "schema", "plan", "org.omni", "--schema", "wanted.pg")
    assert outcome.out.splitlines()[1:] == ["supported: yes", "no schema changes"]


def test_apply_changes_the_schema(capsys: pytest.CaptureFixture[str], wanted: Path) -> None:
    wanted.write_text(WIDER)
    version = og.open("org.omni").snapshot().version
    outcome = call(capsys, "schema", "apply", "org.omni", "--schema", "wanted.pg", "--as", "ann")
    assert (outcome.code, outcome.err) == (0, "omnigraph schema apply → org.omni (direct, local)\n")
    assert outcome.out.splitlines() == [
        "schema apply for org.omni",
        "supported: yes",
        "applied: yes",
        f"graph_manifest_version: {version + 1}",
        "- add property 'Team.motto' (String?)",
    ]
    graph = og.open("org.omni")
    assert graph.schema() == WIDER
    assert (graph.head().kind, graph.head().actor) == ("schema", "ann")
    outcome = call(capsys, "schema", "apply", "org.omni", "--schema", "wanted.pg", "--quiet", "--json")
    assert (outcome.code, outcome.err) == (0, "")
    assert json.loads(outcome.out) == {
        "uri": "org.omni",
        "supported": True,
        "step_count": 0,
        "steps": [],
        "applied": False,
        "graph_manifest_version": version + 1,
        "commit": None,
    }


REFUSED = [
    pytest.param(NARROWER, "the schema can not be applied: node:Staff.level: its type", id="unsupported"),
    pytest.param(
        SCHEMA.replace("level: I32?", "level: I32? @range(level, 0..10)"),
        "the schema can not be applied, rows of node:Staff break it: @range violation on Staff.level",
        id="rows-break-it",
    ),
    pytest.param("node Staff {", "wanted.pg:1:13: parse error", id="no-schema"),
]


@pytest.mark.parametrize(("text", "message"), REFUSED)
def test_apply_refuses(capsys: pytest.CaptureFixture[str], wanted: Path, text: str, message: str) -> None:
    wanted.write_text(text)
    before = og.open("org.omni").head()
    outcome = call(capsys, "schema", "apply", "org.omni", "--schema", "wanted.pg", "--quiet")
    assert (outcome.code, outcome.out) == (1, "")
    assert outcome.err.startswith(f"Error: {message}")
    assert "Traceback" not in outcome.err
    graph = og.open("org.omni")
    assert (graph.schema(), graph.head()) == (SCHEMA, before)


def test_apply_on_a_branch(capsys: pytest.CaptureFixture[str], wanted: Path) -> None:
    wanted.write_text(WIDER)
    graph = og.open("org.omni")
    graph.create_branch("agent/1")
    asked = ("org.omni", "--schema", "wanted.pg", "--branch", "agent/1", "--quiet")
    assert call(capsys, "schema", "plan", *asked).out.startswith("schema plan for")
    outcome = call(capsys, "schema", "apply", *asked)
    assert outcome.code == 0
    assert "applied: yes" in outcome.out
    assert (graph.schema(), graph.schema("agent/1")) == (SCHEMA, WIDER)
    assert call(capsys, "schema", "show", "org.omni", "--branch", "agent/1").out == WIDER
    commit = graph.head("agent/1").id
    assert call(capsys, "schema", "show", "org.omni", "--snapshot", commit).out == WIDER
    assert call(capsys, "schema", "show", "org.omni").out == SCHEMA
    outcome = call(capsys, "schema", "show", "org.omni", "--branch", "nobody")
    assert (outcome.code, outcome.err) == (1, "Error: branch 'nobody' not found\n")


def test_apply_refuses_a_graph_of_a_cluster(capsys: pytest.CaptureFixture[str], org: Path, wanted: Path) -> None:
    wanted.write_text(WIDER)
    (org / "graphs").mkdir()
    (org / "org.omni").rename(org / "graphs" / "org.omni")
    (org / "__cluster").mkdir()
    (org / "__cluster" / "state.json").write_text("{}")
    outcome = call(capsys, "schema", "apply", "graphs/org.omni", "--schema", "wanted.pg")
    assert (outcome.code, outcome.out) == (1, "")
    assert "omnigraph cluster apply" in outcome.err


USAGE = [
    pytest.param(("plan", "org.omni"), "Missing option '--schema'", id="plan-without-schema"),
    pytest.param(("apply", "org.omni"), "Missing option '--schema'", id="apply-without-schema"),
    pytest.param(("plan", "org.omni", "--schema", "s.pg", "--as", "x"), "`--as` names the actor", id="plan-as"),
    pytest.param(
        ("plan", "--schema", "s.pg", "--server", "x"), "`--server` addresses a served graph", id="plan-server"
    ),
]


@pytest.mark.parametrize(("arguments", "message"), USAGE)
def test_usage(capsys: pytest.CaptureFixture[str], org: Path, arguments: tuple[str, ...], message: str) -> None:
    outcome = call(capsys, "schema", *arguments)
    assert outcome.code == 2
    assert message in outcome.err


def test_a_schema_that_is_not_there(capsys: pytest.CaptureFixture[str], org: Path) -> None:
    outcome = call(capsys, "schema", "apply", "org.omni", "--schema", "none.pg", "--quiet")
    assert (outcome.code, outcome.out) == (1, "")
    assert outcome.err.startswith("Error: cannot read 'none.pg'")
