"""One write of every kind, with fixed rows, for the tests that make writers fail and die. Each touches two tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import pyarrow as pa

from omnigraph.commit.branches import create_branch
from omnigraph.commit.context import CommitContext
from omnigraph.commit.history import missing_commits
from omnigraph.commit.model import MAIN, ManifestState, TableEntry
from omnigraph.commit.protocol import Step, TableEffect, Write
from omnigraph.commit.sidecar import Kind
from omnigraph.commit.updates import DropTable, ImportCommits, RecordReceipt, SetTable
from omnigraph.graph.contract import accept, read_contract
from omnigraph.language.schema.accept import accept_schema
from omnigraph.language.schema.build import compile_schema
from omnigraph.storage.tables.location import Location
from omnigraph.storage.tables.staged import (
    Staged,
    stage_append,
    stage_compaction,
    stage_create,
    stage_delete,
    stage_index,
    stage_overwrite,
)
from omnigraph.storage.tables.table import Table
from omnigraph.values.columns import table_path, table_schema
from tests.commit.org import (
    MEMBER_OF,
    MENTORS,
    STAFF,
    TEAM,
    accepted,
    delete,
    effect,
    index,
    insert,
    lineage,
    load_org,
    staff,
    team,
)
from tests.storage.tables.upserts import stage_upsert

FEATURE, SOURCE = "feature", "source"
ACTOR = "act-test"

#: Where a scenario writes: on main, on a branch that shares its tables, on a branch that has forked them already.
MAIN_LINE, FIRST_WRITE, SECOND_WRITE = "main", "first-write", "second-write"
PLACES = (MAIN_LINE, FIRST_WRITE, SECOND_WRITE)

NEW_SCHEMA = """
node Staff {
  handle: String @key
  level: I32?
  desk: String?
}
node Squad @rename_from("Team") {
  code: String @key
}
node Office {
  code: String @key
}
edge Mentors: Staff -> Staff {
  began: Date?
}
"""


@dataclass(frozen=True)
class Scenario:
    """A write of one kind; `writer` is what its failpoints are called after.

    `shows`: a reader of rows can tell whether it happened.
    """

    writer: str
    kind: Kind
    plan: Callable[[CommitContext, str], Write]
    places: tuple[str, ...] = PLACES
    shows: bool = True


def branch_of(place: str) -> str:
    return MAIN if place == MAIN_LINE else FEATURE


def fill(context: CommitContext) -> None:
    """What every scenario starts from: some rows in several fragments, deletion marks, an index. No branches yet."""
    load_org(context)
    insert(context, {STAFF: staff(["eve", "fay"], 20), TEAM: team(["ops"])})
    delete(context, STAFF, ["dov"])
    index(context, STAFF, "level")


def prepare(context: CommitContext, place: str) -> None:
    """Bring a filled graph to where a scenario starts. The source of merges is there everywhere."""
    create_branch(context, SOURCE, MAIN)
    insert(context, {STAFF: staff(["sue"], 50)}, branch=SOURCE)
    if place != MAIN_LINE:
        create_branch(context, FEATURE, MAIN)
    if place == SECOND_WRITE:
        insert(
            context,
            {STAFF: staff(["gil"], 21), TEAM: team(["lab9"]), MENTORS: edges(("g", "gil", "ada"))},
            branch=FEATURE,
        )


def edges(*listed: tuple[str, str, str]) -> pa.Table:
    """Mentors edges with given ids."""
    fields = [pa.field(name, pa.string(), nullable=False) for name in ("id", "src", "dst")]
    columns = {name: [edge[at] for edge in listed] for at, name in enumerate(("id", "src", "dst"))}
    return pa.table(
        {**columns, "began": pa.nulls(len(listed), pa.date32())}, pa.schema([*fields, pa.field("began", pa.date32())])
    )


# --- the writers ------------------------------------------------------------------------------------------------------


def mutation(context: CommitContext, branch: str) -> Write:
    """An upsert of nodes and an insert of edges, under an idempotency key."""
    people = pa.concat_tables([staff(["ada"], 99), staff(["hal"], 22)])
    return _write(
        context,
        Kind.MUTATION,
        branch,
        {
            STAFF: (Step(lambda table: stage_upsert(table, people)),),
            MENTORS: (Step(lambda table: stage_append(table, edges(("h", "ada", "hal")))),),
        },
        updates=(RecordReceipt("once", "the request", {"affected": 3}),),
    )


def load(context: CommitContext, branch: str) -> Write:
    """An overwrite, which only a restore brings back, and an append."""
    return _write(
        context,
        Kind.LOAD,
        branch,
        {
            STAFF: (Step(lambda table: stage_overwrite(table, staff(["ida", "jan"], 23))),),
            TEAM: (Step(lambda table: stage_append(table, team(["new"]))),),
        },
    )


def branch_merge(context: CommitContext, branch: str) -> Write:
    """Several steps on one table and one on another; the history of the source comes along."""
    tip = context.manifest.load(SOURCE).head
    steps = (
        Step(lambda table: stage_append(table, staff(["sue"], 50)), "branch_merge.after_append"),
        Step(lambda table: stage_upsert(table, staff(["ben"], 51)), "branch_merge.after_upsert"),
        Step(lambda table: stage_delete(table, ids=pa.array(["cleo"])), "branch_merge.after_delete"),
    )
    return _write(
        context,
        Kind.BRANCH_MERGE,
        branch,
        {STAFF: steps, TEAM: (Step(lambda table: stage_append(table, team(["new"]))),)},
        merged_parent=tip,
        updates=(ImportCommits(tuple(missing_commits(context.manifest, branch, tip))),),
    )


def ensure_indices(context: CommitContext, branch: str) -> Write:
    return _write(
        context,
        Kind.ENSURE_INDICES,
        branch,
        {
            STAFF: (Step(lambda table: stage_index(table, "handle", "BTREE", "handle_idx")),),
            TEAM: (Step(lambda table: stage_index(table, "code", "BTREE", "code_idx")),),
        },
    )


def optimize(context: CommitContext, branch: str) -> Write:
    """An index built anew, a compaction, which takes two versions, and another index; and a compaction of another table.

    A branch inherits the first index with its fork, and nothing under it is compacted until the fork has one of its own.
    """
    return _write(
        context,
        Kind.OPTIMIZE,
        branch,
        {
            STAFF: (
                Step(lambda table: stage_index(table, "level", "BTREE", "level_idx")),
                Step(_compaction, "optimize.between_compact_and_index"),
                Step(lambda table: stage_index(table, "handle", "BTREE", "handle_idx")),
            ),
            TEAM: (Step(_compaction),),
        },
    )


def _compaction(table: Table) -> Staged:
    staged = stage_compaction(table)
    assert staged is not None, f"{table.location} has nothing to compact"
    return staged


def schema_apply(context: CommitContext, branch: str) -> Write:
    """A new property, a new type, a renamed type and a dropped type, all in one change."""
    state = context.manifest.load(branch)
    before = read_contract(context.store)
    ir = accept_schema(compile_schema(NEW_SCHEMA), before.ir, incarnation=0xB2)
    contract = accept(NEW_SCHEMA, ir, schema_version=before.schema_version + 1, identity_domain=before.identity_domain)
    new_staff, office = contract.catalog.nodes["Staff"], contract.catalog.nodes["Office"]
    created = TableEntry(office.type_key, table_path(office), (office.id, office.incarnation), 0, None, 0)
    making = stage_create(context.tables, Location(created.path), table_schema(office))

    def with_desk(table: Table) -> Staged:
        schema = table_schema(new_staff)
        rows = table.read().append_column("desk", pa.nulls(table.count_rows(), pa.string()))
        return stage_overwrite(table, rows.select(schema.names), schema)

    widened = effect(context, state, STAFF, Step(with_desk))
    return Write(
        kind=Kind.SCHEMA_APPLY,
        branch=branch,
        lineage=lineage(Kind.SCHEMA_APPLY, ACTOR),
        effects=(widened, TableEffect(created, (Step(making),), creates=True)),
        updates=(
            SetTable(replace(state.by_key[TEAM], key="node:Squad")),
            DropTable(state.by_key[MEMBER_OF]),
        ),
        schema=contract.files(),
        requires=accepted(state),
    )


def _write(
    context: CommitContext,
    kind: Kind,
    branch: str,
    changes: Mapping[str, tuple[Step, ...]],
    *,
    updates: tuple[RecordReceipt | ImportCommits, ...] = (),
    merged_parent: str | None = None,
) -> Write:
    state: ManifestState = context.manifest.load(branch)
    return Write(
        kind=kind,
        branch=branch,
        lineage=lineage(kind, ACTOR, merged_parent),
        effects=tuple(effect(context, state, key, *steps) for key, steps in changes.items()),
        updates=updates,
        requires=accepted(state),
    )


SCENARIOS = {
    scenario.writer: scenario
    for scenario in (
        Scenario("mutation", Kind.MUTATION, mutation),
        Scenario("load", Kind.LOAD, load),
        # The schema is one per graph, so a schema change is made on main.
        Scenario("schema_apply", Kind.SCHEMA_APPLY, schema_apply, places=(MAIN_LINE,)),
        Scenario("branch_merge", Kind.BRANCH_MERGE, branch_merge),
        Scenario("ensure_indices", Kind.ENSURE_INDICES, ensure_indices, shows=False),
        Scenario("optimize", Kind.OPTIMIZE, optimize, shows=False),
    )
}
