"""How lines of a load relate to the stored rows with their ids.

In an update a stored row keeps the values that its line leaves out. In a merge the line is the whole row, and properties it
leaves out become null; the stored values that are lost this way are counted, so that the caller can be told.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.load.identify import identify
from omnigraph.load.parsed import Entity, Flags, Orders, Rows
from omnigraph.load.stored import Stored
from omnigraph.values.columns import whole

#: The key column of bit masks: one bit per property that is null in the row, in the order of `nullable_names`.
NULLS = "nulls"


def with_kept_values(rows: Rows, job_id: str, stored: Stored) -> Rows:
    """Rows of an update, with left-out values filled in from the stored row of the same id."""
    left_out = {name: flags for name, flags in rows.left_out.items() if flags.any()}
    if not left_out or not stored.pins[rows.entity.type_key].row_count:
        return rows
    identified = identify(rows, job_id)
    own_places = np.searchsorted(rows.orders, identified.rows.orders)
    wanted = identified.ids.filter(pa.array(identified.may_meet))
    found = stored.whole_rows(rows.entity.type_key, wanted, ["id", *left_out])
    if not found.num_rows:
        return rows
    # For each line the place of its stored row; -1 when there is none.
    stored_places = np.full(len(rows.orders), -1, np.int64)
    matched = pc.fill_null(pc.index_in(identified.ids, value_set=whole(found["id"])), -1)
    stored_places[own_places] = matched.to_numpy(zero_copy_only=False)
    exists = stored_places >= 0
    table = rows.table
    for name, flags in left_out.items():
        keeps = flags & exists
        if keeps.any():
            place = table.schema.get_field_index(name)
            filled = _filled(whole(table[name]), whole(found[name]), keeps, stored_places)
            table = table.set_column(place, table.schema.field(place), filled)
    remaining = {name: flags & ~exists for name, flags in rows.left_out.items()}
    return replace(rows, table=table, left_out=remaining)


def _filled(own: pa.Array, stored: pa.Array, keeps: Flags, places: Orders) -> pa.Array:
    """The column `own`, where the rows `keeps` take their value from `stored` at the given places."""
    chosen = np.where(keeps, len(own) + places, np.arange(len(own)))
    if isinstance(own, pa.ExtensionArray):
        storage = stored.storage if isinstance(stored, pa.ExtensionArray) else stored
        both = pa.concat_arrays([own.storage, storage.cast(own.storage.type)])
        return pa.ExtensionArray.from_storage(own.type, both.take(pa.array(chosen)))
    return pa.concat_arrays([own, stored.cast(own.type)]).take(pa.array(chosen))


# --- values that a merge replaces by nothing --------------------------------------------------------------------------


def nullable_names(entity: Entity) -> list[str]:
    """The names of the properties that may be null."""
    return [name for name, declared in entity.properties.items() if declared.type.nullable]


def null_bits(entity: Entity, table: pa.Table) -> pa.Array:
    """For each row a bit mask of the nullable properties that are null."""
    flags = np.stack([pc.is_null(table[name]).to_numpy() for name in nullable_names(entity)], axis=1)
    packed = np.packbits(flags, axis=1)
    return pa.Array.from_buffers(pa.binary(packed.shape[1]), len(packed), [None, pa.py_buffer(packed.tobytes())])


def cleared_values(entity: Entity, keys: pa.Table, stored: Stored) -> dict[str, int]:
    """How many stored values the lines of a merge replace by null, by `Type.property`. `keys`: one row per id."""
    bits = whole(keys[NULLS])
    width, names = bits.type.byte_width, nullable_names(entity)
    packed = np.frombuffer(bits.buffers()[1], np.uint8)[bits.offset * width : (bits.offset + len(bits)) * width]
    flags = np.unpackbits(packed.reshape(len(bits), width), axis=1, count=len(names)).astype(np.bool_)
    rows = np.flatnonzero(flags.any(axis=1))
    if not len(rows):
        return {}
    lacking, flags = keys.take(pa.array(rows)), flags[rows]
    asked = [name for place, name in enumerate(names) if flags[:, place].any()]
    found = stored.rows_with(entity.type_key, "id", whole(lacking["id"]), ["id", *asked])
    places = pc.index_in(whole(found["id"]), value_set=whole(lacking["id"])).to_numpy(zero_copy_only=False)
    counts = {}
    for name in asked:
        had = pc.is_valid(whole(found[name])).to_numpy(zero_copy_only=False)
        count = int((had & flags[places, names.index(name)]).sum())
        if count:
            counts[f"{entity.name}.{name}"] = count
    return counts
