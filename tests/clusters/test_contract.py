"""The files of a cluster and the JSON of its commands, field by field, as the specification lists them."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph import failpoints
from omnigraph.cluster import commands
from tests.cli.calling import call
from tests.clusters.declaring import (
    LISTING,
    POLICY,
    QUERIES,
    SCHEMA,
    WIDER,
    applied,
    declare,
    replace_in,
    started,
    without_graph,
)

Capsys = pytest.CaptureFixture[str]
EVERY = {"ok", "config_dir", "diagnostics"}
OBSERVED = {"state_path", "lock_path", "state_found", "state_revision", "resource_count", "locked", "lock_acquired"}
APPLIED = {"applied_config_digest", "state_cas"}
ULID = re.compile(r"[0-9A-HJKMNP-TV-Z]{26}")


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return started(declare(tmp_path_factory.mktemp("contract") / "c"))


@pytest.fixture
def cluster(template: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(template, tmp_path / "c"))


def told(capsys: Capsys, folder: Path, *words: str) -> dict[str, Any]:
    """The JSON of a command that succeeds."""
    outcome = call(capsys, "cluster", *words, "--config", str(folder), "--json")
    assert outcome.code == 0, outcome.out
    answer: dict[str, Any] = json.loads(outcome.out)
    # Pretty, by two spaces.
    assert outcome.out == json.dumps(answer, indent=2, ensure_ascii=False) + "\n"
    return answer


def sha(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def state_of(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "__cluster" / "state.json").read_text())
    return found


def test_the_fields_of_every_command(cluster: Path, capsys: Capsys, tmp_path: Path) -> None:
    validated = told(capsys, cluster, "validate")
    assert validated.keys() == EVERY | {"config_file", "resource_digests", "resources", "dependencies"}
    assert validated["config_file"] == str(cluster / "cluster.yaml")
    kinds = {resource["address"]: resource for resource in validated["resources"]}
    assert kinds["schema.team"].keys() == {"address", "kind", "digest", "path"}
    assert kinds["graph.team"].keys() == {"address", "kind", "digest"}
    assert {found["kind"] for found in kinds.values()} == {"graph", "schema", "query", "policy"}
    assert validated["dependencies"][0].keys() == {"from", "to"}
    assert validated["resource_digests"] == {address: found["digest"] for address, found in kinds.items()}
    # A declaration that is right has warnings: one for each graph without a list of external blobs.
    assert [found["code"] for found in validated["diagnostics"]] == ["external_blob_ingress_default_deny"] * 2
    (cluster / "team.pg").write_text(WIDER)
    planned = told(capsys, cluster, "plan")
    assert planned.keys() == EVERY | {
        "desired_revision", "resource_digests", "dependencies", "state_observations", "changes", "blast_radius",
        "approvals_required",
    }  # fmt: skip
    assert planned["desired_revision"].keys() == {"config_digest"}
    assert planned["blast_radius"][0].keys() == {"resource", "affected"}
    done = told(capsys, cluster, "apply", "--as", "op")
    assert done.keys() == EVERY | {
        "actor", "desired_revision", "state_observations", "changes", "applied_count", "deferred_count", "converged",
        "state_written", "resource_statuses",
    }  # fmt: skip
    observing = EVERY | {"state_observations", "resource_digests", "resource_statuses", "observations"}
    refreshed = told(capsys, cluster, "refresh")
    assert refreshed.keys() == observing | {"operation"}
    assert refreshed["operation"] == "refresh"
    assert refreshed["observations"]["graph.team"].keys() == {
        "exists", "manifest_version", "schema_digest", "desired_schema_digest"
    }  # fmt: skip
    assert told(capsys, cluster, "status").keys() == observing
    imported = told(capsys, declare(tmp_path / "new"), "import")
    assert imported.keys() == observing | {"operation"}
    assert imported["operation"] == "import"
    assert imported["state_observations"]["state_revision"] == 1
    without_graph(cluster, "tasks")
    gates = told(capsys, cluster, "plan")["approvals_required"]
    assert gates == [{"resource": "graph.tasks", "reason": "delete_graph", "satisfied": False}]
    approved = told(capsys, cluster, "approve", "graph.tasks", "--as", "me")
    assert approved.keys() == EVERY | {"approval_id", "resource", "operation", "approved_by"}


def test_what_is_observed_of_state_and_lock(cluster: Path, capsys: Capsys) -> None:
    (cluster / "__cluster" / "lock.json").write_text(
        '{"version":1,"lock_id":"L1","operation":"apply","created_at":"2026-01-01T00:00:00Z","pid":7}'
    )
    held = told(capsys, cluster, "status")["state_observations"]
    described = {"lock_id", "lock_operation", "lock_created_at", "lock_pid", "lock_age_seconds"}
    assert held.keys() == OBSERVED | APPLIED | described
    assert (held["locked"], held["lock_acquired"], held["lock_pid"]) == (True, False, 7)
    assert told(capsys, cluster, "force-unlock", "L1")["state_observations"].keys() == OBSERVED | APPLIED
    taken = told(capsys, cluster, "apply")["state_observations"]
    assert taken.keys() == OBSERVED | APPLIED | {"acquired_lock_id"}
    assert (taken["locked"], taken["lock_acquired"], taken["state_found"]) == (False, True, True)
    assert ULID.fullmatch(taken["acquired_lock_id"])
    assert taken["state_cas"] == f"sha256:{sha((cluster / '__cluster' / 'state.json').read_bytes())}"
    assert taken["state_path"] == str(cluster / "__cluster" / "state.json")
    assert taken["lock_path"] == str(cluster / "__cluster" / "lock.json")
    assert taken["resource_count"] == 8
    assert taken["applied_config_digest"] == told(capsys, cluster, "plan")["desired_revision"]["config_digest"]


def test_the_state_file(cluster: Path) -> None:
    state = state_of(cluster)
    assert state.keys() == {
        "version", "state_revision", "applied_revision", "resource_statuses", "approval_records", "recovery_records",
        "observations",
    }  # fmt: skip
    assert state["applied_revision"].keys() == {"config_digest", "resources"}
    resources = state["applied_revision"]["resources"]
    assert resources["policy.base"].keys() == {"digest", "applies_to"}
    assert all(entry.keys() == {"digest"} for name, entry in resources.items() if not name.startswith("policy."))
    assert state["resource_statuses"]["graph.team"] == {"status": "applied"}


def test_the_layout(cluster: Path) -> None:
    found = {path.relative_to(cluster).as_posix() for path in (cluster / "__cluster").rglob("*") if path.is_file()}
    queries, base, listing = sha(QUERIES.encode()), sha(POLICY.encode()), sha(LISTING.encode())
    assert found == {
        "__cluster/state.json",
        f"__cluster/resources/query/team/add_person/{queries}.gq",
        f"__cluster/resources/query/team/people/{queries}.gq",
        f"__cluster/resources/policy/base/{base}.yaml",
        f"__cluster/resources/policy/listing/{listing}.yaml",
    }
    assert sorted(path.name for path in (cluster / "graphs").iterdir()) == ["tasks.omni", "team.omni"]
    assert (cluster / f"__cluster/resources/query/team/people/{queries}.gq").read_text() == QUERIES


def test_the_files_of_a_lock_a_record_and_an_approval(cluster: Path) -> None:
    without_graph(cluster, "tasks")
    approved = commands.approve(cluster, "graph.tasks", "me").data
    path = cluster / "__cluster" / "approvals" / f"{approved['approval_id']}.json"
    fields = {
        "schema_version", "approval_id", "resource", "operation", "reason", "bound_config_digest", "bound_before_digest",
        "bound_after_digest", "approved_by", "created_at", "consumed_at", "consumed_by_operation",
    }  # fmt: skip
    waiting = json.loads(path.read_text())
    assert waiting.keys() == fields
    assert waiting["bound_config_digest"] == commands.plan(cluster).data["desired_revision"]["config_digest"]
    assert waiting["bound_before_digest"] == state_of(cluster)["applied_revision"]["resources"]["graph.tasks"]["digest"]
    assert (waiting["bound_after_digest"], waiting["consumed_at"], waiting["consumed_by_operation"]) == (None,) * 3
    seen: dict[str, Any] = {}

    def look() -> None:
        seen["lock"] = json.loads((cluster / "__cluster" / "lock.json").read_text())
        (record,) = (cluster / "__cluster" / "recoveries").iterdir()
        seen["name"], seen["record"] = record.stem, json.loads(record.read_text())

    with failpoints.armed("cluster.graph_marked", look):
        assert applied(cluster)["converged"]
    assert seen["lock"].keys() == {"version", "lock_id", "operation", "created_at", "pid"}
    assert (seen["lock"]["version"], seen["lock"]["operation"]) == (1, "apply")
    assert ULID.fullmatch(seen["name"])
    assert (seen["record"]["operation"], seen["record"]["graph_id"]) == ("graph_delete", "tasks")
    used = json.loads(path.read_text())
    assert used.keys() == fields
    assert (used["consumed_at"] is not None, used["consumed_by_operation"]) == (True, seen["name"])


def test_the_fields_of_a_change(tmp_path: Path) -> None:
    folder = declare(tmp_path / "c")
    replace_in(
        folder / "cluster.yaml", "graphs:\n", "providers: { embedding: { e: { kind: mock, model: a } } }\ngraphs:\n"
    )
    replace_in(folder / "cluster.yaml", "  tasks:\n", "  tasks:\n    embedding_provider: e\n")
    started(folder)
    replace_in(folder / "cluster.yaml", "model: a", "model: b")
    replace_in(folder / "cluster.yaml", "applies_to: [team]", "applies_to: [team, tasks]")
    (folder / "team.pg").write_text(WIDER)
    (folder / "queries" / "more.gq").write_text("query more() { match { $p: Person } return { $p.email } }\n")
    changes = {change["resource"]: change for change in commands.plan(folder).data["changes"]}
    plain = {"resource", "operation", "disposition"}
    both = plain | {"before_digest", "after_digest"}
    assert changes["query.team.more"].keys() == plain | {"after_digest"}
    assert changes["schema.team"].keys() == both | {"migration"}
    assert changes["schema.team"]["migration"].keys() == {"supported", "steps"}
    assert changes["graph.team"].keys() == both
    assert changes["graph.tasks"].keys() == both | {"metadata_change"}
    assert changes["graph.tasks"]["metadata_change"] == "embedding_profile"
    assert changes["policy.base"].keys() == both | {"binding_change", "metadata_change"}
    assert changes["policy.base"]["before_digest"] == changes["policy.base"]["after_digest"]
    assert changes["provider.embedding.e"].keys() == both
    assert applied(folder)["converged"]
    without_graph(folder, "team")
    (folder / "cluster.yaml").write_text((folder / "cluster.yaml").read_text().replace("[team, tasks]", "[tasks]"))
    (gone,) = [change for change in commands.plan(folder).data["changes"] if change["resource"] == "graph.team"]
    assert gone.keys() == plain | {"before_digest", "reason"}
    assert (gone["disposition"], gone["reason"]) == ("blocked", "approval_required")


@pytest.mark.parametrize("storage", ["file", "relative"])
def test_other_storage(tmp_path: Path, storage: str) -> None:
    """The declaration stays without a trace of what was applied."""
    root = tmp_path / "storage"
    folder = declare(tmp_path / "c", f"file://{root}" if storage == "file" else "../storage")
    before = sorted(folder.rglob("*"))
    started(folder)
    assert sorted(folder.rglob("*")) == before
    assert (root / "__cluster" / "state.json").is_file()
    assert (root / "graphs" / "team.omni").is_dir()


@pytest.mark.parametrize("word", ["apply", "env_file", "pipelines", "embeddings", "ui", "aliases", "bindings"])
def test_words_of_later_versions(tmp_path: Path, word: str) -> None:
    folder = declare(tmp_path / "c")
    replace_in(folder / "cluster.yaml", "version: 1\n", f"version: 1\n{word}: {{}}\n")
    found = [found for found in commands.validate(folder).findings.listed if found.severity == "error"]
    assert [(one.code, one.path) for one in found] == [("future_phase_field", word)]


def test_an_approval_is_bound_to_the_state_too(cluster: Path) -> None:
    """A graph that changed since is another one than the one that was to be deleted."""
    without_graph(cluster, "tasks")
    assert commands.approve(cluster, "graph.tasks", "me").ok
    state = state_of(cluster)
    state["applied_revision"]["resources"]["graph.tasks"]["digest"] = "0" * 64
    (cluster / "__cluster" / "state.json").write_text(json.dumps(state))
    planned = commands.plan(cluster)
    assert "approval_stale" in [found.code for found in planned.findings.listed]
    assert not planned.data["approvals_required"][0]["satisfied"]
    assert not commands.apply(cluster, "op").data["converged"]
    assert (cluster / "graphs" / "tasks.omni").exists()


# --- digests ----------------------------------------------------------------------------------------------------------


def test_the_digest_of_blobs_and_of_the_declaration(tmp_path: Path) -> None:
    folder = declare(tmp_path / "c")
    allow = "{ allow: [{ base: 's3://b/p/', scope: server_safe }] }"
    replace_in(
        folder / "cluster.yaml", "    schema: tasks.pg\n", f"    schema: tasks.pg\n    external_blobs: {allow}\n"
    )
    planned = commands.plan(folder).data
    schema = sha((folder / "tasks.pg").read_bytes())
    policy = '{"allow":[{"base":"s3://b/p/","scope":"server_safe"}]}'
    parts = ["graph", "tasks", "schema", schema, "external_blob_policy", policy]
    digests = planned["resource_digests"]
    assert digests["graph.tasks"] == sha("".join(f"{part}\0" for part in parts).encode())
    content = {
        "graphs": {
            "tasks": {
                "external_blobs": {"allow": [{"base": "s3://b/p/", "scope": "server_safe"}]},
                "schema": "tasks.pg",
            },
            "team": {"queries": "queries/", "schema": "team.pg"},
        },
        "metadata": {"name": "test"},
        "policies": {
            "base": {"applies_to": ["team"], "file": "base.policy.yaml"},
            "listing": {"applies_to": ["cluster"], "file": "listing.policy.yaml"},
        },
        "version": 1,
    }
    named = "".join(f"{address}\0{digest}\0" for address, digest in sorted(digests.items()))
    whole = f"cluster-config\0{json.dumps(content, separators=(',', ':'))}\0{named}"
    assert planned["desired_revision"]["config_digest"] == sha(whole.encode())


def test_two_words_for_a_provider(tmp_path: Path) -> None:
    """`provider` is another word for `kind`, and a graph may name its provider by the whole address."""
    found = []
    for name, (word, reference) in {"a": ("kind", "e"), "b": ("provider", "provider.embedding.e")}.items():
        folder = declare(tmp_path / name)
        told = f"providers: {{ embedding: {{ e: {{ {word}: mock, model: m }} }} }}\ngraphs:\n"
        replace_in(folder / "cluster.yaml", "graphs:\n", told)
        replace_in(folder / "cluster.yaml", "  tasks:\n", f"  tasks:\n    embedding_provider: {reference}\n")
        found.append(commands.validate(folder).data["resource_digests"])
    assert found[0] == found[1]
    assert found[0]["provider.embedding.e"] == sha(b'embedding-provider\0{"kind":"mock","model":"m"}')


# --- what commands do -------------------------------------------------------------------------------------------------


def test_status_without_a_state_warns(tmp_path: Path) -> None:
    outcome = commands.status(declare(tmp_path / "c"))
    assert outcome.ok
    assert [(found.severity, found.code) for found in outcome.findings.listed] == [("warning", "state_missing")]
    assert not outcome.data["state_observations"]["state_found"]


def test_the_digest_of_the_declaration_is_kept_only_when_all_of_it_is_applied(cluster: Path) -> None:
    before = state_of(cluster)["applied_revision"]["config_digest"]
    without_graph(cluster, "tasks")
    (cluster / "queries" / "more.gq").write_text("query more() { match { $p: Person } return { $p.age } }\n")
    outcome = commands.apply(cluster, "op")
    assert (outcome.ok, outcome.data["converged"], outcome.data["state_written"]) == (True, False, True)
    assert "query.team.more" in state_of(cluster)["applied_revision"]["resources"]
    assert state_of(cluster)["applied_revision"]["config_digest"] == before
    assert commands.approve(cluster, "graph.tasks", "me").ok
    assert applied(cluster)["converged"]
    after = state_of(cluster)["applied_revision"]["config_digest"]
    assert after == commands.plan(cluster).data["desired_revision"]["config_digest"] != before


def test_what_a_schema_drops_stays_in_the_history(cluster: Path) -> None:
    with og.open(cluster / "graphs" / "team.omni") as graph:
        graph.load(b'{"type":"Person","data":{"name":"ada","age":36}}\n')
        before = graph.head().id
        graph.create_branch("draft")
    (cluster / "team.pg").write_text(SCHEMA.replace("  age: I32?", ""))
    (change,) = [change for change in commands.plan(cluster).data["changes"] if change["resource"] == "schema.team"]
    (step,) = change["migration"]["steps"]
    assert (step["kind"], step["mode"]) == ("drop_property", "soft")
    # Branches keep the schema they have.
    assert applied(cluster)["converged"]
    ages = "query ages() { match { $p: Person } return { $p.age } }"
    with og.open(cluster / "graphs" / "team.omni", "ro") as graph:
        assert "age" not in graph.schema()
        assert graph.query(ages, branch="draft").rows == [{"p.age": 36}]
        assert graph.query(ages, snapshot=before, schema="then").rows == [{"p.age": 36}]


def test_storage_itself_knows_no_policy(cluster: Path, capsys: Capsys) -> None:
    """Who may write there can do everything, whatever actor is named."""
    store = ("--store", str(cluster / "graphs" / "team.omni"))
    add = 'query add() { insert Person { name: "eve" } }'
    done = call(capsys, "mutate", "-e", add, *store, "--as", "ann", "--json")
    assert (done.code, json.loads(done.out)["actor_id"]) == (0, "ann")


def test_stored_queries_tell_what_they_are_for(cluster: Path, capsys: Capsys) -> None:
    text = 'query old($least: I32?) @description("By age.") @instruction("Give least.") {\n'
    text += "  match { $p: Person } return { $p.name }\n}\n"
    (cluster / "queries" / "old.gq").write_text(text)
    assert applied(cluster)["converged"]
    address = ("--cluster", str(cluster), "--graph", "team")
    lines = call(capsys, "queries", "list", *address).out.splitlines()
    assert lines[1:4] == ["read  old($least: I32?)", "  description: By age.", "  instruction: Give least."]
    listed = json.loads(call(capsys, "queries", "list", *address, "--json").out)["queries"]
    assert listed[1] == {
        "name": "old",
        "mcp_expose": False,
        "tool_name": "old",
        "mutation": False,
        "description": "By age.",
        "instruction": "Give least.",
        "params": [{"name": "least", "type": "I32", "nullable": True}],
    }
    checked = json.loads(call(capsys, "queries", "validate", *address, "--json").out)
    assert checked == {"ok": True, "breakages": [], "warnings": []}
