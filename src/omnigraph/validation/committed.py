"""What the set rules need to know about rows that are stored already. Writers say where they look."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import pyarrow as pa


class Committed(Protocol):
    """Batched look-ups in the base a write was prepared against; `type_key` is `node:Type` or `edge:Type`."""

    def by_id(self, type_key: str, ids: pa.Array, columns: Sequence[str]) -> pa.Table:
        """The rows with these ids."""

    def by_value(self, type_key: str, column: str, values: pa.Array, columns: Sequence[str]) -> pa.Table:
        """The rows whose column has one of these values."""
