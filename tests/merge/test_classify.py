"""The table of a three-way merge, cell by cell."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from omnigraph.merge.classify import Op, Strategy, Verdict, classify, decide, unopposed
from omnigraph.merge.combine import align, mix

#: What ours has of an entity: (present, as theirs, as the base).
ABSENT, AS_THEIRS, AS_BASE, DIFFERENT = (
    (False, False, False),
    (True, True, False),
    (True, False, True),
    (True, False, False),
)
TABLE = [
    ("insert", ABSENT, Verdict.INSERT, Verdict.INSERT),
    ("insert", AS_THEIRS, Verdict.KEEP, Verdict.KEEP),
    ("insert", DIFFERENT, Verdict.DIVERGENT_INSERT, Verdict.REPLACE),
    ("update", ABSENT, Verdict.DELETE_VS_UPDATE, Verdict.INSERT),
    ("update", AS_THEIRS, Verdict.KEEP, Verdict.KEEP),
    ("update", AS_BASE, Verdict.REPLACE, Verdict.REPLACE),
    ("update", DIFFERENT, Verdict.DIVERGENT_UPDATE, Verdict.REPLACE),
    ("delete", ABSENT, Verdict.KEEP, Verdict.KEEP),
    ("delete", AS_BASE, Verdict.DELETE, Verdict.DELETE),
    ("delete", DIFFERENT, Verdict.DELETE_VS_UPDATE, Verdict.DELETE),
]


@pytest.mark.parametrize(("op", "ours", "verdict", "for_theirs"), TABLE)
def test_cell(op: Op, ours: tuple[bool, bool, bool], verdict: Verdict, for_theirs: Verdict) -> None:
    masks = [np.array([value]) for value in ours]
    found = classify(op, *masks)
    assert found.tolist() == [verdict]
    strategies: dict[Strategy, Verdict] = {
        "ours": Verdict.KEEP if verdict >= Verdict.DIVERGENT_INSERT else verdict,
        "theirs": for_theirs,
    }
    for strategy, expected in strategies.items():
        assert decide(strategy, op, found, masks[0]).tolist() == [expected]


@pytest.mark.parametrize(("op", "verdict"), [("insert", 1), ("update", 2), ("delete", 3)])
def test_without_opposition_theirs_takes_effect(op: Op, verdict: int) -> None:
    assert unopposed(op, 2).tolist() == [verdict, verdict]


def test_align() -> None:
    rows, present = align(pa.table({"id": ["b", "a"], "n": [2, 1]}), pa.array(["a", "x", "b"]))
    assert present.tolist() == [True, False, True]
    assert [rows["n"][place].as_py() for place in (0, 2)] == [1, 2]
    empty, present = align(pa.table({"id": pa.array([], pa.string()), "n": pa.array([], pa.int32())}), pa.array(["a"]))
    assert (empty.num_rows, present.tolist()) == (1, [False])


def test_mix() -> None:
    ours = pa.table({"id": ["a", "b"], "n": [1, 2], "v": [[1.0], None]})
    theirs = pa.table({"id": ["a", "b"], "n": [None, 20], "v": [[9.0], [8.0]]})
    marks = {"n": np.array([True, False]), "v": np.array([False, True])}
    assert mix(ours, theirs, marks).to_pylist() == [
        {"id": "a", "n": None, "v": [1.0]},
        {"id": "b", "n": 2, "v": [8.0]},
    ]
