"""The target of a merge as captured, for look-ups by id and by value, one table at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.merge.view import View


class Target:
    """Reads the captured versions of the target's tables; serves as the stored side for the rule checks.

    `undecided`: by type key, ids of entities whose own conflict is reported. It is open whether they stay, so no edge is
    reported as an orphan because of such a node, nor is such an edge itself. `settled`: types whose table is equal in ours
    and theirs. Edges of theirs were checked against this same table when they were written, so their ends are not looked up
    there again.
    """

    def __init__(self, views: Callable[[str], View]) -> None:
        self._view = views
        self.undecided: Mapping[str, pa.Array] = {}
        self.settled: frozenset[str] = frozenset()

    def by_id(self, type_key: str, ids: pa.Array, columns: Sequence[str]) -> pa.Table:
        """The rows with these ids; if only `id` is asked for, undecided ids and ids of settled types count as present."""
        if type_key in self.settled and list(columns) == ["id"]:
            return pa.table({"id": ids})
        found = self.stored(type_key, ids, columns)
        open_ids = self.undecided.get(type_key)
        if open_ids is None or list(columns) != ["id"]:
            return found
        return pa.table({"id": pa.concat_arrays([*found["id"].chunks, ids.filter(pc.is_in(ids, value_set=open_ids))])})

    def stored(self, type_key: str, ids: pa.Array, columns: Sequence[str]) -> pa.Table:
        """The rows with these ids, ignoring `undecided` and `settled`."""
        return self._view(type_key).rows(ids, columns)

    def by_value(self, type_key: str, column: str, values: pa.Array, columns: Sequence[str]) -> pa.Table:
        """The rows whose `column` has one of these values."""
        return self._view(type_key).by_value(column, values, columns)
