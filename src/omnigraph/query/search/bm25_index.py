"""bm25 through an inverted index, for rows that were scanned: most texts are then never analysed again."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from lance.query import MatchQuery

from omnigraph.language.query.ir import Bm25
from omnigraph.query.rows import Rows
from omnigraph.query.run import Run
from omnigraph.query.scan.entities import Entities
from omnigraph.query.search.analyser import tokens
from omnigraph.query.search.bm25 import bm25
from omnigraph.storage.tables.lance_errors import translated
from omnigraph.storage.tables.table import ROW_ADDRESS, TableIndex
from omnigraph.values.columns import whole

#: The fragment of a row is in the upper half of its address.
_FRAGMENT_SHIFT = np.uint64(32)


def indexed_bm25(ranking: Bm25, rows: Rows, run: Run, *, only_when_behind: bool = False) -> pa.Array | None:
    """The score of each row by the index, and by our own analysis where the index does not reach.

    None without an index, or when it is asked `only_when_behind` and knows all rows.
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
    """The inverted index on a property."""
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
