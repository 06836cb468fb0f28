"""`omnigraph recovery …`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.cli.wording import iso
from omnigraph.graph.lifecycle import connect
from tests.cli.calling import call
from tests.commit.handmade import leave, planned, record

Capsys = pytest.CaptureFixture[str]


def left_behind() -> str:
    """The record of a writer that died before its first effect; its operation id."""
    context = connect("org.omni")
    entry = context.manifest.load().by_key["node:Staff"]
    return leave(context, record(planned(entry)))


def unreadable() -> str:
    Path("org.omni/__recovery").mkdir(exist_ok=True)
    Path("org.omni/__recovery/broken.json").write_text("{")
    return "broken"


def test_nothing(capsys: Capsys, org: Path) -> None:
    assert call(capsys, "recovery", "list", "org.omni").out == "(no recoveries)\n"
    shown = json.loads(call(capsys, "recovery", "list", "org.omni", "--json").out)
    assert shown == {"pending": [], "recoveries": []}


def test_a_pending_record_is_shown_and_not_settled(capsys: Capsys, org: Path) -> None:
    operation = left_behind()
    for _ in range(2):
        (line,) = call(capsys, "recovery", "list", "org.omni").out.splitlines()
        assert line.startswith(f"{operation} pending Mutation graph_branch=main tables=node:Staff")
    (pending,) = json.loads(call(capsys, "recovery", "list", "org.omni", "--json").out)["pending"]
    assert (pending["operation_id"], pending["writer_kind"], pending["tables"]) == (
        operation,
        "Mutation",
        ["node:Staff"],
    )


def test_a_record_that_keeps_readers_out_is_shown(capsys: Capsys, org: Path) -> None:
    operation = leave(connect("org.omni"), record(kind="SchemaApply", schema_target="0" * 64))
    assert "is half done" in call(capsys, "snapshot", "org.omni").err
    outcome = call(capsys, "recovery", "list", "org.omni")
    assert (outcome.code, outcome.out.split()[:3]) == (0, [operation, "pending", "SchemaApply"])


def test_a_completed_recovery_is_shown(capsys: Capsys, org: Path) -> None:
    operation = left_behind()
    (done,) = og.open("org.omni").recoveries()
    (line,) = call(capsys, "recovery", "list", "org.omni").out.splitlines()
    assert line.startswith(f"{operation} RolledBack Mutation graph_branch=main")
    assert line.endswith(f"at={iso(done.created_at)}")
    shown = json.loads(call(capsys, "recovery", "list", "org.omni", "--json").out)
    assert [found["operation_id"] for found in shown["recoveries"]] == [operation]
    assert shown["pending"] == []


def test_an_unreadable_record_is_listed_and_can_be_discarded(capsys: Capsys, org: Path) -> None:
    operation = unreadable()
    write = ("mutate", "-e", 'query q() { insert Staff { handle: "eve" } }', "--store", "org.omni")
    assert "is not valid JSON" in call(capsys, *write).err
    (line,) = call(capsys, "recovery", "list", "org.omni").out.splitlines()
    assert line.startswith("broken pending recovery record __recovery/broken.json is not valid JSON")

    outcome = call(capsys, "recovery", "discard", "--uri", "org.omni", operation)
    assert (outcome.code, outcome.out) == (0, "")
    assert outcome.err == "would set aside the recovery record of operation broken; pass --confirm to do it\n"
    assert Path("org.omni/__recovery/broken.json").exists()

    outcome = call(capsys, "recovery", "discard", "--uri", "org.omni", operation, "--confirm")
    assert (outcome.code, outcome.out) == (0, "discarded broken to __recovery/discarded/broken.json\n")
    assert Path("org.omni/__recovery/discarded/broken.json").read_text() == "{"
    assert call(capsys, *write).code == 0


def test_discard_as_json(capsys: Capsys, org: Path) -> None:
    operation = left_behind()
    outcome = call(capsys, "recovery", "discard", "--uri", "org.omni", operation, "--confirm", "--json")
    aside = f"__recovery/discarded/{operation}.json"
    assert json.loads(outcome.out) == {"uri": "org.omni", "operation_id": operation, "moved_to": aside}


@pytest.mark.parametrize("confirm", [(), ("--confirm",)], ids=["look", "confirm"])
@pytest.mark.parametrize("operation", ["nope", "../__manifest", ""])
def test_discard_of_nothing(capsys: Capsys, org: Path, confirm: tuple[str, ...], operation: str) -> None:
    outcome = call(capsys, "recovery", "discard", "--uri", "org.omni", operation, *confirm)
    assert (outcome.code, outcome.out) == (1, "")
    assert outcome.err == (
        f"Error: no recovery record of operation '{operation}' is pending; see `omnigraph recovery list`\n"
    )


@pytest.mark.parametrize("arguments", [("list", "no.omni"), ("discard", "--uri", "no.omni", "x")], ids=" ".join)
def test_without_a_graph(capsys: Capsys, org: Path, arguments: tuple[str, ...]) -> None:
    outcome = call(capsys, "recovery", *arguments)
    assert outcome.code == 1
    assert "there is no graph at" in outcome.err
