"""`--idempotency-key`: a command that is typed again under its key prints what it printed first, and does nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.cli.commands import Command
from omnigraph.cli.main import root
from omnigraph.cli.scope import DIRECT, WRITE
from tests.cli.calling import call
from tests.cli.test_documentation import commands
from tests.mutation.org_graph import SCHEMA, WRITES

Capsys = pytest.CaptureFixture[str]

#: Commands with the addresses of writing ones that take no key, and why.
WITHOUT_KEY = {
    "branch list": "it reads",
    "export": "it reads",
    "schema get": "it reads",
    "schema show": "it reads",
    "snapshot": "it reads",
    "stats": "it reads",
    "lint": "it reads",
    "lsp": "it reads",
    "mcp": "its tools take a key per call",
    "shell": "what is typed there is not repeated",
    "recovery list": "it reads",
    "verify": "it reads, and what --repair restores is there for a repeat",
    "backup": "it writes elsewhere, and refuses a target that is there",
    "recovery discard": "a repeat finds no such operation",
    "repair": "a repeat finds nothing that has moved",
    "upgrade": "a repeat finds the newest format",
}


def test_every_command_that_writes_takes_a_key() -> None:
    without = {
        name
        for name, command in commands(root)
        if isinstance(command, Command)
        and command.scope in (WRITE, DIRECT)
        and not any(parameter.name == "idempotency_key" for parameter in command.params)
    }
    assert without == set(WITHOUT_KEY)


CALLS = {
    "branch create": (("branch", "create", "--uri", "org.omni", "b"), ("branch", "create", "--uri", "org.omni", "c")),
    "branch delete": (("branch", "delete", "--uri", "org.omni", "x"), ("branch", "delete", "--uri", "org.omni", "y")),
    "tag create": (("tag", "create", "--uri", "org.omni", "t"), ("tag", "create", "--uri", "org.omni", "u")),
    "tag delete": (("tag", "delete", "--uri", "org.omni", "v1"), ("tag", "delete", "--uri", "org.omni", "v2")),
    "config set": (
        ("config", "set", "--uri", "org.omni", "merge.level", "property"),
        ("config", "set", "--uri", "org.omni", "merge.level", "entity"),
    ),
    "config unset": (
        ("config", "unset", "--uri", "org.omni", "merge.level"),
        ("config", "set", "--uri", "org.omni", "merge.level", "property"),
    ),
    "schema apply": (
        ("schema", "apply", "org.omni", "--schema", "new.pg"),
        ("schema", "apply", "org.omni", "--schema", "old.pg"),
    ),
    "ensure-indices": (("ensure-indices", "org.omni"), ("ensure-indices", "org.omni", "--branch", "x")),
    "optimize": (("optimize", "org.omni"), ("optimize", "org.omni", "--branch", "x")),
    "cleanup": (
        ("cleanup", "org.omni", "--keep", "1", "--confirm"),
        ("cleanup", "org.omni", "--keep", "2", "--confirm"),
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_repeat_prints_the_same_and_does_nothing(capsys: Capsys, org: Path, name: str) -> None:
    graph = og.open("org.omni")
    Path("old.pg").write_text(SCHEMA)
    Path("new.pg").write_text(SCHEMA + "\nnode Site { name: String @key }\n")
    for branch in ("x", "y"):
        graph.create_branch(branch)
    for tag in ("v1", "v2"):
        graph.tag(tag)
    for level in range(3):
        graph.mutate(WRITES, "put", {"h": "fay", "n": level})
    words, other = CALLS[name]
    keyed = ("--idempotency-key", "k", "--json", "--quiet")

    first = call(capsys, *words, *keyed)
    assert first.code == 0, first.err
    before = _state(graph)
    again = call(capsys, *words, *keyed)
    assert (again.code, json.loads(again.out)) == (0, json.loads(first.out))
    assert _state(graph) == before

    refused = call(capsys, *other, *keyed)
    assert (refused.code, refused.out) == (1, "")
    assert "idempotency key 'k' was used for another request" in refused.err
    assert _state(graph) == before

    empty = call(capsys, *words, "--idempotency-key", "")
    assert (empty.code, empty.out) == (2, "")


def _state(graph: og.Graph) -> object:
    graph.refresh()
    return (graph.branches(), graph.tags(), graph.config(), graph.schema(), [commit.id for commit in graph.commits()])
