"""Asking lists about their items, all lists of a column at once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.query.rows import Mask


def holds_item(lists: pa.Array, fits: Callable[[pa.Array, pa.Array], Mask]) -> Mask:
    """For each list whether one of its items fits. `fits` gets all items and the row each of them belongs to."""
    items, owners = pc.list_flatten(lists), pc.list_parent_indices(lists)
    mask = np.zeros(len(lists), np.bool_)
    if len(items):
        mask[owners.to_numpy()[fits(items, owners)]] = True
    return mask
