"""The candidates of a comparison in spans of ids of about the same number of rows, so that several tasks look at them.

Where spans end is found from a sample, so that no more than so many ids are ever held.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

import pyarrow as pa
import pyarrow.compute as pc

#: How many ids are held to find out where spans of about the same size end.
SAMPLED_IDS = 100_000
_NO_IDS = pa.array([], pa.string())


@dataclass(frozen=True)
class Span:
    """The ids after the first and up to the second; None: there is no such bound."""

    after_id: str | None = None
    until_id: str | None = None


#: All ids.
EVERYTHING = Span()


def spans(ids: Iterable[pa.Array], count: int, wanted: int) -> list[Span]:
    """At most so many spans of about equally many ids; `count`: how many ids there are; an id that occurs twice counts twice."""
    sample = _sample(ids, max(1, count // SAMPLED_IDS))
    parts = max(1, min(len(sample), wanted))
    ends = [sample[len(sample) * number // parts - 1].as_py() for number in range(1, parts)]
    return [Span(low, high) for low, high in pairwise([None, *dict.fromkeys(ends), None])]


def _sample(batches: Iterable[pa.Array], step: int) -> pa.Array:
    """Every `step`-th id, sorted and without repeats; all ids when `step` is 1."""
    taken = [_NO_IDS]
    first = 0
    for ids in batches:
        taken.append(ids.take(pa.array(range(first, len(ids), step), pa.int64())))
        first = (first - len(ids)) % step
    found = pc.unique(pa.chunked_array(taken))
    return found.take(pc.array_sort_indices(found))
