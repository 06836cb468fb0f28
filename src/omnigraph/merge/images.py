"""The three images of an entity in conflict, for those who want to look before they decide."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from omnigraph.merge.difference import Version
from omnigraph.merge.result import Conflict
from omnigraph.merge.view import View
from omnigraph.values.render import plain, stored_kind


def with_images(conflicts: Sequence[Conflict], views: Mapping[str, Mapping[Version, View]]) -> list[Conflict]:
    """Conflicts with the entity as each version of its table has it, in values of JSON; blobs are left out."""
    wanted: dict[str, list[str]] = {}
    for conflict in conflicts:
        if conflict.entity_id is not None and conflict.type_key in views:
            wanted.setdefault(conflict.type_key, []).append(conflict.entity_id)
    images = {key: _images(views[key], pa.array(ids, pa.string())) for key, ids in wanted.items()}
    return [
        replace(conflict, **images.get(conflict.type_key, {}).get(conflict.entity_id or "", {}))
        for conflict in conflicts
    ]


def _images(views: Mapping[Version, View], ids: pa.Array) -> dict[str, dict[str, Any]]:
    columns = [
        name
        for name, column in views["ours"].columns.items()
        if not isinstance(column.field.type, pa.BaseExtensionType)
    ]
    found: dict[str, dict[str, Any]] = {}
    for version, view in views.items():
        rows = view.rows(ids, columns)
        values = {name: plain(rows[name], stored_kind(rows.schema.field(name).type)) for name in columns}
        for place, entity_id in enumerate(values["id"]):
            found.setdefault(entity_id, {})[version] = {name: column[place] for name, column in values.items()}
    return found
