"""Backfills: expressions of the query language that compute values which rows lack in a property.

A backfill gives a value to rows without one: every row for a new property, rows with null for an existing one. Existing
values are kept. It reads the row in the form of the wanted schema, before any backfill: new names, wider types, defaults;
dropped properties are read by their old names. If it yields null, the row gets the default, if there is one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import pyarrow as pa

from omnigraph.errors import BadRequest
from omnigraph.evolution.compare import entities, kept_names
from omnigraph.evolution.image import wanted_columns
from omnigraph.evolution.look import Backfilled, Entity
from omnigraph.language.query.check.backfill import Backfill, check_backfill
from omnigraph.language.query.ir import ROW, Expr, columns_of, render_expr
from omnigraph.language.schema.catalog import Catalog, Property
from omnigraph.language.schema.ir import SchemaIR
from omnigraph.language.source import evaluation_error
from omnigraph.language.types import PropType
from omnigraph.query.caches import Caches
from omnigraph.query.limits import Budget, Limits
from omnigraph.query.rows import Rows, column_name
from omnigraph.query.run import Run
from omnigraph.query.shape.evaluate import evaluate
from omnigraph.storage.tables.columns import Column, Values, reads_of, values_of
from omnigraph.storage.tables.table import Table
from omnigraph.values.columns import whole
from omnigraph.values.fitting import Unfit, fitted_column

#: The forms of backfills: `{"Person.slug": "lower(name)"}`, texts like `Person.slug = lower(name)`, or one such text.
GivenBackfill: TypeAlias = str | Mapping[str, str] | Iterable[str] | None

#: The most backfills of one change.
MOST = 1000


def texts_of(given: GivenBackfill) -> tuple[str, ...]:
    """The texts of backfills in any of their forms."""
    if given is None:
        return ()
    if isinstance(given, str):
        return (given,)
    listed = [f"{name} = {text}" for name, text in given.items()] if isinstance(given, Mapping) else list(given)
    if not all(isinstance(text, str) for text in listed):
        raise BadRequest(
            'a backfill is a text like "Person.slug = lower(name)", or a mapping {"Person.slug": "lower(name)"}'
        )
    if len(listed) > MOST:
        raise BadRequest(f"a schema change takes at most {MOST} backfills, these are {len(listed)}")
    return tuple(listed)


@dataclass(frozen=True)
class Computed:
    """Computes one expression for every row."""

    owner: str
    expr: Expr
    type: PropType
    #: The columns that the expression reads, as they are before any backfill, under the names used in it.
    columns: tuple[Column, ...]
    #: The time that `now()` returns, in milliseconds since the epoch.
    now: int

    @cached_property
    def reads(self) -> tuple[str, ...]:
        return tuple(reads_of(self.columns))

    def __call__(self, batch: pa.RecordBatch) -> pa.Array:
        row = {column_name(ROW, column.field.name): values_of(column, batch) for column in self.columns}
        values = evaluate(self.expr, Rows(batch.num_rows, row), self._run())
        try:
            return fitted_column(whole(values), self.expr.type, self.type)
        except Unfit as unfit:
            shown = render_expr(self.expr).replace(f"${ROW}.", "")
            place = getattr(self.expr, "place", None)
            raise evaluation_error(f"{self.owner} ({self.type}): {unfit} in `{shown}`", place) from None

    def ahead(self, table: Table, fragment: int) -> Values:
        return self

    def _run(self) -> Run:
        # An expression over one row looks nothing up, so it needs no state.
        return Run(_NoView(), _NO_TYPES, {}, self.now, Caches(), _no_search, Budget(Limits()))


class _NoView:
    """A view in which nothing may be looked up."""

    commit = ""

    def entry(self, type_key: str) -> Any:
        raise BadRequest("a backfill reads its row only")

    def open(self, type_key: str) -> Any:
        raise BadRequest("a backfill reads its row only")


_NO_TYPES = Catalog({}, {}, {})


def _no_search(text: str, dimension: int, model: str | None) -> tuple[float, ...]:
    raise BadRequest("a backfill does not embed texts to search with; give `nearest` a vector")


def compile_backfills(texts: Sequence[str], before: SchemaIR, after: SchemaIR, now: int) -> Backfilled:
    """Check backfills against the schemas before and after a change; returns them by type and property."""
    old = entities(before.catalog)

    def dropped(entity: Entity) -> Mapping[str, Property]:
        was = old.get(entity.id)
        kept = {} if was is None else kept_names(was, entity)
        return {} if was is None else {name: each for name, each in was.properties.items() if name not in kept}

    found: dict[int, dict[str, tuple[Values, str]]] = {}
    for text in texts:
        backfill = check_backfill(text, after.catalog, dropped)
        entity, name = backfill.entity, backfill.assign.property
        if name in found.get(entity.id, {}):
            raise BadRequest(f"{entity.name}.{name} is backfilled twice; one expression gives its values")
        was = old.get(entity.id)
        if was is not None:
            found.setdefault(entity.id, {})[name] = (_computed(backfill, was, now), backfill.text)
    return Backfilled(found)


def _computed(backfill: Backfill, was: Entity, now: int) -> Computed:
    entity, assign = backfill.entity, backfill.assign
    columns = {column.field.name: column for column in wanted_columns(was, entity)}
    for column in wanted_columns(was, was):
        # Dropped properties too; a name in the wanted schema means the wanted property.
        columns.setdefault(column.field.name, column)
    names = sorted({column.property for column in columns_of(assign.value)})
    return Computed(
        f"{entity.name}.{assign.property}", assign.value, assign.type, tuple(columns[n] for n in names), now
    )
