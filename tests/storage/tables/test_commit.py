"""The checked commit: a moved table is refused, a silent rebase is taken back, a lost answer is looked up."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import lance
import pytest

from omnigraph import failpoints
from omnigraph.errors import AlreadyExists, BadRequest, ExpectedVersionMismatch, StorageError
from omnigraph.storage.root import Root
from omnigraph.storage.tables.commit import commit_staged
from omnigraph.storage.tables.handles import Tables
from omnigraph.storage.tables.lance_errors import CommitUnknown
from omnigraph.storage.tables.staged import Staged, stage_append, stage_create
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
from tests.storage.tables.upserts import stage_upsert

FOREIGN = ("p90", "foreign")
KINDS: dict[str, Callable[[Table], Staged | None]] = {**{kind: stage for kind, (stage, _) in WRITES.items()}, **DERIVED}


@contextmanager
def once(name: str, action: Callable[[], object]) -> Iterator[None]:
    """Run an action the first time a failpoint is passed."""
    pending = [action]
    with failpoints.armed(name, lambda: pending.pop()() if pending else None):
        yield
    assert not pending, f"failpoint {name} was not passed"


@pytest.mark.parametrize("kind", KINDS)
def test_a_table_that_moved_is_refused(tables: Tables, kind: str) -> None:
    table = seed(tables)
    staged = KINDS[kind](table)
    foreign_append(tables)
    with pytest.raises(ExpectedVersionMismatch) as caught:
        commit(tables, staged)
    assert (caught.value.table_key, caught.value.expected, caught.value.actual) == (
        HOME.path,
        table.version,
        table.version + 1,
    )
    assert rows(head(tables)) == sorted([*SEEDED, FOREIGN])
    assert tables.head_version(HOME) == table.version + 1


@pytest.mark.parametrize("kind", KINDS)
def test_a_silent_rebase_is_taken_back_and_the_foreign_commit_kept(backend: Tables, kind: str) -> None:
    """The foreign commit comes after our check of the head, where Lance rebases without a word."""
    table = seed(backend)
    kept = rows_with_ids(table)
    staged = KINDS[kind](table)
    with (
        once("table_commit.before_commit", lambda: foreign_append(backend)),
        pytest.raises(ExpectedVersionMismatch) as caught,
    ):
        commit(backend, staged)
    assert caught.value.expected == table.version
    after = head(backend)
    assert rows(after) == sorted([*SEEDED, FOREIGN])
    assert [row for row in rows_with_ids(after) if row[0] != "p90"] == kept
    assert looked_up(after, "p0", "p2", "p8", "p20", "p90") == [("p0", "old"), ("p2", "old"), ("p8", "old"), FOREIGN]


def test_a_rebased_key_is_not_doubled(backend: Tables) -> None:
    staged = stage_upsert(seed(backend), people([90], "ours"))
    with (
        once("table_commit.before_commit", lambda: foreign_append(backend)),
        pytest.raises(ExpectedVersionMismatch),
    ):
        commit(backend, staged)
    assert looked_up(head(backend), "p90") == [FOREIGN]
    assert rows(commit(backend, stage_upsert(head(backend), people([90], "ours")))) == sorted(
        [*SEEDED, ("p90", "ours")]
    )


def test_a_second_foreign_commit_during_the_taking_back_is_kept(tables: Tables) -> None:
    staged = stage_append(seed(tables), people([20], "ours"))
    with (
        once("table_commit.before_commit", lambda: foreign_append(tables)),
        once("undo.before_commit", lambda: foreign_append(tables, number=91)),
        pytest.raises(ExpectedVersionMismatch),
    ):
        commit(tables, staged)
    assert rows(head(tables)) == sorted([*SEEDED, FOREIGN, ("p91", "foreign")])


def test_a_rebased_effect_that_can_not_be_taken_back_is_not_a_plain_conflict(tables: Tables) -> None:
    staged = stage_append(seed(tables), people([20], "ours"))

    def delete_ours() -> None:
        lance.dataset(tables.root.lance_uri(HOME.path)).delete("id = 'p20'")

    with (
        once("table_commit.before_commit", lambda: foreign_append(tables)),
        once("undo.before_commit", delete_ours),
        pytest.raises(CommitUnknown) as caught,
    ):
        commit(tables, staged)
    assert caught.value.kind == "unknown"


def test_a_write_is_committed_against_the_version_it_was_staged_on(tables: Tables) -> None:
    table = seed(tables)
    staged = stage_append(table, people([20]))
    foreign_append(tables)
    with pytest.raises(BadRequest, match="was staged against version"):
        commit_staged(tables, staged, expected_version=table.version + 1, transaction_id="tx")


def test_a_write_is_not_committed_twice(tables: Tables) -> None:
    staged = stage_append(seed(tables), people([20]))
    after = commit(tables, staged)
    with pytest.raises(ExpectedVersionMismatch):
        commit(tables, staged)
    assert rows(head(tables)) == rows(after)


def test_a_table_that_is_gone_is_refused(tables: Tables) -> None:
    staged = stage_append(seed(tables), people([20]))
    lance.LanceDataset.drop(tables.root.lance_uri(HOME.path))
    with pytest.raises(ExpectedVersionMismatch) as caught:
        commit(tables, staged)
    assert caught.value.actual is None


# --- creating ---------------------------------------------------------------------------------------------------------


def test_of_two_creates_the_second_is_refused(backend: Tables) -> None:
    first = stage_create(backend, HOME, SCHEMA, people([1], "first"))
    second = stage_create(backend, HOME, SCHEMA, people([2], "second"))
    commit_staged(backend, first, expected_version=None, transaction_id="tx-1")
    with pytest.raises(AlreadyExists):
        commit_staged(backend, second, expected_version=None, transaction_id="tx-2")
    assert rows(head(backend)) == [("p1", "first")]
    assert backend.head_version(HOME) == 1


def test_racing_creates_have_one_winner(backend: Tables) -> None:
    staged = [stage_create(backend, HOME, SCHEMA, people([number])) for number in range(4)]

    def attempt(number: int) -> int | None:
        try:
            commit_staged(backend, staged[number], expected_version=None, transaction_id=f"tx-{number}")
        except AlreadyExists:
            return None
        return number

    with ThreadPoolExecutor(4) as pool:
        winners = [number for number in pool.map(attempt, range(4)) if number is not None]
    assert len(winners) == 1
    assert rows(head(backend)) == [(f"p{winners[0]}", "old")]
    assert backend.created_by(HOME, 1) == f"tx-{winners[0]}"


def test_racing_appends_on_one_pin_have_one_winner(backend: Tables) -> None:
    table = seed(backend)
    staged = [stage_append(table, people([20 + number])) for number in range(4)]

    def attempt(number: int) -> int | None:
        try:
            commit_staged(backend, staged[number], expected_version=table.version, transaction_id=f"tx-{number}")
        except ExpectedVersionMismatch:
            return None
        return number

    with ThreadPoolExecutor(4) as pool:
        winners = [number for number in pool.map(attempt, range(4)) if number is not None]
    # A loser whose rebase was taken back leaves versions behind, but no rows.
    assert len(winners) == 1
    assert rows(head(backend)) == sorted([*SEEDED, (f"p{20 + winners[0]}", "old")])


# --- failures of the store --------------------------------------------------------------------------------------------


def lose_the_answer() -> None:
    raise OSError("the connection was closed before the answer came")


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("compaction", "index fold")])
def test_a_lost_answer_is_looked_up(tables: Tables, kind: str) -> None:
    table = seed(tables)
    staged = KINDS[kind](table)
    with once("table_commit.lost_acknowledgement", lose_the_answer):
        after = commit(tables, staged)
    assert after.version == table.version + 1 == tables.head_version(HOME)
    assert rows(after) == (WRITES[kind][1] if kind in WRITES else SEEDED)


def test_a_lost_answer_of_a_create_is_looked_up(backend: Tables) -> None:
    staged = stage_create(backend, HOME, SCHEMA, people([1]))
    with once("table_commit.lost_acknowledgement", lose_the_answer):
        assert commit_staged(backend, staged, expected_version=None, transaction_id="tx") == 1
    assert rows(head(backend)) == [("p1", "old")]


def test_a_lost_answer_of_a_rebased_commit(tables: Tables) -> None:
    staged = stage_append(seed(tables), people([20], "ours"))
    with (
        once("table_commit.before_commit", lambda: foreign_append(tables)),
        once("table_commit.lost_acknowledgement", lose_the_answer),
        pytest.raises(ExpectedVersionMismatch),
    ):
        commit(tables, staged)
    assert rows(head(tables)) == sorted([*SEEDED, FOREIGN])


def test_a_commit_that_did_not_happen_is_a_storage_error(tables: Tables) -> None:
    table = seed(tables)
    staged = stage_append(table, people([20]))
    transactions = Path(tables.root.lance_uri(HOME.path)) / "_transactions"
    transactions.rename(transactions.with_name("aside"))
    transactions.write_text("in the way")
    with pytest.raises(StorageError) as caught:
        commit(tables, staged)
    assert caught.value.kind == "configuration"
    transactions.unlink()
    transactions.with_name("aside").rename(transactions)
    assert rows(head(tables)) == SEEDED
    assert commit(tables, staged).version == table.version + 1


def test_a_store_that_can_not_be_asked_leaves_the_outcome_unknown(tables: Tables) -> None:
    table = seed(tables)
    staged = stage_append(table, people([20]))
    home = Path(tables.root.lance_uri(HOME.path))

    def go_away() -> None:
        home.rename(home.with_name("aside"))
        lose_the_answer()

    with once("table_commit.lost_acknowledgement", go_away), pytest.raises(CommitUnknown) as caught:
        commit(tables, staged)
    assert caught.value.kind == "unknown"
    home.with_name("aside").rename(home)
    assert tables.created_by(HOME, table.version + 1) == "tx"


def test_a_failed_create_is_a_storage_error(tmp_path: Path) -> None:
    tables = Tables(Root.parse(tmp_path))
    staged = stage_create(tables, HOME, SCHEMA, people([1]))
    (tmp_path / HOME.path / "_transactions").write_text("in the way")
    with pytest.raises(StorageError) as caught:
        commit_staged(tables, staged, expected_version=None, transaction_id="tx")
    assert caught.value.kind == "configuration"
    assert tables.head_version(HOME) is None
