"""Turns rows that were read into rows that can be stored: checks each row, gives it an id, extracts its check keys."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.language.schema.catalog import EdgeType
from omnigraph.load.identify import identify
from omnigraph.load.kept import NULLS, null_bits, with_kept_values
from omnigraph.load.parsed import Entity, Flags, Orders, Problem, Rows
from omnigraph.load.stored import Stored
from omnigraph.validation.rows import check_rows
from omnigraph.values.columns import table_schema

ORDER = "order"


@dataclass(frozen=True)
class Batch:
    """Rows of one type with their ids. `unfit`: some rows broke a rule, so the batch is checked further but never stored."""

    entity: Entity
    table: pa.Table
    orders: Orders
    may_meet: Flags
    unfit: bool
    #: By `@embed` property: which rows wait for their vector to be made.
    unmade: dict[str, Flags]

    @property
    def waits_for_vectors(self) -> bool:
        return any(flags.any() for flags in self.unmade.values())


@dataclass(frozen=True)
class Judged:
    """A batch, the aliases among its ids, and the problems of its rows."""

    batch: Batch
    aliases: pa.Table
    problems: tuple[Problem, ...]


def judge_rows(rows: Rows, job_id: str, stored: Stored | None = None) -> Judged:
    """Check the single-row rules and give every row its id. `stored`: in an update, where left-out values are taken from."""
    if stored is not None:
        rows = with_kept_values(rows, job_id, stored)
    unmade = _unmade(rows)
    broken = [
        Problem(int(rows.orders[violation.row]), violation.message)
        for violation in check_rows(rows.entity, rows.table)
        if violation.row is not None
        and not (violation.kind == "required" and _waits(unmade, violation.property, violation.row))
    ]
    identified = identify(rows, job_id)
    kept = identified.rows
    if len(kept.orders) < len(rows.orders):
        unmade = _unmade(kept)
    problems = (*broken, *identified.problems)
    table = kept.table.add_column(0, pa.field("id", pa.string()), identified.ids)
    if not problems and not any(flags.any() for flags in unmade.values()):
        table = pa.Table.from_arrays(table.columns, schema=table_schema(rows.entity))
    batch = Batch(rows.entity, table, kept.orders, identified.may_meet, bool(problems), unmade)
    return Judged(batch, identified.aliases, problems)


def without(batch: Batch, dropped: Orders) -> Batch:
    """The batch without the rows at the places `dropped`."""
    keep = np.flatnonzero(~np.isin(batch.orders, dropped))
    if len(keep) == len(batch.orders):
        return batch
    return Batch(
        batch.entity,
        batch.table.take(pa.array(keep)),
        batch.orders[keep],
        batch.may_meet[keep],
        batch.unfit,
        {name: flags[keep] for name, flags in batch.unmade.items()},
    )


def keys_of(batch: Batch, *, counts_nulls: bool) -> pa.Table:
    """The columns that the checks across tasks need: ids, ends, columns of unique rules, the place of each row.

    `counts_nulls`: also a bit mask of the nullable properties that are null in each row.
    """
    fixed = ["id", "src", "dst"] if isinstance(batch.entity, EdgeType) else ["id"]
    unique = [name for columns in batch.entity.uniques for name in columns]
    table = batch.table.select(list(dict.fromkeys([*fixed, *unique])))
    table = pa.table({name: table[name] for name in table.column_names})
    table = table.append_column(ORDER, pa.array(batch.orders)).append_column("may_meet", pa.array(batch.may_meet))
    return table.append_column(NULLS, null_bits(batch.entity, batch.table)) if counts_nulls else table


def _unmade(rows: Rows) -> dict[str, Flags]:
    """By `@embed` property: the rows that leave the vector out although they give its source text."""
    waiting = {}
    for name, left_out in rows.left_out.items():
        embed = rows.entity.properties[name].embed
        if embed is None:
            continue
        given = pc.is_valid(rows.table[embed.source]).to_numpy()
        waiting[name] = left_out & given
    return waiting


def _waits(unmade: dict[str, Flags], name: str | None, row: int) -> bool:
    return name in unmade and bool(unmade[name][row])
