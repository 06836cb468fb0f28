"""What is used of Lance beyond its public API is still there and means the same."""

from __future__ import annotations

from pathlib import Path

import lance
import pyarrow as pa

from omnigraph.storage.tables.lance_private import copy_scanner_settings_once, data_file_name


def test_the_name_of_a_data_file_is_its_path(tmp_path: Path) -> None:
    dataset = lance.write_dataset(pa.table({"n": range(5)}), str(tmp_path / "t"), max_rows_per_file=2)
    files = [file for fragment in dataset.get_fragments() for file in fragment.metadata.files]
    assert len(files) == 3
    assert [data_file_name(file) for file in files] == [str(file.path) for file in files]
    assert all((tmp_path / "t" / "data" / data_file_name(file)).is_file() for file in files)
    assert type(data_file_name(files[0])) is str


def test_a_scanner_keeps_settings_that_its_caller_can_not_change(tmp_path: Path) -> None:
    copy_scanner_settings_once()
    dataset = lance.write_dataset(pa.table({"n": range(5), "m": range(5)}), str(tmp_path / "t"))
    columns = ["n"]
    scanner = dataset.scanner(columns=columns, filter="n > 2", batch_size=2)
    kept = scanner._snapshot
    columns.append("m")
    assert kept is not None
    assert (kept["_columns"], kept["_filter"], kept["_batch_size"]) == (["n"], "n > 2", 2)
    assert "ds" not in kept
    assert scanner.to_pandas()["n"].tolist() == [3, 4]
