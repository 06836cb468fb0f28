"""Whole lines and tables that nothing names: forks of deleted branches or dead writers, dropped tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

import pyarrow.compute as pc

from omnigraph.commit import rows
from omnigraph.commit.branch_refs import MANIFEST_PATH
from omnigraph.commit.context import CommitContext
from omnigraph.commit.model import MAIN, identity_text
from omnigraph.errors import Conflict
from omnigraph.maintenance.reachable import Kept, NamedLines
from omnigraph.maintenance.retention import KeptBranch
from omnigraph.storage.objects import ObjectInfo
from omnigraph.storage.tables.commit import delete_lance_branch, drop_table
from omnigraph.storage.tables.dataset_files import DatasetFiles
from omnigraph.storage.tables.lance_errors import Missing, translated
from omnigraph.storage.tables.location import Location

#: The folders that hold tables.
TABLE_FOLDERS = ("nodes", "edges")


@dataclass(frozen=True, slots=True)
class DroppedTable:
    """A table that no kept state names. `key`: its type; None for a folder that was never a published table."""

    path: str
    key: str | None
    size: int
    versions: int


def orphaned_lines(
    files: DatasetFiles, kept: Kept, branches: Sequence[KeptBranch], states: NamedLines
) -> list[Location]:
    """The lines of a dataset that no kept state names, including lines without a ref, which a crash left."""
    names = {branch for branch in files.lines if branch is not None} | files.refs
    unnamed = [Location(files.path, name) for name in sorted(names) if Location(files.path, name) not in kept]
    if not unnamed:
        return []
    if files.path == MANIFEST_PATH:
        # The ref decides whether a branch exists, and every branch with a ref is kept.
        return [location for location in unnamed if location.branch not in files.refs]
    named = states.by_any_state(branches)
    return [location for location in unnamed if location not in named]


def drop_line(context: CommitContext, location: Location) -> bool:
    """Remove a line; False if other lines were made from it and still exist, or its lock is held."""
    assert location.branch is not None
    if location.path == MANIFEST_PATH:
        with context.locks.try_hold(location.branch) as lock:
            return lock is not None and _drop(context, location, location.branch)
    return _drop(context, location, location.branch)


def _drop(context: CommitContext, location: Location, name: str) -> bool:
    try:
        delete_lance_branch(context.tables.open_dataset(Location(location.path)), name)
    except Missing:
        return True
    except Conflict:
        return False
    finally:
        context.tables.forget(location)
    return True


def dropped_tables(
    context: CommitContext,
    listed: dict[str, list[ObjectInfo]],
    kept: Kept,
    branches: Sequence[KeptBranch],
    states: NamedLines,
    abandoned_before: datetime,
    staging: Iterable[str],
) -> list[DroppedTable]:
    """Tables that no kept state names: dropped from the graph, or never published and old."""
    needed = {location.path for location in kept} | set(staging)
    unnamed = {path: infos for path, infos in listed.items() if path not in needed}
    if not unnamed:
        return []
    dropped = _tombstones(context)
    named = {location.path for location in states.by_any_state(branches)}
    found = []
    for path, infos in unnamed.items():
        key = dropped.get(path.rpartition("/")[2])
        was_abandoned = all(info.modified < abandoned_before for info in infos)
        if path not in named and (key is not None or was_abandoned):
            versions = sum("/_versions/" in info.path and info.path.endswith(".manifest") for info in infos)
            found.append(DroppedTable(path, key, sum(info.size for info in infos), versions))
    return found


def remove_table(context: CommitContext, table: DroppedTable) -> None:
    """Remove a table with all its lines."""
    drop_table(context.tables, table.path, context.store.delete_prefix)


def table_folders(context: CommitContext) -> dict[str, list[ObjectInfo]]:
    """Every table folder with its files."""
    found: dict[str, list[ObjectInfo]] = {}
    for folder in TABLE_FOLDERS:
        for info in context.store.list(folder):
            found.setdefault("/".join(info.path.split("/")[:2]), []).append(info)
    return found


def _tombstones(context: CommitContext) -> dict[str, str]:
    """The type keys of the tables that were dropped on main, by folder name."""
    with translated(MANIFEST_PATH, "read"):
        table = context.manifest.warm(MAIN).dataset.to_table(
            columns=["table_key", "stable_table_id", "table_incarnation_id"],
            filter=pc.field("object_type") == rows.TOMBSTONE,
        )
    return {
        identity_text((row["stable_table_id"], row["table_incarnation_id"])): row["table_key"]
        for row in table.to_pylist()
    }
