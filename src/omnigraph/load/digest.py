"""The digest of an input: a short text that tells a repeated load under an idempotency key from a different load.

Tasks compute it while they read. Text is digested byte by byte, chunk by chunk. Rows of tables are digested as values, whatever
file, encoding or partition they come in; their order counts where the input has an order (a Spark data frame has none). Python
objects are digested as they were given. The schema does not count: the repetition of a load finds its receipt also when another
process has changed the schema meanwhile.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.load.parsed import Rows
from omnigraph.values.columns import whole
from omnigraph.values.json_text import json_string, json_text

if TYPE_CHECKING:
    from omnigraph.load.text import Piece

_BYTES = 16
_RANGE = 1 << (8 * _BYTES)


@dataclass(frozen=True, slots=True)
class ChunkDigest:
    """The digest of one chunk: a hash of its text, else the sum of the hashes of its rows."""

    text: str | None = None
    rows: int = 0
    row_count: int = 0
    #: How many rows were refused, which the hashes leave out: a load that was committed had none.
    refused: int = 0


class Digesting:
    """Computes the digest of a chunk, piece by piece."""

    def __init__(self, *, ordered: bool) -> None:
        self._ordered = ordered
        self._text = hashlib.blake2b(digest_size=_BYTES)
        self._is_text = False
        self._rows = self._row_count = self._refused = 0

    def add(self, piece: Piece) -> None:
        if piece.text is not None:
            self._is_text = True
            self._text.update(piece.text)
            return
        if piece.documents:
            self._rows = (self._rows + _sum_of_documents(piece.documents, piece.first)) % _RANGE
            self._row_count += len(piece.documents)
            return
        self._refused += len(piece.reading.problems)
        for rows in piece.reading.rows:
            self._rows = (self._rows + _sum_of_rows(rows, ordered=self._ordered)) % _RANGE
            self._row_count += len(rows.orders)

    def digest(self) -> ChunkDigest:
        return ChunkDigest(
            self._text.hexdigest() if self._is_text else None, self._rows, self._row_count, self._refused
        )


def contents_of(chunks: Sequence[ChunkDigest]) -> str:
    """The digest of a whole input, from the digests of its chunks in order."""
    parts = [
        [chunk.text for chunk in chunks if chunk.text is not None],
        f"{sum(chunk.rows for chunk in chunks) % _RANGE:032x}",
        sum(chunk.row_count for chunk in chunks),
        sum(chunk.refused for chunk in chunks),
    ]
    return hashlib.sha256(orjson.dumps(parts)).hexdigest()


def _sum_of_documents(documents: Sequence[object], first: int) -> int:
    """The sum of the hashes of Python objects, each with its place; `first` is the place of the first one."""
    from xxhash import xxh3_128_intdigest

    return sum(xxh3_128_intdigest(_written(document), place) for place, document in enumerate(documents, first))


def _written(document: object) -> bytes:
    """A Python object as bytes, equal for equal objects."""
    try:
        text = orjson.dumps(document, default=_told, option=orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS)
        if b"null" in text:
            # It may stand for NaN or an infinite number, which the slower encoder tells apart.
            text += json.dumps(document, default=_told, sort_keys=True).encode()
    except TypeError:
        return repr(document).encode(errors="backslashreplace")
    return text


def _told(value: object) -> list[object]:
    """A value that JSON does not have: its type, and the items or the text of it."""
    items = value.tolist() if hasattr(value, "tolist") else str(value)
    return [type(value).__name__, items]


def _sum_of_rows(rows: Rows, *, ordered: bool) -> int:
    """The sum of the hashes of all rows. Each hash covers type and values and, if `ordered`, the place."""
    from xxhash import xxh3_128_intdigest

    texts = _texts(rows)
    start, end = texts.offset, texts.offset + len(texts) + 1
    offsets = memoryview(texts.buffers()[1]).cast("q")[start:end].tolist()
    data = memoryview(texts.buffers()[2])
    seeds = rows.orders.tolist() if ordered else [0] * len(texts)
    hashed = (
        xxh3_128_intdigest(data[begin:stop], seed)
        for begin, stop, seed in zip(offsets, offsets[1:], seeds, strict=False)
    )
    return sum(hashed) % _RANGE


def _texts(rows: Rows) -> pa.Array:
    """Each row as one text: its type, the id it gives, then the name of each property that has a value, and the value as JSON."""
    entity = rows.entity
    count = len(rows.orders)
    given = pa.nulls(count, pa.string()) if rows.given is None else rows.given
    columns = [pa.array([entity.type_key] * count, pa.large_string()), json_string(given.cast(pa.large_string()))]
    for name in sorted(rows.table.column_names):
        column = whole(rows.table[name])
        declared = entity.properties.get(name)
        texts = json_string(column) if declared is None else json_text(column, declared.type)
        has_value = column.is_valid()
        if name in rows.left_out and declared is not None and declared.embed is None:
            # Left-out properties are tracked in updates only, where leaving one out is not the same as giving null.
            has_value = pc.invert(pa.array(rows.left_out[name]))
        texts = pc.if_else(has_value, texts.cast(pa.large_string()), pa.scalar(None, pa.large_string()))
        named = pa.scalar(f"{name}:", pa.large_string())
        columns.append(pc.binary_join_element_wise(named, texts, pa.scalar("", pa.large_string())))
    separator = pa.scalar(",", pa.large_string())
    return pc.binary_join_element_wise(*columns, separator, null_handling="skip")
