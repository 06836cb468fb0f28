"""The graphs of the storage benchmarks: how many types, how many commits, and single-row commits on them."""

from __future__ import annotations

import itertools

from omnigraph.commit.context import CommitContext
from omnigraph.commit.protocol import Step, TableEffect, Write, execute
from omnigraph.commit.sidecar import Kind
from omnigraph.storage.tables.staged import stage_compaction
from tests.commit.org import STAFF, accepted, insert, lineage, staff, table_of, write

#: The table is compacted after so many single-row commits, so that its fragments never dominate the cost of a commit.
ROWS_BETWEEN_COMPACTIONS = 50

_names = itertools.count()


def schema(types: int) -> str:
    """A schema of `Staff` and as many other node types as it takes."""
    others = (f"node Other{number} {{ code: String @key }}\n" for number in range(1, types))
    return "node Staff { handle: String @key level: I32? }\n" + "".join(others)


def prepare_one(context: CommitContext) -> Write:
    """A write of one new row: staged, not committed."""
    return write(context, {STAFF: staff([f"s{next(_names)}"])})


def commit_one(context: CommitContext) -> None:
    """A single-row commit, from preparing to the end."""
    insert(context, {STAFF: staff([f"s{next(_names)}"])})


def commit_many(context: CommitContext, count: int) -> None:
    """Single-row commits, with the table compacted now and then."""
    for number in range(1, count + 1):
        commit_one(context)
        if number % ROWS_BETWEEN_COMPACTIONS == 0:
            compact_table(context)


def compact_table(context: CommitContext) -> None:
    """Bring the table back to one fragment, as a commit of its own."""
    state = context.manifest.load()
    entry = state.by_key[STAFF]
    staged = stage_compaction(table_of(context, entry))
    if staged is not None:
        effect = TableEffect(entry, (Step(staged),))
        execute(context, Write(Kind.OPTIMIZE, "main", lineage(Kind.OPTIMIZE), (effect,), accepted(state)))
