"""Sets of rows of a table by their addresses, packed in few bytes: results of many tasks that one process must hold.

A row address takes eight bytes. For each fragment the offsets are kept in the smallest of three forms: runs of adjacent rows,
single offsets of four bytes, or one bit per row up to the last one. So a table never takes more than one bit per row.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Offsets = npt.NDArray[np.int64]
Addresses = npt.NDArray[np.uint64]

_OFFSET = np.uint64(0xFFFFFFFF)


@dataclass(frozen=True)
class Packed:
    """Some offsets within one fragment. `data`: by `form`, starts and lengths of runs, single offsets, or bits."""

    form: Literal["runs", "single", "bits"]
    count: int
    data: npt.NDArray[np.uint32] | npt.NDArray[np.uint8]

    @classmethod
    def of(cls, offsets: Offsets) -> Packed:
        """Pack offsets that are sorted and distinct."""
        count = len(offsets)
        starts = np.flatnonzero(np.diff(offsets, prepend=-2) != 1)
        bits = (int(offsets[-1]) >> 3) + 1 if count else 0
        if 8 * len(starts) <= min(4 * count, bits):
            lengths = np.diff(starts, append=count)
            return cls("runs", count, np.concatenate([offsets[starts], lengths]).astype(np.uint32))
        if 4 * count <= bits:
            return cls("single", count, offsets.astype(np.uint32))
        marked = np.zeros(bits * 8, np.bool_)
        marked[offsets] = True
        return cls("bits", count, np.packbits(marked))

    def offsets(self) -> Offsets:
        """The offsets, sorted."""
        if self.form == "single":
            return self.data.astype(np.int64)
        if self.form == "bits":
            return np.flatnonzero(np.unpackbits(self.data.view(np.uint8))).astype(np.int64)
        starts, lengths = np.split(self.data.astype(np.int64), 2)
        # Within a run, offsets count from its start; the number of rows in earlier runs is subtracted.
        before = np.repeat(starts - np.concatenate([[0], np.cumsum(lengths)[:-1]]), lengths)
        return before + np.arange(self.count)


@dataclass(frozen=True)
class RowPlaces:
    """Some rows of a table, by fragment."""

    fragments: Mapping[int, Packed] = field(default_factory=dict)

    @classmethod
    def of(cls, addresses: Addresses | pa.Array | pa.ChunkedArray) -> RowPlaces:
        """The rows at these addresses; duplicates count once."""
        plain = addresses if isinstance(addresses, np.ndarray) else addresses.to_numpy()
        ordered = np.unique(plain.astype(np.uint64, copy=False))
        numbers, starts = np.unique(ordered >> np.uint64(32), return_index=True)
        parts = np.split((ordered & _OFFSET).astype(np.int64), starts[1:])
        return cls({int(number): Packed.of(part) for number, part in zip(numbers, parts, strict=False)})

    @classmethod
    def together(cls, parts: Iterable[RowPlaces]) -> RowPlaces:
        """The union of several sets; unpacks the offsets of one fragment at a time."""
        by_fragment: dict[int, list[Packed]] = {}
        for part in parts:
            for number, packed in part.fragments.items():
                by_fragment.setdefault(number, []).append(packed)
        return cls({number: _united(by_fragment[number]) for number in sorted(by_fragment)})

    def __len__(self) -> int:
        return sum(packed.count for packed in self.fragments.values())

    @property
    def nbytes(self) -> int:
        """The memory that the packed offsets take, in bytes."""
        return sum(packed.data.nbytes for packed in self.fragments.values())

    def offsets(self) -> Iterator[tuple[int, Offsets]]:
        """Each fragment with the offsets of its rows."""
        for number, packed in self.fragments.items():
            yield number, packed.offsets()

    def addresses(self) -> Addresses:
        """The addresses of all rows, sorted."""
        whole = [(np.uint64(number) << np.uint64(32)) + offsets.astype(np.uint64) for number, offsets in self.offsets()]
        return np.concatenate([np.zeros(0, np.uint64), *whole])


def _united(packed: list[Packed]) -> Packed:
    if len(packed) == 1:
        return packed[0]
    return Packed.of(np.unique(np.concatenate([one.offsets() for one in packed])))
