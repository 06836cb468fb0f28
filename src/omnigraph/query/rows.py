"""Rows of bindings: an Arrow table with a column `variable.property` for everything that was read so far.

A node that was reached by a traversal is first of all a position in a *domain*, an array of ids that is shared by all rows;
its id is looked up there only when somebody reads it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

#: Of 64 bits as a rule; positions in large adjacency have 32.
Integers = npt.NDArray[np.signedinteger[Any]]
Narrow = npt.NDArray[np.int32]
Mask = npt.NDArray[np.bool_]

#: Keeps the number of rows when nothing is read of them.
_UNIT = "#unit"
#: How many paths a row stands for.
WEIGHT = "#weight"


class Domain(Protocol):
    """Ids in a fixed order. Domains with equal keys are equal."""

    @property
    def key(self) -> tuple[object, ...]: ...

    @property
    def ids(self) -> pa.Array: ...


@dataclass(frozen=True, slots=True)
class Attributes:
    """What was read of the nodes of a domain: the row of `table` for each position; None when it is the position."""

    places: Integers | None
    table: pa.Table


@dataclass(frozen=True, slots=True)
class Rows:
    """Some rows of bindings; `domains` are those of the variables that have positions.

    `attributes` holds the properties of such variables once per node; they become columns when somebody reads them.
    """

    table: pa.Table
    domains: Mapping[str, Domain] = field(default_factory=dict)
    attributes: Mapping[str, Attributes] = field(default_factory=dict)

    @property
    def count(self) -> int:
        return int(self.table.num_rows)

    def has(self, variable: str, name: str) -> bool:
        """Whether a property was read already."""
        return column_name(variable, name) in self.table.column_names

    def column(self, variable: str, name: str) -> pa.ChunkedArray:
        """A property of a variable, or its id."""
        if name == "id" and not self.has(variable, name):
            return pa.chunked_array([self.domains[variable].ids.take(pa.array(self.positions(variable)))])
        full_name = column_name(variable, name)
        if variable in self.attributes and full_name not in self.table.column_names:
            known = self.attributes[variable]
            places = self.positions(variable)
            if known.places is not None:
                places = known.places[places]
            elif is_all_in_order(places, len(known.table)):
                return known.table[full_name]
            return known.table[full_name].take(pa.array(places))
        return self.table[full_name]

    def positions(self, variable: str) -> Integers:
        """Where the nodes of a variable are in its domain."""
        return integers(self.table[position_name(variable)])

    def hidden(self, name: str) -> Integers:
        """A column of numbers that the engine keeps for itself."""
        return integers(self.table[name])

    def codes(self, variable: str) -> Integers:
        """Equal numbers for equal nodes of a variable."""
        if variable in self.domains:
            return self.positions(variable)
        encoded = pc.dictionary_encode(self.column(variable, "id").combine_chunks())
        return integers(encoded.indices)

    def take(self, indices: Integers | pa.Array) -> Rows:
        """These rows, in this order, repeated as often as they are named."""
        return self._with(self.table.take(pa.array(indices)))

    def filter(self, mask: pa.Array | pa.ChunkedArray | Mask) -> Rows:
        """The rows for which the mask holds."""
        return self._with(self.table.filter(pa.array(mask) if isinstance(mask, np.ndarray) else mask))

    def slice(self, start: int, count: int) -> Rows:
        return self._with(self.table.slice(start, count))

    def _with(self, table: pa.Table) -> Rows:
        return Rows(table, self.domains, self.attributes)

    def with_columns(self, columns: Mapping[str, pa.Array | pa.ChunkedArray | Integers]) -> Rows:
        """The same rows with more columns."""
        table = self.table
        for name, values in columns.items():
            arrow = pa.array(values) if isinstance(values, np.ndarray) else values
            table = table.append_column(name, arrow)
        return self._with(table)

    def with_positions(
        self, variable: str, domain: Domain, positions: Integers, attributes: Attributes | None = None
    ) -> Rows:
        """The same rows with one more variable, known by its positions, and what was read of its nodes."""
        added = self.with_columns({position_name(variable): positions})
        known = self.attributes if attributes is None else {**self.attributes, variable: attributes}
        return Rows(added.table, {**self.domains, variable: domain}, known)

    def beside(self, other: Rows) -> Rows:
        """Two row sets of equal length with different variables, side by side."""
        table = self.table
        for name in other.table.column_names:
            if name not in table.column_names:
                table = table.append_column(name, other.table[name])
        return Rows(table, {**self.domains, **other.domains}, {**self.attributes, **other.attributes})


def column_name(variable: str, name: str) -> str:
    """How a property of a variable is called among the rows."""
    return f"{variable}.{name}"


def address_name(variable: str) -> str:
    """The column that says where the row of a scanned node lies."""
    return column_name(variable, "#address")


def position_name(variable: str) -> str:
    return f"{variable}.#position"


def is_all_in_order(positions: Integers, size: int) -> bool:
    """Whether these are all positions of a domain of this size, one after the other."""
    return len(positions) == size and bool((positions == np.arange(size)).all())


def integers(column: pa.Array | pa.ChunkedArray) -> Integers:
    """A column of integers without nulls, as numpy has it."""
    if isinstance(column, pa.ChunkedArray):
        column = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    return np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.int64)


def unit_rows(count: int) -> Rows:
    """So many rows of which nothing is known."""
    return Rows(pa.table({_UNIT: pa.nulls(count)}))


def rows_of(table: pa.Table) -> Rows:
    """A table of bindings as rows; a table without columns keeps its number of rows."""
    return Rows(table) if table.num_columns else unit_rows(table.num_rows)
