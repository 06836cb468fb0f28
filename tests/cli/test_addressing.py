"""Which graph a command works on, and which flags it takes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.calling import call

Capsys = pytest.CaptureFixture[str]


def configure(home: Path, text: str) -> None:
    (home / "config.yaml").write_text(text)


@pytest.mark.parametrize(
    "arguments",
    [
        ("snapshot", "org.omni"),
        ("snapshot", "--store", "org.omni"),
        ("--store", "org.omni", "snapshot"),
        ("branch", "list", "--uri", "org.omni"),
        ("branch", "--store", "org.omni", "list"),
        ("--profile", "mine", "snapshot"),
        ("snapshot",),
    ],
    ids=" ".join,
)
def test_ways_to_address_a_graph(capsys: Capsys, org: Path, home: Path, arguments: tuple[str, ...]) -> None:
    configure(home, f"profiles: {{mine: {{store: {org}/org.omni}}}}\ndefaults: {{store: {org}/org.omni}}")
    outcome = call(capsys, *arguments)
    assert (outcome.code, outcome.err) == (0, "")


def test_a_file_uri(capsys: Capsys, org: Path) -> None:
    assert call(capsys, "snapshot", f"file://{org}/org.omni").code == 0


@pytest.mark.parametrize(
    ("arguments", "environment", "taken"),
    [
        pytest.param(("snapshot", "/no/explicit"), "profile", "/no/explicit", id="explicit-beats-profile"),
        pytest.param(("snapshot", "--profile", "flag"), "profile", "/no/flag", id="flag-beats-environment"),
        pytest.param(("snapshot",), "profile", "/no/profile", id="profile-beats-defaults"),
        pytest.param(("snapshot",), "", "/no/defaults", id="defaults"),
    ],
)
def test_precedence(
    capsys: Capsys,
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
    environment: str,
    taken: str,
) -> None:
    configure(
        home,
        "profiles: {profile: {store: /no/profile}, flag: {store: /no/flag}}\ndefaults: {store: /no/defaults}",
    )
    monkeypatch.setenv("OMNIGRAPH_PROFILE", environment)
    outcome = call(capsys, *arguments)
    assert (outcome.code, outcome.out) == (1, "")
    assert outcome.err == f"Error: there is no graph at {taken}; create one with `omnigraph init`\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param(
            ("snapshot",), "no graph addressed — pass a positional URI, --store <uri>, --server <name>, ", id="nothing"
        ),
        pytest.param(
            ("snapshot", "http://example.com"), "a remote graph must be addressed with `--server <url>`", id="http"
        ),
        pytest.param(
            ("snapshot", "--store", "https://x"), "a remote graph must be addressed with `--server <url>`", id="https"
        ),
        pytest.param(
            ("init", "https://x", "--schema", "s.pg"), "a remote graph must be addressed with", id="init-http"
        ),
        pytest.param(("snapshot", "g", "--graph", "a"), "g is already a single graph", id="graph-of-a-uri"),
        pytest.param(
            ("snapshot", "--store", "g", "--graph", "a"), "g is already a single graph", id="graph-of-a-store"
        ),
        pytest.param(("snapshot", "--server", "prod"), "no server 'prod' is configured", id="unknown-server"),
        pytest.param(("snapshot", "--server", "wrong"), "servers.wrong.url in", id="no-web-address"),
        pytest.param(("recovery", "list", "--cluster", "brain"), "no cluster 'brain' is configured", id="cluster"),
        pytest.param(("recovery", "list", "--cluster", "./dir"), "there is no applied cluster at", id="cluster-folder"),
        pytest.param(("snapshot", "--profile", "nope"), "profile 'nope' is not in", id="unknown-profile"),
        pytest.param(("snapshot", "--profile", "served"), "no answer from http://127.0.0.1:1", id="served-profile"),
        pytest.param(
            ("recovery", "list", "--profile", "served"),
            "`recovery list` is a direct (storage-native) command and needs direct storage access",
            id="direct-on-a-server",
        ),
        pytest.param(
            ("recovery", "list", "https://x"),
            "`recovery list` is a direct (storage-native) command and needs direct storage access",
            id="direct-on-a-web-address",
        ),
        pytest.param(
            ("optimize", "--store", "http://x"),
            "`optimize` is a direct (storage-native) command and needs direct storage access",
            id="optimize-on-a-web-address",
        ),
        pytest.param(
            ("snapshot", "--profile", "ours"),
            "'brain' is a cluster, whose graphs are read and written",
            id="data-of-a-cluster",
        ),
        pytest.param(("snapshot", "--profile", "two"), "exactly one of server, cluster and store", id="two-scopes"),
    ],
)
def test_addresses_that_do_not_work(
    capsys: Capsys, org: Path, home: Path, arguments: tuple[str, ...], message: str
) -> None:
    configure(
        home,
        "servers: {known: {url: http://127.0.0.1:1}, wrong: {url: host}}\n"
        "profiles: {served: {server: known, default_graph: a}, two: {server: known, store: g}, ours: {cluster: brain}}\n",
    )
    outcome = call(capsys, *arguments)
    assert (outcome.code, outcome.out) == (1, "")
    assert outcome.err.startswith("Error: ")
    assert message in outcome.err
    assert outcome.err.count("\n") == 1


def test_the_default_server_comes_before_nothing(capsys: Capsys, home: Path) -> None:
    configure(home, "servers: {known: {url: http://127.0.0.1:1}}\ndefaults: {server: known, default_graph: a}")
    assert "no answer from http://127.0.0.1:1" in call(capsys, "snapshot").err


@pytest.mark.parametrize(
    "arguments",
    [
        ("snapshot", "g", "--store", "h"),
        ("snapshot", "--server", "g", "--store", "h"),
        ("branch", "list", "--uri", "g", "--store", "h"),
        ("recovery", "list", "g", "--cluster", "h"),
    ],
    ids=" ".join,
)
def test_addresses_exclude_each_other(capsys: Capsys, arguments: tuple[str, ...]) -> None:
    outcome = call(capsys, *arguments)
    assert outcome.code == 2
    assert "exclude each other: address one graph" in outcome.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("init", "--store", "g"),
            "`init` is a direct (storage-native) command; `--store` addresses the storage of one graph and does not "
            "apply. Pass the place of the new graph as its URI.",
        ),
        (
            ("init", "--as", "me"),
            "`init` is a direct (storage-native) command; `--as` names the actor of a direct write",
        ),
        (("version", "--profile", "p"), "`version` is a local command; `--profile` selects an address"),
        (("--graph", "g", "version"), "`version` is a local command; `--graph` selects a graph of a server or cluster"),
        (("query", "--as", "me"), "`query` is a data command; `--as` names the actor of a direct write and does not"),
        (("commit", "list", "--as", "me"), "`commit list` is a data command; `--as` names the actor"),
        (
            ("snapshot", "--cluster", "c"),
            "`snapshot` is a data command; `--cluster` addresses a cluster and does not apply. "
            "Address the graph with --store <uri>.",
        ),
        (("lint", "--server", "s"), "`lint` is a direct (storage-native) command; `--server` addresses a served graph"),
        (("profile", "list", "--store", "s"), "`profile list` is a local command; `--store` addresses the storage"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_flags_of_other_commands_are_refused(capsys: Capsys, arguments: tuple[str, ...], message: str) -> None:
    outcome = call(capsys, *arguments)
    assert (outcome.code, outcome.out) == (2, "")
    assert f"Error: {message}" in outcome.err


@pytest.mark.parametrize(
    "arguments",
    [
        ("snapshot", ""),
        ("snapshot", "--store", ""),
        ("snapshot", "org.omni", "--branch", ""),
        ("branch", "list", "--uri="),
    ],
    ids=" ".join,
)
def test_empty_values_never_mean_the_default(capsys: Capsys, org: Path, arguments: tuple[str, ...]) -> None:
    outcome = call(capsys, *arguments)
    assert outcome.code == 2
    assert "must not be empty" in outcome.err
