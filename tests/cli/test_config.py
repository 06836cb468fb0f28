"""The operator's configuration, and the commands that show it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.calling import call

Capsys = pytest.CaptureFixture[str]

FULL = """\
operator: { actor: act-me }
servers: { prod: { url: https://graph.example.com } }
profiles:
  staging: { server: prod, default_graph: knowledge }
  mine: { store: /data/g.omni, output: csv }
  both: { server: prod, store: /data/g.omni }
  odd: 3
defaults: { output: kv, store: /data/default.omni }
"""


def configure(home: Path, text: str) -> None:
    (home / "config.yaml").write_text(text)


def test_config_shows_what_holds(capsys: Capsys, home: Path) -> None:
    configure(home, FULL)
    outcome = call(capsys, "config")
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.splitlines() == [
        f"config: {home}/config.yaml",
        "actor: act-me",
        "profile: (none)",
        "store: /data/default.omni",
        "output: kv",
        "table_max_column_width: 80",
        "table_cell_layout: truncate",
    ]


def test_flags_beat_the_configuration(capsys: Capsys, home: Path) -> None:
    configure(home, FULL)
    shown = json.loads(call(capsys, "config", "--as", "other", "--profile", "mine", "--json").out)
    assert (shown["actor"], shown["profile"], shown["store"], shown["output"]) == (
        "other",
        "mine",
        "/data/g.omni",
        "csv",
    )


def test_without_a_configuration(capsys: Capsys, home: Path) -> None:
    outcome = call(capsys, "config")
    assert outcome.code == 0
    assert outcome.out.startswith(f"config: {home}/config.yaml (not there)\nactor: (none)\n")
    assert "problem: no graph addressed" in outcome.out


def test_home_is_the_fallback(capsys: Capsys, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMNIGRAPH_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert call(capsys, "config").out.startswith(f"config: {tmp_path}/.omnigraph/config.yaml")


@pytest.mark.parametrize(
    ("text", "warning"),
    [
        ("defalts: {}", "unknown key defalts; did you mean `defaults`?"),
        ("operator: { acter: me }", "unknown key operator.acter; did you mean `actor`?"),
        ("profiles: { p: { store: x, shade: red } }", "unknown key profiles.p.shade"),
        ("servers: { s: { url: x, port: 1 } }", "unknown key servers.s.port"),
    ],
)
def test_unknown_keys_warn(capsys: Capsys, home: Path, text: str, warning: str) -> None:
    configure(home, text)
    outcome = call(capsys, "profile", "list")
    assert outcome.code == 0
    assert outcome.err == f"warning: {home}/config.yaml: {warning}\n"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("defaults: { server: a, store: b }", "defaults.server and defaults.store exclude each other"),
        ("defaults: { store: b, default_graph: c }", "defaults.store is already a single graph"),
        ("defaults: { output: xml }", "defaults.output is 'xml'; it is one of table, kv, csv, jsonl, json, arrow"),
        ("defaults: { table_max_column_width: 0 }", "table_max_column_width is 0; it is a number of characters"),
        ("defaults: { table_max_column_width: yes }", "table_max_column_width is True"),
        ("defaults: { table_cell_layout: fold }", "it is one of truncate, wrap"),
        ("operator: { actor: 7 }", "operator.actor must be a text, not 7"),
        ("operator: me", "operator must be a mapping of names to values, not 'me'"),
        ("- a\n- b", "the file must be a mapping"),
        ("a: [1,\nb: 2", "not valid YAML: line 2, column 5:"),
        ("a: \x01", "not valid YAML: "),
    ],
)
def test_wrong_values_fail(capsys: Capsys, home: Path, text: str, problem: str) -> None:
    configure(home, text)
    outcome = call(capsys, "config")
    assert (outcome.code, outcome.out) == (1, "")
    assert outcome.err.startswith(f"Error: {home}/config.yaml: ")
    assert problem in outcome.err
    assert outcome.err.count("\n") == 1


def test_an_unreadable_configuration(capsys: Capsys, home: Path) -> None:
    (home / "config.yaml").mkdir()
    assert call(capsys, "config").err == f"Error: cannot read {home}/config.yaml: Is a directory\n"


def test_a_configuration_that_is_not_text(capsys: Capsys, home: Path) -> None:
    (home / "config.yaml").write_bytes(b"\xff")
    assert "it is not UTF-8 text (byte 0)" in call(capsys, "config").err


def test_version_does_not_read_the_configuration(capsys: Capsys, home: Path) -> None:
    configure(home, "- broken")
    assert call(capsys, "version").code == 0


# --- profiles ---------------------------------------------------------------------------------------------------------


def test_profile_list(capsys: Capsys, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    configure(home, FULL)
    monkeypatch.setenv("OMNIGRAPH_PROFILE", "staging")
    outcome = call(capsys, "profile", "list")
    assert outcome.code == 0
    both, mine, odd, staging = outcome.out.splitlines()
    assert mine == "mine  store: /data/g.omni"
    assert staging == "staging (active)  server: prod · graph: knowledge"
    assert both.startswith("both  invalid: profile 'both' in ")
    assert both.endswith("it needs exactly one of server, cluster and store, and has server and store")
    assert odd.startswith("odd  invalid: ")


def test_profile_list_as_json(capsys: Capsys, home: Path) -> None:
    configure(home, FULL)
    listed = json.loads(call(capsys, "profile", "list", "--json").out)["profiles"]
    assert listed[3] == {"name": "staging", "server": "prod", "default_graph": "knowledge", "active": False}
    assert [sorted(item) for item in listed if item["name"] == "odd"] == [["active", "invalid", "name"]]


def test_no_profiles(capsys: Capsys) -> None:
    assert call(capsys, "profile", "list").out == "(no profiles)\n"


def test_profile_show(capsys: Capsys, home: Path) -> None:
    configure(home, FULL)
    assert call(capsys, "profile", "show", "staging").out.splitlines() == [
        "profile: staging",
        "scope: server",
        "endpoint: https://graph.example.com",
        "default graph: knowledge",
        "output: kv",
    ]


def test_profile_show_takes_the_active_one(capsys: Capsys, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    configure(home, FULL)
    monkeypatch.setenv("OMNIGRAPH_PROFILE", "mine")
    assert json.loads(call(capsys, "profile", "show", "--json").out) == {
        "name": "mine",
        "scope": "store",
        "endpoint": "/data/g.omni",
        "default_graph": None,
        "output": "csv",
    }


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "no profile is active; name one, or set OMNIGRAPH_PROFILE"),
        (("nope",), "profile 'nope' is not in"),
        (("both",), "it needs exactly one of server, cluster and store"),
        (("odd",), "must be a mapping"),
    ],
)
def test_profile_show_fails(capsys: Capsys, home: Path, arguments: tuple[str, ...], message: str) -> None:
    configure(home, FULL)
    outcome = call(capsys, "profile", "show", *arguments)
    assert (outcome.code, outcome.out) == (1, "")
    assert message in outcome.err


def test_a_store_profile_has_no_graph_to_choose(capsys: Capsys, home: Path) -> None:
    configure(home, "profiles: { p: { store: x, default_graph: g } }")
    assert "already a single graph; remove default_graph" in call(capsys, "profile", "show", "p").err


# --- the settings of a graph ------------------------------------------------------------------------------------------


def test_settings_of_a_graph(capsys: Capsys, org: Path) -> None:
    graph = ("--uri", "org.omni")
    assert call(capsys, "config", "get", "merge.level", *graph).out == "entity\n"
    outcome = call(capsys, "config", "set", "merge.level", "property", *graph)
    assert (outcome.code, outcome.out) == (0, "merge.level = property\n")
    assert outcome.err == "omnigraph config set → org.omni (direct, local)\n"
    assert call(capsys, "config", "list", "--store", "org.omni").out == "merge.level = property\n"
    assert json.loads(call(capsys, "config", "list", *graph, "--json").out) == {"config": {"merge.level": "property"}}
    outcome = call(capsys, "config", "unset", "merge.level", *graph, "--quiet", "--json", "--as", "ada")
    assert (json.loads(outcome.out), outcome.err) == (
        {"name": "merge.level", "value": "entity", "actor_id": "ada"},
        "",
    )
    assert json.loads(call(capsys, "config", "get", "merge.level", *graph, "--json").out)["value"] == "entity"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("set", "merge.levle", "property"), "there is no setting 'merge.levle'; did you mean `merge.level`?"),
        (("set", "merge.level", "properties"), "merge.level is entity or property, not 'properties'; did you mean"),
        (("get", "level"), "there is no setting 'level'"),
        (("unset", "x"), "there is no setting 'x'; the settings are merge.level"),
    ],
)
def test_wrong_settings(capsys: Capsys, org: Path, words: tuple[str, ...], message: str) -> None:
    outcome = call(capsys, "config", *words, "--uri", "org.omni")
    assert (outcome.code, outcome.out) == (1, "")
    assert outcome.err.startswith(f"Error: {message}")


def test_a_setting_needs_a_graph(capsys: Capsys) -> None:
    outcome = call(capsys, "config", "list")
    assert (outcome.code, "no graph addressed" in outcome.err) == (1, True)


def test_json_belongs_to_the_subcommand(capsys: Capsys, org: Path) -> None:
    outcome = call(capsys, "config", "--json", "list", "--uri", "org.omni")
    assert (outcome.code, "--json stands behind `config list`" in outcome.err) == (2, True)
