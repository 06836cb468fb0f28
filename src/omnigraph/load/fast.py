"""The vectorised reader: groups lines by how they begin, and parses all lines of one type together with Arrow.

A group that holds anything unusual is halved until the rest is small enough for the exact reader, so one bad line costs
little and hides no other problem.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from omnigraph.errors import BadRequest, ExternalBlobSource
from omnigraph.language.schema.catalog import EdgeType
from omnigraph.language.schema.defaults import default_value
from omnigraph.load.exact import ExactReader, Rules
from omnigraph.load.json_columns import Unusual, column_of_json, json_type
from omnigraph.load.parsed import (
    LONGEST_LINE,
    Entity,
    Problem,
    Reading,
    Rows,
    joined,
    schema_without_id,
    too_long,
    tracked_names,
)
from omnigraph.values.blobs import blob_value
from omnigraph.values.columns import blob_column, repeated

#: Groups of up to this many lines go to the exact reader instead of being halved again.
EXACT_LINES = 2048
#: How many different beginnings of lines are grouped; further lines are read exactly.
_MOST_BEGINNINGS = 256
_BEGINNING = re.compile(rb'\{\s*"(type|edge)"\s*:\s*"([^"\\]*)"')
_COMMENT = b"//"
_NEWLINE = 10
_SEARCHED_AT_ONCE = 1 << 20
_NULL = re.compile(rb"null")
_ESCAPED_NAME = re.compile(rb'\\u[^"]*"\s*:')
_NO_DATA = re.compile(rb'"data"\s*:\s*null')
#: Longer texts, in bytes, are not parsed as one group: Arrow's positions have 32 bits.
_LONGEST_GROUP = 1 << 30

Places = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Window:
    """Some lines of text: the bytes, the offset of each line (and the end), and the place of the first line."""

    data: bytes
    starts: Places
    base: int

    @classmethod
    def of(cls, data: bytes, base: int) -> Window:
        """The lines of a text; the last line may lack its newline."""
        view = np.frombuffer(data, np.uint8)
        # In blocks, so that intermediate arrays stay in the processor's cache.
        found = [
            np.flatnonzero(view[start : start + _SEARCHED_AT_ONCE] == _NEWLINE) + (start + 1)
            for start in range(0, len(view), _SEARCHED_AT_ONCE)
        ]
        ends = np.concatenate(found) if found else np.empty(0, np.int64)
        if len(data) and (not len(ends) or ends[-1] != len(data)):
            ends = np.append(ends, len(data))
        return cls(data, np.concatenate([np.zeros(1, np.int64), ends.astype(np.int64)]), base)

    def __len__(self) -> int:
        return len(self.starts) - 1

    def line(self, place: int) -> bytes:
        return self.data[self.starts[place] : self.starts[place + 1]]

    def texts(self) -> pa.Array:
        """All lines as one column, without copying."""
        buffers = [None, pa.py_buffer(self.starts.tobytes()), pa.py_buffer(self.data)]
        return pa.Array.from_buffers(pa.large_binary(), len(self), buffers)

    def together(self, places: Places) -> bytes:
        """The text of the lines at these places, concatenated."""
        if len(places) and places[-1] - places[0] + 1 == len(places):
            return self.data[self.starts[places[0]] : self.starts[places[-1] + 1]]
        gathered = self.texts().take(pa.array(places))
        offsets = np.frombuffer(gathered.buffers()[1], np.int64)[: len(places) + 1]
        return bytes(gathered.buffers()[2][int(offsets[0]) : int(offsets[-1])])


def read_window(window: Window, rules: Rules) -> Reading:
    """The rows and problems of some lines, read strictly."""
    if not len(window):
        return Reading()
    if len(window.data) > LONGEST_LINE:
        long = np.flatnonzero(np.diff(window.starts) > LONGEST_LINE)
        if len(long):
            message = too_long("this line")
            return Reading(problems=tuple(Problem(window.base + place, message) for place in long.tolist()))
    exact = ExactReader(rules)
    pieces: dict[str, list[Rows]] = {}
    is_text = _is_utf8(window.data)
    groups, rest = _groups(window, rules, exact) if is_text else ({}, np.arange(len(window)))
    for entity, places in groups.values():
        for rows in _group(window, entity, places, rules, exact):
            pieces.setdefault(entity.type_key, []).append(rows)
    for place in rest.tolist():
        exact.line(window.line(place), window.base + place)
    found = exact.reading()
    for rows in found.rows:
        pieces.setdefault(rows.entity.type_key, []).append(rows)
    return Reading(
        rows=tuple(joined(listed) for listed in pieces.values()),
        problems=found.problems,
        skipped=found.skipped,
        refused=found.refused,
    )


def _is_utf8(data: bytes) -> bool:
    if data.isascii():
        return True
    whole = pa.Array.from_buffers(
        pa.large_binary(), 1, [None, pa.py_buffer(np.array([0, len(data)], np.int64).tobytes()), pa.py_buffer(data)]
    )
    try:
        whole.cast(pa.large_string())
    except pa.ArrowInvalid:
        return False
    return True


# --- telling lines apart ----------------------------------------------------------------------------------------------


def _groups(window: Window, rules: Rules, exact: ExactReader) -> tuple[dict[str, tuple[Entity, Places]], Places]:
    """The lines of each type, grouped by how they begin, and the places of the lines that need the exact reader."""
    first = np.frombuffer(window.data, np.uint8)[window.starts[:-1]]
    open_ = first == ord("{")
    others = np.flatnonzero(~open_)
    odd = [place for place in others.tolist() if not _is_skipped(window.line(place), exact)]
    texts = window.texts()
    groups: dict[str, list[Places]] = {}
    entities: dict[str, Entity] = {}
    waiting = np.flatnonzero(open_)
    rest: list[Places] = [np.array(odd, np.int64)]
    for _ in range(_MOST_BEGINNINGS):
        if not len(waiting):
            break
        beginning = _BEGINNING.match(window.line(int(waiting[0])))
        entity = _named(rules, beginning)
        if beginning is None or entity is None:
            # This line does not begin with a type of the schema.
            rest.append(waiting[:1])
            waiting = waiting[1:]
            continue
        alike = pc.starts_with(texts.take(pa.array(waiting)) if len(waiting) < len(texts) else texts, beginning[0])
        chosen = alike.to_numpy(zero_copy_only=False)
        entities[entity.type_key] = entity
        groups.setdefault(entity.type_key, []).append(waiting[chosen])
        waiting = waiting[~chosen]
    rest.append(waiting)
    sorted_groups = {key: (entities[key], np.sort(np.concatenate(places))) for key, places in groups.items()}
    return sorted_groups, np.sort(np.concatenate(rest))


def _is_skipped(line: bytes, exact: ExactReader) -> bool:
    text = line.strip(b" \t\r\n")
    if text and not text.startswith(_COMMENT):
        return False
    exact.skip()
    return True


def _named(rules: Rules, beginning: re.Match[bytes] | None) -> Entity | None:
    if beginning is None:
        return None
    name = beginning[2].decode()
    return rules.catalog.nodes.get(name) if beginning[1] == b"type" else rules.catalog.edge(name)


# --- lines of one type ------------------------------------------------------------------------------------------------


def _group(window: Window, entity: Entity, places: Places, rules: Rules, exact: ExactReader) -> Iterator[Rows]:
    text = window.together(places)
    if len(text) <= _LONGEST_GROUP:
        try:
            yield _parsed(text, entity, places + window.base, rules)
            return
        except Unusual:
            pass
    if len(places) <= EXACT_LINES:
        for place in places.tolist():
            exact.line(window.line(place), window.base + place)
        return
    middle = len(places) // 2
    yield from _group(window, entity, places[:middle], rules, exact)
    yield from _group(window, entity, places[middle:], rules, exact)


def _parsed(text: bytes, entity: Entity, orders: Places, rules: Rules) -> Rows:
    """Lines of one type as rows, with one call of Arrow's parser; raises `Unusual` when the exact reader must look."""
    is_edge = isinstance(entity, EdgeType)
    fields = [pa.field("id", pa.string())]
    fields += [pa.field(name, json_type(declared.type)) for name, declared in entity.properties.items()]
    head = [("edge", pa.string()), ("from", pa.string()), ("to", pa.string())] if is_edge else [("type", pa.string())]
    try:
        parsed = pj.read_json(
            pa.BufferReader(text),
            pj.ReadOptions(use_threads=False, block_size=len(text) + 1),
            pj.ParseOptions(
                explicit_schema=pa.schema([*head, ("data", pa.struct(fields))]),
                newlines_in_values=False,
                unexpected_field_behavior="error",
            ),
        )
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowKeyError):
        raise Unusual from None
    # The parser skips blank lines and accepts several values on one line.
    if parsed.num_rows != len(orders):
        raise Unusual
    data = parsed["data"].combine_chunks()
    if data.null_count and (not is_edge or _NO_DATA.search(text)):
        raise Unusual
    columns = dict(zip([field.name for field in fields], data.flatten(), strict=True))
    ends = [parsed[name].combine_chunks() for name in ("from", "to")] if is_edge else []
    if any(end.null_count for end in ends):
        raise Unusual
    given = columns.pop("id")
    if given.null_count and _is_null(text, "id"):
        raise Unusual
    names = schema_without_id(entity).names[len(ends) :]
    left_out = {}
    for name in tracked_names(entity, updates=rules.updates):
        left_out[name] = _absent(text, name, columns[name])
    finished = [*ends, *(_property(text, entity, name, columns[name], rules) for name in names)]
    return Rows(
        entity,
        pa.Table.from_arrays(finished, schema=schema_without_id(entity)),
        None if given.null_count == len(given) else given,
        orders,
        left_out,
    )


def _property(text: bytes, entity: Entity, name: str, column: pa.Array, rules: Rules) -> pa.Array:
    declared = entity.properties[name]
    if declared.type.is_blob:
        try:
            values = [blob_value(entity, name, value, rules.external_blobs) for value in column.to_pylist()]
        except (BadRequest, ExternalBlobSource):
            raise Unusual from None
        return blob_column(values, schema_without_id(entity).field(name).type)
    finished = column_of_json(column, declared.type)
    if declared.default is not None and column.null_count:
        absent = pa.array(_absent(text, name, column))
        value = repeated(default_value(declared.type, declared.default), declared.type, len(column))
        finished = pc.if_else(absent, value, finished)
    return finished


def _absent(text: bytes, name: str, column: pa.Array) -> npt.NDArray[np.bool_]:
    """Which rows leave a property out. The parser does not tell these from nulls, so a text with nulls is `Unusual`."""
    if column.null_count and _is_null(text, name):
        raise Unusual
    absent: npt.NDArray[np.bool_] = pc.is_null(column).to_numpy(zero_copy_only=False)
    return absent


def _is_null(text: bytes, name: str) -> bool:
    """Whether `"name": null` may stand anywhere in a text, also with the name written in escapes."""
    # Searching for `null` alone, or for a backslash alone, is much faster; mostly there is neither.
    if _NULL.search(text) is None:
        return False
    named = re.search(rb'"%s"\s*:\s*null' % re.escape(name.encode()), text)
    return named is not None or (b"\\" in text and _ESCAPED_NAME.search(text) is not None)
