"""Reading a declaration: every diagnostic it can have, the digests, and what never changes them."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

import pytest

from omnigraph.cluster import commands
from tests.clusters.declaring import SCHEMA, codes, declare, replace_in

#: A change of one file, and the diagnostic it leads to. "" replaces the whole file.
BROKEN: list[tuple[str, str, str, str, str]] = [
    ("cluster.yaml", "", "version: [", "invalid_cluster_yaml", "not valid YAML in line "),
    ("cluster.yaml", "", "- a", "invalid_cluster_yaml", "must be a mapping"),
    ("cluster.yaml", "version: 1", "version: 1\nversion: 1", "duplicate_yaml_key", "'version' in line 2"),
    ("cluster.yaml", "version: 1", "version: 2", "unsupported_cluster_config_version", "not 2"),
    ("cluster.yaml", "version: 1", "version: 1.0", "unsupported_cluster_config_version", "not 1.0"),
    ("cluster.yaml", "version: 1", "version: true", "unsupported_cluster_config_version", "not True"),
    ("cluster.yaml", "metadata: {", "metdata: {", "invalid_cluster_yaml", "unknown field `metdata`"),
    ("cluster.yaml", "metadata: { name: test }", "metadata: { name: '' }", "empty_metadata_name", "must not be empty"),
    ("cluster.yaml", "metadata: { name: test }", "aliases: {}", "future_phase_field", "`aliases`"),
    ("cluster.yaml", "metadata: { name: test }", "storage: gs://x/y", "invalid_storage_root", "gs://"),
    ("cluster.yaml", "metadata: { name: test }", "storage: 3", "invalid_storage_root", "a path or a URI"),
    ("cluster.yaml", "metadata: { name: test }", "state: { backend: s3 }", "unsupported_state_backend", "'s3'"),
    ("cluster.yaml", "metadata: { name: test }", "state: { lock: 1 }", "invalid_cluster_yaml", "true or false"),
    (
        "cluster.yaml",
        "schema: team.pg",
        "schema: team.pg\n    streaming: {}",
        "removed_streaming_declaration",
        "remove it",
    ),
    ("cluster.yaml", "schema: team.pg", "schema: no.pg", "schema_file_missing", "no.pg"),
    ("cluster.yaml", "schema: team.pg", "shcema: team.pg", "invalid_cluster_yaml", "unknown field `shcema`"),
    ("cluster.yaml", "  team:", "  9team:", "invalid_resource_id", "'9team' is no id"),
    ("cluster.yaml", "queries: queries/", "queries: nowhere/", "query_dir_unreadable", "nowhere"),
    ("cluster.yaml", "queries: queries/", "queries: [no.gq]", "query_file_missing", "no.gq"),
    (
        "cluster.yaml",
        "queries: queries/",
        "queries: { x: { file: queries/people.gq } }",
        "query_key_mismatch",
        "no query 'x'",
    ),
    (
        "cluster.yaml",
        "queries: queries/",
        "queries: [queries/people.gq, queries/people.gq]",
        "duplicate_query_name",
        "'people'",
    ),
    ("cluster.yaml", "applies_to: [team]", "applies_to: [nobody]", "dangling_graph_reference", "'nobody'"),
    ("cluster.yaml", "applies_to: [team]", "applies_to: [schema.team]", "wrong_kind_reference", "'schema.team'"),
    ("cluster.yaml", "applies_to: [team]", "applies_to: []", "policy_missing_applies_to", "applies to graphs"),
    ("cluster.yaml", ", applies_to: [team]", "", "policy_missing_applies_to", "applies to graphs"),
    ("cluster.yaml", "applies_to: [team]", "applies_to: [team, cluster]", "policy_mixed_binding_kinds", "split it"),
    ("cluster.yaml", "applies_to: [team]", "applies_to: [cluster]", "duplicate_policy_binding", "cluster"),
    ("cluster.yaml", "file: base.policy.yaml", "file: no.yaml", "policy_file_missing", "no.yaml"),
    ("base.policy.yaml", "group: readers", "group: raeders", "policy_invalid", "references unknown group 'raeders'"),
    ("base.policy.yaml", "version: 1", "kind: graph\nversion: 1", "policy_invalid", "unknown field `kind`"),
    ("listing.policy.yaml", "[graph_list]", "[read]", "policy_invalid", "graph-scoped action 'read'"),
    ("team.pg", "node Person {", "node Person ", "schema_parse_error", "team.pg:1:"),
    ("team.pg", "edge Knows: Person -> Person", "edge Knows: Person -> Nobody", "schema_catalog_error", "Nobody"),
    ("queries/people.gq", "match {", "match ", "query_parse_error", "people.gq:1:"),
    ("queries/people.gq", "$p.name }", "$p.nme }", "query_typecheck_error", "no property `nme`"),
    (
        "cluster.yaml",
        "graphs:",
        "providers: { embedding: { e: { kind: fax } } }\ngraphs:",
        "invalid_embedding_provider",
        "fax",
    ),
    (
        "cluster.yaml",
        "graphs:",
        "providers: { embedding: { e: { kind: openai, api_key: sk-123 } } }\ngraphs:",
        "embedding_api_key_inline",
        "${NAME}",
    ),
    (
        "cluster.yaml",
        "graphs:",
        "providers: { embedding: { e: { kind: openai } } }\ngraphs:",
        "embedding_api_key_required",
        "openai needs api_key",
    ),
    (
        "cluster.yaml",
        "schema: team.pg",
        "schema: team.pg\n    embedding_provider: e",
        "dangling_embedding_provider_reference",
        "'e'",
    ),
    (
        "cluster.yaml",
        "schema: team.pg",
        "schema: team.pg\n    embedding_provider: graph.team",
        "wrong_kind_reference",
        "graph.team",
    ),
    (
        "cluster.yaml",
        "schema: team.pg",
        "schema: team.pg\n    external_blobs: [s3://b/]",
        "invalid_external_blob_policy",
        "allow",
    ),
    (
        "cluster.yaml",
        "schema: team.pg",
        "schema: team.pg\n    external_blobs: { allow: [{ base: s3://b/p, scope: server_safe }] }",
        "invalid_external_blob_base",
        "ends in a slash",
    ),
    (
        "cluster.yaml",
        "schema: team.pg",
        "schema: team.pg\n    external_blobs: { allow: [{ base: s3://b/p/, scope: all }] }",
        "invalid_external_blob_policy",
        "server_safe or embedded_only",
    ),
]


@pytest.mark.parametrize(
    ("file", "old", "new", "code", "part"), BROKEN, ids=[f"{row[3]}-{row[2][:24]}" for row in BROKEN]
)
def test_what_is_wrong_is_told(tmp_path: Path, file: str, old: str, new: str, code: str, part: str) -> None:
    folder = declare(tmp_path / "c")
    if old:
        replace_in(folder / file, old, new)
    else:
        (folder / file).write_text(new)
    before = sorted(path for path in folder.rglob("*"))
    for command in (commands.validate, commands.plan, commands.import_, commands.refresh):
        outcome = command(folder)
        assert not outcome.ok
        found = [told for told in outcome.findings.listed if told.code == code]
        assert found, outcome.findings.listed
        assert any(part in told.message for told in found), found
        assert all("\n" not in told.message for told in outcome.findings.listed)
        assert "sk-123" not in json.dumps(outcome.to_dict())
    assert not commands.apply(folder, None).ok
    assert sorted(path for path in folder.rglob("*")) == before, "a wrong declaration changes nothing"


def test_a_folder_or_file_that_is_not_there(tmp_path: Path) -> None:
    assert codes(commands.validate(tmp_path / "nowhere")) == ["config_dir_not_found"]
    assert codes(commands.validate(tmp_path)) == ["cluster_config_read_error"]
    (tmp_path / "cluster.yaml").write_bytes(b"\xff")
    assert codes(commands.status(tmp_path)) == ["cluster_config_read_error"]


def test_a_pipe_is_no_declaration(tmp_path: Path) -> None:
    """Nobody may ever write to it, so it is not read."""
    os.mkfifo(tmp_path / "cluster.yaml")
    outcome = commands.validate(tmp_path)
    assert codes(outcome) == ["cluster_config_read_error"]
    assert "it is not a file" in outcome.findings.listed[0].message


def test_warnings(tmp_path: Path) -> None:
    folder = declare(tmp_path / "c")
    assert codes(commands.validate(folder), "warning") == ["external_blob_ingress_default_deny"] * 2
    (folder / "queries" / "people.gq").unlink()
    assert "query_dir_empty" in codes(commands.validate(folder), "warning")
    declare(tmp_path / "d")
    replace_in(tmp_path / "d" / "team.pg", "Person {", "Person ")
    assert codes(commands.validate(tmp_path / "d"), "warning").count("query_typecheck_skipped") == 2


def test_the_digests_are_those_of_the_specification(tmp_path: Path) -> None:
    folder = declare(tmp_path / "c")
    replace_in(
        folder / "cluster.yaml",
        "graphs:",
        "providers: { embedding: { m: { provider: mock, model: x } } }\ngraphs:",
    )
    replace_in(folder / "cluster.yaml", "  tasks:\n", "  tasks:\n    embedding_provider: m\n")
    outcome = commands.validate(folder)
    assert outcome.ok, outcome.findings.listed
    digests = outcome.data["resource_digests"]

    def sha(data: bytes) -> str:
        return hashlib.sha256(data).hexdigest()

    schema, queries = sha((folder / "team.pg").read_bytes()), sha((folder / "queries" / "people.gq").read_bytes())
    assert digests["schema.team"] == schema
    assert digests["query.team.people"] == digests["query.team.add_person"] == queries
    assert digests["policy.base"] == sha((folder / "base.policy.yaml").read_bytes())
    provider = sha(b'embedding-provider\0{"kind":"mock","model":"x"}')
    assert digests["provider.embedding.m"] == provider
    parts = ["graph", "team", "schema", schema, "query", "add_person", queries, "query", "people", queries]
    assert digests["graph.team"] == sha(b"".join(part.encode() + b"\0" for part in parts))
    bound = [
        "graph",
        "tasks",
        "schema",
        digests["schema.tasks"],
        "embedding_provider",
        "provider.embedding.m",
        provider,
    ]
    assert digests["graph.tasks"] == sha(b"".join(part.encode() + b"\0" for part in bound))


def test_comments_and_layout_do_not_matter(tmp_path: Path) -> None:
    folder = declare(tmp_path / "c")

    def digest() -> str:
        return str(commands.plan(folder).data["desired_revision"]["config_digest"])

    before = digest()
    replace_in(folder / "cluster.yaml", "metadata: { name: test }", "# a comment\nmetadata:\n  name: test\n")
    assert digest() == before
    replace_in(folder / "cluster.yaml", "name: test", "name: other")
    assert digest() != before
    (folder / "team.pg").write_text(SCHEMA + "\n")
    assert digest() != before


def test_the_three_forms_of_queries(tmp_path: Path) -> None:
    folder = declare(tmp_path / "c")
    (folder / "queries" / "more.gq").write_text("query more() { match { $p: Person } return { $p.age } }\n")
    (folder / "queries" / "notes.txt").write_text("no query")
    (folder / "queries" / "deeper").mkdir()
    (folder / "queries" / "deeper" / "deep.gq").write_text("query deep() { match { $p: Person } return { $p.age } }\n")

    def names() -> list[str]:
        outcome = commands.validate(folder)
        assert outcome.ok, outcome.findings.listed
        return [
            address.removeprefix("query.team.") for address in outcome.data["resource_digests"] if "query." in address
        ]

    assert names() == ["add_person", "more", "people"]
    replace_in(folder / "cluster.yaml", "queries: queries/", "queries: [queries/more.gq]")
    assert names() == ["more"]
    replace_in(
        folder / "cluster.yaml", "queries: [queries/more.gq]", "queries: { people: { file: queries/people.gq } }"
    )
    assert names() == ["people"]


def test_dependencies(tmp_path: Path) -> None:
    outcome = commands.validate(declare(tmp_path / "c"))
    assert {"from": "query.team.people", "to": "schema.team"} in outcome.data["dependencies"]
    assert {"from": "policy.base", "to": "graph.team"} in outcome.data["dependencies"]
    assert not [edge for edge in outcome.data["dependencies"] if "listing" in edge["from"]]
