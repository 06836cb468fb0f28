"""Every kind of staged write: nothing moves until it is committed, then the table holds what was meant."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from lance import LanceOperation
from lance.fragment import write_fragments

from omnigraph.errors import AlreadyExists, BadRequest
from omnigraph.storage.tables.commit import commit_staged
from omnigraph.storage.tables.handles import Tables
from omnigraph.storage.tables.incoming import Data
from omnigraph.storage.tables.location import Location
from omnigraph.storage.tables.staged import (
    Staged,
    Stats,
    compaction_tasks,
    stage_append,
    stage_compaction,
    stage_create,
    stage_delete,
    stage_fragments,
    stage_index_fold,
    stage_overwrite,
    stage_replace,
    stage_rewrites,
)
from omnigraph.storage.tables.table import Table
from tests.storage.tables.people import (
    DERIVED,
    HOME,
    SCHEMA,
    SEEDED,
    WRITES,
    addresses_of,
    commit,
    head,
    looked_up,
    people,
    rows,
    rows_with_ids,
    seed,
)
from tests.storage.tables.upserts import stage_upsert


@pytest.mark.parametrize("kind", WRITES)
def test_a_write_moves_nothing_until_it_is_committed(backend: Tables, kind: str) -> None:
    table = seed(backend)
    stage, expected = WRITES[kind]
    staged = stage(table)
    assert backend.head_version(HOME) == table.version
    assert rows(head(backend)) == SEEDED

    version = commit_staged(backend, staged, expected_version=table.version, transaction_id="tx-1")
    assert version == table.version + 1 == backend.head_version(HOME)
    assert backend.created_by(HOME, version) == "tx-1"
    assert rows(head(backend)) == expected
    assert looked_up(head(backend), "p0", "p2", "p20", "p9") == [
        row for row in expected if row[0] in {"p0", "p2", "p9", "p20"}
    ]
    assert rows(backend.open(HOME, table.version)) == SEEDED


@pytest.mark.parametrize("kind", DERIVED)
def test_derived_state_leaves_the_rows(backend: Tables, kind: str) -> None:
    seed(backend)
    table = commit(backend, stage_append(head(backend), people([30], "new")), "before")
    before = rows_with_ids(table)
    staged = DERIVED[kind](table)
    assert staged is not None
    assert backend.head_version(HOME) == table.version
    after = commit(backend, staged)
    assert after.version > table.version
    assert rows_with_ids(after) == before
    assert looked_up(after, "p30", "p1", "p11") == [("p30", "new"), ("p11", "old")]


@pytest.mark.parametrize(
    ("kind", "stats"),
    [
        ("append", Stats(inserted=2)),
        ("upsert", Stats(inserted=1, updated=2)),
        ("replace", Stats(inserted=1, updated=2)),
        ("delete by ids", Stats(deleted=2)),
        ("delete of fragment 0", Stats(deleted=3)),
        ("delete of everything", Stats(deleted=10)),
        ("overwrite", Stats(inserted=2, deleted=10)),
    ],
)
def test_stats(tables: Tables, kind: str, stats: Stats) -> None:
    assert WRITES[kind][0](seed(tables)).stats == stats


def test_rows_removed_without_a_successor_count_as_deleted(tables: Tables) -> None:
    table = seed(tables)
    staged = stage_replace(table, people([2], "new"), addresses_of(table, "p2", "p3"))
    assert staged.stats == Stats(inserted=0, updated=1, deleted=1)


def test_an_upsert_keeps_the_row_id(tables: Tables) -> None:
    table = seed(tables)
    ids = {id_: row_id for id_, _, row_id in rows_with_ids(table)}
    after = commit(tables, stage_upsert(table, people([2, 20], "new")))
    assert {id_: row_id for id_, _, row_id in rows_with_ids(after)}["p2"] == ids["p2"]


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(people([20, 21]), id="table"),
        pytest.param(people([20, 21]).to_reader(), id="reader"),
        pytest.param(people([20, 21]).to_batches(max_chunksize=1), id="batches"),
        pytest.param(iter(people([20, 21]).to_batches(max_chunksize=1)), id="iterator"),
    ],
)
def test_forms_of_data(tables: Tables, data: pa.Table) -> None:
    after = commit(tables, stage_append(seed(tables), data))
    assert [id_ for id_, _ in rows(after) if id_ in ("p20", "p21")] == ["p20", "p21"]


@pytest.mark.parametrize("stage", [stage_append, stage_overwrite])
def test_no_rows(tables: Tables, stage: Callable[[Table, Data], Staged]) -> None:
    table = seed(tables)
    staged = stage(table, [])
    assert staged.stats.inserted == 0
    assert rows(commit(tables, staged)) == ([] if stage is stage_overwrite else SEEDED)


def test_columns_may_come_in_another_order(tables: Tables) -> None:
    after = commit(tables, stage_append(seed(tables), people([20], "new").select(["name", "id"])))
    assert looked_up(after, "p20") == [("p20", "new")]


REFUSED = {
    "unknown column": (people([20]).append_column("age", pa.array([1])), "unknown age"),
    "missing column": (people([20]).select(["id"]), "missing name"),
    "another type": (people([20]).set_column(1, "name", pa.array([7])), "is string, but the rows have int64"),
    "null where required": (
        pa.table({"id": pa.array([None], pa.string()), "name": ["x"]}),
        "column 'id' of .* is required, but a row has null",
    ),
}


@pytest.mark.parametrize("stage", [stage_append, stage_overwrite])
@pytest.mark.parametrize("case", REFUSED)
def test_rows_that_do_not_fit_are_refused(tables: Tables, stage: Callable[[Table, Data], Staged], case: str) -> None:
    table = seed(tables)
    data, message = REFUSED[case]
    with pytest.raises(BadRequest, match=message):
        stage(table, data)
    assert tables.head_version(HOME) == table.version


@pytest.mark.parametrize("stage", [stage_append, stage_overwrite])
def test_an_error_of_the_source_comes_out_as_it_was_raised(
    tables: Tables, stage: Callable[[Table, Data], Staged]
) -> None:
    class Broken(Exception):
        pass

    def source() -> Iterator[pa.RecordBatch]:
        yield from people([20]).to_batches()
        raise Broken("the file ends here")

    with pytest.raises(Broken, match="the file ends here"):
        stage(seed(tables), source())


def test_a_created_table_has_stable_row_ids_and_the_fixed_format(backend: Tables) -> None:
    table = seed(backend)
    assert table.dataset.has_stable_row_ids
    assert table.dataset.data_storage_version == "2.2"
    assert table.schema.metadata == {b"omnigraph:stamp": b"4"}
    assert table.schema.field("id").metadata == {b"omnigraph:property": b"1"}


def test_a_table_is_created_without_rows(backend: Tables) -> None:
    staged = stage_create(backend, HOME, SCHEMA)
    assert backend.head_version(HOME) is None
    assert commit_staged(backend, staged, expected_version=None, transaction_id="tx") == 1
    assert backend.created_by(HOME, 1) == "tx"
    assert rows(head(backend)) == []
    assert rows(commit(backend, stage_upsert(head(backend), people([1])))) == [("p1", "old")]


def test_a_table_is_not_created_on_a_branch(tables: Tables) -> None:
    with pytest.raises(BadRequest, match="main line"):
        stage_create(tables, Location(HOME.path, "b"), SCHEMA)


def test_staging_a_create_over_a_table(tables: Tables) -> None:
    seed(tables)
    with pytest.raises(AlreadyExists):
        stage_create(tables, HOME, SCHEMA, people([1]))


def test_overwrite_with_another_schema(tables: Tables) -> None:
    table = seed(tables)
    schema = pa.schema([*SCHEMA, pa.field("age", pa.int32())], SCHEMA.metadata)
    data = pa.table({"id": ["x"], "name": ["n"], "age": pa.array([3], pa.int32())}, schema=schema)
    after = commit(tables, stage_overwrite(table, data, schema))
    assert after.schema.equals(schema, check_metadata=True)
    assert after.read().to_pylist() == [{"id": "x", "name": "n", "age": 3}]


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"filter": "true", "ids": pa.array(["p1"])},
        {"ids": pa.array(["p1"]), "row_addresses": pa.array([1], pa.uint64())},
    ],
    ids=["none", "two", "another two"],
)
def test_delete_needs_exactly_one_selection(tables: Tables, arguments: dict[str, object]) -> None:
    with pytest.raises(BadRequest, match="exactly one"):
        stage_delete(seed(tables), **arguments)


def test_delete_takes_an_arrow_filter(tables: Tables) -> None:
    after = commit(tables, stage_delete(seed(tables), filter=pc.field("id") != "p3"))
    assert rows(after) == [("p3", "old")]


def test_delete_of_nothing(tables: Tables) -> None:
    staged = stage_delete(seed(tables), filter="id = 'nobody'")
    assert staged.stats == Stats()
    assert rows(commit(tables, staged)) == SEEDED


def test_rows_that_are_gone_already_are_not_counted(tables: Tables) -> None:
    table = seed(tables)
    # Row 1 of fragment 0 is deleted in the seed.
    staged = stage_delete(table, row_addresses=pa.array([1, 2], pa.uint64()))
    assert staged.stats == Stats(deleted=1)


def test_a_fragment_without_a_new_mark_is_left_alone(tables: Tables) -> None:
    staged = stage_delete(seed(tables), row_addresses=pa.array([1], pa.uint64()))
    operation = staged.transaction.operation
    assert isinstance(operation, LanceOperation.Delete)
    assert list(operation.updated_fragments) == []


def test_an_address_in_no_fragment_is_refused(tables: Tables) -> None:
    with pytest.raises(BadRequest, match="no fragment 9"):
        stage_delete(seed(tables), row_addresses=pa.array([9 << 32], pa.uint64()))


def test_fragments_written_elsewhere(tables: Tables) -> None:
    table = seed(tables)
    # What crosses process borders is pickled.
    written = pickle.loads(pickle.dumps(write_fragments(people([2, 30], "new"), table.dataset.uri, mode="append")))
    after = commit(tables, stage_fragments(table, written, removed=addresses_of(table, "p2")))
    assert looked_up(after, "p2", "p30") == [("p2", "new"), ("p30", "new")]


def test_fragments_of_another_schema_are_refused(tables: Tables) -> None:
    table = seed(tables)
    wider = people([2]).append_column("age", pa.array([1]))
    written = write_fragments(wider, table.dataset.uri, mode="overwrite")
    with pytest.raises(BadRequest, match="mode='append'"):
        stage_fragments(table, written)


def test_compaction_tasks_can_run_elsewhere(tables: Tables) -> None:
    table = seed(tables)
    tasks = pickle.loads(pickle.dumps(compaction_tasks(table, target_rows_per_fragment=100)))
    after = commit(tables, stage_rewrites(table, [task.execute(table.dataset) for task in tasks]))
    # Fragments that an index covers are not mixed with others.
    assert after.fragment_count == 2
    assert rows(after) == SEEDED


def test_folding_with_nothing_to_fold_makes_no_version(tables: Tables) -> None:
    table = commit(tables, stage_index_fold(seed(tables), ["id_idx"]))
    assert commit(tables, stage_index_fold(table, ["id_idx"])).version == table.version


def test_compaction_with_nothing_to_gain(tables: Tables) -> None:
    after = commit(tables, stage_compaction(seed(tables), target_rows_per_fragment=100))
    assert stage_compaction(after, target_rows_per_fragment=100) is None


def test_compaction_keeps_the_index_and_the_transaction_unreadable_is_not_ours(tables: Tables) -> None:
    table = commit(tables, stage_index_fold(seed(tables), ["id_idx"]))
    assert table.indices()[0].fragments == {0, 1, 2}
    after = commit(tables, stage_compaction(table, target_rows_per_fragment=100))
    assert after.version == table.version + 2
    assert after.indices()[0].fragments == set(after.fragment_ids)
    assert after.fragment_count == 1
    assert tables.created_by(HOME, after.version) is None
