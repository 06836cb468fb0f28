"""Rule: counting something that is never null is counting rows."""

from __future__ import annotations

from dataclasses import replace

from omnigraph.language.query.ir import Aggregate, AggregateCall, AggregateColumn, Attach, Column, Plan, transform


def count_rows(plan: Plan) -> Plan:
    """`count` skips nulls; an id or a required property has none."""
    return transform(plan, _count_rows)


def _count_rows(plan: Plan) -> Plan:
    match plan:
        case Aggregate():
            columns = (AggregateColumn(column.name, _without_argument(column.call)) for column in plan.aggregates)
            return replace(plan, aggregates=tuple(columns))
        case Attach():
            return replace(plan, call=_without_argument(plan.call))
        case _:
            return plan


def _without_argument(call: AggregateCall) -> AggregateCall:
    if not call.counts_rows or not isinstance(call.argument, Column) or call.argument.type.nullable:
        return call
    return AggregateCall("count", None, call.type)
