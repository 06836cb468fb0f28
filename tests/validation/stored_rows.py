"""Committed rows in memory, for the tests of the set rules: what a write would find in its base."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from omnigraph.language.schema.catalog import Catalog, EdgeType, NodeType
from omnigraph.validation.sets import TableChange
from omnigraph.values.columns import table_of

Rows = Sequence[Mapping[str, Any]]


def entity_of(catalog: Catalog, type_key: str) -> NodeType | EdgeType:
    """A type by `node:Type` or `edge:Type`."""
    kind, _, name = type_key.partition(":")
    return catalog.nodes[name] if kind == "node" else catalog.edges[name]


class StoredRows:
    """Plain rows by type. `looked_up` records every look-up, with how many values it asked for."""

    def __init__(self, catalog: Catalog, stored: Mapping[str, Rows]) -> None:
        self._tables = {key: table_of(entity_of(catalog, key), rows) for key, rows in stored.items()}
        self._catalog = catalog
        self.looked_up: list[tuple[str, str, int]] = []

    def by_id(self, type_key: str, ids: pa.Array, columns: Sequence[str]) -> pa.Table:
        return self.by_value(type_key, "id", ids, columns)

    def by_value(self, type_key: str, column: str, values: pa.Array, columns: Sequence[str]) -> pa.Table:
        self.looked_up.append((type_key, column, len(values)))
        table = self._tables.get(type_key)
        if table is None:
            table = table_of(entity_of(self._catalog, type_key), [])
        wanted = values.to_pylist()
        mask = pa.array([value is not None and value in wanted for value in table[column].to_pylist()], pa.bool_())
        return table.filter(mask).select(list(columns))


def change(catalog: Catalog, type_key: str, rows: Rows = (), deleted: Sequence[str] = ()) -> dict[str, TableChange]:
    """What a write does to one type: final rows with their ids, and deleted ids."""
    entity = entity_of(catalog, type_key)
    return {type_key: TableChange(entity, table_of(entity, rows), pa.array(list(deleted), pa.string()))}
