"""Rows of bindings: a column `variable.property` for each property that was read, and arrays of numbers for the engine.
A node that was reached by a traversal is stored as a position in a *domain*, an array of ids that all rows share. Its id is
looked up in the domain only when it is read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.language.query.ir import VALUE, is_value
from omnigraph.query.limits import Budget
from omnigraph.values.columns import whole

#: Usually 64 bits wide; positions in adjacency have 32 bits.
Integers = npt.NDArray[np.signedinteger[Any]]
Narrow = npt.NDArray[np.int32]
#: Row addresses: where rows lie in their table.
Addresses = npt.NDArray[np.uint64]
Mask = npt.NDArray[np.bool_]
#: A column in memory.
Values: TypeAlias = "pa.Array | pa.ChunkedArray"

#: How many paths a row stands for.
WEIGHT = "#weight"
#: Fewer rows are not measured: asking Arrow for the size of a column takes as long as making so many rows.
_FEW = 256
#: Below so many bytes of buffers, the size of the buffers is taken, without asking which part of them the rows use.
_SMALL = 2**17


class Domain(Protocol):
    """Ids in a fixed order. Domains with equal keys are equal."""

    @property
    def key(self) -> tuple[object, ...]: ...

    @property
    def ids(self) -> pa.Array: ...

    def text(self, position: int) -> bytes: ...

    def sortable(self, positions: Integers) -> pa.Array: ...


@dataclass(frozen=True, slots=True)
class Attributes:
    """The columns read of the nodes of a domain. `places`: the row in `columns` of each position; None: row = position."""

    places: Integers | None
    columns: Mapping[str, Values]


@dataclass(frozen=True, slots=True)
class Rows:
    """`count` rows of bindings; `domains` holds the domain of each variable that has positions.
    `numbers` are the positions, weights, row addresses and scores that the engine computes with. They are NumPy arrays, because
    handing a few numbers to Arrow costs more than computing with them. `attributes` holds the properties of variables with
    positions, once per node; they become columns when they are read.
    """

    count: int
    columns: Mapping[str, Values] = field(default_factory=dict)
    numbers: Mapping[str, npt.NDArray[Any]] = field(default_factory=dict)
    domains: Mapping[str, Domain] = field(default_factory=dict)
    attributes: Mapping[str, Attributes] = field(default_factory=dict)

    def has(self, variable: str, name: str) -> bool:
        """Whether a property, or the id, of a variable is available in these rows."""
        if name == "id" and variable in self.domains:
            return True
        full_name = column_name(variable, name)
        known = self.attributes.get(variable)
        return full_name in self.columns or (known is not None and full_name in known.columns)

    def column(self, variable: str, name: str) -> Values:
        """A property of a variable, or its id."""
        full_name = column_name(variable, name)
        if full_name in self.columns:
            return self.columns[full_name]
        places = self.positions(variable)
        if name == "id":
            return self.domains[variable].ids.take(pa.array(places))
        known = self.attributes[variable]
        values = known.columns[full_name]
        if known.places is not None:
            places = known.places[places]
        elif is_all_in_order(places, len(values)):
            return values
        return values.take(pa.array(places))

    def positions(self, variable: str) -> Integers:
        """The positions of a variable's nodes in its domain."""
        return self.numbers[position_name(variable)]

    def addresses(self, variable: str) -> Addresses | None:
        """The row addresses of a scanned variable; None when they were not read."""
        return self.numbers.get(address_name(variable))

    def codes(self, variable: str) -> Integers:
        """Equal numbers for equal nodes, edges or values of a variable."""
        if variable in self.domains:
            return self.positions(variable)
        values = whole(self.column(variable, VALUE if is_value(variable) else "id"))
        if pa.types.is_nested(values.type):
            seen: dict[object, int] = {}
            return np.array([seen.setdefault(str(value), len(seen)) for value in values.to_pylist()], np.int64)
        encoded = pc.dictionary_encode(values, null_encoding="encode")
        codes = np.asarray(encoded.indices.to_numpy(), dtype=np.int64)
        if variable_type(variable) in self.columns:
            # Ids are unique within a type only, so the type is a part of the code.
            kinds = pc.dictionary_encode(whole(self.columns[variable_type(variable)]), null_encoding="encode")
            codes = codes * max(len(kinds.dictionary), 1) + np.asarray(kinds.indices.to_numpy(), dtype=np.int64)
        return codes

    @property
    def is_few(self) -> bool:
        """Whether these rows are too few to be worth measuring in bytes."""
        return self.count < _FEW

    def bytes_of(self, count: int) -> int:
        """About how many bytes `count` rows like these take; 0 for a small count."""
        return 0 if count < _FEW else self._measured(count)

    def _measured(self, count: int) -> int:
        width = 8 * len(self.numbers)
        if self.count:
            width += sum(column.nbytes for column in self.columns.values()) // self.count
        return width * count

    def column_bytes(self, variable: str, name: str) -> int:
        """About how many bytes a property of all these rows takes as a column; 0 for a few rows."""
        if self.count < _FEW:
            return 0
        values = self.columns.get(column_name(variable, name))
        if values is None:
            known = self.attributes.get(variable)
            values = None if known is None else known.columns.get(column_name(variable, name))
        if values is None:
            values = self.domains[variable].ids if variable in self.domains else None
        return 8 * self.count if not values else values.nbytes * self.count // len(values)

    @property
    def nbytes(self) -> int:
        """About how many bytes these rows take, without domains and attributes, which rows share; 0 for a few rows.
        Small columns count with the size of their buffers, which Arrow reports at once and which may be a little more.
        """
        if self.count < _FEW:
            return 0
        buffers: int = sum(column.get_total_buffer_size() for column in self.columns.values())
        if buffers < _SMALL:
            return buffers + 8 * len(self.numbers) * self.count
        return self._measured(self.count)

    def take(self, indices: npt.NDArray[Any]) -> Rows:
        """The rows at these indices, in this order; an index that occurs twice gives its row twice."""
        numbers = {name: values[indices] for name, values in self.numbers.items()}
        columns = self.columns
        if columns:
            arrow = pa.array(indices)
            columns = {name: column.take(arrow) for name, column in columns.items()}
        return Rows(len(indices), columns, numbers, self.domains, self.attributes)

    def filter(self, mask: Mask) -> Rows:
        """The rows where the mask is true."""
        places = np.flatnonzero(mask)
        numbers = {name: values[places] for name, values in self.numbers.items()}
        columns = self.columns
        if columns:
            arrow = pa.array(mask)
            columns = {name: column.filter(arrow) for name, column in columns.items()}
        return Rows(len(places), columns, numbers, self.domains, self.attributes)

    def slice(self, start: int, count: int) -> Rows:
        if start == 0 and count >= self.count:
            return self
        columns = {name: column.slice(start, count) for name, column in self.columns.items()}
        numbers = {name: values[start : start + count] for name, values in self.numbers.items()}
        left = min(count, max(self.count - start, 0))
        return Rows(left, columns, numbers, self.domains, self.attributes)

    def with_columns(self, columns: Mapping[str, Values]) -> Rows:
        """The same rows with more columns."""
        return Rows(self.count, {**self.columns, **columns}, self.numbers, self.domains, self.attributes)

    def with_numbers(self, name: str, values: npt.NDArray[Any]) -> Rows:
        """The same rows with one more array of numbers."""
        return Rows(self.count, self.columns, {**self.numbers, name: values}, self.domains, self.attributes)

    def without(self, names: Sequence[str]) -> Rows:
        """The same rows without some columns."""
        columns = {name: column for name, column in self.columns.items() if name not in names}
        return Rows(self.count, columns, self.numbers, self.domains, self.attributes)

    def with_positions(
        self, variable: str, domain: Domain, positions: Integers, attributes: Attributes | None = None
    ) -> Rows:
        """The same rows with one more variable, given by its positions in a domain, and the columns read of its nodes."""
        numbers = {**self.numbers, position_name(variable): positions}
        known = self.attributes if attributes is None else {**self.attributes, variable: attributes}
        return Rows(self.count, self.columns, numbers, {**self.domains, variable: domain}, known)

    def settled(self, domains: Sequence[str], attributes: Sequence[str]) -> Rows:
        """The same rows, with columns for the ids of the variables `domains` and for the attributes of `attributes`."""
        columns = {column_name(name, "id"): self.column(name, "id") for name in domains if name in self.domains}
        for variable in attributes:
            for full_name in self.attributes[variable].columns if variable in self.attributes else ():
                columns[full_name] = self.column(variable, full_name.removeprefix(f"{variable}."))
        return Rows(
            self.count,
            {**columns, **self.columns},
            {name: some for name, some in self.numbers.items() if name not in map(position_name, domains)},
            {name: domain for name, domain in self.domains.items() if name not in domains},
            {name: known for name, known in self.attributes.items() if name not in attributes},
        )

    def beside(self, other: Rows) -> Rows:
        """Two row sets of equal length with different variables, side by side."""
        return Rows(
            self.count,
            {**other.columns, **self.columns},
            {**other.numbers, **self.numbers},
            {**self.domains, **other.domains},
            {**self.attributes, **other.attributes},
        )


def concatenated(parts: Sequence[Rows]) -> Rows:
    """Rows of the same variables, one after the other; there is at least one part."""
    if len(parts) == 1:
        return parts[0]
    parts = _alike(parts)
    first = parts[0]
    columns = {name: _chunked([part.columns[name] for part in parts]) for name in first.columns}
    numbers = {name: np.concatenate([part.numbers[name] for part in parts]) for name in first.numbers}
    return Rows(sum(part.count for part in parts), columns, numbers, first.domains, first.attributes)


class Gathered:
    """Rows that are kept while more of them come. Their bytes are charged until they are released."""

    def __init__(self, budget: Budget) -> None:
        self.count = 0
        self._budget = budget
        self._parts: list[Rows] = []
        #: The bytes that are charged.
        self.held = 0

    def add(self, rows: Rows) -> None:
        """Keep more rows."""
        # A few wide rows in each of many parts add up; a single small part would cost more to measure than to hold.
        self.held += self._budget.charge(rows._measured(rows.count) if self._parts else rows.nbytes)
        self.count += rows.count
        if rows.count or not self._parts:
            self._parts.append(rows)

    def rows(self) -> Rows:
        """All rows that are kept; there is at least one part, which may be empty."""
        self._parts = [concatenated(self._parts)]
        return self._parts[0]

    def replace(self, rows: Rows) -> None:
        """Drop all rows and keep these instead."""
        self.release()
        self.add(rows)

    def release(self) -> None:
        """Drop all rows and release their bytes."""
        self._budget.release(self.held)
        self.held, self.count, self._parts = 0, 0, []


def gathered(batches: Iterator[Rows], budget: Budget) -> Rows:
    """All rows of at least one batch as one. Their memory is charged while they are read, and released afterwards."""
    first = next(batches)
    second = next(batches, None)
    if second is None:
        return first
    kept = Gathered(budget)
    try:
        for rows in chain((first, second), batches):
            kept.add(rows)
        return kept.rows()
    finally:
        kept.release()


def _alike(parts: Sequence[Rows]) -> Sequence[Rows]:
    """The same rows, with columns instead of positions for each variable whose domain is not the same in all parts.
    A traversal that follows an index has a separate domain for each batch, and reads different nodes for each.
    """
    settled = [name for name in _names(part.domains for part in parts) if not _is_one_domain(name, parts)]
    unlike = [
        name
        for name in _names(part.attributes for part in parts)
        if name in settled or not all(_same(part.attributes.get(name), parts[0].attributes.get(name)) for part in parts)
    ]
    return [part.settled(settled, unlike) for part in parts] if settled or unlike else parts


def _names(parts: Iterable[Mapping[str, object]]) -> list[str]:
    return list(dict.fromkeys(name for part in parts for name in part))


def _is_one_domain(variable: str, parts: Sequence[Rows]) -> bool:
    """Whether a variable has positions in the same domain in all parts."""
    domains = [part.domains.get(variable) for part in parts]
    return len({None if domain is None else domain.key for domain in domains}) == 1


def _same(one: Attributes | None, other: Attributes | None) -> bool:
    if one is None or other is None:
        return one is other
    return one.places is other.places and one.columns is other.columns


def _chunked(parts: Sequence[Values]) -> pa.ChunkedArray:
    return pa.chunked_array([chunk for part in parts for chunk in chunks_of(part)], parts[0].type)


def chunks_of(values: Values) -> Sequence[pa.Array]:
    """The chunks of a column as arrays; an array is its own only chunk."""
    return values.chunks if isinstance(values, pa.ChunkedArray) else (values,)


def column_name(variable: str, name: str) -> str:
    """The name of the column of a variable's property."""
    return f"{variable}.{name}"


def variable_type(variable: str) -> str:
    """The name of the type column of a variable that stands for nodes or edges of several types."""
    return column_name(variable, "@type")


def address_name(variable: str) -> str:
    """The name of the numbers with the row addresses of a scanned variable."""
    return column_name(variable, "#address")


def position_name(variable: str) -> str:
    return f"{variable}.#position"


def is_all_in_order(positions: Integers, size: int) -> bool:
    """Whether these are all positions of a domain of this size, in ascending order."""
    return len(positions) == size and bool((positions == np.arange(size)).all())


def order_by_code(codes: Integers) -> Integers:
    """The places of non-negative codes in ascending order of the codes; equal codes keep their order.
    The same as `np.argsort(codes, kind="stable")`, but faster: NumPy sorts 16-bit numbers by counting, so the codes are sorted
    by their low 16 bits first, then by each next 16 bits.
    """
    order = np.argsort((codes & _LOW_BITS).astype(np.uint16), kind="stable")
    high = codes >> 16
    while high.any():
        order = order[np.argsort((high & _LOW_BITS).astype(np.uint16)[order], kind="stable")]
        high = high >> 16
    return order


_LOW_BITS = 0xFFFF
