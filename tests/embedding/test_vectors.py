"""What a provider may answer, whichever it is."""

from __future__ import annotations

import numpy as np
import pytest

from omnigraph.embedding.embedder import unit_vectors
from omnigraph.errors import EmbeddingError

REFUSED = [
    pytest.param([], 1, "0 vectors for 1 texts", id="too few"),
    pytest.param([[1, 2], [1, 2]], 1, "2 vectors for 1 texts", id="too many"),
    pytest.param([[1, 2, 3]], 1, "3 numbers where the property has 2", id="too long"),
    pytest.param([[]], 1, "0 numbers where the property has 2", id="empty"),
    pytest.param([[1.0, float("nan")]], 1, "not finite", id="NaN"),
    pytest.param([[1.0, float("inf")]], 1, "not finite", id="infinite"),
    pytest.param([[1.0, 1e39]], 1, "not finite", id="too large for f32"),
    pytest.param([[3e38, 3e38]], 1, "not finite", id="length too large for f32"),
    pytest.param([[0.0, 0]], 1, "all zeros", id="zero"),
    pytest.param([[1, 0], [0.0, 0]], 2, "all zeros", id="one of two is zero"),
    pytest.param([[1.0, None]], 1, "not a list of numbers", id="null inside"),
    pytest.param([["1", "2"]], 1, "not a list of numbers", id="texts"),
    pytest.param([[True, False]], 1, "not a list of numbers", id="booleans"),
    pytest.param([[[1], [2]]], 1, "not a list of numbers", id="nested"),
    pytest.param([[[1], [2, 3]]], 1, "not a list of numbers", id="ragged"),
    pytest.param([None], 1, "not a list of numbers", id="null"),
    pytest.param(["ab"], 1, "not a list of numbers", id="base64 text"),
    pytest.param([{"a": 1}], 1, "not a list of numbers", id="object"),
]


@pytest.mark.parametrize(("answer", "count", "message"), REFUSED)
def test_refused(answer: list[object], count: int, message: str) -> None:
    with pytest.raises(EmbeddingError, match=message) as caught:
        unit_vectors(answer, count, 2, "openai")
    assert caught.value.provider == "openai"


def test_normalised() -> None:
    made = unit_vectors([[3, 4], [0.0, -2.0], [1e-30, 0]], 3, 2, "openai")
    assert made.dtype == np.float32
    assert made.tolist() == [[np.float32(0.6), np.float32(0.8)], [0.0, -1.0], [1.0, 0.0]]


def test_no_texts_no_vectors() -> None:
    assert unit_vectors([], 0, 4, "mock").shape == (0, 4)
