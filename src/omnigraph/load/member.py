"""A small load that waits in the queue of its branch with other writers, and is published together with them.

Its input is already read. Its rows are judged against the captured state and the settled changes of earlier members, by the
same checks as a load alone: `Layered` shows the stored rows with these changes on top.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from omnigraph.commit.model import Commit
from omnigraph.commit.updates import RecordReceipt
from omnigraph.language.schema.catalog import Catalog
from omnigraph.load.checks import APPEND, OVERWRITE
from omnigraph.load.model import LoadResult
from omnigraph.load.stored import Pin, Stored
from omnigraph.load.strategies import Held
from omnigraph.load.work import Work, refuse_rejected
from omnigraph.mutation.base import Base
from omnigraph.mutation.staging import Entity, Pending
from omnigraph.mutation.together import Judged, Member, is_slow
from omnigraph.spark.runner import Inline
from omnigraph.storage.tables.table import ROW_ADDRESS
from omnigraph.values.columns import table_schema, whole

if TYPE_CHECKING:
    from omnigraph.load.execute import Load


def can_join(load: Load) -> bool:
    """Whether a load that was read can share a publish: few rows, held in memory, and quick to judge.

    An overwrite replaces whole tables, so no other write fits beside it. A branch that is not created yet has no queue.
    """
    work, request = load.work, load.request
    if work is None or not isinstance(work.strategy, Held) or request.mode == OVERWRITE or load.creates_branch:
        return False
    if not isinstance(work.runner, Inline):
        return False
    rows = sum(work.rows().values())
    if not 0 < rows <= load.context.limits.group_rows:
        return False
    return not any(is_slow(_entity(request.catalog, key)) for key in work.written)


class LoadMember(Member[LoadResult]):
    """One small load in the queue of its branch."""

    def __init__(self, load: Load) -> None:
        self.writing: Load = load

    def judge(self, base: Base) -> Judged[LoadResult]:
        load, request = self.writing, self.writing.request
        stored = layered(base)
        work = load.judged_work(stored)
        plan = load.plan(work, stored)
        verdict = work.check(plan)
        refuse_rejected(work, verdict)
        work.settle_rows(stored)
        work.require_whole(load.inputs.rows)
        for key in load.looked_at(work):
            base.entry(key)
        pending = [self._pending(base, _entity(request.catalog, key), work) for key in sorted(work.written)]
        rows, report = work.rows(), load.report(work, verdict, stored)

        def answer(commit: Commit | None) -> LoadResult:
            assert commit is not None, "a load that succeeded has a commit"
            return load.result(rows, False, commit, report)

        def receipt(key: str, commit_id: str) -> RecordReceipt:
            return load.receipt(key, rows, False, commit_id)

        return Judged([one for one in pending if not one.is_empty], load.told(rows), answer, receipt)

    def _pending(self, base: Base, entity: Entity, work: Work) -> Pending:
        """The rows of a type, and the stored rows that they replace."""
        batches = work.held_rows(entity.type_key)
        rows = pa.Table.from_batches(batches) if batches else table_schema(entity).empty_table()
        replaced = pa.table({"id": pa.array([], pa.string()), ROW_ADDRESS: pa.array([], pa.uint64())})
        if self.writing.request.mode != APPEND:
            replaced = base.by_value(entity.type_key, "id", whole(rows["id"]), ["id"], with_row_address=True)
        pending = Pending(entity, _no_new_id)
        pending.put_changed(rows, replaced)
        return pending

    def alone(self) -> LoadResult:
        return self.writing.alone()


@dataclass(frozen=True)
class Layered(Stored):
    """The stored rows with the settled changes of a captured state on top."""

    base: Base

    def rows_with(
        self,
        type_key: str,
        column: str,
        values: pa.Array,
        columns: Sequence[str],
        *,
        with_row_address: bool = False,
    ) -> pa.Table:
        return self.base.by_value(type_key, column, values, columns, with_row_address=with_row_address)

    def whole_rows(self, type_key: str, ids: pa.Array, columns: Sequence[str]) -> pa.Table:
        return self.base.rows(type_key, ids).select(list(columns))


def layered(base: Base) -> Layered:
    """The stored rows as the members so far leave them."""
    pins: Mapping[str, Pin] = {
        entry.key: Pin(entry.location, entry.version, entry.row_count) for entry in base.state.tables.values()
    }
    put = {rows.entity.type_key: rows.image().num_rows for rows in base.settled}
    return Layered(
        base.context.root,
        {key: replace(pin, row_count=pin.row_count + put.get(key, 0)) for key, pin in pins.items()},
        base,
    )


def _entity(catalog: Catalog, type_key: str) -> Entity:
    kind, _, name = type_key.partition(":")
    return catalog.nodes[name] if kind == "node" else catalog.edges[name]


def _no_new_id() -> str:
    raise AssertionError("rows of a load have their ids")
