"""The target of a merge as it was captured: looked up by id and by value, one table at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.merge.view import View


class Target:
    """Reads the captured versions of the target's tables; the look-ups of the set rules among them.

    `undecided`: ids, by type key, of entities whose own conflict is reported. Whether they stay is open, so no edge is an
    orphan for want of such a node, nor is such an edge. `settled`: types whose table is the same on both sides. What
    theirs leaves or brings was checked against just that table when it was written, so no end of an edge is looked for
    there again.
    """

    def __init__(self, views: Callable[[str], View]) -> None:
        self._view = views
        self.undecided: Mapping[str, pa.Array] = {}
        self.settled: frozenset[str] = frozenset()

    def by_id(self, type_key: str, ids: pa.Array, columns: Sequence[str]) -> pa.Table:
        """The rows with these ids."""
        if type_key in self.settled and list(columns) == ["id"]:
            return pa.table({"id": ids})
        found = self.stored(type_key, ids, columns)
        open_ids = self.undecided.get(type_key)
        if open_ids is None or list(columns) != ["id"]:
            return found
        return pa.table({"id": pa.concat_arrays([*found["id"].chunks, ids.filter(pc.is_in(ids, value_set=open_ids))])})

    def stored(self, type_key: str, ids: pa.Array, columns: Sequence[str]) -> pa.Table:
        """The rows with these ids, whatever is open or settled about them."""
        return self._view(type_key).rows(ids, columns)

    def by_value(self, type_key: str, column: str, values: pa.Array, columns: Sequence[str]) -> pa.Table:
        """The rows whose column has one of these values."""
        return self._view(type_key).by_value(column, values, columns)
