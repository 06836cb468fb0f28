"""Filters on tables that hold lists of unsigned integers.

Lance sends the schema of a table along with every filter, as Substrait, which has no unsigned integers. Columns that Substrait
can not express give way to placeholders, so that filters on the others work; Lance knows this of unsigned columns, but not
of lists of them, and would refuse every filter on such a table.
"""

from __future__ import annotations

from importlib import import_module

import pyarrow as pa

# By its name: the attribute `lance.dataset` is a function.
_lance = import_module("lance.dataset")
_known_to_lance = _lance._needs_substrait_placeholder


def _needs_placeholder(kind: pa.DataType) -> bool:
    is_list = pa.types.is_list(kind) or pa.types.is_large_list(kind)
    return bool(_known_to_lance(kind)) or (is_list and pa.types.is_unsigned_integer(kind.value_type))


def allow_unsigned_lists() -> None:
    """Let Lance put a placeholder where a list of unsigned integers is, in every filter of this process."""
    _lance._needs_substrait_placeholder = _needs_placeholder  # type: ignore[attr-defined]
