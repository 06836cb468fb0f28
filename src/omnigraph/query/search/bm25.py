"""bm25 scores: how well texts match a query, by the rarity of its tokens and how often a text contains them."""

from __future__ import annotations

from collections.abc import Sequence
from math import log

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from lance.query import MatchQuery

from omnigraph.language.query.ir import Bm25
from omnigraph.query.rows import Rows
from omnigraph.query.run import Run
from omnigraph.query.scan.entities import Entities
from omnigraph.query.search.analyser import tokens, tokens_of_each
from omnigraph.storage.tables.lance_errors import translated
from omnigraph.storage.tables.table import ROW_ADDRESS, TableIndex
from omnigraph.values.columns import whole

_K1 = 1.2
_B = 0.75


def bm25(ranking: Bm25, texts: pa.Array, run: Run) -> pa.Array:
    """The score of each text, relative to these texts; 0 for a null text or a text without a token of the query."""
    query = run.value(ranking.query)
    assert query is None or isinstance(query, str)
    wanted = dict.fromkeys(tokens(query)) if query else {}
    encoded = pc.dictionary_encode(texts)
    lengths, counted = _counted(encoded.dictionary, list(wanted), run)
    weights = np.bincount(pc.drop_null(encoded.indices).to_numpy(zero_copy_only=False), minlength=len(lengths))
    documents = float(weights.sum())
    average = float((lengths * weights).sum() / documents) if documents else 0.0
    total = np.zeros(len(lengths) + 1)
    for often in counted:
        holding = float(weights[often > 0].sum())
        rarity = log(1 + (documents - holding + 0.5) / (holding + 0.5))
        norm = _K1 * (1 - _B + _B * lengths / average) if average else _K1
        total[:-1] += rarity * often * (_K1 + 1) / (often + norm)
    places = pc.fill_null(encoded.indices, len(lengths)).to_numpy(zero_copy_only=False)
    return pa.array(total[places])


def _counted(texts: pa.Array, wanted: Sequence[str], run: Run) -> tuple[np.ndarray, np.ndarray]:
    """How many tokens each text has; and for each wanted token, how often each text has it."""
    lengths = np.zeros(len(texts))
    often = np.zeros((len(wanted), len(texts)))
    for number, found in enumerate(tokens_of_each(texts, run.budget)):
        lengths[number] = len(found)
        for place, token in enumerate(wanted):
            often[place, number] = found.count(token)
    return lengths, often


# bm25 through an inverted index, for rows that were scanned: texts that the index covers are not analysed here.


#: The fragment of a row is in the upper half of its address.
_FRAGMENT_SHIFT = np.uint64(32)


def indexed_bm25(ranking: Bm25, rows: Rows, run: Run, *, only_when_behind: bool = False) -> pa.Array | None:
    """The score of each row: from the index, or computed by `bm25` for rows that the index does not cover.
    None without an index, and with `only_when_behind` also when the index covers all rows.
    """
    variable, name = ranking.field.variable, ranking.field.property
    node_type = run.node_types.get(variable)
    text = run.value(ranking.query)
    addresses = rows.addresses(variable)
    if node_type is None or addresses is None or not isinstance(text, str):
        return None
    entities = run.nodes(node_type)
    index = inverted_index(entities, name, run)
    if index is None or not tokens(text):
        return None
    covered = np.isin(addresses >> _FRAGMENT_SHIFT, np.fromiter(index.fragments, np.uint64, len(index.fragments)))
    if only_when_behind and covered.all():
        return None
    run.note(f"index: {index.name} ({index.kind})")
    found, known = _scored(entities, index, text)
    order = np.argsort(found)
    places = np.minimum(np.searchsorted(found[order], addresses), max(len(found) - 1, 0))
    values = np.zeros(rows.count)
    if len(found):
        hits = found[order][places] == addresses
        values[hits] = known[order][places][hits]
    if not covered.all():
        texts = whole(rows.column(variable, name)).filter(pa.array(~covered))
        values[~covered] = bm25(ranking, texts, run).to_numpy()
    return pa.array(values)


def inverted_index(entities: Entities, name: str, run: Run) -> TableIndex | None:
    """The inverted index on a property, or None."""
    column = entities.stored[name]
    found = (index for index in run.caches.indices(entities.table) if index.kind == "INVERTED")
    return next((index for index in found if index.columns == (column,)), None)


def _scored(entities: Entities, index: TableIndex, text: str) -> tuple[np.ndarray, np.ndarray]:
    """The addresses of all matching rows, and their scores."""
    with translated(str(entities.table.location), "search"):
        matched = entities.table.dataset.scanner(
            columns=["_score"],
            full_text_query=MatchQuery(text, index.columns[0]),
            fast_search=True,
            with_row_address=True,
        ).to_table()
    return matched[ROW_ADDRESS].to_numpy(), matched["_score"].to_numpy().astype(np.float64)
