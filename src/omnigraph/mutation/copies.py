"""Private copies of tables: what a query inside a transaction reads when the transaction has changed a table.

A changed table is cloned without its data (Lance's shallow clone: a manifest that refers to the table's files), and the
settled changes are committed on the clone. So a query finds an ordinary table with its indexes, and all ways of reading work
as outside. A copy costs a manifest and the changed rows. Nothing is written below the graph's tables. On a local disk copies
lie in a scratch folder that is removed with the process; on S3 in the `__staging` folder of a job that cleanup respects.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace

from omnigraph.commit.context import CommitContext
from omnigraph.commit.model import TableEntry
from omnigraph.commit.staging_jobs import scratch_folder, staging_job
from omnigraph.ids import new_ulid
from omnigraph.mutation.base import Base
from omnigraph.mutation.effects import change_of
from omnigraph.mutation.settled import Settled, SettledRows
from omnigraph.storage.scratch import make_scratch
from omnigraph.storage.tables.commit import private_copy
from omnigraph.storage.tables.table import Table


class Copies:
    """The private copies of one write; `close` removes them."""

    def __init__(self, context: CommitContext, branch: str) -> None:
        self._context = context
        self._branch = branch
        self._folder: str | None = None
        self._count = 0
        self._held = ExitStack()
        #: By captured state and type: the settled rows, their version, and the copy made from them.
        self._made: dict[tuple[str, str], tuple[SettledRows, int, Table | None]] = {}

    def of(self, settled: SettledRows, base: Base) -> Table | None:
        """The table of a type with its settled changes; None when these cancel out."""
        key = (base.state.snapshot_id, settled.entity.type_key)
        known = self._made.get(key)
        if known is not None and known[0] is settled and known[1] == settled.version:
            return known[2]
        change, table = change_of(settled, base), base.table(settled.entity.type_key)
        copy = None if change is None else private_copy(self._context.tables, table, self._next_uri(), change)
        self._made[key] = (settled, settled.version, copy)
        return copy

    def _next_uri(self) -> str:
        self._count += 1
        if self._folder is None:
            self._folder = self._make_folder()
        return f"{self._folder}/{self._count}"

    def _make_folder(self) -> str:
        root = self._context.root
        if root.is_local:
            scratch = make_scratch("transaction")
            self._held.callback(scratch.remove)
            return str(scratch.path)
        job_id = new_ulid()
        self._held.enter_context(staging_job(self._context.store, job_id, "transaction", self._branch, ()))
        return root.lance_uri(scratch_folder(job_id))

    def close(self) -> None:
        """Remove all copies. Repeatable."""
        self._made.clear()
        self._folder = None
        self._held.close()


class Overlay:
    """The captured state with settled changes on top: the view of a query."""

    def __init__(self, base: Base, copies: Copies, settled: Settled) -> None:
        self._base = base
        self._copies = copies
        self._settled = settled

    @property
    def commit(self) -> str:
        """The head of the branch when the state was captured."""
        return self._base.commit

    def entry(self, type_key: str) -> TableEntry:
        """The captured entry of a type's table, with the row count after the changes."""
        entry, changed = self._base.entry(type_key), self._changed(type_key)
        return entry if changed is None else replace(entry, row_count=changed.count_rows())

    def open(self, type_key: str) -> Table:
        """The table of a type with the changes."""
        changed = self._changed(type_key)
        return self._base.table(type_key) if changed is None else changed

    def _changed(self, type_key: str) -> Table | None:
        self._base.entry(type_key)
        settled = self._settled.of(type_key)
        return None if settled is None else self._copies.of(settled, self._base)
