"""The verbs of a schema change: what it would do, and doing it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from omnigraph.commit.model import MAIN, Lineage
from omnigraph.commit.recovery import heal
from omnigraph.commit.sidecar import list_sidecars
from omnigraph.graph.contract import accept
from omnigraph.graph.handle import Handle
from omnigraph.graph.sources import read_source
from omnigraph.ids import new_incarnation, new_ulid, now_micros
from omnigraph.language.schema.accept import accept_schema
from omnigraph.language.schema.build import compile_schema
from omnigraph.policy.actions import SCHEMA_APPLY, Need

if TYPE_CHECKING:
    from omnigraph.evolution.apply import Applied, Change
    from omnigraph.evolution.plan import Plan


class Evolution(Handle):
    """How the schema of a graph changes."""

    def plan_schema(self, schema: str | Path, *, allow_data_loss: bool = False) -> Plan:
        """What applying a schema (`.pg` text, or the path of a `.pg` file) would do; `supported`: whether it could be."""
        from omnigraph.evolution.apply import plan

        return plan(self._context, self._change(read_source(schema, ".pg")[0], allow_data_loss))

    def apply_schema(self, schema: str | Path, *, allow_data_loss: bool = False, actor: str | None = None) -> Applied:
        """Make a schema (`.pg` text, or the path of a `.pg` file) the accepted one, in one commit; none when it is already.

        What it drops stays in older snapshots; with `allow_data_loss` it is gone for them too.
        """
        from omnigraph.evolution.apply import apply

        self._allow_write(actor, Need(SCHEMA_APPLY, None, MAIN))
        source, _ = read_source(schema, ".pg")
        compile_schema(source)
        if list_sidecars(self._context.store):
            # What a dead writer left is settled before anything is planned on it.
            with self._context.locks.hold(MAIN):
                heal(self._context, holding={MAIN})
        lineage = Lineage(new_ulid(), now_micros(), "schema", actor or self.actor)
        return apply(self._context, self._change(source, allow_data_loss), lineage)

    def _change(self, schema: str, allow_data_loss: bool) -> Change:
        from omnigraph.evolution.apply import Change

        before, named = self._watch.captured()
        ir = accept_schema(compile_schema(schema), before.ir, new_incarnation())
        after = accept(schema, ir, schema_version=before.schema_version + 1, identity_domain=before.identity_domain)
        return Change(before.ir, ir, after.files(), named.schema_hash, allow_data_loss)
