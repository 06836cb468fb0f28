"""Commands that need a server: they parse, check what they are given, and say that there is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.calling import call

Capsys = pytest.CaptureFixture[str]

SERVER = [
    ("graphs", "list"),
    ("graphs", "list", "--server", "https://x", "--json"),
    ("graphs", "list", "--profile", "served"),
    ("login", "prod", "--token", "secret"),
    ("logout", "prod", "--json"),
    ("alias", "who", "Ada"),
    ("alias", "who", "Ada", "--params", '{"name": "Ben"}', "--json"),
]
CONFIG = """
servers: {prod: {url: https://x}}
profiles: {served: {server: prod}, stored: {store: g.omni}}
aliases:
  who: {server: prod, graph: g, query: find_person, args: [name], params: {limit: 3}, format: csv}
  none: {server: prod}
  wrong: {server: prod, query: q, args: name}
"""


@pytest.mark.parametrize(
    "arguments",
    SERVER,
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_there_is_none(
    capsys: Capsys, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]
) -> None:
    (home / "config.yaml").write_text(CONFIG)
    monkeypatch.chdir(tmp_path)
    outcome = call(capsys, *arguments)
    assert (outcome.code, outcome.out) == (1, "")
    assert outcome.err.startswith("Error: ")
    assert "no server is configured" in outcome.err
    assert outcome.err.count("\n") == 1
    assert "secret" not in outcome.err
    assert list(tmp_path.iterdir()) == []
    assert sorted(path.name for path in home.iterdir()) == ["config.yaml"]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("alias", "nope"), 1, "alias 'nope' is not in {home}/config.yaml; defined are: none, who, wrong"),
        (("alias", "who"), 1, "alias 'who' takes 1 positional arg(s) (name), got 0"),
        (("alias", "who", "a", "b"), 1, "alias 'who' takes 1 positional arg(s) (name), got 2"),
        (("alias", "who", "a", "--params", "[]"), 1, "--params must be a JSON object"),
        (("alias", "who", "a", "--format", "xml"), 2, "'xml' is not one of"),
        (("alias", "none"), 1, "it needs a server and a query"),
        (("alias", "wrong"), 1, "aliases.wrong.args is a list of parameter names, not 'name'"),
        (("graphs", "list", "--profile", "stored"), 1, "profile 'stored' is a store"),
        (("graphs", "list", "--server", "nope"), 1, "no server 'nope' is configured"),
        (("policy", "test"), 2, "Missing option '--tests'"),
        (("policy", "explain", "--actor", "a"), 2, "Missing option '--action'"),
        (("cluster", "approve"), 2, "Missing argument 'RESOURCE'"),
        (("login",), 2, "Missing argument 'NAME'"),
        (("graphs", "list", "--store", "g"), 2, "`graphs list` is a served command; `--store` addresses"),
        (("graphs", "list", "--graph", "g"), 2, "`graphs list` is a served command; `--graph` selects"),
        (("cluster", "plan", "--as", "me"), 2, "`cluster plan` is a cluster control command; `--as` names the actor"),
        (("cluster", "apply", "--store", "g"), 2, "`cluster apply` is a cluster control command; `--store` addresses"),
        (("policy", "validate", "--as", "me"), 2, "`policy validate` is a cluster control command; `--as` names"),
        (("queries", "list", "--server", "s"), 2, "`queries list` is a cluster control command; `--server` addresses"),
        (("alias", "who", "a", "--server", "s"), 2, "`alias` is a local command; `--server` addresses a served graph"),
        (("--graph", "g", "login", "prod"), 2, "`login` is a local command; `--graph` selects a graph"),
        (("logout", "prod", "--profile", "p"), 2, "`logout` is a local command; `--profile` selects an address"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_what_is_wrong_is_said_first(
    capsys: Capsys, home: Path, arguments: tuple[str, ...], code: int, message: str
) -> None:
    (home / "config.yaml").write_text(CONFIG)
    outcome = call(capsys, *arguments)
    assert (outcome.code, outcome.out) == (code, "")
    assert message.format(home=home) in outcome.err
