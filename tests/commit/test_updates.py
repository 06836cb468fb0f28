"""A publish as data: what must still hold, what becomes true, and the rows that say so, all without a store."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pytest

from omnigraph.commit import rows
from omnigraph.commit.format import CURRENT
from omnigraph.commit.model import Commit, Lineage, ManifestState, TableEntry
from omnigraph.commit.updates import (
    DropTable,
    FenceIs,
    HeadIs,
    ImportCommits,
    RecordReceipt,
    Requirement,
    SchemaIs,
    SetSchema,
    SetTable,
    SetTag,
    Update,
    apply_updates,
    check,
    created,
    read,
    written,
)
from omnigraph.errors import Conflict, ExpectedVersionMismatch, PreconditionFailed, ReadSetChanged, SchemaChanged

GOLDEN = Path(__file__).parent / "golden"

STAFF = TableEntry("node:Staff", "nodes/0000000000000001-00000000000000a1", (1, 0xA1), 7, None, 4)
TEAM = TableEntry("node:Team", "nodes/0000000000000002-00000000000000a1", (2, 0xA1), 3, "01J0FORK", 2)
OFFICE = TableEntry("node:Office", "nodes/0000000000000003-00000000000000b2", (3, 0xB2), 1, None, 0)
HEAD = "01J00000000000000000000001"
LINEAGE = Lineage("01J00000000000000000000002", 1790000000000000, "mutation", actor="me")
STATE = ManifestState(
    branch="main",
    version=12,
    commit_version=12,
    incarnation="",
    stamp=CURRENT,
    fence=5,
    head=HEAD,
    tables={STAFF.identity: STAFF, TEAM.identity: TEAM},
    tags={"v1": HEAD},
    schema_hash="aa",
)


# --- requirements -----------------------------------------------------------------------------------------------------

HOLDING = [
    pytest.param(written(STAFF), id="written"),
    pytest.param(written(TEAM), id="written-on-a-fork"),
    pytest.param(read(STAFF), id="read"),
    pytest.param(created(OFFICE.key, OFFICE.identity), id="created"),
    pytest.param(HeadIs(HEAD), id="head"),
    pytest.param(SchemaIs("aa"), id="schema"),
    pytest.param(FenceIs(5), id="nothing-published"),
    pytest.param(written(replace(STAFF, key="node:Person")), id="written-under-an-old-name"),
]

BROKEN = [
    pytest.param(written(replace(STAFF, version=6)), ExpectedVersionMismatch, id="written-and-moved"),
    pytest.param(written(replace(STAFF, version=8)), ExpectedVersionMismatch, id="written-and-older"),
    pytest.param(written(replace(TEAM, branch=None)), ExpectedVersionMismatch, id="written-and-forked-meanwhile"),
    pytest.param(written(OFFICE), ExpectedVersionMismatch, id="written-and-dropped"),
    pytest.param(written(replace(STAFF, identity=(1, 0xB2))), ExpectedVersionMismatch, id="written-in-another-life"),
    pytest.param(created(STAFF.key, STAFF.identity), ExpectedVersionMismatch, id="created-and-there"),
    pytest.param(read(replace(STAFF, version=6)), ReadSetChanged, id="read-and-moved"),
    pytest.param(read(replace(TEAM, branch=None)), ReadSetChanged, id="read-and-forked-meanwhile"),
    pytest.param(read(OFFICE), ReadSetChanged, id="read-and-dropped"),
    pytest.param(HeadIs("01J00000000000000000000009"), PreconditionFailed, id="another-head"),
    pytest.param(SchemaIs("bb"), SchemaChanged, id="another-schema"),
    pytest.param(SchemaIs(None), SchemaChanged, id="a-first-schema-change"),
    pytest.param(FenceIs(4), Conflict, id="something-published"),
]


@pytest.mark.parametrize("requirement", HOLDING)
def test_holds(requirement: Requirement) -> None:
    check([requirement], STATE)


@pytest.mark.parametrize(("requirement", "error"), BROKEN)
def test_broken(requirement: Requirement, error: type[Conflict]) -> None:
    with pytest.raises(error):
        check([requirement], STATE)


def test_one_broken_requirement_is_enough() -> None:
    with pytest.raises(ReadSetChanged) as caught:
        check([HeadIs(HEAD), written(STAFF), read(replace(TEAM, version=2)), written(TEAM)], STATE)
    assert caught.value.table_key == "node:Team"


def test_conflicts_carry_what_the_caller_needs() -> None:
    with pytest.raises(ExpectedVersionMismatch) as version:
        check([written(replace(STAFF, version=6))], STATE)
    assert (version.value.table_key, version.value.expected, version.value.actual) == ("node:Staff", 6, 7)
    with pytest.raises(PreconditionFailed) as head:
        check([HeadIs("01J00000000000000000000009")], STATE)
    assert (head.value.branch, head.value.expected, head.value.actual) == ("main", "01J00000000000000000000009", HEAD)


# --- updates ----------------------------------------------------------------------------------------------------------

IMPORTED = Commit(
    id="01J00000000000000000000003",
    branch="feature",
    parent=HEAD,
    merged_parent=None,
    actor=None,
    created_at=1780000000000000,
    manifest_version=9,
    kind="load",
)


def ids_written(*updates: Update) -> list[str]:
    """The object ids a publish writes, without the three it always writes."""
    written_ids = [row["object_id"] for row in apply_updates(STATE, updates, LINEAGE).rows]
    assert written_ids[-3:] == [LINEAGE.id, "graph_head:main", "fence"]
    return written_ids[:-3]


WRITES = [
    pytest.param([], [], id="nothing"),
    pytest.param([SetTable(replace(STAFF, version=8))], ["version:0000000000000001-00000000000000a1"], id="moved"),
    pytest.param(
        [SetTable(replace(STAFF, key="node:Person"))],
        ["table:0000000000000001-00000000000000a1", "version:0000000000000001-00000000000000a1"],
        id="renamed",
    ),
    pytest.param(
        [SetTable(OFFICE)],
        ["table:0000000000000003-00000000000000b2", "version:0000000000000003-00000000000000b2"],
        id="new",
    ),
    pytest.param([DropTable(TEAM)], ["tombstone:0000000000000002-00000000000000a1"], id="dropped"),
    pytest.param([SetTag("v2", HEAD)], ["tag:v2"], id="tagged"),
    pytest.param([RecordReceipt("once", "asked", {})], [rows.idempotency_object_id("once")], id="receipt"),
    pytest.param([ImportCommits((IMPORTED,))], [IMPORTED.id], id="imported"),
]


@pytest.mark.parametrize(("updates", "expected"), WRITES)
def test_rows_written(updates: list[Update], expected: list[str]) -> None:
    assert ids_written(*updates) == expected


def test_state_after() -> None:
    moved = replace(STAFF, version=8, row_count=5)
    after = apply_updates(
        STATE, [SetTable(moved), SetTable(OFFICE), DropTable(TEAM), SetTag("v2", HEAD)], LINEAGE
    ).state
    assert after.tables == {STAFF.identity: moved, OFFICE.identity: OFFICE}
    assert after.tags == {"v1": HEAD, "v2": HEAD}
    assert (after.head, after.fence) == (LINEAGE.id, STATE.fence + 1)


def test_the_state_before_is_not_touched() -> None:
    before = replace(STATE, tables=dict(STATE.tables), tags=dict(STATE.tags))
    apply_updates(STATE, [SetTable(OFFICE), DropTable(TEAM), SetTag("v2", HEAD)], LINEAGE)
    assert before == STATE


def test_what_is_written_reads_back_as_the_state_after() -> None:
    """The state a publish leads to without reading is the one that a scan of its rows would give."""
    publication = apply_updates(STATE, [SetTable(replace(STAFF, version=8)), DropTable(TEAM)], LINEAGE)
    base = [row for entry in STATE.tables.values() for row in (rows.table_row(entry), rows.version_row(entry))]
    image = {row["object_id"]: row for row in [*base, rows.tag_row("v1", HEAD), *publication.rows]}
    table = rows.to_arrow(row for row in image.values() if row["object_type"] in rows.STATE_TYPES)
    addressed = table.append_column("_rowaddr", pa.array(range(table.num_rows), pa.uint64()))
    addressed = addressed.append_column("_row_created_at_version", pa.array([12] * table.num_rows, pa.uint64()))
    decoded = rows.decode_state(
        addressed, branch="main", version=STATE.version, incarnation="", stamp=CURRENT, fragment_count=1
    )
    assert replace(decoded, addresses={}) == publication.state


# --- golden rows ------------------------------------------------------------------------------------------------------


def golden_rows() -> list[dict[str, Any]]:
    """One row of every object type, as `__manifest` holds it."""
    undo = replace(LINEAGE, kind="recovery", actor="omnigraph:recovery", recovery_for_actor="me", recovers="01J0OP")
    written_rows = [
        rows.table_row(STAFF),
        rows.version_row(STAFF),
        rows.version_row(TEAM),
        rows.tombstone_row(TEAM),
        rows.commit_row(LINEAGE, branch="main", parent=HEAD),
        rows.commit_row(undo, branch="main", parent=HEAD),
        rows.copied_commit_row(IMPORTED),
        rows.head_row("feature/one", LINEAGE.id),
        rows.fence_row(6, LINEAGE.id, "aa"),
        rows.tag_row("v1", HEAD),
        rows.idempotency_row("once", commit_id=LINEAGE.id, request="asked", receipt={"rows": 3}),
    ]
    listed: list[dict[str, Any]] = rows.to_arrow(written_rows).to_pylist()
    return listed


def test_rows_are_pinned() -> None:
    assert golden_rows() == orjson.loads((GOLDEN / "manifest_rows.json").read_bytes())


def test_every_object_type_is_pinned() -> None:
    types = {row["object_type"] for row in golden_rows()}
    assert types == {*rows.STATE_TYPES, rows.GRAPH_COMMIT, rows.IDEMPOTENCY}


def test_an_accepted_schema_is_in_the_fence_row_and_stays_there() -> None:
    changed = apply_updates(STATE, [SetSchema("bb")], LINEAGE)
    assert changed.state.schema_hash == "bb"
    assert changed.rows[-1] == rows.fence_row(6, LINEAGE.id, "bb")
    later = apply_updates(changed.state, [], replace(LINEAGE, id="01J00000000000000000000003"))
    assert later.state.schema_hash == "bb"
    assert "bb" in later.rows[-1]["metadata"]


def test_a_graph_that_does_not_name_its_schema_goes_on_so() -> None:
    unnamed = apply_updates(replace(STATE, schema_hash=None), [], LINEAGE)
    assert unnamed.state.schema_hash is None
    assert unnamed.rows[-1] == rows.fence_row(6, LINEAGE.id)
