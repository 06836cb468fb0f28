"""A small graph and small writers for the tests of the commit layer: real tables, real staged transactions.

The writers here stage rows by hand, because the tests of this layer are about how a write becomes visible, not about how it
is prepared.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

import pyarrow as pa

from omnigraph.commit.context import CommitContext
from omnigraph.commit.model import MAIN, Lineage, ManifestState, TableEntry
from omnigraph.commit.protocol import Step, TableEffect, Write, execute
from omnigraph.commit.sidecar import Kind
from omnigraph.commit.updates import SchemaIs
from omnigraph.commit.writers import WRITERS
from omnigraph.graph.lifecycle import connect, create
from omnigraph.ids import new_ulid, now_micros
from omnigraph.storage.tables.staged import stage_append, stage_delete, stage_index
from omnigraph.storage.tables.table import Table
from tests.storage.tables.upserts import stage_upsert

SCHEMA = """
node Staff {
  handle: String @key
  level: I32?
}
node Team {
  code: String @key
}
edge Mentors: Staff -> Staff {
  began: Date?
}
edge MemberOf: Staff -> Team
"""

STAFF, TEAM, MENTORS, MEMBER_OF = "node:Staff", "node:Team", "edge:Mentors", "edge:MemberOf"


def new_graph(uri: str, schema: str = SCHEMA, storage_options: Mapping[str, str] | None = None) -> CommitContext:
    """Create a graph and give the context its writers work with."""
    context = connect(uri, storage_options=storage_options)
    create(context, schema)
    return context


def staff(names: Iterable[str], level: int | None = 1) -> pa.Table:
    listed = list(names)
    return pa.table(
        {"id": listed, "handle": listed, "level": pa.array([level] * len(listed), pa.int32())},
        schema=pa.schema(
            [
                pa.field("id", pa.string(), nullable=False),
                pa.field("handle", pa.string(), nullable=False),
                pa.field("level", pa.int32()),
            ]
        ),
    )


def team(names: Iterable[str]) -> pa.Table:
    listed = list(names)
    fields = [pa.field(name, pa.string(), nullable=False) for name in ("id", "code")]
    return pa.table({"id": listed, "code": listed}, schema=pa.schema(fields))


def mentors(pairs: Iterable[tuple[str, str]]) -> pa.Table:
    listed = list(pairs)
    fields = [pa.field(name, pa.string(), nullable=False) for name in ("id", "src", "dst")]
    return pa.table(
        {
            "id": [new_ulid() for _ in listed],
            "src": [pair[0] for pair in listed],
            "dst": [pair[1] for pair in listed],
            "began": pa.nulls(len(listed), pa.date32()),
        },
        schema=pa.schema([*fields, pa.field("began", pa.date32())]),
    )


def member_of(pairs: Iterable[tuple[str, str]]) -> pa.Table:
    return mentors(pairs).drop_columns(["began"])


def load_org(context: CommitContext) -> ManifestState:
    """The rows of FX-ORG, in one commit."""
    people = [staff([name], level) for name, level in (("ada", 30), ("ben", 25), ("cleo", 35), ("dov", 28))]
    return insert(
        context,
        {
            STAFF: pa.concat_tables(people),
            TEAM: team(["core", "labs"]),
            MENTORS: mentors([("ada", "ben"), ("ada", "cleo"), ("ben", "dov")]),
            MEMBER_OF: member_of([("ada", "core"), ("ben", "labs")]),
        },
        kind=Kind.LOAD,
    )


def again(context: CommitContext) -> CommitContext:
    """Another handle on the same graph, as another process would have it."""
    return connect(context.root.uri, storage_options=context.root.storage_options)


def table_of(context: CommitContext, entry: TableEntry) -> Table:
    return context.tables.open(entry.location, entry.version)


def effect(context: CommitContext, state: ManifestState, key: str, *steps: Step) -> TableEffect:
    """An effect on a table as this branch sees it: forked first when it still belongs to another branch."""
    entry = state.by_key[key]
    return TableEffect(entry, steps, forks=needs_fork(context, state, entry))


def needs_fork(context: CommitContext, state: ManifestState, entry: TableEntry) -> bool:
    """A table is shared until the branch writes it: main owns the main line, a branch owns the forks it made."""
    return context.forks.is_shared(state, entry)


def accepted(state: ManifestState) -> SchemaIs:
    """The requirement of a write that was prepared on this state."""
    return SchemaIs(state.schema_hash)


def lineage(kind: Kind = Kind.MUTATION, actor: str | None = "act-test", merged_parent: str | None = None) -> Lineage:
    return Lineage(new_ulid(), now_micros(), WRITERS[kind].commit_kind, actor, merged_parent)


def write(
    context: CommitContext,
    changes: Mapping[str, pa.Table],
    *,
    branch: str = MAIN,
    kind: Kind = Kind.MUTATION,
    upsert: bool = False,
    actor: str | None = "act-test",
    if_commit: str | None = None,
    reads: Iterable[str] = (),
) -> Write:
    """A prepared write that appends (or upserts) rows to some tables."""
    state = context.manifest.load(branch)
    stage = stage_upsert if upsert else stage_append
    effects = []
    for key, data in changes.items():
        entry = state.by_key[key]
        if needs_fork(context, state, entry):
            step = Step(partial(stage, data=data))
            effects.append(TableEffect(entry, (step,), forks=True))
        else:
            effects.append(TableEffect(entry, (Step(stage(table_of(context, entry), data)),)))
    return Write(
        kind=kind,
        branch=branch,
        lineage=lineage(kind, actor),
        effects=tuple(effects),
        requires=accepted(state),
        reads=tuple(state.by_key[key] for key in reads),
        if_commit=if_commit,
    )


def insert(context: CommitContext, changes: Mapping[str, pa.Table], **options: Any) -> ManifestState:
    """Prepare and carry out a write that appends rows."""
    return execute(context, write(context, changes, **options))


def delete(context: CommitContext, key: str, ids: Iterable[str], branch: str = MAIN) -> ManifestState:
    state = context.manifest.load(branch)
    listed = pa.array(list(ids), pa.string())
    step = Step(lambda table: stage_delete(table, ids=listed))
    effects = (effect(context, state, key, step),)
    return execute(context, Write(Kind.MUTATION, branch, lineage(), effects, accepted(state)))


def index(context: CommitContext, key: str, column: str, branch: str = MAIN) -> ManifestState:
    """An EnsureIndices write: one BTREE."""
    state = context.manifest.load(branch)
    step = Step(lambda table: stage_index(table, column, "BTREE", f"{column}_idx"))
    effects = (effect(context, state, key, step),)
    return execute(context, Write(Kind.ENSURE_INDICES, branch, lineage(Kind.ENSURE_INDICES), effects, accepted(state)))


def ids(context: CommitContext, key: str, branch: str = MAIN) -> list[str]:
    """The ids a reader sees now, sorted."""
    entry = context.manifest.load(branch).by_key[key]
    return sorted(table_of(context, entry).read(["id"])["id"].to_pylist())
