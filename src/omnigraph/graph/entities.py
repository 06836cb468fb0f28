"""Reading one entity by its id."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from omnigraph.errors import BadRequest, NotFound
from omnigraph.graph.snapshot import Snapshot
from omnigraph.language.schema.catalog import Catalog, EdgeType, NodeType
from omnigraph.language.suggest import did_you_mean, nearest_name
from omnigraph.query.entities import retyped_columns, stored_columns
from omnigraph.values.render import plain, stored_kind
from omnigraph.values.widening import converted


def types_of(catalog: Catalog, kind: str) -> Mapping[str, NodeType | EdgeType]:
    """The types of one kind of entity by name; BadRequest when there is no such kind."""
    if kind == "node":
        return catalog.nodes
    if kind == "edge":
        return catalog.edges
    raise BadRequest(f"{kind!r} is no kind of entity; the kinds are node and edge")


def read_entity(
    catalog: Catalog, snapshot: Snapshot, kind: str, type_name: str, entity_id: str
) -> dict[str, Any] | None:
    """An entity with the properties its type has in this schema; one that its snapshot does not know yet is null.

    Values are those of results and exports: dates are ISO texts, a blob is `base64:…` or where it lies.
    """
    types = types_of(catalog, kind)
    entity = types.get(type_name)
    if entity is None:
        hint = did_you_mean(nearest_name(str(type_name), types))
        raise NotFound(f"{kind}:{type_name} does not exist at this snapshot ({snapshot.id}){hint}")
    table = snapshot.open(entity.type_key)
    stored = stored_columns(entity, table)
    wanted = [name for name in stored.values() if name is not None]
    found = table.take_ids(pa.array([entity_id], pa.string()), wanted, blobs="values")
    if not found.num_rows:
        return None
    for name, kind in retyped_columns(entity, table, stored).items():
        place = found.column_names.index(stored[name])
        found = found.set_column(place, found.column_names[place], converted(found.column(place), kind))
    values = {name: plain(found[name], stored_kind(found.schema.field(name).type))[0] for name in wanted}
    return {name: None if column is None else values[column] for name, column in stored.items()}
