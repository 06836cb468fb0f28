"""`omnigraph branch …`."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

import omnigraph as og
from tests.cli.calling import call
from tests.s3 import S3Server

Capsys = pytest.CaptureFixture[str]


def test_create_list_delete(capsys: Capsys, org: Path) -> None:
    outcome = call(capsys, "branch", "create", "--uri", "org.omni", "b")
    assert (outcome.code, outcome.out) == (0, "created branch b from main\n")
    assert outcome.err == "omnigraph branch create → org.omni (direct, local)\n"
    outcome = call(capsys, "branch", "create", "--uri", "org.omni", "--from", "b", "a/x", "--quiet")
    assert (outcome.code, outcome.out, outcome.err) == (0, "created branch a/x from b\n", "")
    assert call(capsys, "branch", "list", "--uri", "org.omni").out == "a/x\nb\nmain\n"
    outcome = call(capsys, "branch", "delete", "--uri", "org.omni", "a/x")
    assert (outcome.code, outcome.out) == (0, "deleted branch a/x\n")
    assert outcome.err == "omnigraph branch delete → org.omni (direct, local)\n"
    assert og.open("org.omni", "ro").branches() == ["main", "b"]


def test_json(capsys: Capsys, org: Path) -> None:
    flags = ("--uri", "org.omni", "--json")
    created = call(capsys, "branch", "create", *flags, "b", "--as", "me").out
    assert json.loads(created) == {"uri": "org.omni", "from": "main", "name": "b", "actor_id": "me"}
    assert json.loads(call(capsys, "branch", "list", *flags).out) == {"branches": ["b", "main"]}
    deleted = call(capsys, "branch", "delete", *flags, "b").out
    assert json.loads(deleted) == {"uri": "org.omni", "name": "b", "actor_id": None}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param(("create", "b"), "branch 'b' already exists", id="exists"),
        pytest.param(("create", "b/c"), "overlaps with the path of branch 'b'", id="overlap"),
        pytest.param(("create", "c", "--from", "nope"), "branch 'nope' not found", id="unknown-base"),
        pytest.param(("create", "a b"), "branch", id="bad-name"),
        pytest.param(("delete", "main"), "cannot delete branch 'main'", id="main"),
        pytest.param(("delete", "nope"), "branch 'nope' not found", id="unknown"),
        pytest.param(("list", "--uri", "no.omni"), "there is no graph at", id="no-graph"),
    ],
)
def test_failures(capsys: Capsys, org: Path, arguments: tuple[str, ...], message: str) -> None:
    og.open("org.omni").create_branch("b")
    uri = () if "--uri" in arguments else ("--uri", "org.omni")
    outcome = call(capsys, "branch", *arguments, *uri, "--quiet")
    assert (outcome.code, outcome.out) == (1, "")
    assert message in outcome.err
    assert og.open("org.omni", "ro").branches() == ["main", "b"]


# --- the destructive gate ---------------------------------------------------------------------------------------------


@pytest.fixture
def remote(s3_server: S3Server, monkeypatch: pytest.MonkeyPatch) -> str:
    """A graph on S3 with a branch b."""
    root = s3_server.new_root()
    variables = {
        "ACCESS_KEY_ID": "test",
        "SECRET_ACCESS_KEY": "test",
        "REGION": "us-east-1",
        "ENDPOINT": s3_server.endpoint,
    }
    for name, value in variables.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    og.init(root.uri, "node A { k: String @key }").create_branch("b")
    return root.uri


@pytest.mark.parametrize("flags", [(), ("--json",)], ids=["no-terminal", "json"])
def test_a_remote_branch_is_not_deleted_unasked(capsys: Capsys, remote: str, flags: tuple[str, ...]) -> None:
    outcome = call(capsys, "branch", "delete", "--uri", remote, "b", *flags)
    assert (outcome.code, outcome.out) == (1, "")
    assert outcome.err.startswith(f"Error: refusing destructive `branch delete` against non-local target {remote}")
    assert call(capsys, "branch", "list", "--uri", remote).out == "b\nmain\n"


def test_yes_lets_it_pass(capsys: Capsys, remote: str) -> None:
    outcome = call(capsys, "branch", "delete", "--uri", remote, "b", "--yes")
    assert (outcome.code, outcome.out) == (0, "deleted branch b\n")
    assert outcome.err == f"omnigraph branch delete → {remote} (direct, remote)\n"


@pytest.mark.parametrize(("answer", "code"), [("yes", 0), ("y", 1), ("", 1)])
def test_a_person_is_asked(remote: str, answer: str, code: int) -> None:
    ours, theirs = pty.openpty()
    os.write(ours, f"{answer}\n".encode())
    done = subprocess.run(
        [sys.executable, "-m", "omnigraph", "branch", "delete", "--uri", remote, "b"],
        stdin=theirs,
        capture_output=True,
        text=True,
        check=False,
    )
    os.close(ours)
    os.close(theirs)
    assert done.returncode == code
    assert f"`branch delete` destroys data in {remote}; type `yes` to go ahead" in done.stderr
    assert ("b" in og.open(remote, "ro").branches()) == (code != 0)
