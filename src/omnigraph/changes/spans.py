"""Divides the candidates of a comparison into spans of ids with about equally many rows, one per task.

The ends of spans are found from a sample, so that only a bounded number of ids is held.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

import pyarrow as pa
import pyarrow.compute as pc

#: About how many ids are held to find the ends of the spans.
SAMPLED_IDS = 100_000
_NO_IDS = pa.array([], pa.string())


@dataclass(frozen=True)
class Span:
    """A range of ids: after `after_id`, up to and including `until_id`; None: no bound."""

    after_id: str | None = None
    until_id: str | None = None


#: All ids.
EVERYTHING = Span()


def spans(ids: Iterable[pa.Array], count: int, wanted: int) -> list[Span]:
    """At most `wanted` spans with about equally many ids. `count`: how many ids there are; repeated ids count each time."""
    sample = _sample(ids, max(1, count // SAMPLED_IDS))
    parts = max(1, min(len(sample), wanted))
    ends = [sample[len(sample) * number // parts - 1].as_py() for number in range(1, parts)]
    return [Span(low, high) for low, high in pairwise([None, *dict.fromkeys(ends), None])]


def _sample(batches: Iterable[pa.Array], step: int) -> pa.Array:
    """Every `step`-th id, sorted, without duplicates; all ids if `step` is 1."""
    taken = [_NO_IDS]
    first = 0
    for ids in batches:
        taken.append(ids.take(pa.array(range(first, len(ids), step), pa.int64())))
        first = (first - len(ids)) % step
    found = pc.unique(pa.chunked_array(taken))
    return found.take(pc.array_sort_indices(found))
