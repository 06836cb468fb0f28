"""`Result`: what a query answered. Arrow inside, and everything people look at it with."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from typing import Any, TypeAlias

import orjson
import pyarrow as pa

from omnigraph.errors import BadRequest
from omnigraph.language.types import PropType
from omnigraph.query.show import MOST_ROWS, text_table
from omnigraph.shown import Shown
from omnigraph.values.render import Column, plain, python_values

#: Takes the values out of a column of a property type.
_Taken: TypeAlias = Callable[[Column, PropType], list[Any]]


@dataclass(frozen=True)
class Result(Shown):
    """The rows of a query and the commit they come from. `types` are the property types of the columns, in order."""

    table: pa.Table
    types: tuple[PropType, ...]
    commit: str

    @property
    def columns(self) -> list[str]:
        """The names of the columns: `variable.property`, or the alias."""
        return list(self.table.column_names)

    @cached_property
    def rows(self) -> list[dict[str, Any]]:
        """The rows as dicts of Python values: a Date is a `date`, a DateTime an aware `datetime` in UTC."""
        return self._dicts(python_values)

    def to_dicts(self, *, json: bool = False) -> list[dict[str, Any]]:
        """The rows as dicts. With `json` as the command line and the wire show them: dates are ISO texts, non-finite floats
        texts such as `"NaN"`.
        """
        return self._dicts(plain) if json else list(self.rows)

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.rows)

    # --- other libraries --------------------------------------------------------------------------------------------

    def to_arrow(self) -> pa.Table:
        """The Arrow table itself."""
        return self.table

    def to_pandas(self) -> Any:
        """A pandas data frame; pandas is an optional extra."""
        _optional("pandas")
        return self.table.to_pandas()

    def to_polars(self) -> Any:
        """A polars data frame; polars is an optional extra."""
        return _optional("polars").from_arrow(self.table)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The rows for any library that speaks the Arrow C stream interface."""
        return self.table.__arrow_c_stream__(requested_schema)

    # --- for programs and people ------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """The result as plain JSON data."""
        return {
            "columns": self.columns,
            "types": [str(kind) for kind in self.types],
            "row_count": len(self),
            "rows": self.to_dicts(json=True),
            "commit": self.commit,
        }

    def to_json(self) -> str:
        """The rows as a JSON array."""
        return orjson.dumps(self.to_dicts(json=True)).decode()

    def __str__(self) -> str:
        return text_table(self.columns, self._texts(), len(self))

    def __repr__(self) -> str:
        return f"Result({len(self)} rows of {', '.join(self.columns)})"

    def _texts(self) -> list[list[str]]:
        """The first rows as texts: a table for people is cheap, however many rows there are."""
        first = self._values(self.table.slice(0, MOST_ROWS), plain)
        return [["" if value is None else _text(value) for value in row] for row in first]

    def _dicts(self, taken: _Taken) -> list[dict[str, Any]]:
        names = self.columns
        return [dict(zip(names, values, strict=True)) for values in self._values(self.table, taken)]

    def _values(self, table: pa.Table, taken: _Taken) -> Iterator[tuple[Any, ...]]:
        """The rows of a table, with their values taken out by this function."""
        return zip(*(taken(table.column(place), kind) for place, kind in enumerate(self.types)), strict=True)


def _optional(library: str) -> Any:
    """A library that is an optional extra."""
    try:
        return import_module(library)
    except ImportError:
        raise BadRequest(f"{library} is not installed; run `pip install {library}`") from None


def _text(value: object) -> str:
    return value if isinstance(value, str) else orjson.dumps(value).decode()
