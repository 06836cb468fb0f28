"""Edges that name an end by another spelling of the id than the stored one, when the same load brings the node."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.language.schema.catalog import EdgeType
from omnigraph.load.identify import ALIASES
from omnigraph.load.parsed import Problem, Rows


def ambiguous(aliases: pa.Table) -> list[Problem]:
    """The problems of spellings that two nodes of one type claim: an edge could mean either node."""
    groups = aliases.group_by(["type_key", "spelled"]).aggregate([("id", "count_distinct"), ("order", "max")])
    wrong = groups.filter(pc.greater(groups["id_count_distinct"], 1))
    return [
        Problem(
            row["order_max"],
            f"ambiguous edge endpoint remap: two nodes of {row['type_key'].partition(':')[2]} claim the id "
            f"{row['spelled']!r}",
        )
        for row in wrong.to_pylist()
    ]


def distinct(aliases: pa.Table) -> pa.Table:
    """The aliases with one row per spelling."""
    groups = aliases.group_by(["type_key", "spelled"]).aggregate([("id", "min"), ("order", "min")])
    return pa.Table.from_arrays(
        [groups[name] for name in ("type_key", "spelled", "id_min", "order_min")], schema=ALIASES
    )


def rename_ends(rows: Rows, aliases: pa.Table) -> Rows:
    """The rows of an edge type, with the stored ids as ends."""
    edge = rows.entity
    if not isinstance(edge, EdgeType):
        return rows
    table = rows.table
    for column, type_name in (("src", edge.from_type), ("dst", edge.to_type)):
        known = aliases.filter(pc.equal(aliases["type_key"], f"node:{type_name}"))
        if not known.num_rows:
            continue
        found = pc.index_in(table[column], value_set=known["spelled"].combine_chunks())
        renamed = pc.coalesce(known["id"].combine_chunks().take(found.combine_chunks()), table[column])
        table = table.set_column(table.schema.get_field_index(column), table.schema.field(column), renamed)
    return Rows(rows.entity, table, rows.given, rows.orders, rows.left_out)
