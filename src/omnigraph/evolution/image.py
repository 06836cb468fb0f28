"""The table of a type after a schema change: its columns, their names, and the values of existing rows."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from omnigraph.evolution.look import Entity
from omnigraph.language.schema.catalog import Property
from omnigraph.language.schema.defaults import default_value
from omnigraph.storage.tables.columns import Column, Values
from omnigraph.values.columns import column_of, table_schema
from omnigraph.values.widening import converted

NO_VALUES: Mapping[str, Values] = {}


def wanted_columns(was: Entity, entity: Entity, made: Mapping[str, Values] = NO_VALUES) -> tuple[Column, ...]:
    """The columns of the table: kept columns under their current names, and new columns with the values of existing rows.

    `made`: the computed values of some columns, by their new names.
    """
    stored = {declared.id: name for name, declared in was.properties.items()}
    columns = []
    for field in table_schema(entity):
        declared, values = entity.properties.get(field.name), made.get(field.name)
        if declared is None:
            # Computed ids and ends of edges are made for every row.
            columns.append(Column(field, field.name if values is None else None, None, values))
        elif declared.id in stored:
            before = was.properties[stored[declared.id]]
            fill = null_fill(declared, before.type.nullable)
            cast = None if _alike(before, declared) else converted
            columns.append(Column(field, stored[declared.id], fill, values, cast))
        else:
            columns.append(Column(field, None, fill_of(declared), values))
    return tuple(columns)


def _alike(was: Property, declared: Property) -> bool:
    """Whether two properties have the same storage type."""
    old, new = was.type, declared.type
    return (old.scalar, old.is_list, old.dimension) == (new.scalar, new.is_list, new.dimension)


def null_fill(declared: Property | None, was_nullable: bool) -> pa.Scalar | None:
    """The value for rows with null in a property that becomes required; None: no such row is allowed."""
    if declared is None or declared.type.nullable or not was_nullable:
        return None
    return fill_of(declared)


def fill_of(declared: Property) -> pa.Scalar | None:
    """The value of existing rows in a new column; None: null."""
    if declared.default is None:
        return None
    return column_of([default_value(declared.type, declared.default)], declared.type)[0]


def changes_table(was: Entity, entity: Entity) -> bool:
    """Whether the table must change, and not only the schema's metadata."""
    return not table_schema(was).equals(table_schema(entity), check_metadata=True)


def in_steps(columns: tuple[Column, ...]) -> tuple[tuple[Column, ...], ...]:
    """The columns to reach in one or two transactions, so that no row is rewritten.

    Lance can not fill a new column in the same transaction that renames another one or allows null in it.
    """
    filled = [column for column in columns if column.stored is None and column.fill is not None]
    renamed = any(column.stored not in (None, column.field.name) for column in columns)
    kept = tuple(column for column in columns if column not in filled)
    if not filled or (not renamed and not any(column.field.nullable for column in kept)):
        return (columns,)
    return kept, tuple(Column(c.field, c.field.name) if c in kept else c for c in columns)
