"""The tables of a snapshot to export, as small descriptions that a task on another machine can read from."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Literal

from omnigraph.errors import BadRequest, NotFound
from omnigraph.language.schema.catalog import Catalog, EdgeType, NodeType
from omnigraph.language.types import PropType
from omnigraph.query.scan.entities import View, stored_columns
from omnigraph.storage.root import Root
from omnigraph.storage.tables.handles import Tables
from omnigraph.storage.tables.location import Location
from omnigraph.storage.tables.table import Table


@dataclass(frozen=True)
class ExportColumn:
    """One property: its name, its stored column (None: this version has none), and its type."""

    name: str
    stored: str | None
    kind: PropType


@dataclass(frozen=True)
class ExportTable:
    """One type's table at one version. `fragments`: the fragments to export; None: all."""

    kind: Literal["node", "edge"]
    name: str
    root: Root
    location: Location
    version: int
    rows: int
    columns: tuple[ExportColumn, ...]
    fragments: tuple[int, ...] | None = None

    def open(self) -> Table:
        return Tables(self.root).open(self.location, self.version)

    def only(self, fragments: tuple[int, ...], rows: int) -> ExportTable:
        """The same table with only some fragments."""
        return replace(self, fragments=fragments, rows=rows)


def plan_export(view: View, catalog: Catalog, root: Root, types: Collection[str] | None) -> list[ExportTable]:
    """The tables to export, nodes before edges, by name. `types`: names of node and edge types; None: all."""
    entities: list[NodeType | EdgeType] = [
        *(catalog.nodes[name] for name in sorted(catalog.nodes)),
        *(catalog.edges[name] for name in sorted(catalog.edges)),
    ]
    if types is not None:
        known = {name for entity in entities for name in (entity.name, entity.type_key)}
        for name in types:
            if name not in known:
                names = ", ".join(sorted({entity.name for entity in entities}))
                raise BadRequest(f"unknown export type '{name}'; the types are {names}")
        entities = [entity for entity in entities if entity.name in types or entity.type_key in types]
    return [planned for entity in entities if (planned := _planned(view, root, entity)) is not None]


def _planned(view: View, root: Root, entity: NodeType | EdgeType) -> ExportTable | None:
    """A type's table; None if the snapshot is older than the type."""
    try:
        entry = view.entry(entity.type_key)
    except NotFound:
        return None
    stored = stored_columns(entity, view.open(entity.type_key))
    columns = tuple(ExportColumn(name, stored[name], declared.type) for name, declared in entity.properties.items())
    kind: Literal["node", "edge"] = "edge" if isinstance(entity, EdgeType) else "node"
    return ExportTable(kind, entity.name, root, entry.location, entry.version, entry.row_count, columns)
