"""The verbs of a schema change: plan it, and apply it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from omnigraph.commit.exactly_once import once
from omnigraph.commit.messages import new_lineage
from omnigraph.commit.model import MAIN
from omnigraph.graph.contract import accept
from omnigraph.graph.handle import Handle
from omnigraph.graph.sources import read_source
from omnigraph.ids import new_distance, new_incarnation
from omnigraph.language.schema.accept import accept_schema
from omnigraph.language.schema.build import compile_schema
from omnigraph.policy.actions import SCHEMA_APPLY, Need

if TYPE_CHECKING:
    from omnigraph.evolution.apply import Applied, Change
    from omnigraph.evolution.backfill import GivenBackfill
    from omnigraph.evolution.plan import Plan


class Evolution(Handle):
    """How the schema of a branch changes. Other branches keep theirs."""

    def plan_schema(
        self,
        schema: str | Path,
        *,
        branch: str | None = None,
        allow_data_loss: bool = False,
        backfill: GivenBackfill = None,
    ) -> Plan:
        """What applying a schema (`.pg` text, or the path of a `.pg` file) would do; `supported`: whether it could be.

        The rows that are there are looked at: a step that they stand in the way of is refused, with the first of them.
        """
        from omnigraph.evolution.apply import plan

        source, file = read_source(schema, ".pg")
        compile_schema(source, file)
        return plan(self._context, self._change(source, self._named(branch), allow_data_loss, backfill))

    def apply_schema(
        self,
        schema: str | Path,
        *,
        branch: str | None = None,
        allow_data_loss: bool = False,
        backfill: GivenBackfill = None,
        actor: str | None = None,
        message: str | None = None,
        idempotency_key: str | None = None,
    ) -> Applied:
        """Make a schema (`.pg` text, or the path of a `.pg` file) that of a branch, in one commit; none when it is already.

        `branch`: this handle's unless given; other branches keep theirs. What it drops stays in older snapshots; with
        `allow_data_loss` it is gone for them too. `backfill`: expressions for what rows do not have, as a mapping
        `{"Person.slug": "lower(name)"}` or texts `"Person.slug = lower(name)"`. `message`: kept with the commit.
        `idempotency_key`: a repeat of the call returns the first answer and changes nothing.
        """
        from omnigraph.evolution.apply import apply
        from omnigraph.evolution.backfill import texts_of

        name = self._named(branch)
        self._allow_write(actor, Need(SCHEMA_APPLY, None, name))
        source, file = read_source(schema, ".pg")
        compile_schema(source, file)
        lineage = new_lineage("schema", actor or self.actor, message)
        asked = once(
            idempotency_key,
            "apply_schema",
            schema=source,
            branch=name,
            allow_data_loss=allow_data_loss,
            backfill=texts_of(backfill),
        )
        return apply(
            self._context,
            name,
            lambda: self._change(source, name, allow_data_loss, backfill),
            lineage,
            drops_data=allow_data_loss,
            asked=asked,
        )

    def _change(self, schema: str, branch: str, allow_data_loss: bool, backfill: GivenBackfill) -> Change:
        from omnigraph.evolution.apply import Change
        from omnigraph.evolution.backfill import compile_backfills, texts_of
        from omnigraph.evolution.rewriting import writer

        self._context.manifest.load(branch)
        before, named = self._watch.captured(branch)
        # Main continues its numbers; additions on another branch must not get numbers that main gives out meanwhile.
        apart = 0 if branch == MAIN else new_distance()
        ir = accept_schema(compile_schema(schema), before.ir, new_incarnation(), apart)
        after = accept(schema, ir, schema_version=before.schema_version + 1, identity_domain=before.identity_domain)
        return Change(
            branch,
            before.ir,
            ir,
            before.files(),
            after.files(),
            named.schema_hash,
            allow_data_loss,
            compile_backfills(texts_of(backfill), before.ir, ir, time.time_ns() // 1_000_000),
            writer(self._context.root, "auto", self._spark),
        )
