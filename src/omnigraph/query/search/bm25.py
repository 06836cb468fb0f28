"""bm25: how well texts answer a query, by how rare its tokens are and how often a text holds them."""

from __future__ import annotations

from collections import Counter
from math import log

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.language.query.ir import Bm25
from omnigraph.query.run import Run
from omnigraph.query.search.analyser import tokens

_K1 = 1.2
_B = 0.75


def bm25(ranking: Bm25, texts: pa.Array, run: Run) -> pa.Array:
    """The score of each text among these texts; 0 for one that is null or holds no token of the query."""
    query = run.value(ranking.query)
    assert query is None or isinstance(query, str)
    wanted = dict.fromkeys(tokens(query)) if query else {}
    encoded = pc.dictionary_encode(texts)
    counted = [Counter(tokens(text)) if text is not None else Counter() for text in encoded.dictionary.to_pylist()]
    weights = np.bincount(pc.drop_null(encoded.indices).to_numpy(zero_copy_only=False), minlength=len(counted))
    lengths = np.array([counts.total() for counts in counted], np.float64)
    documents = float(weights.sum())
    average = float((lengths * weights).sum() / documents) if documents else 0.0
    total = np.zeros(len(counted) + 1)
    for token in wanted:
        often = np.array([counts[token] for counts in counted], np.float64)
        holding = float(weights[often > 0].sum())
        rarity = log(1 + (documents - holding + 0.5) / (holding + 0.5))
        norm = _K1 * (1 - _B + _B * lengths / average) if average else _K1
        total[:-1] += rarity * often * (_K1 + 1) / (often + norm)
    places = pc.fill_null(encoded.indices, len(counted)).to_numpy(zero_copy_only=False)
    return pa.array(total[places])
