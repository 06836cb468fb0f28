"""Index segments of some fragments each, merged. Relied on by `maintenance/index_building.py`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest
from lance import LanceDataset, LanceOperation, Transaction

WIDTH = 8
NEIGHBOURS = 20


def vectors(seed: int, scale: float) -> pa.Table:
    numbers = np.random.default_rng(seed).random((400, WIDTH)).astype("f4") * scale
    column = pa.FixedSizeListArray.from_arrays(pa.array(numbers.ravel()), WIDTH)
    return pa.table({"n": range(seed * 400, seed * 400 + 400), "v": column})


def new_dataset(path: Path) -> LanceDataset:
    """Two fragments whose vectors are of different length."""
    lance.write_dataset(vectors(0, 1.0), str(path), enable_stable_row_ids=True, data_storage_version="2.2")
    return lance.write_dataset(vectors(1, 4.0), str(path), mode="append")


def indexed(dataset: LanceDataset, column: str, kind: str, groups: list[list[int]], **options: Any) -> LanceDataset:
    segments = [
        dataset.create_index_uncommitted(column, kind, name="ix", fragment_ids=group, **options) for group in groups
    ]
    merged = segments[0] if len(segments) == 1 else dataset.merge_existing_index_segments(segments)
    operation = LanceOperation.CreateIndex(new_indices=[merged], removed_indices=[])
    return LanceDataset.commit(dataset, Transaction(dataset.version, operation), max_retries=0)


def nearest(dataset: LanceDataset, **options: Any) -> set[int]:
    wanted = {"column": "v", "q": np.full(WIDTH, 0.5, "f4"), "k": NEIGHBOURS, "metric": "l2", **options}
    return set(dataset.to_table(columns=["n", "_distance"], nearest=wanted)["n"].to_pylist())


def found(path: Path, groups: list[list[int]], kind: str) -> float:
    """The share of the nearest neighbours that an index over some groups of fragments finds, looking everywhere."""
    dataset = new_dataset(path)
    centroids = np.array([[0.5] * WIDTH, [2.0] * WIDTH], "f4")
    after = indexed(dataset, "v", kind, groups, metric="l2", num_partitions=2, ivf_centroids=centroids)
    return len(nearest(after, minimum_nprobes=2) & nearest(dataset, use_index=False)) / NEIGHBOURS


def test_a_merged_ordered_index_is_one_segment_that_finds_all(tmp_path: Path) -> None:
    after = indexed(new_dataset(tmp_path / "t"), "n", "BTREE", [[0], [1]])
    (index,) = after.describe_indices()
    assert [sorted(segment.fragment_ids) for segment in index.segments] == [[0, 1]]
    assert "ScalarIndexQuery" in after.scanner(filter="n in (3, 777)").explain_plan()
    assert after.to_table(filter="n in (3, 777)").num_rows == 2


@pytest.mark.parametrize(("kind", "keeps"), [("IVF_FLAT", True), ("IVF_SQ", False)])
def test_segments_of_vectors_in_bytes_lose_their_scale_when_merged(tmp_path: Path, kind: str, keeps: bool) -> None:
    assert found(tmp_path / "at once", [[0, 1]], kind) >= 0.8
    assert (found(tmp_path / "merged", [[0], [1]], kind) >= 0.8) == keeps
