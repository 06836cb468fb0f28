"""The error for a computed value that its property can not hold, with its position in the query text."""

from __future__ import annotations

from omnigraph.errors import EvaluationError
from omnigraph.language.query import ast, ir
from omnigraph.language.schema.catalog import EdgeType, NodeType
from omnigraph.language.source import Place, Source, evaluation_error
from omnigraph.values.fitting import Unfit


class NotHeld(Exception):
    """A value that its property can not hold, not yet located in the text. `entity_id`: the first row with the value."""

    def __init__(self, entity: NodeType | EdgeType, assign: ir.Assign, unfit: Unfit, entity_id: str | None) -> None:
        super().__init__(str(unfit))
        self.property = assign.property
        row = "" if entity_id is None else f", first for '{entity_id}',"
        self.message = f"{entity.name}.{assign.property} ({assign.type}): {unfit}{row}"

    def at(self, statement: ast.Statement, source: Source) -> EvaluationError:
        """The error for the user. `statement`: the statement that was carried out, in its source form."""
        written = next(each.value for each in _assignments(statement) if each.property == self.property)
        place = Place(source, written.span)
        return evaluation_error(f"{self.message} in `{place.written}`", place)


def _assignments(statement: ast.Statement) -> tuple[ast.Assignment, ...]:
    if isinstance(statement, ast.MatchInsert):
        return statement.statement.assignments
    assert not isinstance(statement, ast.Delete | ast.MatchDelete), "a delete assigns nothing"
    return statement.assignments
