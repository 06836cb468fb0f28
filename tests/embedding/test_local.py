"""The local model: what it says without its weights, and what its vectors mean with them."""

from __future__ import annotations

import numpy as np
import pytest

from omnigraph.embedding import local
from omnigraph.embedding.embedder import Embedder
from omnigraph.embedding.local import model_folder
from omnigraph.errors import EmbeddingError


def test_a_wrong_dimension_is_refused() -> None:
    with pytest.raises(EmbeddingError, match=r"declare Vector\(384\), not Vector\(3\)"):
        Embedder("local").embed_query("river", 3)


def test_without_the_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "PACKAGE", "no_such_package")
    local._loaded.cache_clear()
    with pytest.raises(EmbeddingError, match="run `omnigraph embed --fetch-local`"):
        Embedder("local").embed_query("river", 384)


@pytest.mark.skipif(model_folder() is None, reason="needs `omnigraph embed --fetch-local`")
def test_near_in_meaning_is_near_in_space() -> None:
    texts = ["A river runs through the valley.", "Shares fell on the stock market.", "Bread is baked from flour."]
    embedder = Embedder("local")
    stored = embedder.embed_documents(texts, 384, "all-MiniLM-L6-v2")
    np.testing.assert_allclose(np.linalg.norm(stored, axis=1), 1, rtol=1e-6)
    for place, question in enumerate(["water flowing in a stream", "investors lost money", "how to make a loaf"]):
        likeness = stored @ np.array(embedder.embed_query(question, 384), np.float32)
        assert int(likeness.argmax()) == place
