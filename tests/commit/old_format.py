"""Graphs of formats 2 and 3, written the way those formats were: history beside the manifest, no fence, no heads."""

from __future__ import annotations

from dataclasses import dataclass, replace

import lance
import pyarrow as pa

from omnigraph.commit import rows
from omnigraph.commit.context import CommitContext
from omnigraph.commit.legacy import ACTORS_PATH, COMMITS_PATH
from omnigraph.commit.model import MAIN, Commit, TableEntry
from omnigraph.ids import new_ulid, now_micros
from omnigraph.storage.tables.commit import commit_staged, fork
from omnigraph.storage.tables.staged import stage_append
from tests.commit.org import STAFF, new_graph, staff

COMMITS = pa.schema(
    [
        pa.field("graph_commit_id", pa.string(), nullable=False),
        pa.field("manifest_branch", pa.string()),
        pa.field("manifest_version", pa.uint64(), nullable=False),
        pa.field("parent_commit_id", pa.string()),
        pa.field("merged_parent_commit_id", pa.string()),
        pa.field("created_at", pa.int64(), nullable=False),
    ]
)
ACTORS = pa.schema([pa.field("graph_commit_id", pa.string(), nullable=False), pa.field("actor_id", pa.string())])


@dataclass
class OldGraph:
    """A graph as an old OmniGraph would have left it, and the writer that makes it so."""

    context: CommitContext
    entries: dict[str, TableEntry]
    heads: dict[str, str]
    history: dict[str, list[Commit]]

    def commit(self, people: list[str], *, branch: str = MAIN, actor: str | None = "act-old") -> Commit:
        """Add staff and record it: table, manifest, history, actor, in this order and without one atomic step."""
        entry = self.entries[branch]
        tables = self.context.tables
        if branch != MAIN and entry.branch is None:
            entry = replace(entry, branch=fork(tables, entry.location, entry.version, new_ulid()).branch)
        staged = stage_append(tables.open(entry.location, entry.version), staff(people))
        version = commit_staged(tables, staged, expected_version=entry.version, transaction_id=new_ulid())
        entry = replace(entry, version=version, row_count=entry.row_count + len(people))
        self.entries[branch] = entry
        dataset = self.dataset("__manifest", branch)
        upsert = dataset.merge_insert("object_id").when_matched_update_all().when_not_matched_insert_all()
        upsert.execute(rows.to_arrow([rows.version_row(entry)]))
        return self.record(branch, actor, "mutation")

    def record(self, branch: str, actor: str | None, kind: str) -> Commit:
        version = self.dataset("__manifest", branch).version
        parent = self.heads.get(branch)
        commit = Commit(new_ulid(), branch, parent, None, actor, now_micros(), version, kind)
        self.append(COMMITS_PATH, branch, COMMITS, {
            "graph_commit_id": commit.id,
            "manifest_branch": None if branch == MAIN else branch,
            "manifest_version": version,
            "parent_commit_id": parent,
            "created_at": commit.created_at,
        })  # fmt: skip
        if actor is not None:
            self.append(ACTORS_PATH, MAIN, ACTORS, {"graph_commit_id": commit.id, "actor_id": actor})
        self.heads[branch] = commit.id
        self.history[branch].insert(0, commit)
        return commit

    def create_branch(self, name: str, base: str = MAIN, *, with_history: bool = True) -> None:
        """A branch of the manifest, and of the history that goes with it."""
        manifest = self.dataset("__manifest", base)
        manifest.create_branch(name, manifest.version)
        if with_history:
            commits = self.dataset(COMMITS_PATH, base)
            commits.create_branch(name, commits.version)
        self.entries[name] = self.entries[base]
        self.heads[name] = self.heads[base]
        self.history[name] = list(self.history[base])

    def append(self, path: str, branch: str, schema: pa.Schema, row: dict[str, object]) -> None:
        table = pa.Table.from_pylist([row], schema=schema)
        if self.context.store.exists(path):
            self.dataset(path, branch).insert(table)
        else:
            lance.write_dataset(table, self.context.root.lance_uri(path), enable_stable_row_ids=True)

    def dataset(self, path: str, branch: str = MAIN) -> lance.LanceDataset:
        return lance.dataset(self.context.root.lance_uri(path if branch == MAIN else f"{path}/tree/{branch}"))

    def stamp(self, branch: str = MAIN) -> int:
        return rows.stamp_of(self.dataset("__manifest", branch).schema)


def old_graph(uri: str, stamp: int = 3) -> OldGraph:
    """An old graph with a genesis commit: the tables of today, an old manifest over them."""
    context = new_graph(uri)
    tables = context.manifest.load().tables
    context.store.delete_prefix("__manifest")
    context.manifest.forget(MAIN)
    schema = rows.manifest_schema(stamp)
    first = [row for entry in tables.values() for row in (rows.table_row(entry), rows.version_row(entry))]
    lance.write_dataset(
        rows.to_arrow(first, schema),
        context.root.lance_uri("__manifest"),
        enable_stable_row_ids=True,
        data_storage_version="2.2",
    )
    graph = OldGraph(context, {MAIN: next(e for e in tables.values() if e.key == STAFF)}, {}, {MAIN: []})
    graph.record(MAIN, None, "init")
    return graph


def old_org(uri: str, stamp: int = 3) -> OldGraph:
    """Two commits on main, a branch with one of its own, and one more on main."""
    graph = old_graph(uri, stamp)
    graph.commit(["ada", "ben"], actor="act-ann")
    graph.create_branch("feature")
    graph.commit(["eve"], branch="feature", actor="act-eve")
    graph.commit(["cleo"], actor=None)
    return graph
