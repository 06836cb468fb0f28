"""The applied revision as servers and commands read it: what is fatal, what concerns one graph, and the command line."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.cluster.applied import ClusterError, read_applied
from tests.cli.calling import call
from tests.clusters.declaring import QUERIES, WIDER, applied, declare, replace_in, started

Capsys = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return started(declare(tmp_path_factory.mktemp("applied") / "c"))


@pytest.fixture
def cluster(template: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(template, tmp_path / "c"))


def edit_state(folder: Path, change: Any) -> None:
    path = folder / "__cluster" / "state.json"
    told = json.loads(path.read_text())
    change(told["applied_revision"]["resources"])
    path.write_text(json.dumps(told))


def test_what_is_applied_is_read_not_what_is_declared(cluster: Path) -> None:
    (cluster / "base.policy.yaml").write_text("nonsense")
    (cluster / "queries" / "people.gq").write_text("nonsense")
    found = read_applied(str(cluster))
    assert sorted(found.graphs) == ["tasks", "team"]
    assert [query.name for query in found.graphs["team"].queries] == ["add_person", "people"]
    assert found.graphs["team"].queries[0].text == QUERIES
    assert found.graphs["team"].policy is not None
    assert found.graphs["tasks"].policy is None
    assert found.policy is not None
    # The storage root is a cluster too, without its declaration.
    (cluster / "cluster.yaml").unlink()
    assert read_applied(str(cluster)).revision == found.revision


def _payload(folder: Path, kind: str) -> Path:
    return next((folder / "__cluster" / "resources" / kind).rglob("*.*"))


FATAL: list[tuple[str, Any, str]] = [
    ("no state", lambda c: (c / "__cluster" / "state.json").unlink(), "cluster_state_missing"),
    ("cut state", lambda c: (c / "__cluster" / "state.json").write_text('{"version": 1'), "invalid_state_json"),
    ("policy gone", lambda c: _payload(c, "policy/base").unlink(), "catalog_payload_missing"),
    ("policy changed", lambda c: _payload(c, "policy/base").write_text("x"), "catalog_payload_digest_mismatch"),
    ("unbound", lambda c: edit_state(c, lambda r: r["policy.base"].pop("applies_to")), "policy_bindings_missing"),
    (
        "bound twice",
        lambda c: edit_state(c, lambda r: r["policy.base"].update(applies_to=["cluster", "graph.team"])),
        "duplicate_policy_binding",
    ),
    (
        "of another kind",
        lambda c: edit_state(c, lambda r: [r.pop("policy.listing"), r["policy.base"].update(applies_to=["cluster"])]),
        "policy_invalid",
    ),
    ("empty", lambda c: edit_state(c, lambda r: [r.pop("graph.team"), r.pop("graph.tasks")]), "cluster_empty"),
    (
        "unknown record",
        lambda c: (
            (c / "__cluster" / "recoveries").mkdir(exist_ok=True),
            (c / "__cluster" / "recoveries" / "x.json").write_text("{"),
        ),
        "cluster_recovery_unattributed",
    ),
    ("declaration", lambda c: (c / "cluster.yaml").write_text("version: 9"), "unsupported_cluster_config_version"),
]


@pytest.mark.parametrize(("damage", "code"), [row[1:] for row in FATAL], ids=[row[0] for row in FATAL])
def test_what_no_server_starts_with(cluster: Path, damage: Any, code: str) -> None:
    damage(cluster)
    with pytest.raises(ClusterError) as refused:
        read_applied(str(cluster))
    assert refused.value.code == code


def test_a_place_that_can_be_none(tmp_path: Path) -> None:
    with pytest.raises(ClusterError) as refused:
        read_applied("gs://x/y")
    assert refused.value.code == "storage_root_invalid"
    with pytest.raises(ClusterError) as missing:
        read_applied(str(tmp_path / "nowhere"))
    assert missing.value.code == "cluster_state_missing"


def test_a_graph_that_is_not_applied(cluster: Path) -> None:
    with pytest.raises(ClusterError, match="graph `no` is not applied in cluster") as refused:
        read_applied(str(cluster)).graph("no")
    assert refused.value.code == "graph_not_applied"


def _record(folder: Path) -> None:
    path = folder / "__cluster" / "recoveries" / "01ARZ3NDEKTSV4RRFFQ69G5FAV.json"
    path.parent.mkdir(exist_ok=True)
    told = {"version": 1, "recovery_id": path.stem, "operation": "schema_apply", "graph_id": "team", "created_at": "x"}
    path.write_text(json.dumps(told))


FAULTS: list[tuple[str, Any, str]] = [
    ("query gone", lambda c: _payload(c, "query/team/people").unlink(), "catalog_payload_missing"),
    ("query changed", lambda c: _payload(c, "query/team/people").write_text("x"), "catalog_payload_digest_mismatch"),
    ("pending", _record, "cluster_recovery_pending"),
    (
        "blobs",
        lambda c: edit_state(c, lambda r: r["graph.team"].update(external_blob_policy={"allow": []})),
        "external_blob_policy_digest_mismatch",
    ),
]


@pytest.mark.parametrize(("damage", "code"), [row[1:] for row in FAULTS], ids=[row[0] for row in FAULTS])
def test_what_concerns_one_graph(cluster: Path, damage: Any, code: str) -> None:
    damage(cluster)
    found = read_applied(str(cluster))
    assert found.graphs["team"].fault is not None
    assert found.graphs["team"].fault.code == code
    assert found.graphs["tasks"].fault is None


def test_embedding_providers(tmp_path: Path) -> None:
    folder = declare(tmp_path / "c")
    replace_in(
        folder / "cluster.yaml",
        "graphs:\n",
        "providers: { embedding: { e: { kind: openai, api_key: '${MY_KEY}' } } }\ngraphs:\n",
    )
    replace_in(folder / "cluster.yaml", "  tasks:\n", "  tasks:\n    embedding_provider: e\n")
    started(folder)
    assert "MY_KEY" in (folder / "__cluster" / "state.json").read_text()
    without = read_applied(str(folder), environment={}).graphs["tasks"]
    assert without.fault is not None
    assert without.fault.code == "embedding_api_key_required"
    with_key = read_applied(str(folder), environment={"MY_KEY": "k"}).graphs["tasks"]
    assert with_key.embedding == {"kind": "openai", "api_key": "k"}

    def fault_after(change: Any) -> str:
        edit_state(folder, change)
        found = read_applied(str(folder), environment={"MY_KEY": "k"}).graphs["tasks"].fault
        assert found is not None
        return found.code

    assert fault_after(lambda r: r["graph.tasks"]["embedding_profile"].update(model="m")) == (
        "embedding_provider_digest_mismatch"
    )
    assert fault_after(lambda r: r["graph.tasks"].pop("embedding_profile")) == "embedding_provider_profile_missing"
    assert fault_after(lambda r: r.pop("provider.embedding.e")) == "embedding_provider_missing"


# --- the command line -------------------------------------------------------------------------------------------------


def test_policy_commands(cluster: Path, capsys: Capsys, tmp_path: Path) -> None:
    address = ("--cluster", str(cluster))
    assert (
        "has 2 policy bundles ([base, listing]); pass --graph <id>" in call(capsys, "policy", "validate", *address).err
    )
    assert (
        call(capsys, "policy", "validate", *address, "--graph", "team").out
        == "policy valid: bundle 'base' [2 actors]\n"
    )
    # A graph without its own bundle has the cluster's.
    assert "bundle 'listing'" in call(capsys, "policy", "validate", *address, "--graph", "tasks").out
    assert "bundle 'listing'" in call(capsys, "policy", "validate", *address, "--scope", "cluster").out
    missing = call(capsys, "policy", "validate", *address, "--graph", "tasks", "--scope", "graph")
    assert (missing.code, "no policy bundle bound to graph tasks" in missing.err) == (1, True)
    assert "is not applied in cluster" in call(capsys, "policy", "validate", *address, "--graph", "no").err
    assert "no cluster addressed" in call(capsys, "policy", "validate").err
    explained = call(
        capsys, "policy", "explain", *address, "--graph", "team", "--actor", "bob", "--action", "branch-merge",
        "--branch", "t", "--target-branch", "main",
    )  # fmt: skip
    assert explained.code == 0
    assert explained.out.splitlines() == [
        "decision: deny",
        "actor: bob",
        "action: branch_merge",
        "branch: t",
        "target_branch: main",
        "message: policy denied action 'branch_merge' on branch 't' targeting branch 'main' for actor 'bob'",
    ]
    told = call(
        capsys, "policy", "explain", *address, "--graph", "team", "--actor", "ann", "--action", "read", "--json"
    )
    assert json.loads(told.out)["matched_rule"] == "all-read"
    assert (
        "unknown action 'fly'"
        in call(capsys, "policy", "explain", *address, "--graph", "team", "--actor", "a", "--action", "fly").err
    )
    cases = tmp_path / "cases.yaml"
    cases.write_text("version: 1\ncases: [{ id: a, actor: ann, action: read, expect: allow }]")
    passed = call(capsys, "policy", "test", *address, "--graph", "team", "--tests", str(cases))
    assert (passed.code, passed.out) == (0, "policy tests passed: 1 cases\n")
    cases.write_text("version: 1\ncases: [{ id: a, actor: ann, action: change, expect: allow }]")
    failed = call(capsys, "policy", "test", *address, "--graph", "team", "--tests", str(cases))
    assert failed.code == 1
    assert failed.out.startswith("policy tests failed:\na: expected Allow but got Deny")
    assert "cannot read" in call(capsys, "policy", "test", *address, "--graph", "team", "--tests", "no.yaml").err


def test_query_commands(cluster: Path, capsys: Capsys) -> None:
    address = ("--cluster", str(cluster))
    assert "cluster `" in call(capsys, "queries", "list", *address).err
    listed = call(capsys, "queries", "list", *address, "--graph", "team")
    assert listed.out == "mutation  add_person($name: String)\nread  people()\n"
    shown = json.loads(call(capsys, "queries", "list", *address, "--graph", "team", "--json").out)
    assert shown["queries"][0] == {
        "name": "add_person",
        "mcp_expose": False,
        "tool_name": "add_person",
        "mutation": True,
        "params": [{"name": "name", "type": "String", "nullable": False}],
    }
    assert call(capsys, "queries", "validate", *address).out.startswith("OK ")
    with og.open(cluster / "graphs" / "team.omni") as graph:
        graph.apply_schema(WIDER.replace("name: String @key", "label: String @key @rename_from(name)"))
    broken = call(capsys, "queries", "validate", *address, "--json")
    assert broken.code == 1
    assert {found["query"] for found in json.loads(broken.out)["breakages"]} == {"team.people", "team.add_person"}


def test_cluster_commands_on_the_command_line(tmp_path: Path, capsys: Capsys, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMNIGRAPH_HOME", str(tmp_path / "home"))
    folder = declare(tmp_path / "c")
    (folder / "omnigraph.yaml").write_text("this is read by nothing")
    monkeypatch.chdir(folder)
    assert call(capsys, "cluster", "validate").out.startswith(
        "cluster config valid: 8 resource(s), 5 dependency edge(s)\n"
    )
    failed = call(capsys, "cluster", "apply")
    assert (failed.code, failed.out) == (1, "cluster apply failed\n")
    assert "ERROR state_missing __cluster/state.json: there is no state" in failed.err
    assert call(capsys, "cluster", "import").out.startswith("cluster import: revision 1, 0 resource(s)")
    assert call(capsys, "cluster", "plan").out.startswith("cluster plan: 8 change(s), 0 approval gate(s)\n")
    done = call(capsys, "cluster", "apply", "--as", "me")
    assert done.out.startswith("cluster apply: 8 applied, 0 deferred/blocked\n")
    assert done.out.endswith("  state: revision 2, converged: true, written: true\n")
    assert call(capsys, "cluster", "status").out.startswith("cluster state: revision 2, 8 resource(s)\n")
    told = json.loads(call(capsys, "cluster", "apply", "--json").out)
    assert (told["ok"], told["converged"], told["applied_count"], "actor" in told) == (True, True, 0, False)
    nobody = call(capsys, "cluster", "approve", "graph.team")
    assert nobody.code == 1
    assert "--as" in nobody.err
    assert "operator.actor" in nobody.err
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "config.yaml").write_text("operator: { actor: act-me }\n")
    assert json.loads(call(capsys, "cluster", "apply", "--json").out)["actor"] == "act-me"
    assert "approval_not_required" in call(capsys, "cluster", "approve", "graph.team").err
    (folder / "cluster.yaml").write_text("version: 2")
    invalid = call(capsys, "cluster", "validate")
    assert (invalid.code, invalid.out) == (1, "cluster config invalid\n")
    assert call(capsys, "cluster", "status", "--server", "http://x").code == 2


def test_a_graph_of_a_cluster_is_not_changed_beside_it(cluster: Path, capsys: Capsys) -> None:
    graph = cluster / "graphs" / "team.omni"
    refused = call(capsys, "schema", "apply", str(graph), "--schema", str(cluster / "tasks.pg"))
    assert "omnigraph cluster apply" in refused.err
    assert (
        "omnigraph cluster apply"
        in call(capsys, "init", "--schema", str(cluster / "team.pg"), str(cluster / "graphs" / "new.omni")).err
    )
    assert applied(cluster)["converged"]


def test_upkeep_of_a_graph_of_a_cluster(
    capsys: Capsys, cluster: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Commands that work on storage take `--cluster` and `--graph`, or a profile of a cluster."""
    home = tmp_path / "home"
    home.mkdir()
    document = {"clusters": {"brain": {"root": str(cluster)}}, "profiles": {"ours": {"cluster": "brain"}}}
    (home / "config.yaml").write_text(json.dumps(document))
    monkeypatch.setenv("OMNIGRAPH_HOME", str(home))
    named = ("--graph", "team", "--json")
    for address in (("--cluster", str(cluster)), ("--cluster", "brain"), ("--profile", "ours")):
        stats = call(capsys, "stats", *address, *named)
        assert (stats.code, stats.err) == (0, "")
        assert json.loads(stats.out)["uri"] == read_applied(str(cluster)).graphs["team"].uri
        assert call(capsys, "optimize", *address, *named, "--quiet").code == 0
        assert call(capsys, "recovery", "list", *address, *named).code == 0
    several = call(capsys, "stats", "--cluster", "brain")
    assert several.code == 1
    assert "has 2 graphs: [tasks, team]; pass --graph <id> to select one" in several.err
    unknown = call(capsys, "stats", "--cluster", "brain", "--graph", "none")
    assert "graph `none` is not applied in cluster" in unknown.err
