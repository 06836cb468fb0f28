"""Making a writer die in this process, coming in between, and looking at what is left."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

import orjson
import pyarrow as pa
import pytest

from omnigraph import failpoints
from omnigraph.commit import audit
from omnigraph.commit.audit import Recovery
from omnigraph.commit.context import CommitContext
from omnigraph.commit.model import MAIN, TableEntry
from omnigraph.commit.protocol import Write, execute
from omnigraph.commit.publisher import publish
from omnigraph.commit.sidecar import sidecar_path
from omnigraph.commit.updates import SetTable
from omnigraph.errors import ExpectedVersionMismatch
from omnigraph.graph.lifecycle import open_for_writing
from tests.commit.handmade import Json, drift, leave, planned, record
from tests.commit.org import STAFF, again, insert, lineage, staff


class Crash(BaseException):
    """The end of a writer: nothing of ours catches it, so the store is left as a dead process leaves it."""


def crash(context: CommitContext, prepared: Write, failpoint: str) -> None:
    """Carry out a write that dies at a failpoint."""

    def die() -> None:
        raise Crash

    with failpoints.armed(failpoint, die), pytest.raises(Crash):
        execute(context, prepared)


@contextmanager
def at(failpoint: str, action: Callable[[], object]) -> Iterator[None]:
    """Come in between: do something when a failpoint is passed for the first time, which it must be."""
    waiting = [action]

    def once() -> None:
        if waiting:
            waiting.pop()()

    with failpoints.armed(failpoint, once):
        yield
    assert not waiting, f"{failpoint} was not passed"


def reopen(context: CommitContext) -> CommitContext:
    """What a new process finds after a read-write open."""
    fresh = again(context)
    open_for_writing(fresh)
    return fresh


def insert_restarting(context: CommitContext, changes: Mapping[str, pa.Table], branch: str = MAIN) -> None:
    """An insert as writers do it: what was staged before a recovery moved the table is staged anew."""
    try:
        insert(context, changes, branch=branch)
    except ExpectedVersionMismatch:
        insert(context, changes, branch=branch)


def entry_of(context: CommitContext, key: str = STAFF, branch: str = MAIN) -> TableEntry:
    return context.manifest.load(branch).by_key[key]


def head_of(context: CommitContext, key: str = STAFF, branch: str = MAIN) -> int | None:
    """The newest version in storage of a table as a branch publishes it."""
    return context.tables.head_version(entry_of(context, key, branch).location)


def only_recovery(context: CommitContext) -> Recovery:
    (row,) = audit.recoveries(context)
    return row


def left_record(context: CommitContext, operation_id: str) -> Json:
    """The recovery record that an operation has left, as JSON."""
    value: Json = orjson.loads(context.store.get(sidecar_path(operation_id)))
    return value


def take_record(context: CommitContext, operation_id: str) -> Json:
    """The same, and it is gone: nobody will settle it until it is left again."""
    value = left_record(context, operation_id)
    context.store.delete(sidecar_path(operation_id))
    return value


def left_by_steps(context: CommitContext, changes: Json, steps: int, table: Json) -> tuple[TableEntry, str]:
    """A table that is some steps past its pin, and a record of it. A confirmed version counts from the pin."""
    entry = entry_of(context)
    if "confirmed_version" in table:
        table = {**table, "confirmed_version": entry.version + table["confirmed_version"]}
    for step in range(steps):
        drift(context, entry.location, staff([f"step{step}"]))
    return entry, leave(context, record(planned(entry, **table), **changes))


def break_invariant(context: CommitContext, branch: str = MAIN) -> None:
    """Publish a version that storage does not have."""
    entry = entry_of(context, STAFF, branch)
    publish(context, branch, [SetTable(replace(entry, version=entry.version + 50))], [], lineage())
