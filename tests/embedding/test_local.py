"""The local model: what it says without its packages, and what its vectors mean with them."""

from __future__ import annotations

import numpy as np
import pytest

from omnigraph.embedding.embedder import Embedder
from omnigraph.embedding.local import is_installed
from omnigraph.errors import EmbeddingError


def test_a_wrong_dimension_is_refused() -> None:
    with pytest.raises(EmbeddingError, match=r"declare Vector\(384\), not Vector\(3\)"):
        Embedder("local").embed_query("river", 3)


@pytest.mark.skipif(is_installed(), reason="the extra `local` is installed")
def test_without_the_extra() -> None:
    with pytest.raises(EmbeddingError, match=r"pip install 'omnigraph\[local\]'"):
        Embedder("local").embed_query("river", 384)


@pytest.mark.skipif(not is_installed(), reason="needs the extra `local`")
def test_near_in_meaning_is_near_in_space() -> None:
    texts = ["A river runs through the valley.", "Shares fell on the stock market.", "Bread is baked from flour."]
    embedder = Embedder("local")
    stored = embedder.embed_documents(texts, 384, "all-MiniLM-L6-v2")
    np.testing.assert_allclose(np.linalg.norm(stored, axis=1), 1, rtol=1e-6)
    for place, question in enumerate(["water flowing in a stream", "investors lost money", "how to make a loaf"]):
        likeness = stored @ np.array(embedder.embed_query(question, 384), np.float32)
        assert int(likeness.argmax()) == place
