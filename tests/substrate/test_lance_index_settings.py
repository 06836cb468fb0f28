"""What Lance tells about an index, and when one can be trained. Relied on by `maintenance/`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from lance import LanceDataset, LanceOperation, Transaction
from lance.dataset import Index

from tests.substrate.lance_rows import appending, new_dataset


def commit(dataset: LanceDataset, *indexes: Index) -> LanceDataset:
    operation = LanceOperation.CreateIndex(new_indices=list(indexes), removed_indices=[])
    return LanceDataset.commit(dataset, Transaction(dataset.version, operation), max_retries=0)


def vectors(path: Path, values: Sequence[list[float] | None]) -> LanceDataset:
    column = pa.array(values, pa.list_(pa.float32(), 2))
    return lance.write_dataset(pa.table({"v": column}), str(path), enable_stable_row_ids=True)


def test_one_transaction_holds_several_indexes(tmp_path: Path) -> None:
    dataset = new_dataset(tmp_path / "table", indexed=False)
    fragments = [fragment.fragment_id for fragment in dataset.get_fragments()]
    built = [
        dataset.create_index_uncommitted(column, "BTREE", name=f"{column}_btree", fragment_ids=fragments)
        for column in ("id", "v")
    ]
    after = commit(dataset, *built)
    assert after.version == dataset.version + 1
    assert [index.name for index in after.describe_indices()] == ["id_btree", "v_btree"]


def test_statistics_tell_the_stop_words_that_the_description_leaves_out(tmp_path: Path) -> None:
    dataset = new_dataset(tmp_path / "table", indexed=False)
    fragments = [fragment.fragment_id for fragment in dataset.get_fragments()]
    options: dict[str, Any] = {"custom_stop_words": ["old"], "stem": False}
    segment = dataset.create_index_uncommitted("v", "INVERTED", name="text", fragment_ids=fragments, **options)
    after = commit(dataset, dataset.merge_existing_index_segments([segment]))
    (described,) = after.describe_indices()
    assert (described.details["stem"], described.details["custom_stop_words"]) == (False, None)
    after = LanceDataset.commit(after, appending(after, [50]), max_retries=0)
    after.optimize.optimize_indices()
    for segment in after.stats.index_stats("text")["indices"]:
        assert {name: segment["params"][name] for name in options} == options


def test_a_vector_index_keeps_its_metric_and_partitions(tmp_path: Path) -> None:
    dataset = vectors(tmp_path / "table", [[1.0, 0.0], [0.0, 1.0]])
    segment = dataset.create_index_uncommitted(
        "v", "IVF_FLAT", name="near", fragment_ids=[0], metric="cosine", num_partitions=1
    )
    after = commit(dataset, segment)
    after.insert(pa.table({"v": pa.array([[1.0, 1.0]], pa.list_(pa.float32(), 2))}))
    after.optimize.optimize_indices()
    after.optimize.compact_files()
    (described,) = after.describe_indices()
    assert described.details["metric_type"] == "COSINE"
    assert len(after.get_ivf_model("near").centroids) == 1


@pytest.mark.parametrize(
    ("metric", "values", "trains"),
    [
        ("l2", [[0.0, 0.0]], True),
        ("dot", [[0.0, 0.0]], True),
        ("l2", [None], False),
        ("cosine", [[0.0, 0.0]], False),
        ("cosine", [[1e-30, 0.0]], False),
        ("cosine", [[0.0, 0.0], [0.0, 1.0]], True),
    ],
)
def test_one_vector_is_enough_to_train_on(
    tmp_path: Path, metric: str, values: Sequence[list[float] | None], trains: bool
) -> None:
    """For cosine a vector counts only when its length, in single precision, is not zero."""
    dataset = vectors(tmp_path / "table", values)
    build: dict[str, Any] = {"name": "near", "fragment_ids": [0], "metric": metric, "num_partitions": 1}
    if trains:
        assert commit(dataset, dataset.create_index_uncommitted("v", "IVF_FLAT", **build)).describe_indices()
    else:
        with pytest.raises(RuntimeError, match="KMeans cannot train"):
            dataset.create_index_uncommitted("v", "IVF_FLAT", **build)
