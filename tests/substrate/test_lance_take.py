"""Rows by their stable row ids, in the order asked for; `omnigraph.storage.tables.table` relies on it."""

from __future__ import annotations

from pathlib import Path

import lance
import pyarrow as pa


def test_rows_are_taken_by_stable_id_in_order(tmp_path: Path) -> None:
    """After updates, deletes and compaction a row id still names its row, and the answer keeps the order of the ids."""
    table = pa.table({"id": [f"r{number}" for number in range(40)], "value": range(40)})
    dataset = lance.write_dataset(table, tmp_path / "t", max_rows_per_file=10, enable_stable_row_ids=True)
    dataset.update({"value": "value + 100"}, where="id in ('r3', 'r31')")
    dataset.delete("id in ('r0', 'r15')")
    dataset.optimize.compact_files(target_rows_per_fragment=100)
    dataset = lance.dataset(tmp_path / "t")
    found = dataset.scanner(columns=["id", "value"], with_row_id=True).to_table().to_pylist()
    wanted = sorted(found, key=lambda row: -row["value"])[:7]
    taken = dataset._take_rows([row["_rowid"] for row in wanted], ["value", "id"])
    assert taken.column_names == ["value", "id"]
    assert taken.to_pylist() == [{"value": row["value"], "id": row["id"]} for row in wanted]
