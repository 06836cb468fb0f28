"""No way around `schema_apply`, and no file of the server is ever taken for a schema that somebody sent."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.errors import Conflict, Denied
from omnigraph.policy.bundle import read_bundle
from omnigraph.policy.decide import Policy
from omnigraph.server.settings import Settings
from omnigraph.server.state import open_state
from tests.clusters.declaring import SCHEMA as DECLARED
from tests.clusters.declaring import WIDER, applied, declare, started
from tests.server.serving import SCHEMA, Served, assert_error, serving, settings_of

WITH_EMAIL = SCHEMA.replace("  age: I32?\n", "  age: I32?\n  email: String?\n")
POLICY = """
version: 1
groups: { writers: [wes], schemers: [sue] }
protected_branches: [main]
rules:
  - { id: all, allow: { actors: { group: writers }, actions: [read, change, branch_create, branch_merge] } }
  - { id: more, allow: { actors: { group: schemers }, actions: [read, change, branch_merge, schema_apply] } }
"""
DENIED = "policy denied action 'schema_apply' targeting branch 'main' for actor 'wes'"


@pytest.fixture(scope="module")
def changed(graph_template: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """A graph whose history holds a schema change, its revert and its return, and a branch that had another one."""
    path = Path(shutil.copytree(graph_template, tmp_path_factory.mktemp("changed") / "people.omni"))
    commits = {}
    with og.open(path, actor="owner") as graph:
        graph.apply_schema(WITH_EMAIL)
        commits["schema"] = graph.head().id
        graph.revert(commits["schema"])
        commits["revert"] = graph.head().id
        graph.create_branch("topic")
    return path, commits


#: Requests that lead to another schema of main, by what the library calls them.
WAYS: dict[str, Callable[[og.Graph, dict[str, str]], object]] = {
    "cherry-pick of a schema change": lambda g, c: g.cherry_pick(c["schema"], "main"),
    "revert of the revert": lambda g, c: g.revert(c["revert"], "main"),
    "cherry-pick with a text": lambda g, c: g.cherry_pick(c["schema"], "main", schema=WITH_EMAIL),
    "merge with a text": lambda g, c: _moved(g).merge("topic", "main", schema=WITH_EMAIL),
}


def _moved(graph: og.Graph) -> og.Graph:
    graph.mutate('query add() { insert Person { name: "tom" } }', branch="topic")
    return graph


@pytest.mark.parametrize("way", WAYS)
def test_the_engine_asks_before_a_schema_changes(
    changed: tuple[Path, dict[str, str]], tmp_path: Path, way: str
) -> None:
    path, commits = changed
    copy = shutil.copytree(path, tmp_path / "people.omni")
    guard = Policy(read_bundle(POLICY, "graph"), "people")
    with og.open(copy, actor="wes", guard=guard) as graph:
        before = graph.head().id
        with pytest.raises(Denied) as denied:
            WAYS[way](graph, commits)
        assert denied.value.message == DENIED
        assert (graph.head().id, graph.schema()) == (before, SCHEMA)
    with og.open(copy, actor="sue", guard=guard) as graph:
        WAYS[way](graph, commits)
        assert "email" in graph.schema()


def test_a_revert_of_rows_needs_no_more_than_before(changed: tuple[Path, dict[str, str]], tmp_path: Path) -> None:
    copy = shutil.copytree(changed[0], tmp_path / "people.omni")
    with og.open(copy, actor="wes", guard=Policy(read_bundle(POLICY, "graph"), "people")) as graph:
        graph.mutate('query add() { insert Person { name: "tom" } }')
        assert graph.revert(graph.head().id).commit is not None
        graph.mutate('query add() { insert Person { name: "tom" } }', branch="topic")
        assert graph.merge("topic").commit is not None


@pytest.fixture
def policed(
    changed: tuple[Path, dict[str, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[Served, dict[str, str]]]:
    copy = Path(shutil.copytree(changed[0], tmp_path / "people.omni"))
    monkeypatch.setenv("OMNIGRAPH_SERVER_BEARER_TOKENS_JSON", '{"wes":"ogt_wes","sue":"ogt_sue"}')
    settings = settings_of(copy, rights="default-deny", one_time_token=None)
    source = replace(settings.graphs[0], policy=read_bundle(POLICY, "graph"))
    with serving(replace(settings, graphs=(source,))) as running:
        yield running, changed[1]


def _as(actor: str) -> dict[str, Any]:
    return {"headers": {"Authorization": f"Bearer ogt_{actor}"}}


def test_the_boundary_asks_too(policed: tuple[Served, dict[str, str]]) -> None:
    server, commits = policed
    text = {"options": {"schema": WITH_EMAIL}}
    for path, body in (
        ("/cherry-pick", {"commit": commits["schema"]}),
        ("/revert", {"commit": commits["schema"]}),
        ("/revert", {"commit": commits["revert"]}),
        ("/cherry-pick", {"commit": commits["schema"]} | text),
        ("/branches/merge", {"source": "topic"} | text),
    ):
        assert_error(server.post(path, body, **_as("wes")), 403, "forbidden", DENIED)
    rebase = server.post("/branches/rebase", {"branch": "topic"} | text, **_as("wes"))
    assert_error(rebase, 403, "forbidden", "policy denied action 'schema_apply' targeting branch 'topic'")
    dry = server.post("/cherry-pick", {"commit": commits["schema"], "options": {"dry_run": True}}, **_as("wes"))
    assert dry.status_code == 200, dry.text
    assert server.post("/cherry-pick", {"commit": commits["schema"]}, **_as("sue")).status_code == 200
    assert "email" in server.get("/schema", **_as("sue")).json()["schema_source"]


@pytest.mark.parametrize("name", ["{path}", "/{path}", "// {path}", " /{path} "])
def test_a_file_of_the_server_is_no_schema(served: Served, tmp_path: Path, name: str) -> None:
    """A comment that is a path as well (`//home/…/other.pg`) is still a text."""
    (tmp_path / "other.pg").write_text("node Secret { code: String @key }\n")
    source = name.replace("{path}", str(tmp_path / "other.pg"))
    served.post("/branches", {"name": "topic"})
    served.mutate('query add() { insert Person { name: "tom" } }', "topic")
    options = {"schema": source}
    for path, body in (
        ("/schema/plan", {"schema_source": source}),
        ("/schema/apply", {"schema_source": source, "allow_data_loss": True}),
        ("/branches/merge", {"source": "topic", "options": options | {"dry_run": True}}),
        ("/branches/merge", {"source": "topic", "options": options}),
        ("/branches/rebase", {"branch": "topic", "options": options}),
        ("/cherry-pick", {"commit": served.head("topic"), "options": options}),
        ("/revert", {"commit": served.head(), "options": options}),
    ):
        answer = served.post(path, body)
        assert_error(answer, 400, "bad_request")
        assert "Secret" not in answer.text
        assert "cannot read" not in answer.text
    assert "Secret" not in served.get("/schema").json()["schema_source"]


@pytest.mark.parametrize("policy", ["with", "without"])
def test_nobody_changes_a_declared_schema(tmp_path: Path, policy: str) -> None:
    folder = declare(tmp_path / "c")
    text = (folder / "cluster.yaml").read_text()
    if policy == "without":
        (folder / "cluster.yaml").write_text(text[: text.index("policies:")])
    else:
        (folder / "base.policy.yaml").write_text(POLICY)
    started(folder)
    (folder / "team.pg").write_text(WIDER)
    assert applied(folder)["converged"]
    rights: Any = {"with": "default-deny", "without": "open"}[policy]
    state = open_state(Settings(cluster=str(folder), rights=rights, one_time_token="t"))
    try:
        graph = state.graphs.find("team").graph
        changing = graph.head()
        assert changing.kind == "schema"
        with pytest.raises(Conflict, match="omnigraph cluster apply"):
            graph.revert(changing.id, actor="sue")
        with pytest.raises(Conflict, match="omnigraph cluster apply"):
            graph.apply_schema(DECLARED, actor="sue")
        graph.mutate('query add() { insert Person { name: "tom" } }', actor="sue")
        assert graph.revert(graph.head().id, actor="sue").commit is not None
        assert graph.schema() == WIDER
    finally:
        state.close()
    assert applied(folder)["converged"]
