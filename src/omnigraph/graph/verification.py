"""`omnigraph.verify(uri)` and `Graph.verify`: finding damage, also in a graph that can not be opened any more.
Separate stores and a separate Lance session are used, so that this process's caches do not hide damaged files.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Literal

from omnigraph.commit import schema_files
from omnigraph.commit.context import CommitContext
from omnigraph.commit.model import ManifestState
from omnigraph.errors import BadRequest, GraphNotFound
from omnigraph.graph.contract import Contract, read_archived, read_contract, read_first
from omnigraph.graph.lifecycle import connect, open_for_writing
from omnigraph.language.schema.catalog import Catalog

if TYPE_CHECKING:
    from omnigraph.maintenance.verify_report import Damage, Restored, VerifyReport
    from omnigraph.maintenance.workplace import UpkeepProgress
    from omnigraph.spark.options import SparkArgument, SparkOptions


def verify(
    uri: str | os.PathLike[str],
    *,
    deep: bool = False,
    record: bool = False,
    repair: bool = False,
    actor: str | None = None,
    engine: Literal["auto", "local", "spark"] = "auto",
    progress: UpkeepProgress | None = None,
    storage_options: Mapping[str, str] | None = None,
    spark: SparkArgument | None = None,
) -> VerifyReport:
    """Look for damage in the graph at a URI, which need not be openable; see `Graph.verify` for what the options mean."""
    from omnigraph.spark.options import spark_options

    context = connect(os.fspath(uri), storage_options=storage_options)
    options = spark_options(spark)
    return verify_graph(
        context, deep=deep, record=record, repair=repair, actor=actor, engine=engine, progress=progress, options=options
    )


def verify_graph(
    context: CommitContext,
    *,
    deep: bool,
    record: bool,
    repair: bool,
    actor: str | None,
    engine: str,
    progress: UpkeepProgress | None,
    options: SparkOptions,
) -> VerifyReport:
    """Verify through an unshared context; with `repair`, repair what can be repaired, then verify again."""
    from omnigraph.maintenance import verify as verification
    from omnigraph.maintenance.verify_repair import plan_repair, restore, shown
    from omnigraph.maintenance.workplace import Workplace

    if record and not deep:
        raise BadRequest("a digest is recorded of a file that was read whole; verify with deep too (--deep --record)")
    if not context.store.exists("__manifest"):
        raise GraphNotFound(
            f"there is no graph at {context.root.uri}; create one with `omnigraph init`", uri=context.root.uri
        )
    workplace = Workplace(context.root, engine, options, progress)
    schemas = _Schemas(context)
    found = verification.verify(context, schemas.of, deep=deep, workplace=workplace, schema_damages=schemas.damages)
    repaired: tuple[Restored, ...] = ()
    if repair and not found.report.ok:
        open_for_writing(context)
        repaired = restore(context, found, schemas.of, actor)
        context = connect(context.root.uri, storage_options=context.root.storage_options or None)
        schemas = _Schemas(context)
        found = verification.verify(context, schemas.of, deep=deep, workplace=workplace, schema_damages=schemas.damages)
    report = verification.record(context, found) if record else found.report
    repairable = shown(context, plan_repair(context, found)) if not report.ok else ()
    return replace(report, repaired=repaired, repairable=repairable)


class _Schemas:
    """The schemas of a graph's states, read from files that may be damaged."""

    def __init__(self, context: CommitContext) -> None:
        self._context = context
        self._known: dict[str, Contract] = {}

    def of(self, state: ManifestState) -> Catalog:
        """The schema of a state, from the archive; a state that names no schema gets the first fitting archived schema."""
        name = state.schema_hash or ""
        if name not in self._known:
            store = self._context.store
            if state.schema_hash is None:
                self._known[name] = read_first(store, state, "")
            else:
                self._known[name] = read_archived(store, state.schema_hash, "")
        return self._known[name].catalog

    def damages(self) -> list[Damage]:
        """The damages of schema files, compared with each other and the manifest; archived files compared with their names."""
        from omnigraph.maintenance.verify_report import Damage, DamageKind, attempted
        from omnigraph.maintenance.verify_states import RESTORE

        store = self._context.store
        found = []
        contract = attempted(lambda: read_contract(store))
        if isinstance(contract, str):
            found.append(Damage(schema_files.COMPILED, DamageKind.DISAGREES, f"the schema files: {contract}", RESTORE))
        else:
            state = attempted(self._context.manifest.load)
            if isinstance(state, ManifestState) and state.schema_hash not in (None, contract.ir_hash):
                message = f"{schema_files.STATE} names another schema than the manifest"
                found.append(Damage(schema_files.STATE, DamageKind.DISAGREES, message, RESTORE))
        for info in store.list(schema_files.ARCHIVE):
            name = info.path.removeprefix(f"{schema_files.ARCHIVE}/").removesuffix(".ir.json")
            data = attempted(partial(store.get, info.path))
            if isinstance(data, str) or hashlib.sha256(data).hexdigest() != name:
                message = f"{info.path} is not the schema that its name says"
                found.append(Damage(info.path, DamageKind.CONTENT, message, RESTORE))
        return found
