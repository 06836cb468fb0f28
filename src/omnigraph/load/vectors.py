"""Makes vectors from texts in a load, for rows that give the source text of an `@embed` property but not the vector."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from omnigraph.embedding.embedder import Embedder, Matrix
from omnigraph.language.schema.catalog import Property
from omnigraph.load.batches import Batch
from omnigraph.load.parsed import Flags
from omnigraph.values.columns import arrow_type, table_schema

#: How many texts are sent to the provider, and kept in memory, at once.
TEXTS_AT_ONCE = 4096


def embedded(batch: Batch, embedder: Embedder) -> Batch:
    """The batch with the missing vectors made."""
    table = batch.table
    for name, unmade in batch.unmade.items():
        if unmade.any():
            place = table.schema.get_field_index(name)
            filled = _filled(table, batch.entity.properties[name], unmade, embedder)
            table = table.set_column(place, table.schema.field(place), filled)
    table = pa.Table.from_arrays(table.columns, schema=table_schema(batch.entity))
    done = {name: np.zeros_like(flags) for name, flags in batch.unmade.items()}
    return Batch(batch.entity, table, batch.orders, batch.may_meet, batch.unfit, done)


def _filled(table: pa.Table, declared: Property, unmade: Flags, embedder: Embedder) -> pa.Array:
    assert declared.embed is not None
    kind = arrow_type(declared.type)
    texts = table[declared.embed.source].combine_chunks().filter(pa.array(unmade))
    made = [
        pa.FixedSizeListArray.from_arrays(pa.array(matrix.ravel()), type=kind)
        for matrix in _vectors(texts, kind.list_size, declared.embed.model, embedder)
    ]
    column = table[declared.name].combine_chunks()
    places = np.arange(len(column))
    places[unmade] = len(column) + np.arange(int(unmade.sum()))
    return pa.concat_arrays([column, *made]).take(pa.array(places))


def _vectors(texts: pa.Array, dimension: int, model: str | None, embedder: Embedder) -> Iterator[Matrix]:
    for start in range(0, len(texts), TEXTS_AT_ONCE):
        some = texts.slice(start, TEXTS_AT_ONCE)
        encoded = some.dictionary_encode()
        distinct = embedder.embed_documents(encoded.dictionary.to_pylist(), dimension, model)
        yield distinct[encoded.indices.to_numpy()]
