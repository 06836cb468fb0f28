"""Kernels of functions on lists."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.query.shape.compare import as_mask
from omnigraph.query.shape.functions.arguments import Arguments, Kernel, as_integers, as_type
from omnigraph.values.columns import arrow_type

#: How many items `range` may make for one row.
MOST_ITEMS = 1_000_000


def _size(given: Arguments) -> pa.Array:
    return pc.list_value_length(given[0]).cast(pa.int64())


def _bounds(lists: pa.Array) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The first place of each list in the flattened items, and its length; 0 for a null list."""
    lengths = pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False).astype(np.int64)
    return np.concatenate([[0], np.cumsum(lengths)[:-1]]).astype(np.int64), lengths


def _item(given: Arguments) -> pa.Array:
    lists, places = given[0], as_integers(given[1])
    starts, lengths = _bounds(lists)
    place = pc.fill_null(places, 0).to_numpy(zero_copy_only=False)
    place = np.where(place < 0, place + lengths, place)
    inside = (place >= 0) & (place < lengths)
    known = inside & as_mask(places.is_valid())
    indices = pa.array(np.where(known, starts + place, 0), mask=~known)
    items = pc.list_flatten(lists)
    return items.take(indices) if len(items) else pa.nulls(len(lists), items.type)


def _gathered(lists: pa.Array, rows: pa.Array, items: pa.Array, lengths: npt.NDArray[np.int64]) -> pa.Array:
    """Lists of these lengths over consecutive items; null where `rows` is false."""
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), items, type=lists.type, mask=pc.invert(rows))


def _slice(given: Arguments) -> pa.Array:
    lists = given[0]
    starts, lengths = _bounds(lists)
    known = lists.is_valid()
    ends = []
    for place, fallback in ((1, None), (2, lengths)):
        if place >= len(given):
            assert fallback is not None
            ends.append(fallback)
            continue
        column = as_integers(given[place])
        known = pc.and_(known, column.is_valid())
        asked = pc.fill_null(column, 0).to_numpy(zero_copy_only=False)
        ends.append(np.clip(np.where(asked < 0, asked + lengths, asked), 0, lengths))
    first, last = ends
    kept = np.where(as_mask(known), np.maximum(last - first, 0), 0)
    within = np.arange(kept.sum()) - np.repeat(np.cumsum(kept) - kept, kept)
    indices = np.repeat(starts + first, kept) + within
    return _gathered(lists, known, pc.list_flatten(lists).take(pa.array(indices)), kept)


def _distinct_list(given: Arguments) -> pa.Array:
    return _per_list(given[0], lambda owners, items: _first_of_each(owners, items))


def _first_of_each(owners: pa.Array, items: pa.Array) -> npt.NDArray[np.int64]:
    places = pa.table({"owner": owners, "item": _grouped(items), "place": pa.array(np.arange(len(items)))})
    first = places.group_by(["owner", "item"]).aggregate([("place", "min")])["place_min"]
    return np.sort(first.to_numpy())


def _grouped(items: pa.Array) -> pa.Array:
    """The items in a form in which 0 and -0 are grouped together."""
    return pc.add(items, pa.scalar(0, items.type)) if pa.types.is_floating(items.type) else items


def _sort_list(given: Arguments) -> pa.Array:
    def sort(owners: pa.Array, items: pa.Array) -> npt.NDArray[np.int64]:
        keys = items.cast(pa.uint8()) if pa.types.is_boolean(items.type) else items
        table = pa.table({"owner": owners, "item": keys})
        return np.asarray(pc.sort_indices(table, sort_keys=[("owner", "ascending"), ("item", "ascending")]).to_numpy())

    return _per_list(given[0], sort)


def _per_list(lists: pa.Array, choose: Callable[[pa.Array, pa.Array], npt.NDArray[Any]]) -> pa.Array:
    """Each list with the items that `choose` returns, as places in the flattened items, list after list."""
    items, owners = pc.list_flatten(lists), pc.list_parent_indices(lists)
    if not len(items):
        return lists
    chosen = choose(owners, items)
    lengths = np.bincount(owners.to_numpy()[chosen].astype(np.int64), minlength=len(lists)).astype(np.int64)
    return _gathered(lists, lists.is_valid(), items.take(pa.array(chosen)), lengths)


def range_lengths(given: Arguments) -> npt.NDArray[np.int64]:
    """How many items the range of each row has; none where an argument is null."""
    return _range_bounds(given)[2]


def _range_bounds(given: Arguments) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The first item, the step and the number of items of each row."""
    known = as_mask(_known(given))
    start, end, *steps = (pc.fill_null(as_integers(column), 1).to_numpy() for column in given.columns)
    step = steps[0] if steps else np.ones(given.count, np.int64)
    if (known & (step == 0)).any():
        raise ValueError("the step of `range` is zero")
    # Ends of I64 may be further apart than I64 reaches, but not than U64 does.
    rising = step > 0
    distance = np.where(rising, end - start, start - end).view(np.uint64)
    stride = np.where(step == 0, 1, np.where(rising, step, -step)).view(np.uint64)
    inside = known & np.where(rising, start < end, start > end)
    lengths = np.where(inside, (distance - inside) // stride + 1, 0)
    if (lengths > MOST_ITEMS).any():
        raise ValueError(f"`range` makes at most {MOST_ITEMS} items, not {lengths.max()}")
    return start, step, lengths.astype(np.int64)


def _known(given: Arguments) -> pa.Array:
    known = given[0].is_valid()
    for column in given.columns[1:]:
        known = pc.and_(known, column.is_valid())
    return known


def _range(given: Arguments) -> pa.Array:
    start, step, lengths = _range_bounds(given)
    items = np.arange(lengths.sum())
    items -= np.repeat(np.cumsum(lengths) - lengths, lengths)
    items *= np.repeat(step, lengths)
    items += np.repeat(start, lengths)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    return pa.ListArray.from_arrays(
        pa.array(offsets), pa.array(items, pa.int64()), type=arrow_type(given.result), mask=pc.invert(_known(given))
    )


def _list(given: Arguments) -> pa.Array:
    columns = [as_type(column, given.result.element()) for column in given.columns]
    together = pa.concat_arrays(columns)
    places = np.arange(given.count * len(columns)).reshape(len(columns), given.count).T.ravel()
    offsets = np.arange(given.count + 1, dtype=np.int32) * len(columns)
    return pa.ListArray.from_arrays(
        pa.array(offsets, pa.int32()), together.take(pa.array(places)), arrow_type(given.result)
    )


LISTS: dict[str, Kernel] = {
    "size": _size,
    "item": _item,
    "slice": _slice,
    "distinct_list": _distinct_list,
    "sort_list": _sort_list,
    "range": _range,
    "list": _list,
}
