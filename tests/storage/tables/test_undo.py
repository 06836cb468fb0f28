"""Undo: the content of the pin comes back on the head, with row ids and indexes, and nobody else's commit is lost."""

from __future__ import annotations

from collections.abc import Callable

import lance
import pyarrow as pa
import pytest

from omnigraph.errors import ExpectedVersionMismatch
from omnigraph.storage.tables.commit import fork, undo
from omnigraph.storage.tables.handles import Tables
from omnigraph.storage.tables.inverse import Inversion, Restoration, Unchanged, inverse_of
from omnigraph.storage.tables.lance_errors import Missing
from omnigraph.storage.tables.location import Location
from omnigraph.storage.tables.staged import (
    stage_append,
    stage_compaction,
    stage_create,
    stage_delete,
    stage_index,
    stage_overwrite,
)
from omnigraph.storage.tables.table import Table
from tests.storage.tables.people import (
    DERIVED,
    HOME,
    SCHEMA,
    SEEDED,
    WRITES,
    commit,
    foreign_append,
    head,
    looked_up,
    people,
    rows,
    rows_with_ids,
    seed,
)
from tests.storage.tables.test_commit import FOREIGN, lose_the_answer, once
from tests.storage.tables.upserts import stage_upsert


def assert_is_the_pin(table: Table, pin: Table) -> None:
    """Same rows with the same row ids and metadata, found by scans and by index lookups."""
    assert rows_with_ids(table) == rows_with_ids(pin)
    ids = [f"p{number}" for number in (*range(12), 20, 21, 50)]
    assert looked_up(table, *ids) == looked_up(pin, *ids)
    assert table.schema.equals(pin.schema, check_metadata=True)
    assert [index.name for index in table.indices()] == [index.name for index in pin.indices()]


@pytest.mark.parametrize("line", ["main line", "fork"])
@pytest.mark.parametrize("kind", WRITES)
def test_undo_of_a_write(backend: Tables, kind: str, line: str) -> None:
    pin = seed(backend)
    if line == "fork":
        pin = head(backend, fork(backend, HOME, pin.version, "01FORK"))
    effect = commit(backend, WRITES[kind][0](pin))
    version = undo(backend, pin.location, pin=pin.version)
    assert version == effect.version + 1 == backend.head_version(pin.location)
    assert_is_the_pin(head(backend, pin.location), pin)


@pytest.mark.parametrize("kind", WRITES)
def test_undo_twice_is_undo_once(tables: Tables, kind: str) -> None:
    pin = seed(tables)
    commit(tables, WRITES[kind][0](pin))
    version = undo(tables, HOME, pin=pin.version)
    assert undo(tables, HOME, pin=pin.version) == version == tables.head_version(HOME)


@pytest.mark.parametrize("kind", DERIVED)
def test_undo_of_derived_state_has_nothing_to_do(tables: Tables, kind: str) -> None:
    seed(tables)
    pin = commit(tables, stage_append(head(tables), people([30])))
    effect = commit(tables, DERIVED[kind](pin))
    assert undo(tables, HOME, pin=pin.version) == effect.version
    assert rows_with_ids(head(tables)) == rows_with_ids(pin)


def test_undo_at_the_pin_has_nothing_to_do(tables: Tables) -> None:
    pin = seed(tables)
    assert undo(tables, HOME, pin=pin.version) == pin.version


def test_undo_of_several_effects(backend: Tables) -> None:
    pin = seed(backend)
    commit(backend, stage_upsert(pin, people([2, 20], "new")))
    commit(backend, stage_delete(head(backend), ids=pa.array(["p8", "p20"])))
    commit(backend, stage_compaction(head(backend), target_rows_per_fragment=100))
    commit(backend, stage_append(head(backend), people([21], "new")))
    undo(backend, HOME, pin=pin.version)
    assert_is_the_pin(head(backend), pin)


@pytest.mark.parametrize("kind", WRITES)
def test_a_table_can_be_written_after_an_undo(tables: Tables, kind: str) -> None:
    pin = seed(tables)
    commit(tables, WRITES[kind][0](pin))
    undo(tables, HOME, pin=pin.version)
    after = commit(tables, stage_upsert(head(tables), people([2, 20], "again")))
    expected = sorted([*(row for row in SEEDED if row[0] != "p2"), ("p2", "again"), ("p20", "again")])
    assert rows(after) == expected
    assert looked_up(after, "p2", "p20") == [("p2", "again"), ("p20", "again")]
    compacted = commit(tables, stage_compaction(after, target_rows_per_fragment=100))
    indexed = commit(tables, stage_index(compacted, "id", "BTREE", "id_idx"))
    assert rows(indexed) == expected
    assert looked_up(indexed, "p2", "p20", "p1") == [("p2", "again"), ("p20", "again")]


def test_row_ids_are_not_handed_out_again(tables: Tables) -> None:
    pin = seed(tables)
    taken = {row_id for _, _, row_id in rows_with_ids(commit(tables, stage_append(pin, people([20]))))}
    undo(tables, HOME, pin=pin.version)
    fresh = [row for row in rows_with_ids(commit(tables, stage_append(head(tables), people([21])))) if row[0] == "p21"]
    assert fresh[0][2] not in taken


# --- others commit at the same time -----------------------------------------------------------------------------------

RESTORED = {"upsert of every row", "delete of fragment 0", "delete of everything", "overwrite", "overwrite to nothing"}


@pytest.mark.parametrize("kind", WRITES)
def test_a_commit_during_an_undo_is_kept_and_reported(tables: Tables, kind: str) -> None:
    """The effect is gone or still there, the foreign rows are never lost, and the caller classifies again."""
    pin = seed(tables)
    effect = commit(tables, WRITES[kind][0](pin))
    with (
        once("undo.before_commit", lambda: foreign_append(tables)),
        pytest.raises(ExpectedVersionMismatch) as caught,
    ):
        undo(tables, HOME, pin=pin.version)
    assert caught.value.expected == effect.version
    left = WRITES[kind][1] if kind in RESTORED else SEEDED
    assert rows(head(tables)) == sorted([*left, FOREIGN])
    assert looked_up(head(tables), "p90") == [FOREIGN]


@pytest.mark.parametrize("kind", sorted(RESTORED))
def test_a_commit_that_a_restore_wiped_out_is_brought_back(tables: Tables, kind: str) -> None:
    """The foreign commit comes between the last look at the head and the restore."""
    pin = seed(tables)
    commit(tables, WRITES[kind][0](pin))
    with (
        once("undo.before_restore", lambda: foreign_append(tables)),
        pytest.raises(ExpectedVersionMismatch),
    ):
        undo(tables, HOME, pin=pin.version)
    assert rows(head(tables)) == sorted([*WRITES[kind][1], FOREIGN])


def test_the_effect_in_the_middle_is_taken_back_alone(tables: Tables) -> None:
    pin = seed(tables)
    effect = commit(tables, stage_upsert(pin, people([2, 20], "new")))
    foreign_append(tables)
    undo(tables, HOME, pin=pin.version, effect=effect.version)
    assert rows(head(tables)) == sorted([*SEEDED, FOREIGN])


FOREIGN_CHANGES: dict[str, Callable[[lance.LanceDataset], object]] = {
    "delete in a changed fragment": lambda dataset: dataset.delete("id = 'p0'"),
    "delete of the effect's rows": lambda dataset: dataset.delete("id = 'p20'"),
    "compaction": lambda dataset: dataset.optimize.compact_files(),
    "overwrite": lambda dataset: lance.write_dataset(people([7]), dataset.uri, mode="overwrite"),
}


@pytest.mark.parametrize("change", FOREIGN_CHANGES)
def test_a_foreign_change_of_the_same_fragments_is_a_conflict(tables: Tables, change: str) -> None:
    pin = seed(tables)
    commit(tables, stage_upsert(pin, people([2, 20], "new")))
    uri = tables.root.lance_uri(HOME.path)
    with (
        once("undo.before_commit", lambda: FOREIGN_CHANGES[change](lance.dataset(uri))),
        pytest.raises(ExpectedVersionMismatch),
    ):
        undo(tables, HOME, pin=pin.version)
    # Classifying again starts from the new head.
    undo(tables, HOME, pin=pin.version)
    assert_is_the_pin(head(tables), pin)


def test_a_lost_answer_of_an_undo_is_looked_up(tables: Tables) -> None:
    pin = seed(tables)
    effect = commit(tables, stage_append(pin, people([20])))
    with once("table_commit.lost_acknowledgement", lose_the_answer):
        assert undo(tables, HOME, pin=pin.version) == effect.version + 1
    assert_is_the_pin(head(tables), pin)


def test_undo_of_a_table_that_does_not_exist(tables: Tables) -> None:
    with pytest.raises(Missing):
        undo(tables, HOME, pin=1)


def test_undo_to_a_version_above_the_head(tables: Tables) -> None:
    pin = seed(tables)
    with pytest.raises(ExpectedVersionMismatch):
        undo(tables, HOME, pin=pin.version + 5)


# --- which way back ---------------------------------------------------------------------------------------------------

WAYS: dict[str, type] = {
    "append": Inversion,
    "upsert": Inversion,
    "replace": Inversion,
    "replace of a whole fragment": Inversion,
    "delete by ids": Inversion,
    "delete of fragment 2": Inversion,
    **dict.fromkeys(sorted(RESTORED), Restoration),
}


@pytest.mark.parametrize("kind", WAYS)
def test_restore_is_used_only_where_there_is_no_inverse(tables: Tables, kind: str) -> None:
    pin = seed(tables)
    effect = commit(tables, WRITES[kind][0](pin))
    assert isinstance(inverse_of(pin.dataset, effect.dataset), WAYS[kind])


def test_compaction_is_no_change(tables: Tables) -> None:
    pin = seed(tables)
    after = commit(tables, stage_compaction(pin, target_rows_per_fragment=100))
    assert inverse_of(pin.dataset, after.dataset) == Unchanged()


def test_an_unmarked_fragment_0_comes_back_without_a_restore(tables: Tables) -> None:
    location = Location("nodes/plain")
    commit(tables, stage_create(tables, location, SCHEMA, people(range(4))))
    pin = commit(tables, stage_append(head(tables, location), people(range(4, 8))))
    effect = commit(tables, stage_delete(pin, filter="true"))
    assert isinstance(inverse_of(pin.dataset, effect.dataset), Inversion)
    undo(tables, location, pin=pin.version)
    assert rows_with_ids(head(tables, location)) == rows_with_ids(pin)


def test_lost_indexes_are_restored(tables: Tables) -> None:
    location = Location("nodes/plain")
    commit(tables, stage_create(tables, location, SCHEMA, people(range(4))))
    pin = commit(tables, stage_index(head(tables, location), "id", "BTREE", "id_idx"))
    effect = commit(tables, stage_overwrite(pin, people([0], "new")))
    assert effect.indices() == ()
    undo(tables, location, pin=pin.version)
    assert_is_the_pin(head(tables, location), pin)


def test_a_changed_schema_is_restored(tables: Tables) -> None:
    pin = seed(tables)
    schema = SCHEMA.with_metadata({"omnigraph:stamp": "5"})
    effect = commit(tables, stage_overwrite(pin, people(range(3)).replace_schema_metadata(schema.metadata), schema))
    assert effect.schema.metadata == {b"omnigraph:stamp": b"5"}
    undo(tables, HOME, pin=pin.version)
    assert_is_the_pin(head(tables), pin)
