"""Statements over what a pattern matches: rows of values become inserts, or new values of entities."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.changes.compare import differing
from omnigraph.errors import BadRequest
from omnigraph.language.literals import PlainValue, TypedValue
from omnigraph.language.query.check.mutations import MATCHED_ID
from omnigraph.language.query.ir import Assign, Expr, InsertEdge, InsertNode, ResultColumn, UpsertNode
from omnigraph.mutation.staging import Entity
from omnigraph.query.shape.evaluate import plain_values
from omnigraph.values.columns import whole

__all__ = ["MATCHED_ID", "inserts_of", "one_row_each"]

Insert = InsertNode | InsertEdge | UpsertNode


def inserts_of(statement: Insert, found: pa.Table) -> Iterator[Insert]:
    """The statement once for each row, with the values of that row."""
    read = [assign.value for assign in statement.assignments]
    if isinstance(statement, InsertEdge):
        read += [statement.source, statement.target]
    columns: dict[str, list[PlainValue]] = {
        expr.name: plain_values(whole(found[expr.name]), expr.type) for expr in read if isinstance(expr, ResultColumn)
    }
    for row in range(found.num_rows):
        given = tuple(_with_value(assign, columns, row) for assign in statement.assignments)
        if isinstance(statement, InsertEdge):
            source, target = _value(statement.source, columns, row), _value(statement.target, columns, row)
            yield replace(statement, source=source, target=target, assignments=given)
        else:
            yield replace(statement, assignments=given)


def _with_value(assign: Assign, columns: dict[str, list[PlainValue]], row: int) -> Assign:
    return replace(assign, value=_value(assign.value, columns, row))


def _value(expr: Expr, columns: dict[str, list[PlainValue]], row: int) -> Expr:
    return TypedValue(columns[expr.name][row], expr.type) if isinstance(expr, ResultColumn) else expr


def one_row_each(entity: Entity, found: pa.Table) -> pa.Table:
    """One row for each entity that was matched. It may be matched several times, but not with different values."""
    ids = whole(found[MATCHED_ID])
    if ids.null_count:
        # A variable of an optional block that stands for nothing.
        found, ids = found.filter(ids.is_valid()), ids.drop_null()
    distinct = pc.unique(ids)
    if len(distinct) == len(ids):
        return found
    first = pc.index_in(ids, value_set=ids)
    again = found.take(first)
    names = [name for name in found.column_names if name != MATCHED_ID]
    changed = differing(found, again, names, lambda name, rows: (found[name].take(rows), again[name].take(rows)))
    if changed.any():
        place = int(np.flatnonzero(changed)[0])
        raise BadRequest(
            f"{entity.name} '{ids[place].as_py()}' is matched more than once, with different values for "
            f"{', '.join(names)}; make the pattern match it once, or take one value, as in `max($x.p) {{ … }}`"
        )
    return found.take(pc.unique(first))
