"""What of a graph's files is referred to by the versions that are there."""

from __future__ import annotations

from omnigraph.commit.audit import AUDIT_PATH
from omnigraph.commit.branch_refs import MANIFEST_PATH
from omnigraph.commit.context import CommitContext
from omnigraph.maintenance.leftovers import table_folders
from omnigraph.storage.tables.dataset_files import list_dataset, names_of
from omnigraph.storage.tables.location import Location


def unreferenced(context: CommitContext) -> set[str]:
    """The files of data, deletions and indexes that no version names."""
    found: set[str] = set()
    for path in [MANIFEST_PATH, AUDIT_PATH, *table_folders(context)]:
        files = list_dataset(context.store, path)
        named: set[str] = set()
        for branch, line in files.lines.items():
            for version in line.versions:
                named |= names_of(context.tables, Location(path, branch), version)
        for line in files.lines.values():
            found |= {info.path for name, infos in line.named.items() if name not in named for info in infos}
    return found


def all_readable(context: CommitContext) -> None:
    """Read every row of every version that is there."""
    for path in [MANIFEST_PATH, *table_folders(context)]:
        for branch, line in list_dataset(context.store, path).lines.items():
            for version in line.versions:
                context.tables.open_dataset(Location(path, branch), version).to_table()


def version_count(context: CommitContext, path: str) -> int:
    return sum(len(line.versions) for line in list_dataset(context.store, path).lines.values())
