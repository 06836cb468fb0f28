"""Vectors computed from texts, for inserted rows that give the source text but not the vector."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.embedding.embedder import Embedder, Matrix
from omnigraph.language.schema.catalog import Embed, Property
from omnigraph.mutation.staging import Pending, Staging
from omnigraph.values.columns import arrow_type


class TextVectors:
    """The vectors of one mutation's texts. Each text is embedded once, even if the mutation is restarted."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._known: dict[tuple[str, int, str | None], Matrix] = {}

    def of(self, texts: Sequence[str], dimension: int, model: str | None) -> Matrix:
        """One vector per text; the provider is asked once, for all new texts."""
        fresh = [text for text in dict.fromkeys(texts) if (text, dimension, model) not in self._known]
        if fresh:
            made = self._embedder.embed_documents(fresh, dimension, model)
            self._known.update({(text, dimension, model): vector for text, vector in zip(fresh, made, strict=True)})
        return np.stack([self._known[text, dimension, model] for text in texts])


def embed_missing(staging: Staging, vectors: TextVectors) -> None:
    """Compute the `@embed` vectors that inserts left out although their source is given."""
    for pending in staging:
        for declared in pending.entity.properties.values():
            if declared.embed is not None:
                _embed_property(pending, declared, declared.embed, vectors)


def _embed_property(pending: Pending, declared: Property, embed: Embed, vectors: TextVectors) -> None:
    image = pending.image()
    left_out = pc.is_in(image["id"], value_set=pending.left_out(declared.name))
    # A later statement may have given the vector, or removed the source.
    unmade = pc.and_(pc.is_null(image[declared.name]), pc.is_valid(image[embed.source]))
    rows = pc.indices_nonzero(pc.and_(left_out, unmade))
    if not len(rows):
        return
    kind = arrow_type(declared.type)
    made = vectors.of(image[embed.source].take(rows).to_pylist(), kind.list_size, embed.model)
    pending.fill(declared.name, rows, pa.FixedSizeListArray.from_arrays(pa.array(made.ravel()), type=kind))
