"""The result of reading, whichever reader was used: the rows of each type with the place of each, and the problems."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.errors import LoadRejected
from omnigraph.language.schema.catalog import EdgeType, NodeType
from omnigraph.values.columns import table_schema

Entity = NodeType | EdgeType
#: Places of rows in the whole input: increasing and unique.
Orders = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

#: The longest line of text, and the longest value of a table, in bytes.
LONGEST_LINE = LONGEST_VALUE = 128 << 20
#: The largest factor by which a compressed input may expand; below the second limit, in bytes, any factor is allowed.
LARGEST_EXPANSION, SMALLEST_EXPANDED = 200, 64 << 20
#: How many problems a load lists; it counts them all.
LISTED_PROBLEMS = 100
#: How many of the listed problems the message shows.
_SHOWN_PROBLEMS = 10


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem of the input at a place; `order` is None for a problem of the load as a whole."""

    order: int | None
    message: str

    def sort_key(self) -> tuple[int, str]:
        return (-1 if self.order is None else self.order, self.message)


@dataclass(frozen=True)
class Problems:
    """The first problems in the order of the input, and the number of all problems."""

    listed: tuple[Problem, ...] = ()
    total: int = 0

    @classmethod
    def of(cls, found: Iterable[Problem]) -> Problems:
        ordered = sorted(found, key=Problem.sort_key)
        return cls(tuple(ordered[:LISTED_PROBLEMS]), len(ordered))

    @classmethod
    def together(cls, parts: Iterable[Problems]) -> Problems:
        """The problems of several parts of the input. Each part lists its first problems, so the first of all are known."""
        gathered = list(parts)
        listed = sorted((problem for part in gathered for problem in part.listed), key=Problem.sort_key)
        return cls(tuple(listed[:LISTED_PROBLEMS]), sum(part.total for part in gathered))


def too_long(what: str) -> str:
    """The message about a line or a value beyond the size limit."""
    return f"{what} is longer than {LONGEST_LINE} bytes; store large contents as blobs, by reference"


def expands_too_much(size: int, expanded: int) -> bool:
    """Whether to refuse a compressed input of `size` bytes that expands to `expanded` bytes: it could fill the memory."""
    return expanded > SMALLEST_EXPANDED and expanded > size * LARGEST_EXPANSION


def rejection(errors: Sequence[tuple[str, int, str]], total: int) -> LoadRejected:
    """The error of a load with problems. `errors`: file, line (0 for none) and message of each listed problem."""
    shown = [f"  {file}:{line}: {message}" if line else f"  {file}: {message}" for file, line, message in errors]
    rest = total - min(len(shown), _SHOWN_PROBLEMS)
    tail = [f"  … and {rest} more"] if rest > 0 else []
    count = "1 problem" if total == 1 else f"{total} problems"
    lines = [f"load rejected, nothing was written: {count}", *shown[:_SHOWN_PROBLEMS], *tail]
    return LoadRejected("\n".join(lines), errors=errors, total=total)


@dataclass(frozen=True)
class Ignored:
    """What a lenient reading ignored, counted by kind."""

    fields: int = 0
    properties: int = 0
    values: int = 0

    def __add__(self, other: Ignored) -> Ignored:
        return Ignored(self.fields + other.fields, self.properties + other.properties, self.values + other.values)


@dataclass(frozen=True)
class Rows:
    """Rows of one type: all columns of its table except `id`, the ids that were given, and the place of each row."""

    entity: Entity
    table: pa.Table
    #: Given ids, null where a row gives no id; None when no row gives one.
    given: pa.Array | None
    orders: Orders
    #: By property: which rows leave it out. Tracked for `@embed` vectors, and in an update for all properties.
    left_out: Mapping[str, Flags] = field(default_factory=dict)


@dataclass(frozen=True)
class Reading:
    """The contents of a piece of the input."""

    rows: tuple[Rows, ...] = ()
    problems: tuple[Problem, ...] = ()
    #: How many lines were skipped: blank lines and comments.
    skipped: int = 0
    ignored: Ignored = field(default_factory=Ignored)
    #: Ids of nodes whose lines were refused, by type.
    refused: Mapping[str, pa.Array] = field(default_factory=dict)


def tracked_names(entity: Entity, *, updates: bool) -> list[str]:
    """The properties whose absence in a row is tracked: in an update all, else only `@embed` vectors."""
    return [name for name, declared in entity.properties.items() if updates or declared.embed is not None]


def schema_without_id(entity: Entity) -> pa.Schema:
    """The columns of a type's table without `id`, all nullable: missing required values are reported by the row checks."""
    return pa.schema([field.with_nullable(True) for field in list(table_schema(entity))[1:]])


def joined(pieces: Sequence[Rows]) -> Rows:
    """Several pieces of one type as one, in the order of the input."""
    if len(pieces) == 1:
        return pieces[0]
    entity = pieces[0].entity
    table = pa.concat_tables([piece.table for piece in pieces])
    orders = np.concatenate([piece.orders for piece in pieces])
    given = None
    if any(piece.given is not None for piece in pieces):
        given = pa.concat_arrays(
            [piece.given if piece.given is not None else pa.nulls(len(piece.orders), pa.string()) for piece in pieces]
        )
    left_out = {name: np.concatenate([piece.left_out[name] for piece in pieces]) for name in pieces[0].left_out}
    whole = Rows(entity, table, given, orders, left_out)
    return whole if bool(np.all(orders[1:] > orders[:-1])) else picked(whole, np.argsort(orders))


def picked(rows: Rows, places: npt.NDArray[np.int64]) -> Rows:
    """The rows at these places."""
    chosen = pa.array(places)
    return Rows(
        rows.entity,
        rows.table.take(chosen),
        None if rows.given is None else rows.given.take(chosen),
        rows.orders[places],
        {name: flags[places] for name, flags in rows.left_out.items()},
    )
