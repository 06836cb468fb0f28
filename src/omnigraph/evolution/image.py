"""The table of a type as a schema change leaves it: which columns, under which names, with what in the rows there are."""

from __future__ import annotations

import pyarrow as pa

from omnigraph.evolution.compare import Entity
from omnigraph.language.schema.catalog import Property
from omnigraph.language.schema.defaults import default_value
from omnigraph.storage.tables.columns import Column
from omnigraph.values.columns import column_of, table_schema


def wanted_columns(was: Entity, entity: Entity) -> tuple[Column, ...]:
    """The columns of the table: those that stay by the name they have, and new ones with what existing rows get."""
    stored = {declared.id: name for name, declared in was.properties.items()}
    columns = []
    for field in table_schema(entity):
        declared = entity.properties.get(field.name)
        if declared is None:
            columns.append(Column(field, field.name))
        elif declared.id in stored:
            columns.append(Column(field, stored[declared.id]))
        else:
            columns.append(Column(field, None, fill_of(declared)))
    return tuple(columns)


def fill_of(declared: Property) -> pa.Scalar | None:
    """What existing rows get in a new column; None: null."""
    if declared.default is None:
        return None
    return column_of([default_value(declared.type, declared.default)], declared.type)[0]


def changes_table(was: Entity, entity: Entity) -> bool:
    """Whether the table itself has to change, not only what is said about it."""
    return not table_schema(was).equals(table_schema(entity), check_metadata=True)


def in_steps(columns: tuple[Column, ...]) -> tuple[tuple[Column, ...], ...]:
    """The columns of a table reached by one or two transactions, so that no row is written again.

    Lance does not fill a new column in the transaction that renames another one or allows null in it.
    """
    filled = [column for column in columns if column.stored is None and column.fill is not None]
    renamed = any(column.stored not in (None, column.field.name) for column in columns)
    kept = tuple(column for column in columns if column not in filled)
    if not filled or (not renamed and not any(column.field.nullable for column in kept)):
        return (columns,)
    return kept, tuple(Column(c.field, c.field.name) if c in kept else c for c in columns)
