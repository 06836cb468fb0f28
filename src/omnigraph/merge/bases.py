"""After criss-cross merges two sides have several bases. What they have together is what the sides are compared with.

Of one entity, a base that has not touched it since their root gives way to one that has. Where both have, each in its own
way, the sides' own merge has decided before; then the best base counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from omnigraph.merge.classify import Op
from omnigraph.merge.view import Image, Places, View, alike


def merged_bases(
    base: View, crossed: Sequence[tuple[View, View]], ids: pa.Array, columns: Sequence[str]
) -> Iterator[Image]:
    """Some entities as the bases have them together, each in the image of the base that counts for it."""
    values = [name for name in columns if name != "id"]
    best = base.image(ids, columns)
    images = [best]
    counts = np.zeros(len(ids), np.int64)
    for number, (other, root) in enumerate(crossed, 1):
        there, before = other.image(ids, columns), root.image(ids, columns)
        images.append(there)
        # Of several others, the first that has touched the entity counts.
        counts[(counts == 0) & alike(best, before, values) & ~alike(there, before, values)] = number
    for number, image in enumerate(images):
        places = np.flatnonzero(counts == number)
        if len(places):
            yield image.take(places)


def changed(base: Image, theirs: Image, columns: Sequence[str]) -> Iterator[tuple[Op, Places]]:
    """Which entities theirs inserted, updated and deleted since the base, by their places."""
    values = [name for name in columns if name != "id"]
    differ = ~alike(base, theirs, values)
    cases: tuple[tuple[Op, Places], ...] = (
        ("insert", np.flatnonzero(~base.present & theirs.present)),
        ("update", np.flatnonzero(base.present & theirs.present & differ)),
        ("delete", np.flatnonzero(base.present & ~theirs.present)),
    )
    yield from ((op, places) for op, places in cases if len(places))
