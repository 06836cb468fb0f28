"""The tables of one snapshot as the schema names them now: what the engine reads from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol
from weakref import WeakKeyDictionary

import pyarrow as pa

from omnigraph.commit.model import TableEntry
from omnigraph.language.query.ir import STRING
from omnigraph.language.schema.catalog import Catalog, EdgeType, NodeType
from omnigraph.language.types import PropType
from omnigraph.storage.tables.table import Table
from omnigraph.values.columns import PROPERTY_ID, arrow_type
from omnigraph.values.widening import convertible

#: What every table has besides the properties of its type.
_FIXED = ("id", "src", "dst")


#: What `stored_columns` said about the open tables: they never move, and a schema is replaced as a whole.
_STORED: WeakKeyDictionary[Table, tuple[NodeType | EdgeType, Mapping[str, str | None], Mapping[str, pa.DataType]]] = (
    WeakKeyDictionary()
)


class View(Protocol):
    """A fixed set of table versions. Every query runs against one."""

    @property
    def commit(self) -> str: ...

    def entry(self, type_key: str) -> TableEntry: ...

    def open(self, type_key: str) -> Table: ...


@dataclass(frozen=True, slots=True)
class Entities:
    """One type and its table. `stored` says under which name a property lies there, None when it does not."""

    entity: NodeType | EdgeType
    entry: TableEntry
    table: Table
    stored: Mapping[str, str | None]
    #: The properties that lie there in another type than today's, which an older snapshot may have: the type they are read as.
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
    known = _STORED.get(table)
    if known is None or known[0] is not entity:
        stored = stored_columns(entity, table)
        known = _STORED[table] = (entity, stored, retyped_columns(entity, table, stored))
    return Entities(entity, view.entry(entity.type_key), table, known[1], known[2])


def stored_columns(entity: NodeType | EdgeType, table: Table) -> dict[str, str | None]:
    """Columns are found by their property's stable id: an older snapshot has them under older names, or not at all."""
    schema = table.schema
    by_id = {(field.metadata or {}).get(PROPERTY_ID): field.name for field in schema}
    names: dict[str, str | None] = {name: name for name in _FIXED if name in schema.names}
    for declared in entity.properties.values():
        names[declared.name] = by_id.get(str(declared.id).encode())
    return names


def retyped_columns(
    entity: NodeType | EdgeType, table: Table, stored: Mapping[str, str | None]
) -> dict[str, pa.DataType]:
    """The properties that a table holds in a type that was widened since, or narrowed back, with the type of today."""
    found: dict[str, pa.DataType] = {}
    for name, declared in entity.properties.items():
        column = stored[name]
        if column is None or declared.type.is_blob or declared.type.is_vector:
            continue
        kind, wanted = table.schema.field(column).type, arrow_type(declared.type)
        if str(kind) != str(wanted) and convertible(kind, wanted):
            found[name] = wanted
    return found
