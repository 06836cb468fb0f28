"""Rule: counting something that is never null is counting rows."""

from __future__ import annotations

from dataclasses import replace

from omnigraph.language.query.ir import Aggregate, AggregateCall, AggregateColumn, Column, Plan, transform


def count_rows(plan: Plan) -> Plan:
    """`count` skips nulls; an id or a required property has none."""
    return transform(plan, _count_rows)


def _count_rows(plan: Plan) -> Plan:
    if not isinstance(plan, Aggregate):
        return plan
    return replace(plan, aggregates=tuple(map(_without_argument, plan.aggregates)))


def _without_argument(column: AggregateColumn) -> AggregateColumn:
    call = column.call
    if not call.counts_rows or not isinstance(call.argument, Column) or call.argument.type.nullable:
        return column
    return AggregateColumn(column.name, AggregateCall("count", None, call.type))
