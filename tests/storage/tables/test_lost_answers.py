"""Answers that a real store loses: a commit is done once, or it is said that nobody knows."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from omnigraph.storage.tables.commit import commit_staged
from omnigraph.storage.tables.handles import Tables
from omnigraph.storage.tables.lance_errors import CommitUnknown
from omnigraph.storage.tables.staged import Staged, stage_append, stage_create, stage_overwrite
from omnigraph.storage.tables.table import Table
from tests.s3 import S3Server
from tests.storage.tables.losing_s3 import losing_s3
from tests.storage.tables.people import HOME, SCHEMA, commit, head, people, rows
from tests.storage.tables.upserts import stage_upsert

STAGES: dict[str, Callable[[Table], Staged]] = {
    "append": lambda table: stage_append(table, people([20])),
    "upsert": lambda table: stage_upsert(table, people([20])),
    "overwrite": lambda table: stage_overwrite(table, people([20])),
}


def puts_a_version(method: str, path: str) -> bool:
    return method == "PUT" and "/_versions/" in path


@pytest.mark.parametrize("kind", STAGES)
def test_the_answer_of_the_put_is_lost(s3_server: S3Server, kind: str) -> None:
    """Lance sends the put again, is told that the version exists, and finds that it is its own."""
    with losing_s3(s3_server) as store:
        tables = Tables(store.root)
        commit(tables, stage_create(tables, HOME, SCHEMA, people([1])))
        staged = STAGES[kind](head(tables))
        store.loses = lambda method, path: puts_a_version(method, path) and store.lost < 1
        after = commit(tables, staged)
        assert store.lost == 1
        assert after.version == 2 == tables.head_version(HOME)
        assert rows(after) == ([("p20", "old")] if kind == "overwrite" else [("p1", "old"), ("p20", "old")])


def test_every_answer_is_lost_from_the_put_on(s3_server: S3Server) -> None:
    with losing_s3(s3_server) as store:
        tables = Tables(store.root)
        commit(tables, stage_create(tables, HOME, SCHEMA, people([1])))
        staged = stage_append(head(tables), people([20]))
        store.loses = lambda method, path: puts_a_version(method, path) or store.lost > 0
        with pytest.raises(CommitUnknown) as caught:
            commit(tables, staged)
        assert caught.value.kind == "unknown"
        store.loses = lambda _method, _path: False
        assert tables.created_by(HOME, 2) == "tx"
        assert rows(head(tables)) == [("p1", "old"), ("p20", "old")]


def test_every_answer_is_lost_from_the_put_of_a_create_on(s3_server: S3Server) -> None:
    with losing_s3(s3_server) as store:
        tables = Tables(store.root)
        staged = stage_create(tables, HOME, SCHEMA, people([1]))
        store.loses = lambda method, path: puts_a_version(method, path) or store.lost > 0
        with pytest.raises(CommitUnknown):
            commit_staged(tables, staged, expected_version=None, transaction_id="tx")
        store.loses = lambda _method, _path: False
        assert tables.created_by(HOME, 1) == "tx"
