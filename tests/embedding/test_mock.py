"""The mock's vectors, pinned to bits that a C program written from the same definition gave."""

from __future__ import annotations

import numpy as np
import pytest

from omnigraph.embedding.embedder import Embedder

#: Components as the bits of their f32.
PINNED = [
    pytest.param("river", "3ef15114 bf035172 3f01044a bf02b862", id="SEA-18 word"),
    pytest.param("", "beec8d0d bf50ca28 beb25e34", id="SEA-18 empty"),
    pytest.param("größe 🌊", "3f0a7478 bf1c6503 3f140290", id="SEA-18 UTF-8"),
    pytest.param("a", "3f800000", id="SEA-18 one component"),
    pytest.param(
        "hello world",
        "3e60d9c8 bef01e13 be7b588c 3ed1c894 bdf737a0 3e3a1007 bf1638cd beab2f57",
        id="SEA-18 sentence",
    ),
]


def bits(vector: np.ndarray) -> list[str]:
    return [f"{value:08x}" for value in vector.view(np.uint32)]


@pytest.mark.parametrize(("text", "pinned"), PINNED)
def test_vectors_are_exact(text: str, pinned: str) -> None:
    expected = pinned.split()
    embedder = Embedder("mock")
    assert bits(embedder.embed_documents([text], len(expected))[0]) == expected
    assert bits(np.array(embedder.embed_query(text, len(expected)), np.float32)) == expected


@pytest.mark.row("SEA-18")
def test_a_long_vector_is_exact(row: list[str]) -> None:
    digest = 0
    for value in Embedder("mock").embed_documents(["river"], 3072)[0].view(np.uint32):
        digest = (digest * 0x100000001B3 + int(value)) % 2**64
    assert digest == 0xD6C8504D747193BD


def test_a_text_does_not_depend_on_its_neighbours() -> None:
    texts = ["river", "", "größe 🌊", "river"]
    together = Embedder("mock").embed_documents(texts, 16)
    alone = np.stack([Embedder("mock").embed_documents([text], 16)[0] for text in texts])
    assert together.tobytes() == alone.tobytes()
    assert together.dtype == np.float32
