"""Text predicates on rows in memory: `search`, `match_text` and `fuzzy`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import BadRequest
from omnigraph.language.query.ir import AllTokens, AnyToken, FuzzyToken, TextMatch
from omnigraph.query.rows import Mask, Rows
from omnigraph.query.run import Run
from omnigraph.query.search.analyser import tokens
from omnigraph.query.search.edits import default_edits, within
from omnigraph.values.columns import whole

#: Beyond this a fuzzy search matches nearly everything.
MAX_EDITS = 2


def matches_text(predicate: TextMatch, rows: Rows, run: Run) -> Mask:
    """For each row whether its text matches."""
    column = rows.column(predicate.field.variable, predicate.field.property)
    return texts_match(predicate, whole(column), run)


def texts_match(predicate: TextMatch, texts: pa.Array, run: Run) -> Mask:
    """For each text whether it matches; equal texts are analysed once."""
    query = run.value(predicate.query)
    if query is None:
        return np.zeros(len(texts), np.bool_)
    assert isinstance(query, str)
    accepts = _acceptance(predicate, query, run)
    encoded = pc.dictionary_encode(texts)
    answers = [text is not None and accepts(frozenset(tokens(text))) for text in encoded.dictionary.to_pylist()]
    found = pa.array(answers, pa.bool_()).take(encoded.indices)
    return np.asarray(pc.fill_null(found, False).to_numpy(zero_copy_only=False), dtype=np.bool_)


def _acceptance(predicate: TextMatch, query: str, run: Run) -> Callable[[frozenset[str]], bool]:
    wanted = frozenset(tokens(query))
    match predicate:
        case AnyToken():
            return lambda found: not wanted.isdisjoint(found)
        case AllTokens():
            return lambda found: bool(wanted) and wanted <= found
        case FuzzyToken():
            limits = {token: max_edits(predicate, token, run) for token in wanted}
            return lambda found: any(within(word, token, most) for token, most in limits.items() for word in found)


def max_edits(predicate: FuzzyToken, token: str, run: Run) -> int:
    """How many edits a token of the query may be off."""
    if predicate.max_edits is None:
        return default_edits(token)
    given = run.value(predicate.max_edits)
    if given is None:
        return default_edits(token)
    assert isinstance(given, int)
    if not 0 <= given <= MAX_EDITS:
        raise BadRequest(f"fuzzy allows 0 to {MAX_EDITS} edits, not {given}")
    return given
