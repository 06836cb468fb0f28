"""Carries out a caller's decisions: the chosen image of each entity is written as a row, or the entity is deleted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import BadRequest
from omnigraph.merge.combine import align
from omnigraph.merge.difference import Difference
from omnigraph.merge.part import Part
from omnigraph.merge.resolutions import Resolution, laid_over
from omnigraph.merge.result import DecidedBy, Decision
from omnigraph.merge.rules import row_conflicts, rule_columns
from omnigraph.storage.tables.row_places import RowPlaces
from omnigraph.storage.tables.table import ROW_ADDRESS


@dataclass(frozen=True)
class Decided:
    """The result of the decisions about one table. `rows`: the rows to write, held in memory as they are few."""

    part: Part
    rows: pa.Table | None


def carry_out(difference: Difference, resolutions: Mapping[str, Resolution]) -> Decided:
    """Carry out the caller's decisions about entities of one table. `resolutions`: by entity id."""
    entity, columns = difference.spec.entity, difference.columns
    ids = pa.array(resolutions, pa.string())
    base, in_base = align(difference.base.rows(ids, columns, blobs="values"), ids)
    theirs, in_theirs = align(difference.theirs.rows(ids, columns, blobs="values"), ids)
    ours, in_ours = align(difference.ours.rows(ids, columns, blobs="values", with_row_address=True), ids)
    addresses = pc.fill_null(ours[ROW_ADDRESS], 0).to_numpy()
    images = {
        "base": (base, in_base),
        "theirs": (theirs, in_theirs),
        "ours": (ours.drop_columns([ROW_ADDRESS]), in_ours),
    }
    written: list[pa.Table] = []
    replaced = np.zeros(len(ids), np.bool_)
    removed: list[str] = []
    identical = 0
    listed: list[Decision] = []
    kept: list[str] = []
    restored: dict[str, list[str]] = {}
    for place, (entity_id, resolution) in enumerate(resolutions.items()):
        if not any(present[place] for _, present in images.values()):
            raise BadRequest(f"resolution: neither side nor their base has {entity.type_key} {entity_id!r}")
        by = DecidedBy.KEPT_NODE if resolution.implied else DecidedBy.RESOLUTION
        listed.append(Decision(entity.type_key, entity_id, resolution.take, by.value))
        if resolution.take == "ours":
            if in_base[place] and in_ours[place] and not in_theirs[place]:
                kept.append(entity_id)
            continue
        patch = resolution.value
        taken = resolution.take if patch is None else "ours" if in_ours[place] else "theirs"
        rows, present = images[taken]
        if not present[place] and patch is not None:
            raise BadRequest(
                f"resolution: no side has {entity.type_key} {entity_id!r} that the value could be laid over"
            )
        if present[place] and in_base[place]:
            if not in_ours[place]:
                restored.setdefault(taken, []).append(entity_id)
            elif not in_theirs[place]:
                kept.append(entity_id)
        if present[place]:
            row = rows.slice(place, 1)
            row = row if patch is None else laid_over(entity, row, patch)
            if in_ours[place] and row.equals(images["ours"][0].slice(place, 1)):
                identical += 1
                continue
            written.append(row)
        replaced[place] = in_ours[place]
        if not present[place] and in_ours[place]:
            removed.append(entity_id)
    table = pa.concat_tables(written) if written else None
    count = 0 if table is None else table.num_rows
    updated = int(replaced.sum()) - len(removed)
    part = Part(
        inserted=count - updated,
        updated=updated,
        deleted=len(removed),
        identical=identical,
        marked=RowPlaces.of(addresses[replaced]),
        removed=pa.array(removed, pa.string()),
        checked=None if table is None else table.select(rule_columns(entity)),
        conflicts=() if table is None else tuple(row_conflicts(entity, table)),
        kept=pa.array(kept, pa.string()),
        restored={version: pa.array(found, pa.string()) for version, found in restored.items()},
        decided=tuple(listed),
    )
    return Decided(part, table)
