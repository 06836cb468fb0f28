"""`omnigraph export`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import omnigraph as og
from tests.cli.calling import call, spawn
from tests.mutation.org_graph import call as write

Capsys = pytest.CaptureFixture[str]


def plain() -> str:
    return b"".join(og.open("org.omni", "ro").export_chunks()).decode()


def test_lines_on_standard_output(capsys: Capsys, org: Path) -> None:
    outcome = call(capsys, "export", "org.omni")
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out == plain()
    assert [json.loads(line).get("type") for line in outcome.out.splitlines()][:5] == ["Staff"] * 4 + ["Team"]


def test_a_branch_a_snapshot_and_types(capsys: Capsys, org: Path) -> None:
    graph = og.open("org.omni")
    graph.create_branch("feature")
    write(graph, "put", "eve", 3, branch="feature")
    before = graph.head("main").id
    assert '"eve"' in call(capsys, "export", "--store", "org.omni", "--branch", "feature").out
    assert call(capsys, "export", "--store", "org.omni", "--snapshot", before).out == plain()
    types = call(capsys, "export", "--store", "org.omni", "--type", "Team", "--type", "Mentors").out
    assert {next(iter(json.loads(line).values())) for line in types.splitlines()} == {"Team", "Mentors"}
    both = call(capsys, "export", "org.omni", "--branch", "feature", "--snapshot", before)
    assert (both.code, both.out) == (2, "")


@pytest.mark.parametrize(
    ("flags", "code", "said"),
    [
        (["--type", "Nope"], 1, "Error: unknown export type 'Nope'"),
        (["--branch", "nope"], 1, "Error: "),
        (["--format", "parquet"], 1, "Error: standard output takes one stream"),
        (["--spark-conf", "a=b", "--engine", "spark"], 1, "Error: 'a' is no Spark setting"),
        (["--json"], 2, "No such option"),
    ],
)
def test_what_is_refused(capsys: Capsys, org: Path, flags: list[str], code: int, said: str) -> None:
    outcome = call(capsys, "export", "org.omni", *flags)
    assert (outcome.code, outcome.out) == (code, "")
    assert said in outcome.err
    assert "Traceback" not in outcome.err


def test_files(capsys: Capsys, org: Path) -> None:
    outcome = call(capsys, "export", "org.omni", "--out", "all.jsonl")
    assert (outcome.code, outcome.out, outcome.err) == (0, "", "exported 11 entities to all.jsonl\n")
    assert Path("all.jsonl").read_text() == plain()
    quiet = call(capsys, "export", "org.omni", "--out", "tables", "--format", "parquet", "--quiet")
    assert (quiet.code, quiet.err) == (0, "")
    assert Path("tables/nodes/Staff/part-00000.parquet").exists()


def test_the_old_flag_warns(capsys: Capsys, org: Path) -> None:
    outcome = call(capsys, "export", "org.omni", "--jsonl")
    assert outcome.out == plain()
    assert "warning: `--jsonl`" in outcome.err


def test_a_reader_that_goes_away_is_no_traceback(org: Path) -> None:
    command = f"{sys.executable} -m omnigraph export org.omni | head -c 10"
    done = subprocess.run(["/bin/sh", "-c", command], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == (plain()[:10], "")


def test_an_export_never_starts_java_by_itself(org: Path) -> None:
    done = spawn("export", "org.omni", "--out", "o", "--files", "many", env={"PATH": "", "JAVA_HOME": "/nowhere"})
    assert done.returncode == 0, done.stderr
