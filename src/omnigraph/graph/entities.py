"""Reading one entity by its id."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from omnigraph.errors import NotFound
from omnigraph.graph.snapshot import Snapshot
from omnigraph.language.schema.catalog import Catalog
from omnigraph.query.entities import stored_columns
from omnigraph.values.render import plain, stored_kind


def read_entity(
    catalog: Catalog, snapshot: Snapshot, kind: str, type_name: str, entity_id: str
) -> dict[str, Any] | None:
    """An entity with the properties its type has in this schema; one that its snapshot does not know yet is null.

    Values are those of results and exports: dates are ISO texts, a blob is `base64:…` or where it lies.
    """
    type_key = f"{kind}:{type_name}"
    entity = catalog.nodes.get(type_name) if kind == "node" else catalog.edges.get(type_name)
    if entity is None:
        raise NotFound(f"{type_key} does not exist at this snapshot ({snapshot.id})")
    table = snapshot.open(type_key)
    stored = stored_columns(entity, table)
    wanted = [name for name in stored.values() if name is not None]
    found = table.take_ids(pa.array([entity_id], pa.string()), wanted, blobs="values")
    if not found.num_rows:
        return None
    values = {name: plain(found[name], stored_kind(found.schema.field(name).type))[0] for name in wanted}
    return {name: None if column is None else values[column] for name, column in stored.items()}
