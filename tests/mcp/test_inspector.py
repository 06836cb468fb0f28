"""An independent client: the protocol's inspector from npm in its command-line mode, over both transports.

It is installed into the checkout at the version of `inspector/package.json`, with the Node of this machine or of PyPI; npm
refuses a lock file for it, whose optional parts for other platforms are not in the registry. Where it can not be had, the tests
say what is missing and are skipped. The long form calls every tool; the short one lists them, and makes some calls.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from tests.mcp.test_confined import ATTEMPTS
from tests.mcp.test_permissions import TABLE
from tests.mcp.test_tools import CONTRACT, OWN, STORED
from tests.server.serving import ADD, ALL, TOKEN, serving, settings_of

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent / "inspector"
PROGRAM = HERE / "node_modules" / "@modelcontextprotocol" / "inspector" / "clients" / "launcher" / "build" / "index.js"
#: The exit code of a call whose answer is an error.
IS_ERROR = 5

#: Runs the inspector: its arguments, then its exit code and what it printed.
Inspect = Callable[..., tuple[int, Any]]


@pytest.fixture(scope="session")
def node() -> Path:
    """Node, with the inspector installed."""
    sys.path.insert(0, str(ROOT / "scripts"))
    from build_studio import CanNotBuild, _npm_of, _run, find_node

    (ROOT / ".tmp").mkdir(exist_ok=True)
    with (ROOT / ".tmp" / "inspector.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            found = find_node()
            if not PROGRAM.is_file():
                flags = ["--no-package-lock", "--no-audit", "--no-fund", "--loglevel", "error"]
                _run([found, _npm_of(found), "install", *flags], HERE, "npm")
        except CanNotBuild as error:
            pytest.skip(f"the inspector can not be installed here: {error}")
    return found


@pytest.fixture(scope="module", params=["stdio", "http"])
def inspect(
    request: pytest.FixtureRequest, node: Path, graph_template: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Inspect]:
    """Run the inspector against a graph; `branch` confines the session."""
    folder = tmp_path_factory.mktemp("inspected")
    path = Path(shutil.copytree(graph_template, folder / "people.omni"))
    with og.open(path) as graph:
        for name in ("topic", "gone", "merged"):
            graph.create_branch(name)
    settings = settings_of(path)

    def run(target: list[str], arguments: list[str]) -> tuple[int, Any]:
        command = [str(node), str(PROGRAM), "--cli", *target, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"HOME": str(folder)})
        assert done.stdout, done.stderr
        return done.returncode, json.loads(done.stdout)

    if request.param == "stdio":

        def on_stdio(*arguments: str, branch: str | None = None) -> tuple[int, Any]:
            serve = [sys.executable, "-m", "omnigraph", "mcp", str(path), "--queries", str(folder / "queries")]
            return run([*serve, *(["--branch", branch] if branch else [])], list(arguments))

        yield on_stdio
        return
    with serving(settings) as served:

        def over_http(*arguments: str, branch: str | None = None) -> tuple[int, Any]:
            url = f"{served.url}/graphs/people/mcp" + (f"?branch={branch}" if branch else "")
            header = f"Authorization: Bearer {TOKEN}"
            return run([url, "--transport", "http", "--header", header], list(arguments))

        yield over_http


def _called(
    inspect: Inspect, tool: str, arguments: dict[str, Any], branch: str | None = None
) -> tuple[int, dict[str, Any]]:
    # It reads a value as JSON where it can, so that a text which is JSON itself would not stay a text.
    pairs = [f"{name}={json.dumps(value)}" for name, value in arguments.items()]
    given = [part for pair in pairs for part in ("--tool-arg", pair)]
    code, told = inspect("--method", "tools/call", "--tool-name", tool, *given, branch=branch)
    shape: dict[str, Any] = json.loads(told["content"][0]["text"])
    assert told["isError"] is (code == IS_ERROR)
    return code, shape


def test_tools_are_portable(inspect: Inspect) -> None:
    code, told = inspect("--method", "tools/list", "--strict")
    assert code == 0
    assert {tool["name"] for tool in told["tools"]} == {*CONTRACT, *OWN, *STORED}


def test_some_calls(inspect: Inspect) -> None:
    code, told = _called(inspect, "query", {"query": ALL})
    assert (code, told["row_count"]) == (0, len(told["rows"]))
    code, told = _called(inspect, "mutate", {"query": ADD, "params": {"name": "z"}, "branch": "main"}, branch="agent/x")
    assert (code, told["code"]) == (IS_ERROR, "forbidden")
    code, told = inspect("--method", "resources/read", "--uri", "omnigraph://schema")
    assert "node Person" in told["contents"][0]["text"]


@pytest.mark.long
def test_every_tool(inspect: Inspect) -> None:
    _, listed = _called(inspect, "commits_list", {})
    head = listed["commits"][0]["graph_commit_id"]
    for tool, (arguments, _) in TABLE.items():
        given = {name: head if value == "COMMIT" else value for name, value in arguments.items()}
        code, told = _called(inspect, tool, given)
        assert code == 0 or (tool == "graphs_list" and told["status"] == 403), (tool, told)


@pytest.mark.long
def test_every_attempt_to_write_elsewhere(inspect: Inspect) -> None:
    for tool, arguments in ATTEMPTS:
        if "" in arguments.values():
            continue
        code, told = _called(inspect, tool, arguments, branch="agent/x")
        assert (code, told["status"]) == (IS_ERROR, 403), (tool, arguments, told)
