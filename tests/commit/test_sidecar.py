"""Recovery records: their JSON is a contract with older and newer versions, and what is no record is refused and kept."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest

from omnigraph.commit.sidecar import (
    OF_GROUPS,
    ForkedFrom,
    Kind,
    PlannedCommit,
    PlannedTable,
    Sidecar,
    UnreadableSidecar,
    delete_sidecar,
    discard_sidecar,
    list_sidecars,
    parse_sidecar,
    read_sidecar,
    sidecar_path,
    write_sidecar,
)
from omnigraph.errors import OmnigraphError, StorageError
from omnigraph.storage.faults import FaultyStore, error_before
from omnigraph.storage.objects import ObjectStore, open_store
from omnigraph.storage.root import Root

GOLDEN = Path(__file__).parent / "golden"
OPERATION = "01J00000000000000000000001"
PATH = sidecar_path(OPERATION)

PERSON = PlannedTable(
    table_key="node:Person",
    table_path="nodes/0000000000000001-00000000000000a1",
    table_branch=None,
    expected_version=7,
    post_commit_pin=8,
    transaction_id="01J00000000000000000000003",
)
SPECIFIED = Sidecar(
    operation_id=OPERATION,
    kind=Kind.MUTATION,
    branch="main",
    actor_id="me",
    created_at=1790000000000000,
    commit=PlannedCommit(id="01J00000000000000000000002", created_at=1790000000000001),
    tables=(PERSON,),
)
FULL = Sidecar(
    operation_id=OPERATION,
    kind=Kind.SCHEMA_APPLY,
    branch="feature/one",
    actor_id="me",
    created_at=1790000000000000,
    commit=PlannedCommit(
        id="01J00000000000000000000002",
        created_at=1790000000000001,
        merged_parent="01J00000000000000000000004",
        idempotency_key="once",
        kind="schema",
        request="fingerprint",
        receipt={"rows": 3},
        if_commit="01J00000000000000000000005",
    ),
    tables=(
        PlannedTable(
            table_key="node:Person",
            table_path="nodes/0000000000000001-00000000000000a1",
            table_branch=OPERATION,
            expected_version=7,
            post_commit_pin=8,
            transaction_id="01J00000000000000000000003",
            confirmed_version=9,
            forked_from=ForkedFrom(None, 7),
        ),
        PlannedTable("edge:Knows", "edges/0000000000000002-00000000000000a1", None, None, 1, None),
    ),
    schema_target="5f4dcc3b5aa765d61d8327deb882cf99",
    branch_created_from="main",
    dropped=("nodes/0000000000000003-00000000000000a1",),
    renamed=(("nodes/0000000000000004-00000000000000a1", "node:Human"),),
    purged=("nodes/0000000000000003-00000000000000a1",),
    published=True,
)


@pytest.fixture
def store(tmp_path: Path) -> ObjectStore:
    return open_store(Root.parse(tmp_path))


def golden(name: str) -> bytes:
    return (GOLDEN / name).read_bytes()


# --- the shape --------------------------------------------------------------------------------------------------------


def test_writing_a_full_record() -> None:
    assert FULL.to_json() == golden("sidecar.json").rstrip(b"\n")


@pytest.mark.parametrize(("name", "expected"), [("sidecar.json", FULL), ("sidecar_specified.json", SPECIFIED)])
def test_reading(name: str, expected: Sidecar) -> None:
    """Also a record without the optional additions, in exactly the shape of the specification."""
    assert parse_sidecar(golden(name), PATH) == expected


def test_every_specified_name_is_written() -> None:
    """What the specification names is there under that name, whatever we add."""

    def assert_within(part: Any, whole: Any) -> None:
        if isinstance(part, dict):
            for key, value in part.items():
                assert key in whole
                assert_within(value, whole[key])
        elif isinstance(part, list):
            for mine, theirs in zip(part, whole, strict=True):
                assert_within(mine, theirs)
        else:
            assert part == whole

    assert_within(orjson.loads(golden("sidecar_specified.json")), orjson.loads(SPECIFIED.to_json()))


# --- what is no record ------------------------------------------------------------------------------------------------


def changed(**changes: Any) -> bytes:
    return orjson.dumps({**orjson.loads(golden("sidecar_specified.json")), **changes})


def without(name: str) -> bytes:
    value = orjson.loads(golden("sidecar_specified.json"))
    del value[name]
    return orjson.dumps(value)


def with_table(**changes: Any) -> bytes:
    table = orjson.loads(golden("sidecar_specified.json"))["tables"][0]
    return changed(tables=[{**table, **changes}])


GROUP = {"id": "01J00000000000000000000007", "place": 1, "size": 2}


def with_group(group: object) -> bytes:
    commit = orjson.loads(golden("sidecar_specified.json"))["commit"]
    return changed(commit={**commit, "group": group})


def test_a_record_of_several_commits_is_read_as_it_was_written() -> None:
    touched = {"0000000000000001-00000000000000a1": {"ids": ["a", "b"], "rows": 1}}
    first = PlannedCommit(
        id="01J00000000000000000000006",
        created_at=1790000000000000,
        idempotency_key="one",
        request="asked",
        receipt={"affected_nodes": 1},
        message="why",
        group={**GROUP, "touched": touched},
        actor_id="another",
    )
    last = replace(SPECIFIED.commit, group={**GROUP, "place": 2})
    record = replace(SPECIFIED, schema_version=OF_GROUPS, earlier=(first,), commit=last)
    written = record.to_json()
    assert parse_sidecar(written, PATH) == record
    assert orjson.loads(written)["schema_version"] == 3, "a release that knows only single commits refuses it"
    assert parse_sidecar(written, PATH).commits == (first, last)


UNREADABLE = [
    pytest.param(b"{ not json", "is not valid JSON", id="REC-20-not-json"),
    pytest.param(b"", "is not valid JSON", id="REC-20-empty"),
    pytest.param(b"\xff\xfe{}", "is not valid JSON", id="REC-20-not-utf8"),
    pytest.param(b"[]", "incomplete", id="REC-20-a-list"),
    pytest.param(b"null", "incomplete", id="REC-20-null"),
    pytest.param(b'"text"', "incomplete", id="REC-20-a-text"),
    pytest.param(changed(schema_version=5), "upgrade omnigraph", id="newer-version"),
    pytest.param(changed(schema_version=5, kind="Teleport", tables="?"), "upgrade omnigraph", id="newer-in-all-ways"),
    pytest.param(changed(schema_version="2"), "incomplete", id="version-is-text"),
    pytest.param(changed(earlier={}), "incomplete", id="earlier-is-no-list"),
    pytest.param(changed(earlier=[7]), "incomplete", id="earlier-is-no-commit"),
    pytest.param(changed(earlier=[{"created_at": 1}]), "incomplete", id="earlier-has-no-id"),
    pytest.param(with_group({}), "incomplete", id="group-without-a-place"),
    pytest.param(with_group([]), "incomplete", id="group-is-a-list"),
    pytest.param(with_group({"id": "g", "place": "one", "size": 2}), "incomplete", id="place-is-a-text"),
    pytest.param(with_group({**GROUP, "touched": {"a-b": {"ids": 7, "rows": 1}}}), "incomplete", id="ids-are-a-number"),
    pytest.param(with_group({**GROUP, "touched": {"a-b": ["x"]}}), "incomplete", id="touched-is-a-list"),
    pytest.param(changed(schema_version=0), "incomplete", id="version-zero"),
    pytest.param(without("schema_version"), "incomplete", id="no-version"),
    pytest.param(changed(kind="Teleport"), "incomplete", id="unknown-kind"),
    pytest.param(changed(kind=None), "incomplete", id="no-kind"),
    pytest.param(without("operation_id"), "incomplete", id="no-operation-id"),
    pytest.param(changed(operation_id="01J00000000000000000000009"), "incomplete", id="another-operation"),
    pytest.param(changed(operation_id=7), "incomplete", id="operation-id-is-a-number"),
    pytest.param(changed(branch=7), "incomplete", id="branch-is-a-number"),
    pytest.param(changed(actor_id=7), "incomplete", id="actor-is-a-number"),
    pytest.param(changed(created_at="yesterday"), "incomplete", id="created-at-is-text"),
    pytest.param(changed(commit="01J"), "incomplete", id="commit-is-text"),
    pytest.param(changed(commit={"created_at": 1}), "incomplete", id="commit-without-id"),
    pytest.param(changed(commit={"id": 5, "created_at": 1}), "incomplete", id="commit-id-is-a-number"),
    pytest.param(changed(schema_target=5), "incomplete", id="schema-target-is-a-number"),
    pytest.param(without("tables"), "incomplete", id="no-tables"),
    pytest.param(changed(tables={}), "incomplete", id="tables-is-an-object"),
    pytest.param(changed(tables=[5]), "incomplete", id="table-is-a-number"),
    pytest.param(with_table(table_key=None), "incomplete", id="no-table-key"),
    pytest.param(with_table(table_path=None), "incomplete", id="no-table-path"),
    pytest.param(with_table(table_path="nodes/../../etc"), "incomplete", id="path-leaves-the-graph"),
    pytest.param(with_table(table_path="nodes"), "incomplete", id="path-is-a-folder-of-tables"),
    pytest.param(with_table(table_path="__manifest"), "incomplete", id="path-is-the-manifest"),
    pytest.param(with_table(expected_version="7"), "incomplete", id="expected-version-is-text"),
    pytest.param(with_table(expected_version=-1), "incomplete", id="expected-version-is-negative"),
    pytest.param(with_table(post_commit_pin="8"), "incomplete", id="plan-is-text"),
    pytest.param(with_table(confirmed_version=True), "incomplete", id="confirmed-version-is-true"),
    pytest.param(with_table(transaction_id=5), "incomplete", id="transaction-id-is-a-number"),
    pytest.param(with_table(table_branch=5), "incomplete", id="table-branch-is-a-number"),
    pytest.param(with_table(forked_from="main"), "incomplete", id="forked-from-is-text"),
    pytest.param(with_table(forked_from={"branch": None}), "incomplete", id="forked-from-without-version"),
    pytest.param(changed(dropped=["__manifest"]), "incomplete", id="drops-the-manifest"),
    pytest.param(changed(renamed=[["nodes/0000000000000001-00000000000000a1"]]), "incomplete", id="renamed-to-nothing"),
    pytest.param(changed(renamed=[5]), "incomplete", id="renamed-is-a-number"),
    pytest.param(changed(published="yes"), "incomplete", id="published-is-text"),
]


@pytest.mark.parametrize(("data", "reason"), UNREADABLE)
def test_unreadable(data: bytes, reason: str) -> None:
    with pytest.raises(UnreadableSidecar, match=reason) as caught:
        parse_sidecar(data, PATH)
    assert PATH in str(caught.value)
    assert caught.value.path == PATH
    way_out = f"omnigraph recovery discard {OPERATION} --confirm"
    assert (way_out in str(caught.value)) != ("upgrade" in str(caught.value)), "what to do is not said"


# --- the folder -------------------------------------------------------------------------------------------------------


def test_a_record_lives_from_a_to_d(store: ObjectStore) -> None:
    write_sidecar(store, FULL)
    assert list_sidecars(store) == [OPERATION]
    assert read_sidecar(store, OPERATION) == FULL
    assert delete_sidecar(store, OPERATION)
    assert list_sidecars(store) == []
    assert read_sidecar(store, OPERATION) is None


def test_oldest_first_and_nothing_else(store: ObjectStore) -> None:
    for name in ("01J2.json", "01J1.json", "01J3.json", "notes.txt", "discarded/01J0.json", "torn/x.json"):
        store.put(f"__recovery/{name}", b"{}")
    assert list_sidecars(store) == ["01J1", "01J2", "01J3"]


def test_a_failed_delete_is_only_a_warning(store: ObjectStore, caplog: pytest.LogCaptureFixture) -> None:
    write_sidecar(store, FULL)
    faulty = FaultyStore(store, [error_before("delete", "__recovery/*")])
    assert not delete_sidecar(faulty, OPERATION)
    assert OPERATION in caplog.text
    assert list_sidecars(store) == [OPERATION]


@pytest.mark.parametrize("call", [list_sidecars, lambda store: read_sidecar(store, OPERATION)], ids=["list", "read"])
def test_a_failed_look_is_never_an_empty_answer(store: ObjectStore, call: Any) -> None:
    faulty = FaultyStore(store, [error_before("*", "__recovery*")])
    with pytest.raises(StorageError):
        call(faulty)


# --- confirming -------------------------------------------------------------------------------------------------------


def test_confirming_says_what_every_table_reached() -> None:
    reached = {table.table_path: 11 + number for number, table in enumerate(FULL.tables)}
    assert [table.confirmed_version for table in FULL.confirmed(reached).tables] == [11, 12]


def test_confirming_is_loud_about_a_table_that_reached_nothing() -> None:
    with pytest.raises(StorageError, match="edge:Knows"):
        FULL.confirmed({FULL.tables[0].table_path: 11})


# --- the operator's way out -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("data", [golden("sidecar.json"), b"{ not json"], ids=["readable", "unreadable"])
def test_discarding_moves_aside(store: ObjectStore, data: bytes) -> None:
    store.put(PATH, data)
    aside = discard_sidecar(store, OPERATION)
    assert store.get(aside) == data
    assert list_sidecars(store) == []


@pytest.mark.parametrize("operation_id", ["", "unknown", "discarded/01J0", "../_schema"])
def test_discarding_what_is_not_there(store: ObjectStore, operation_id: str) -> None:
    store.put("__recovery/discarded/01J0.json", b"{}")
    with pytest.raises(OmnigraphError, match="operation"):
        discard_sidecar(store, operation_id)
    assert store.get("__recovery/discarded/01J0.json") == b"{}"
