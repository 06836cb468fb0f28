"""One door: only `storage/tables/commit.py` calls what makes, moves or removes a version of a Lance dataset."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "src" / "omnigraph"
DOOR = SOURCE / "storage" / "tables" / "commit.py"

# Names that mean one thing only, whoever they are called on.
COMMITTING = {
    "add_bases",
    "add_columns",
    "alter_columns",
    "cleanup_old_versions",
    "commit_batch",
    "commit_existing_index_segments",
    "commit_transaction",
    "compact_files",
    "create_index",
    "create_scalar_index",
    "deep_clone",
    "delete_config_keys",
    "disable_auto_cleanup",
    "drop_index",
    "enable_auto_cleanup",
    "initialize_mem_wal",
    "mem_wal_writer",
    "merge_index_metadata",
    "migrate_manifest_paths_v2",
    "optimize_indices",
    "replace_field_metadata",
    "replace_metadata",
    "replace_schema",
    "shallow_clone",
    "truncate_table",
    "update_config",
    "update_field_metadata",
    "update_metadata",
    "update_schema_metadata",
    "write_dataset",
}
# Names that others have too: they count when they are called on something of Lance's.
COMMITTING_ON_LANCE = {
    "commit",
    "create_branch",
    "delete",
    "drop",
    "drop_columns",
    "execute",
    "insert",
    "merge",
    "replace_schema_metadata",
    "restore",
    "update",
}
OF_LANCE = re.compile(r"\b(LanceDataset|Compaction|merge_insert)\b|\b_?(dataset|ds)$|\b_?(dataset|ds)\(.*\)$")
COMMITTING_ON_REFS = {"create", "delete", "update"}
REFS = re.compile(r"\.(branches|tags)$")


def offences(source: str) -> list[str]:
    """The committing calls and imports of a module, with their lines."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "lance":
            found += [f"{node.lineno}: import {name.name}" for name in node.names if name.name in COMMITTING]
        if isinstance(node, ast.Attribute):
            receiver = ast.unparse(node.value)
            if (
                node.attr in COMMITTING
                or (node.attr in COMMITTING_ON_LANCE and OF_LANCE.search(receiver))
                or (node.attr in COMMITTING_ON_REFS and REFS.search(receiver))
            ):
                found.append(f"{node.lineno}: {receiver}.{node.attr}")
    return found


MODULES = sorted(path for path in SOURCE.rglob("*.py") if path != DOOR)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_only_the_commit_module_commits(path: Path) -> None:
    assert offences(path.read_text()) == []


def test_the_door_is_found_by_the_same_rules() -> None:
    assert len(offences(DOOR.read_text())) > 5


@pytest.mark.parametrize(
    "code",
    [
        "LanceDataset.commit(uri, transaction)",
        "lance.LanceDataset.commit(dataset, transaction, max_retries=0)",
        "lance.write_dataset(table, uri)",
        "from lance import write_dataset",
        "from lance.dataset import write_dataset as save",
        "table.dataset.delete('true')",
        "dataset.update({'a': '1'})",
        "self._dataset.insert(rows)",
        "ds.restore()",
        "lance.dataset(uri).delete('id = 1')",
        "dataset.merge_insert('id').when_matched_update_all().execute(rows)",
        "Compaction.commit(dataset, results)",
        "dataset.optimize.compact_files()",
        "handle.optimize.optimize_indices()",
        "warm.dataset.create_branch('b', 3)",
        "dataset.branches.delete('b')",
        "dataset.tags.create('t', 3)",
        "dataset.update_schema_metadata({})",
        "table.dataset.create_scalar_index('id', 'BTREE')",
        "table.dataset.drop_columns(['name'])",
        "dataset.replace_schema_metadata({})",
        "LanceDataset.drop(uri)",
        "commit = LanceDataset.commit",
    ],
)
def test_what_counts_as_committing(code: str) -> None:
    assert offences(code)


@pytest.mark.parametrize(
    "code",
    [
        "store.delete(path)",
        "options.update(more)",
        "branches.create_branch(context, name)",
        "rows.insert(0, row)",
        "batch.drop_columns(['name'])",
        "table.replace_schema_metadata({})",
        "dataset.merge_insert('id').when_matched_update_all().execute_uncommitted(rows)",
        "dataset.create_index_uncommitted('id', 'BTREE', fragment_ids=[0])",
        "dataset.merge_existing_index_segments(segments)",
        "fragment.delete_rows([1])",
        "write_fragments(rows, dataset, mode='append')",
        "Compaction.plan(dataset)",
        "task.execute(dataset)",
        "commit_staged(tables, staged)",
        "context.commit.publish()",
    ],
)
def test_what_does_not(code: str) -> None:
    assert offences(code) == []
