"""History of formats 2 and 3: in `_graph_commits.lance` and `_graph_commit_actors.lance`, beside the manifest."""

from __future__ import annotations

from urllib.parse import quote

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph import failpoints
from omnigraph.commit.branch_refs import read_ref
from omnigraph.commit.model import MAIN, Commit
from omnigraph.errors import StorageError
from omnigraph.storage.objects import ObjectStore
from omnigraph.storage.tables.handles import Tables
from omnigraph.storage.tables.location import Location

COMMITS_PATH = "_graph_commits.lance"
ACTORS_PATH = "_graph_commit_actors.lance"

_COLUMNS = {
    COMMITS_PATH: (
        "graph_commit_id",
        "manifest_branch",
        "manifest_version",
        "parent_commit_id",
        "merged_parent_commit_id",
        "created_at",
    ),
    ACTORS_PATH: ("graph_commit_id", "actor_id"),
}

failpoints.declare("migration.v3_to_v4.legacy_open")


def legacy_commits(store: ObjectStore, tables: Tables, branch: str) -> list[Commit]:
    """The old history of a branch, oldest first, with actors.

    Whether an old dataset is absent is asked of the object store. Any failure to open an existing dataset is an error: taking
    it for "no history" would lose the history for good.
    """
    rows = _branch_rows(store, tables, branch)
    actors = _actors(store, tables)
    commits = [_commit(row, actors) for row in _in_micros(rows).to_pylist()] if rows is not None else []
    return sorted(commits, key=lambda commit: (commit.manifest_version, commit.id))


def legacy_head(commits: list[Commit], version: int) -> Commit | None:
    """The newest commit of an old history up to a manifest version; None when there is none."""
    known = [commit for commit in commits if commit.manifest_version <= version]
    return known[-1] if known else None


def _branch_rows(store: ObjectStore, tables: Tables, branch: str) -> pa.Table | None:
    if not store.exists(COMMITS_PATH):
        return None
    if branch == MAIN:
        return _read(tables, Location(COMMITS_PATH))
    if store.exists(f"{COMMITS_PATH}/_refs/branches/{quote(branch, safe='')}.json"):
        return _read(tables, Location(COMMITS_PATH, branch))
    # The branch never had commits of its own: use the commits of its parent up to the fork.
    ref = read_ref(store, branch)
    inherited = _branch_rows(store, tables, ref.parent) if ref is not None else None
    if inherited is None or ref is None:
        return inherited
    return inherited.filter(pc.field("manifest_version") <= ref.parent_version)


def _actors(store: ObjectStore, tables: Tables) -> dict[str, str]:
    if not store.exists(ACTORS_PATH):
        return {}
    table = _read(tables, Location(ACTORS_PATH))
    return dict(zip(table["graph_commit_id"].to_pylist(), table["actor_id"].to_pylist(), strict=True))


def _read(tables: Tables, location: Location) -> pa.Table:
    failpoints.hit("migration.v3_to_v4.legacy_open")
    table = tables.open_head(location)
    columns = _COLUMNS[location.path]
    if table is None or not set(columns) <= set(table.schema.names):
        raise StorageError(
            f"{location.path} exists but is no readable history; it must not be lost: restore it from a backup",
            kind="permanent",
            path=location.path,
        )
    return table.read(columns)


def _in_micros(rows: pa.Table) -> pa.Table:
    """The rows with `created_at` in microseconds since the epoch, whether it was stored as a number or as a timestamp."""
    times = rows["created_at"]
    if pa.types.is_timestamp(times.type):
        times = times.cast(pa.timestamp("us", tz=times.type.tz))
    return rows.set_column(rows.schema.get_field_index("created_at"), "created_at", times.cast(pa.int64()))


def _commit(row: dict[str, object], actors: dict[str, str]) -> Commit:
    commit_id = str(row["graph_commit_id"])
    parent, merged = row["parent_commit_id"], row["merged_parent_commit_id"]
    kind = "merge" if merged is not None else "mutation" if parent is not None else "init"
    return Commit(
        id=commit_id,
        branch=str(row["manifest_branch"] or MAIN),
        parent=str(parent) if parent is not None else None,
        merged_parent=str(merged) if merged is not None else None,
        actor=actors.get(commit_id),
        created_at=int(row["created_at"]),  # type: ignore[call-overload]
        manifest_version=int(row["manifest_version"]),  # type: ignore[call-overload]
        kind=kind,
    )
