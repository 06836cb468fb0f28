"""The schema contract: three files that must agree with each other and with the manifest, at open and in open handles."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest

import omnigraph as og
from omnigraph.commit.model import MAIN, TableEntry
from omnigraph.commit.publisher import publish
from omnigraph.commit.schema_files import COMPILED, FILES, SOURCE, STATE
from omnigraph.commit.updates import DropTable, SetTable
from omnigraph.errors import SchemaContractError
from omnigraph.graph.contract import Contract, accept, read_contract
from omnigraph.graph.lifecycle import connect
from omnigraph.ids import new_ulid
from omnigraph.language.schema.accept import accept_schema
from omnigraph.language.schema.build import compile_schema
from omnigraph.storage.objects import ObjectStore, open_store
from omnigraph.storage.root import Root
from omnigraph.storage.tables.commit import create_dataset
from omnigraph.values.columns import table_path, table_schema
from tests.commit.org import SCHEMA, TEAM, lineage

WIDER = SCHEMA.replace("level: I32?", "level: I64?")


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    return og.init(tmp_path / "graph", SCHEMA)


@pytest.fixture
def store(graph: og.Graph) -> ObjectStore:
    return open_store(Root.parse(graph.uri))


def refused(graph: og.Graph, message: str) -> str:
    """Reading through a handle that is open, and opening it in both modes, are refused alike; returns the reason."""
    reasons = set()
    for read in (graph.snapshot, lambda: og.open(graph.uri), lambda: og.open(graph.uri, "ro")):
        with pytest.raises(SchemaContractError, match=message) as raised:
            read()
        reasons.add(raised.value.reason)
    assert len(reasons) == 1
    return reasons.pop()


def another_life(contract: Contract, source: str = SCHEMA) -> Contract:
    """The same schema, as if every type had been dropped and added again."""
    ir = accept_schema(compile_schema(source), None, incarnation=0xBEEF)
    return accept(source, ir, schema_version=contract.schema_version + 1, identity_domain=contract.identity_domain)


def put_all(store: ObjectStore, files: Mapping[str, bytes]) -> None:
    for name, data in files.items():
        store.put(name, data)


# --- what an edit on disk does ----------------------------------------------------------------------------------------


@pytest.mark.row("LIF-11")
@pytest.mark.parametrize("source", [WIDER, "node Other { x: String }", "this is no schema", "", "\udcff"])
def test_a_source_that_means_something_else_is_refused(graph: og.Graph, store: ObjectStore, source: str) -> None:
    graph.snapshot()
    store.put(SOURCE, source.encode(errors="surrogateescape"))
    assert refused(graph, "no longer matches the accepted compiled schema") == "source_changed"
    store.put(SOURCE, SCHEMA.encode())
    assert graph.snapshot().version == 1, "a handle goes on when the file is right again"


@pytest.mark.row("LIF-12")
@pytest.mark.parametrize("edited", [f"// a comment\n{SCHEMA}", SCHEMA.replace("  ", "\t"), f"\n\n{SCHEMA}\n"])
def test_a_source_that_means_the_same_is_accepted(graph: og.Graph, store: ObjectStore, edited: str) -> None:
    store.put(SOURCE, edited.encode())
    assert graph.snapshot().version == 1
    assert graph.schema() == edited
    assert og.open(graph.uri, "ro").schema() == edited


@pytest.mark.row("LIF-13")
def test_a_corrupt_compiled_schema_is_refused(graph: og.Graph, store: ObjectStore) -> None:
    for data in (b"", b"{", b"[]", b"{}", b"\xff\xfe", store.get(COMPILED)[:-20]):
        store.put(COMPILED, data)
        assert refused(graph, f"the compiled schema {COMPILED} is corrupt") == "compiled_corrupt"


@pytest.mark.row("LIF-13")
def test_both_files_changed_without_the_state_are_refused(graph: og.Graph, store: ObjectStore) -> None:
    ir = accept_schema(compile_schema(WIDER), graph.contract().ir)
    store.put(SOURCE, WIDER.encode())
    store.put(COMPILED, ir.to_json().encode())
    assert refused(graph, f"changed without {STATE}") == "changed_without_state"


@pytest.mark.row("LIF-13")
def test_a_handle_never_follows_another_graph(graph: og.Graph, store: ObjectStore) -> None:
    graph.snapshot()
    state = orjson.loads(store.get(STATE))
    store.put(STATE, orjson.dumps({**state, "identity_domain": new_ulid()}))
    with pytest.raises(SchemaContractError, match="identity domain .* another graph") as raised:
        graph.snapshot()
    assert raised.value.reason == "identity_domain_changed"
    with pytest.raises(SchemaContractError):
        graph.refresh()


@pytest.mark.row("LIF-09")
def test_a_compiled_schema_of_another_life_is_an_identity_mismatch(graph: og.Graph, store: ObjectStore) -> None:
    files = another_life(graph.contract()).files()
    store.put(COMPILED, files[COMPILED])
    assert refused(graph, "identity mismatch.*node:Staff is .*000beef in the schema and") == "identity_mismatch"
    put_all(store, files)  # all three agree, but not with the manifest
    assert refused(graph, "identity mismatch.*node:Staff is .*000beef in the schema and") == "identity_mismatch"


def test_an_identity_mismatch_names_the_types(graph: og.Graph, store: ObjectStore) -> None:
    before = graph.contract()
    source = SCHEMA.replace("node Team {", "node Squad {").replace("-> Team", "-> Squad")
    put_all(store, another_life(before, source).files())
    with pytest.raises(SchemaContractError) as raised:
        og.open(graph.uri)
    assert {"node:Squad", "node:Team", "node:Staff"} <= set(raised.value.types)
    assert "node:Squad is only in the schema" in raised.value.message
    assert "node:Team is only in the manifest" in raised.value.message


@pytest.mark.parametrize("name", FILES)
def test_a_missing_schema_file_is_named(graph: og.Graph, store: ObjectStore, name: str) -> None:
    store.delete(name)
    assert refused(graph, f"schema file {name} is missing; restore it") == "file_missing"


def _without(key: str) -> Callable[[dict[str, Any]], object]:
    return lambda state: {name: value for name, value in state.items() if name != key}


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        pytest.param(lambda state: "{", "state_corrupt", id="not JSON"),
        pytest.param(lambda state: [1], "state_corrupt", id="a list"),
        pytest.param(lambda state: 7, "state_corrupt", id="a number"),
        pytest.param(lambda state: {**state, "format": "one"}, "state_corrupt", id="format is text"),
        pytest.param(lambda state: {**state, "schema_version": "x"}, "state_corrupt", id="version is text"),
        pytest.param(lambda state: {**state, "ir_hash": None}, "state_corrupt", id="no hash"),
        pytest.param(lambda state: {**state, "identity_domain": 3}, "state_corrupt", id="domain is a number"),
        pytest.param(_without("ir_hash"), "state_corrupt", id="without hash"),
        pytest.param(_without("identity_domain"), "state_corrupt", id="without domain"),
        pytest.param(_without("format"), "state_corrupt", id="without format"),
        pytest.param(lambda state: {**state, "format": 2}, "format", id="newer format"),
        pytest.param(lambda state: {**state, "format": 0}, "state_corrupt", id="format 0"),
        pytest.param(lambda state: {**state, "format": -1}, "state_corrupt", id="format -1"),
        pytest.param(lambda state: {**state, "format": True}, "state_corrupt", id="format true"),
        pytest.param(lambda state: {**state, "format": 1.0}, "state_corrupt", id="format 1.0"),
        pytest.param(lambda state: {**state, "schema_version": True}, "state_corrupt", id="version true"),
        pytest.param(lambda state: {**state, "schema_version": 0}, "state_corrupt", id="version 0"),
    ],
)
def test_a_state_file_that_is_not_one_is_refused(
    graph: og.Graph, store: ObjectStore, change: Callable[[dict[str, Any]], object], reason: str
) -> None:
    changed = change(orjson.loads(store.get(STATE)))
    store.put(STATE, changed.encode() if isinstance(changed, str) else orjson.dumps(changed))
    assert refused(graph, STATE) == reason


# --- a legitimate change ----------------------------------------------------------------------------------------------


@pytest.mark.row("LIF-14")
def test_a_handle_adopts_a_compiled_schema_that_was_legitimately_replaced(graph: og.Graph, store: ObjectStore) -> None:
    before = graph.contract()
    replaced = _readd_team(graph)

    graph.refresh()

    adopted = graph.contract()
    assert (adopted.ir, adopted.source) == (replaced.ir, before.source)
    assert adopted.names()[TEAM] != before.names()[TEAM]
    assert graph.snapshot().entry(TEAM).identity == replaced.names()[TEAM]
    assert og.open(graph.uri).contract() == adopted


@pytest.mark.row("LIF-14")
def test_a_reader_adopts_it_without_a_refresh(graph: og.Graph) -> None:
    reader = og.open(graph.uri, "ro")
    reader.snapshot()
    replaced = _readd_team(graph)
    assert reader.snapshot().entry(TEAM).identity == replaced.names()[TEAM]


def _readd_team(graph: og.Graph) -> Contract:
    """What a schema change that drops Team and one that adds it again leave behind."""
    before = graph.contract()
    catalog = before.ir.catalog
    team = replace(catalog.nodes["Team"], id=before.ir.next_type_id, incarnation=0xBEEF)
    nodes = {**catalog.nodes, "Team": team}
    ir = replace(before.ir, catalog=replace(catalog, nodes=nodes), next_type_id=before.ir.next_type_id + 1)
    after = accept(before.source, ir, schema_version=3, identity_domain=before.identity_domain)
    context = connect(graph.uri)
    path = table_path(team)
    create_dataset(context.root, path, table_schema(team))
    old = context.manifest.load().by_key[TEAM]
    fresh = TableEntry(TEAM, path, (team.id, team.incarnation), 1, None, 0)
    publish(context, MAIN, [DropTable(old), SetTable(fresh)], [], lineage())
    put_all(context.store, after.files())
    return after


def test_an_unchanged_schema_is_not_read_again(graph: og.Graph) -> None:
    first = graph.contract()
    assert graph.contract() is first


def test_the_files_are_what_the_format_says(graph: og.Graph, store: ObjectStore) -> None:
    state = orjson.loads(store.get(STATE))
    compiled = store.get(COMPILED)
    assert set(state) == {"format", "schema_version", "ir_hash", "fingerprint", "identity_domain"}
    assert state["ir_hash"] == hashlib.sha256(compiled).hexdigest()
    assert store.get(f"_schemas/{state['ir_hash']}.ir.json") == compiled
    assert store.get(SOURCE) == SCHEMA.encode()
    assert read_contract(store).files() == {name: store.get(name) for name in FILES}
