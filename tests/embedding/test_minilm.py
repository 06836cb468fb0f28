"""The model in NumPy: words as pieces, the file of the weights, and vectors that agree with published similarities."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

from omnigraph.embedding.local import model_folder
from omnigraph.embedding.minilm import DIMENSION, MiniLM, Pieces, gelu, read_safetensors, words

VOCABULARY = [
    "[PAD]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "em",
    "##bed",
    "##ding",
    "##s",
    "of",
    "naive",
    "北",
    "京",
    "'",
    "$",
    "5",
]

with_weights = pytest.mark.skipif(model_folder() is None, reason="needs `omnigraph embed --fetch-local`")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Embeddings of NAÏVE", ["embeddings", "of", "naive"]),
        ("it's $5+tax", ["it", "'", "s", "$", "5", "+", "tax"]),
        ("北京x", ["北", "京", "x"]),
        ("a\tb\nc\u00a0d\u3000e", ["a", "b", "c", "d", "e"]),
        ("zero\u200bwidth\x00 \ufffd", ["zerowidth"]),
        ("«quoted»…", ["«", "quoted", "»", "…"]),
        ("", []),
        (" \n", []),
    ],
)
def test_words(text: str, expected: list[str]) -> None:
    assert list(words(text)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Embeddings", [4, 5, 6, 7]),
        ("of", [8]),
        ("embedxyz", [1]),
        ("unheard of", [1, 8]),
        ("x" * 101, [1]),
        ("naïve 北京", [9, 10, 11]),
    ],
)
def test_a_word_is_cut_into_the_longest_known_pieces(text: str, expected: list[int]) -> None:
    pieces = Pieces(VOCABULARY)
    assert pieces.ids(text) == expected
    assert pieces.marked(expected) == [2, *expected, 3]


def test_the_file_of_the_weights(tmp_path: Path) -> None:
    numbers = np.arange(6, dtype="<f4")
    header = json.dumps(
        {
            "__metadata__": {"format": "pt"},
            "ids": {"dtype": "I64", "shape": [1], "data_offsets": [0, 8]},
            "w": {"dtype": "F32", "shape": [2, 3], "data_offsets": [8, 32]},
        }
    ).encode()
    path = tmp_path / "model.safetensors"
    path.write_bytes(len(header).to_bytes(8, "little") + header + bytes(8) + numbers.tobytes())
    found = read_safetensors(path)
    assert list(found) == ["w"]
    np.testing.assert_array_equal(found["w"], numbers.reshape(2, 3))


def test_gelu() -> None:
    values = np.linspace(-6, 6, 241, dtype=np.float32)
    exact = [x * (1 + math.erf(x / math.sqrt(2))) / 2 for x in values.tolist()]
    np.testing.assert_allclose(gelu(values), exact, atol=1e-6)


@pytest.fixture(scope="module")
def model() -> MiniLM:
    folder = model_folder()
    assert folder is not None
    return MiniLM(folder)


@with_weights
def test_published_similarities(model: MiniLM) -> None:
    """The example of the quick start of Sentence Transformers, with four digits."""
    made = model.embed(["The weather is lovely today.", "It's so sunny outside!", "He drove to the stadium."])
    published = [[1, 0.6660, 0.1046], [0.6660, 1, 0.1411], [0.1046, 0.1411, 1]]
    np.testing.assert_allclose(made @ made.T, published, atol=1e-4)


@with_weights
def test_a_text_has_one_vector_whatever_it_is_asked_with(model: MiniLM) -> None:
    texts = [
        "short",
        "",
        "A longer text, of several words and marks.",
        "word " * 400,
        "word " * 300,
        *map(str, range(40)),
    ]
    together = model.embed(texts)
    assert together.shape == (len(texts), DIMENSION)
    np.testing.assert_allclose(np.linalg.norm(together, axis=1), 1, rtol=1e-5)
    for place in (0, 1, 2, 3, 20):
        np.testing.assert_allclose(model.embed([texts[place]])[0], together[place], atol=1e-5)
    # Both are cut after the same 254 pieces.
    np.testing.assert_allclose(together[3], together[4], atol=1e-5)
