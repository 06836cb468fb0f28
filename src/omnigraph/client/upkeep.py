"""The verbs about the storage of a graph and its settings, as generators of requests; the server carries them out."""

from __future__ import annotations

from collections.abc import Collection
from datetime import timedelta
from typing import Any, Literal, TypeVar

from omnigraph.client.handle import Handle, refuse_actor, storage_only, words
from omnigraph.client.requests import Ask, get
from omnigraph.commit.audit import Recovery
from omnigraph.maintenance.cleanup import CleanupReport
from omnigraph.maintenance.indexes import IndexReport
from omnigraph.maintenance.optimize import OptimizeReport
from omnigraph.maintenance.stats import GraphStats
from omnigraph.maintenance.workplace import UpkeepProgress
from omnigraph.wire.failures import LIBRARY
from omnigraph.wire.results import report_of

Report = TypeVar("Report")


def stats(handle: Handle, branch: str | None = None) -> Ask[GraphStats]:
    """Rows, fragments, versions, bytes and index coverage of each type, and what maintenance would gain."""
    told = yield from get("/stats", {"branch": handle._named(branch)})
    return report_of(GraphStats, told)


def config(handle: Handle) -> Ask[dict[str, str]]:
    """The value of every setting of the graph by its name."""
    told = yield from get("/config")
    found: dict[str, str] = told["config"]
    return found


def set_config(
    handle: Handle,
    name: str,
    value: str | None,
    *,
    actor: str | None = None,
    idempotency_key: str | None = None,
) -> Ask[dict[str, str]]:
    """Set a setting for everybody who works on this graph, or with None give it its default back; returns all settings."""
    refuse_actor(actor)
    told = yield from handle._put("/config", {"name": name, "value": value}, idempotency_key)
    found: dict[str, str] = told["config"]
    return found


def recoveries(handle: Handle) -> Ask[list[Recovery]]:
    """Every completed recovery of this graph."""
    told = yield from get("/recoveries")
    return [report_of(Recovery, found) for found in told["recoveries"]]


def ensure_indices(
    handle: Handle,
    branch: str | None = None,
    *,
    types: Collection[str] | str | None = None,
    actor: str | None = None,
    message: str | None = None,
    engine: Literal["auto", "local", "spark"] = "auto",
    progress: UpkeepProgress | None = None,
    dry_run: bool = False,
    idempotency_key: str | None = None,
) -> Ask[IndexReport]:
    """Build the indexes that are declared and missing, in one commit. `progress` is not called."""
    body = {"branch": handle._named(branch), "dry_run": dry_run, "message": message, "types": words(types)}
    return (yield from _worked(handle, IndexReport, "/ensure-indices", body, actor, engine, idempotency_key))


def optimize(
    handle: Handle,
    branch: str | None = None,
    *,
    actor: str | None = None,
    message: str | None = None,
    engine: Literal["auto", "local", "spark"] = "auto",
    progress: UpkeepProgress | None = None,
    dry_run: bool = False,
    idempotency_key: str | None = None,
) -> Ask[OptimizeReport]:
    """Compact the tables of a branch and complete their indexes, in one commit. `progress` is not called."""
    body = {"branch": handle._named(branch), "dry_run": dry_run, "message": message}
    return (yield from _worked(handle, OptimizeReport, "/optimize", body, actor, engine, idempotency_key))


def cleanup(
    handle: Handle,
    *,
    keep: int | None = None,
    older_than: timedelta | str | None = None,
    dry_run: bool = False,
    actor: str | None = None,
    idempotency_key: str | None = None,
) -> Ask[CleanupReport]:
    """Remove old versions and what nothing refers to any more; with `dry_run` only say what that would be."""
    age = f"{int(older_than.total_seconds())}s" if isinstance(older_than, timedelta) else older_than
    body = {"keep": keep, "older_than": age, "dry_run": dry_run}
    return (yield from _worked(handle, CleanupReport, "/cleanup", body, actor, "auto", idempotency_key))


def _worked(
    handle: Handle,
    kind: type[Report],
    path: str,
    body: dict[str, Any],
    actor: str | None,
    engine: str,
    idempotency_key: str | None,
) -> Ask[Report]:
    refuse_actor(actor)
    storage_only("served upkeep", engine=(engine, "auto"))
    told = yield from handle._written(path, body, idempotency_key)
    return report_of(kind, told[LIBRARY])
