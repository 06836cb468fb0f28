"""One version of a table in a merge, and some of its entities as values that can be compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.changes.compare import differing
from omnigraph.merge.combine import Mask, align, flat
from omnigraph.storage.tables.table import Blobs, Table

Places = npt.NDArray[np.int64]


@dataclass(frozen=True)
class View:
    """A version of a table under the names that the target uses."""

    table: Table
    #: The columns that the target calls otherwise, by the name they have here.
    renamed: Mapping[str, str] = field(default_factory=dict)

    def named(self, rows: pa.Table) -> pa.Table:
        """Rows of this version under the names of the target."""
        if not self.renamed:
            return rows
        return rows.rename_columns([self.renamed.get(name, name) for name in rows.column_names])

    def rows(
        self,
        ids: pa.Array,
        columns: Sequence[str],
        *,
        with_row_address: bool = False,
        blobs: Blobs = "descriptors",
    ) -> pa.Table:
        """The rows with these ids, in no particular order."""
        stored = {name: here for here, name in self.renamed.items()}
        wanted = [stored.get(name, name) for name in columns]
        return self.named(self.table.take_ids(ids, wanted, with_row_address=with_row_address, blobs=blobs))

    def image(self, ids: pa.Array, columns: Sequence[str]) -> Image:
        """These entities as this version has them."""
        return Image(ids, *align(self.rows(ids, columns), ids), self)


@dataclass(frozen=True)
class Image:
    """Some entities, in a given order, as one version has them; `present` says which it has."""

    ids: pa.Array
    rows: pa.Table | None
    present: Mask
    view: View

    def take(self, places: Places) -> Image:
        """The image of the entities at some places."""
        chosen = pa.array(places)
        rows = None if self.rows is None else self.rows.take(chosen)
        return Image(self.ids.take(chosen), rows, self.present[places], self.view)

    def at(self, ids: pa.Array) -> Image:
        """The image of some of its entities, by id."""
        return self.take(pc.index_in(ids, value_set=self.ids).to_numpy())

    def blobs(self, name: str, places: Places) -> pa.Array:
        """The bytes of one blob column at some places."""
        wanted = self.ids.take(pa.array(places))
        return flat(align(self.view.rows(wanted, ["id", name], blobs="bytes"), wanted)[0][name])


def alike(one: Image, other: Image, names: Sequence[str]) -> Mask:
    """Where two images are the same: absent in both, or equal in these columns by typed value."""
    same: Mask = ~one.present & ~other.present
    places = np.flatnonzero(one.present & other.present)
    if len(places):
        first, second = one.take(places), other.take(places)
        same[places] = ~differing(first.rows, second.rows, names, partial(_bytes, first, second))
    return same


def _bytes(one: Image, other: Image, name: str, places: Places) -> tuple[pa.Array, pa.Array]:
    return one.blobs(name, places), other.blobs(name, places)
