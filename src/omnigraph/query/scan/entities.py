"""The tables of one snapshot under the names of the current schema, as the engine reads them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

import pyarrow as pa

from omnigraph.commit.model import TableEntry
from omnigraph.language.query.ir import STRING
from omnigraph.language.schema.catalog import Catalog, EdgeType, NodeType
from omnigraph.language.types import PropType
from omnigraph.storage.tables.table import Table
from omnigraph.values.columns import PROPERTY_ID, arrow_type
from omnigraph.values.widening import convertible

#: The columns a table may have besides the properties of its type.
_FIXED = ("id", "src", "dst")


class View(Protocol):
    """A fixed set of table versions. Every query runs against one."""

    @property
    def commit(self) -> str: ...

    def entry(self, type_key: str) -> TableEntry: ...

    def open(self, type_key: str) -> Table: ...


@dataclass(frozen=True, slots=True)
class Entities:
    """One type and its table. `stored`: the name of each property's column in the table; None when the table has none."""

    entity: NodeType | EdgeType
    entry: TableEntry
    table: Table
    stored: Mapping[str, str | None]
    #: The properties that an older table holds in another type than the schema's, with the Arrow type they are converted to.
    retyped: Mapping[str, pa.DataType] = field(default_factory=dict)

    def kind(self, name: str) -> PropType:
        """The type of a property or of an implicit column."""
        declared = self.entity.properties.get(name)
        return STRING if declared is None else declared.type

    @property
    def rows(self) -> int:
        return self.entry.row_count


def open_nodes(view: View, catalog: Catalog, name: str) -> Entities:
    """The nodes of a type."""
    return _open(view, catalog.nodes[name])


def open_edges(view: View, catalog: Catalog, name: str) -> Entities:
    """The edges of a type."""
    return _open(view, catalog.edges[name])


def _open(view: View, entity: NodeType | EdgeType) -> Entities:
    table = view.open(entity.type_key)
    known = table.columns_of
    if known is None or known[0] is not entity:
        stored = stored_columns(entity, table)
        known = table.columns_of = (entity, stored, retyped_columns(entity, table, stored))
    return Entities(entity, view.entry(entity.type_key), table, known[1], known[2])


def stored_columns(entity: NodeType | EdgeType, table: Table) -> dict[str, str | None]:
    """The table's column of each property, by stable id: an older table may have it under an older name, or not (None)."""
    schema = table.schema
    by_id = {(field.metadata or {}).get(PROPERTY_ID): field.name for field in schema}
    names: dict[str, str | None] = {name: name for name in _FIXED if name in schema.names}
    for declared in entity.properties.values():
        names[declared.name] = by_id.get(str(declared.id).encode())
    return names


def retyped_columns(
    entity: NodeType | EdgeType, table: Table, stored: Mapping[str, str | None]
) -> dict[str, pa.DataType]:
    """The properties whose type was widened or narrowed since the table was written, with their current Arrow type."""
    found: dict[str, pa.DataType] = {}
    for name, declared in entity.properties.items():
        column = stored[name]
        if column is None or declared.type.is_blob or declared.type.is_vector:
            continue
        kind, wanted = table.schema.field(column).type, arrow_type(declared.type)
        if str(kind) != str(wanted) and convertible(kind, wanted):
            found[name] = wanted
    return found
