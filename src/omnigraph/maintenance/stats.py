"""Statistics: the size of each type, the layout of its storage, and what maintenance would gain. Reads no rows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

from lance.optimize import CompactionTask

from omnigraph.commit.branch_refs import MANIFEST_PATH
from omnigraph.commit.branches import branch_names
from omnigraph.commit.config import read_config
from omnigraph.commit.context import CommitContext
from omnigraph.commit.model import MAIN, TableEntry, sorted_entries
from omnigraph.language.schema.catalog import Catalog
from omnigraph.maintenance.index_plan import Entity
from omnigraph.maintenance.optimize import PendingIndex, pending_indexes
from omnigraph.maintenance.table_upkeep import missing_rows, survey
from omnigraph.shown import Shown
from omnigraph.storage.tables.dataset_files import DatasetFiles, list_dataset, names_of
from omnigraph.storage.tables.location import Location
from omnigraph.storage.tables.staged import compaction_tasks
from omnigraph.storage.tables.table import Table


@dataclass(frozen=True, slots=True)
class IndexStats:
    """One index of a table, with the number of rows it covers and does not cover yet."""

    name: str
    column: str
    kind: str
    rows: int
    uncovered_rows: int


@dataclass(frozen=True, slots=True)
class TableStats:
    """One type. `bytes`: the data of its published version; `stored_bytes`: all files of its table on all branches.

    `fragments_to_compact`: how many fragments optimize would merge; `reclaimable_bytes`: the size of files that no branch
    needs now, which cleanup can remove once their commits need not be kept.
    """

    type_key: str
    rows: int
    deleted_rows: int
    fragments: int
    fragments_to_compact: int
    versions: int
    bytes: int
    stored_bytes: int
    reclaimable_bytes: int
    indexes: tuple[IndexStats, ...]
    pending_indexes: tuple[PendingIndex, ...]
    stale_indexes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class GraphStats(Shown):
    """The statistics of a branch. `config`: the settings of the graph, as in `Graph.config`."""

    branch: str
    commit: str
    manifest_versions: int
    manifest_bytes: int
    tables: tuple[TableStats, ...]
    config: dict[str, str] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values, ready for JSON."""
        return asdict(self)


def graph_stats(context: CommitContext, catalog: Catalog, branch: str) -> GraphStats:
    """The statistics of every type on a branch."""
    state = context.manifest.load(branch)
    entities: Iterable[Entity] = [*catalog.nodes.values(), *catalog.edges.values()]
    by_identity = {(entity.id, entity.incarnation): entity for entity in entities}
    published = _published(context)
    manifest = list_dataset(context.store, MANIFEST_PATH)
    line = manifest.lines.get(None if branch == MAIN else branch)
    return GraphStats(
        branch=branch,
        commit=state.head,
        manifest_versions=len(line.versions) if line is not None else 0,
        manifest_bytes=manifest.size,
        tables=tuple(
            _table_stats(context, by_identity.get(entry.identity), entry, published.get(entry.path, []))
            for entry in sorted_entries(state.tables.values())
        ),
        config=read_config(context.store),
    )


def _published(context: CommitContext) -> dict[str, list[tuple[Location, int]]]:
    """By path, every version of a table that a branch publishes now."""
    found: dict[str, set[tuple[Location, int]]] = {}
    for name in branch_names(context):
        for entry in context.manifest.load(name).tables.values():
            found.setdefault(entry.path, set()).add((entry.location, entry.version))
    return {path: sorted(points, key=lambda point: point[1]) for path, points in found.items()}


def _table_stats(
    context: CommitContext, entity: Entity | None, entry: TableEntry, published: list[tuple[Location, int]]
) -> TableStats:
    table = context.tables.open(entry.location, entry.version)
    fragments = [fragment.metadata for fragment in table.dataset.get_fragments()]
    files = list_dataset(context.store, entry.path)
    found = None if entity is None else survey(entity, table)
    tasks = found.tasks if found is not None else compaction_tasks(table)
    return TableStats(
        type_key=entry.key,
        rows=entry.row_count,
        deleted_rows=sum(fragment.physical_rows - fragment.num_rows for fragment in fragments),
        fragments=len(fragments),
        fragments_to_compact=_fragments_in(tasks),
        versions=sum(len(line.versions) for line in files.lines.values()),
        bytes=sum(file.file_size_bytes or 0 for fragment in fragments for file in fragment.files),
        stored_bytes=files.size,
        reclaimable_bytes=files.size - _needed_bytes(context, files, published),
        indexes=_index_stats(table),
        pending_indexes=pending_indexes(found.indexes if found is not None else None),
        stale_indexes=tuple(
            sorted({*found.stale, *(build.index.name for build in found.indexes.builds)}) if found is not None else ()
        ),
    )


def _fragments_in(tasks: Iterable[CompactionTask]) -> int:
    return sum(len(task.fragments) for task in tasks)


def _needed_bytes(context: CommitContext, files: DatasetFiles, published: list[tuple[Location, int]]) -> int:
    """The size in bytes of the files that the published versions of all branches need."""
    names: set[str] = set()
    needed = 0
    for location, version in published:
        names |= names_of(context.tables, location, version)
        line = files.lines.get(location.branch)
        if line is not None:
            needed += sum(info.size for info in line.transactions.get(version, ()))
            needed += line.versions[version].size if version in line.versions else 0
    lines = files.lines.values()
    return needed + sum(
        info.size for line in lines for name, infos in line.named.items() if name in names for info in infos
    )


def _index_stats(table: Table) -> tuple[IndexStats, ...]:
    return tuple(
        IndexStats(index.name, ", ".join(index.columns), index.kind, index.rows, missing_rows(table, index))
        for index in table.indices()
    )
