"""The verbs of maintenance: indexes, compaction, repair, cleanup, statistics, recoveries, and the settings of a graph."""

from __future__ import annotations

from collections.abc import Collection
from datetime import timedelta
from typing import TYPE_CHECKING, Literal

from omnigraph.commit import audit
from omnigraph.commit.audit import Recovery
from omnigraph.commit.branches import branch_names
from omnigraph.commit.exactly_once import once
from omnigraph.commit.recovery import heal, pending
from omnigraph.commit.sidecar import Sidecar, discard_sidecar
from omnigraph.graph.handle import Handle
from omnigraph.policy.actions import ADMIN, Need
from omnigraph.shown import Listing, with_bar

if TYPE_CHECKING:
    from omnigraph.maintenance.cleanup import CleanupReport
    from omnigraph.maintenance.indexes import IndexReport
    from omnigraph.maintenance.optimize import OptimizeReport
    from omnigraph.maintenance.repair import RepairReport
    from omnigraph.maintenance.stats import GraphStats
    from omnigraph.maintenance.verify_report import VerifyReport
    from omnigraph.maintenance.workplace import UpkeepProgress


class Upkeep(Handle):
    """Derived state and storage of a graph. No answer depends on any of it."""

    @with_bar("indexes")
    def ensure_indices(
        self,
        branch: str | None = None,
        *,
        types: Collection[str] | str | None = None,
        actor: str | None = None,
        message: str | None = None,
        engine: Literal["auto", "local", "spark"] = "auto",
        progress: UpkeepProgress | None = None,
        dry_run: bool = False,
        idempotency_key: str | None = None,
    ) -> IndexReport:
        """Build the indexes that are declared and missing, in one commit; a second call does nothing.

        `types`: only those of one type or of some, such as `node:Person` or `edge:Knows`. `engine`: where they are built; "auto"
        takes Spark for tables of very many rows. `progress`: called with the stage, how many rows of it are done, and how
        many there are. `dry_run`: only say what would be built. `message`: kept with the commit. `idempotency_key`: a repeat of
        the call returns the first report and does nothing.
        """
        # The writers are loaded when something is written: a reader starts faster without them.
        from omnigraph.commit.receipts import reported_once
        from omnigraph.maintenance.indexes import IndexReport, ensure_indices, preview
        from omnigraph.maintenance.workplace import Workplace

        workplace = Workplace(self._context.root, engine, self._spark, progress)
        if dry_run:
            return preview(self._context, self.contract(branch).catalog, self._named(branch), types)
        self._allow_write(actor, Need(ADMIN))
        place, who = self._named(branch), actor or self.actor
        asked = once(idempotency_key, "ensure_indices", branch=place, types=types)

        def work(commit_id: str | None) -> IndexReport:
            return self._under_schema(
                place,
                lambda contract, schema: ensure_indices(
                    self._context, contract.catalog, place, schema, types, who, workplace, message, commit_id
                ),
            )

        return reported_once(self._context, asked, IndexReport, work, place)

    @with_bar("optimize")
    def optimize(
        self,
        branch: str | None = None,
        *,
        actor: str | None = None,
        message: str | None = None,
        engine: Literal["auto", "local", "spark"] = "auto",
        progress: UpkeepProgress | None = None,
        dry_run: bool = False,
        idempotency_key: str | None = None,
    ) -> OptimizeReport:
        """Compact the tables of a branch and complete their indexes, in one commit; a second call does nothing.

        `engine`: where indexes are built and fragments rewritten; "auto" takes Spark for tables of very many rows.
        `progress`: called with the stage, how many rows of it are done, and how many there are. `dry_run`: only say what
        would be done. `message`: kept with the commit. `idempotency_key`: as in `ensure_indices`.
        """
        from omnigraph.commit.receipts import reported_once
        from omnigraph.maintenance.optimize import OptimizeReport, optimize, preview
        from omnigraph.maintenance.workplace import Workplace

        workplace = Workplace(self._context.root, engine, self._spark, progress)
        if dry_run:
            return preview(self._context, self.contract(branch).catalog, self._named(branch))
        self._allow_write(actor, Need(ADMIN))
        place, who = self._named(branch), actor or self.actor
        asked = once(idempotency_key, "optimize", branch=place)

        def work(commit_id: str | None) -> OptimizeReport:
            return self._under_schema(
                place,
                lambda contract, schema: optimize(
                    self._context, contract.catalog, place, schema, who, workplace, message, commit_id
                ),
            )

        return reported_once(self._context, asked, OptimizeReport, work, place)

    def cleanup(
        self,
        *,
        keep: int | None = None,
        older_than: timedelta | str | None = None,
        dry_run: bool = False,
        actor: str | None = None,
        idempotency_key: str | None = None,
    ) -> CleanupReport:
        """Remove old versions and what nothing refers to any more; with `dry_run` only say what that would be.

        `keep`: the newest commits of each branch that stay. `older_than`: only what is older goes (`7d`, `24h`, a
        timedelta). What a branch, a tag, the change feed or a running job needs always stays. It makes no commit, so
        nothing keeps `actor`. `idempotency_key`: as in `ensure_indices`.
        """
        from omnigraph.commit.receipts import reported_once
        from omnigraph.maintenance.cleanup import CleanupReport, cleanup
        from omnigraph.maintenance.durations import parse_duration
        from omnigraph.maintenance.retention import Policy

        self._allow_write(actor, Need(ADMIN))
        age = parse_duration(older_than) if isinstance(older_than, str) else older_than
        policy = Policy(keep, age)
        asked = None if dry_run else once(idempotency_key, "cleanup", keep=keep, older_than=age)
        return reported_once(
            self._context, asked, CleanupReport, lambda _: cleanup(self._context, policy, dry_run=dry_run)
        )

    def repair(
        self, branch: str | None = None, *, confirm: bool = False, force: bool = False, actor: str | None = None
    ) -> RepairReport:
        """Look at tables that moved without a commit, on one branch or on all; nothing changes without `confirm`.

        `confirm` publishes a head whose rows are those of the pin; with `force` any head is published.
        """
        from omnigraph.maintenance.repair import repair

        if confirm:
            self._allow_write(actor, Need(ADMIN))
        return repair(self._context, branch=branch, confirm=confirm, force=force, actor=actor or self.actor)

    def verify(
        self,
        *,
        deep: bool = False,
        record: bool = False,
        repair: bool = False,
        actor: str | None = None,
        engine: Literal["auto", "local", "spark"] = "auto",
        progress: UpkeepProgress | None = None,
    ) -> VerifyReport:
        """Look for damage on all branches, tags and retained commits: missing or cut files, contradictions, broken rules.

        `deep`: also read every file whole and compare it with the digest that was recorded when it was written. `record`: write
        digests down for files that have none and could be decoded. `repair`: restore damaged tables from their newest
        undamaged version and drop damaged indexes, in one commit per branch; the report says what was lost. Without `record`
        and `repair` nothing is written. For a graph that can not be opened there is `omnigraph.verify(uri)`.
        """
        from omnigraph.graph.lifecycle import connect
        from omnigraph.graph.verification import verify_graph

        if repair or record:
            self._allow_write(actor, Need(ADMIN))
        context = self._context
        fresh = connect(
            context.root.uri, storage_options=context.root.storage_options or None, durability=context.durability
        )
        return verify_graph(
            fresh,
            deep=deep,
            record=record,
            repair=repair,
            actor=actor or self.actor,
            engine=engine,
            progress=progress,
            options=self._spark,
        )

    def stats(self, branch: str | None = None) -> GraphStats:
        """Rows, fragments, versions, bytes and index coverage of each type, and what maintenance would gain."""
        from omnigraph.maintenance.stats import graph_stats

        return graph_stats(self._context, self.contract(branch).catalog, self._named(branch))

    # --- settings -----------------------------------------------------------------------------------------------------

    def config(self) -> dict[str, str]:
        """The value of every setting by its name, such as `{"merge.level": "entity"}`."""
        from omnigraph.commit.config import read_config

        return read_config(self._context.store)

    def set_config(
        self, name: str, value: str | None, *, actor: str | None = None, idempotency_key: str | None = None
    ) -> dict[str, str]:
        """Set a setting for everybody who works on this graph, or with None give it its default back; returns all settings.

        `merge.level`: "entity", or "property" so that changes of different properties of one entity are combined by every
        merge, rebase, revert and cherry-pick that is not given `property_level`. It makes no commit; `actor` is kept beside it.
        `idempotency_key`: a repeat of the call returns the first answer and sets nothing.
        """
        from omnigraph.commit.config import check_setting, set_config

        check_setting(name, value)
        self._allow_write(actor, Need(ADMIN))
        asked = once(idempotency_key, "set_config", name=name, value=value)
        return set_config(self._context, name, value, actor or self.actor, asked)

    # --- recovery ---------------------------------------------------------------------------------------------------

    def refresh(self) -> list[Recovery]:
        """Look at the store afresh: heal what can be healed (read-write handles) and adopt a new schema."""
        healed = heal(self._context) if self.mode == "rw" else []
        for branch in branch_names(self._context):
            self._context.manifest.forget(branch)
        self.contract()
        return healed

    def recoveries(self) -> list[Recovery]:
        """Every completed recovery of this graph."""
        return Listing(audit.recoveries(self._context))

    def pending_operations(self) -> list[Sidecar]:
        """The recovery records that are waiting."""
        return pending(self._context)

    def discard_operation(self, operation_id: str) -> str:
        """Set a recovery record aside that can not be settled; returns where it went. Nothing is destroyed."""
        self._allow_write(None, Need(ADMIN))
        return discard_sidecar(self._context.store, operation_id)
