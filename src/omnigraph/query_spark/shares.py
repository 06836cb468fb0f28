"""Which fragments each task of a scan reads."""

from __future__ import annotations

from omnigraph.query.scan.entities import Entities

#: A task is worth starting for about so many rows.
_ROWS_PER_TASK = 1_048_576


def shares_of(entities: Entities) -> tuple[tuple[int, ...] | None, ...]:
    """The fragments of a table in groups of about a million rows; None for a task that reads all of it."""
    if entities.rows <= _ROWS_PER_TASK:
        return (None,)
    groups: list[tuple[int, ...]] = []
    group: list[int] = []
    rows = 0
    for fragment in entities.table.dataset.get_fragments():
        group.append(fragment.fragment_id)
        rows += fragment.count_rows()
        if rows >= _ROWS_PER_TASK:
            groups.append(tuple(group))
            group, rows = [], 0
    return tuple([*groups, tuple(group)] if group else groups)


def tasks(count: int) -> str:
    """So many tasks, in words."""
    return "1 task" if count == 1 else f"{count} tasks"
