"""The id of every row: derived from its key, given, or generated. A given id that spells the key differently is an alias."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import orjson
import pyarrow as pa
import pyarrow.compute as pc
from ulid import ULID

from omnigraph.language.literals import PlainValue
from omnigraph.language.temporal import parse_date, parse_datetime
from omnigraph.language.types import FLOATS, INTEGERS, PropType, Scalar
from omnigraph.load.parsed import Entity, Flags, Orders, Problem, Rows, picked
from omnigraph.values.columns import column_of
from omnigraph.values.identity import derive_ids
from omnigraph.values.json_values import from_json

ALIASES = pa.schema([("type_key", pa.string()), ("spelled", pa.string()), ("id", pa.string()), ("order", pa.int64())])
_ALPHABET = np.frombuffer(b"0123456789ABCDEFGHJKMNPQRSTVWXYZ", np.uint8)
#: All pairs of two letters, by ten bits of an id.
_PAIRS = np.stack([np.repeat(_ALPHABET, 32), np.tile(_ALPHABET, 32)], axis=1).view(np.uint16).ravel()
_TEXT = PropType(Scalar.STRING)
_DIGITS = re.compile(r"[+-]?[0-9]{1,25}")


@dataclass(frozen=True)
class Identified:
    """Rows that have ids, with these ids; the aliases among them; and the problems of the other rows."""

    rows: Rows
    ids: pa.Array
    #: Which ids may equal another id: all but the generated ones.
    may_meet: Flags
    aliases: pa.Table
    problems: tuple[Problem, ...]


def identify(rows: Rows, job_id: str) -> Identified:
    """Give every row its id; rows without a usable key are left out."""
    if rows.entity.key is None:
        return _unkeyed(rows, job_id)
    problems = tuple(_infinite_keys(rows))
    usable = _has_key(rows)
    if not usable.all():
        rows = picked(rows, np.flatnonzero(usable))
    ids = derive_ids(rows.entity, rows.table)
    if rows.given is None:
        return Identified(rows, ids, np.ones(len(ids), np.bool_), ALIASES.empty_table(), problems)
    differ = pc.fill_null(pc.not_equal(rows.given, ids), False).to_numpy(zero_copy_only=False)
    places = np.flatnonzero(differ)
    matching = _spells_key(rows.entity, picked(rows, places), ids.take(pa.array(places)))
    wrong = tuple(
        Problem(
            int(rows.orders[place]),
            f"id {rows.given[place].as_py()!r} of {rows.entity.name} does not match @key, which makes it "
            f"{ids[place].as_py()!r}",
        )
        for place in places[~matching].tolist()
    )
    return Identified(
        rows, ids, np.ones(len(ids), np.bool_), _aliases(rows, ids, places[matching]), (*problems, *wrong)
    )


def generated_ids(job_id: str, orders: Orders) -> pa.Array:
    """Generated ULIDs, made from the job's id and the place of each row, so that a repeated task makes the same ids."""
    first = (int(ULID.from_str(job_id)) & ~(1 << 79)) + 1
    low = np.uint64(first & (2**64 - 1)) + orders.astype(np.uint64)
    carried = (low < np.uint64(first & (2**64 - 1))).astype(np.uint64)
    high = np.uint64(first >> 64) + carried
    texts = np.empty((len(orders), 13), np.uint16)
    for place in range(13):
        shift = 120 - 10 * place
        if shift >= 64:
            bits = high >> np.uint64(shift - 64)
        elif shift > 54:
            bits = (high << np.uint64(64 - shift)) | (low >> np.uint64(shift))
        else:
            bits = low >> np.uint64(shift)
        texts[:, place] = _PAIRS[(bits & np.uint64(1023)).astype(np.intp)]
    offsets = np.arange(len(orders) + 1, dtype=np.int32) * np.int32(26)
    buffers = [None, pa.py_buffer(offsets.tobytes()), pa.py_buffer(texts.tobytes())]
    return pa.Array.from_buffers(pa.string(), len(orders), buffers)


def _unkeyed(rows: Rows, job_id: str) -> Identified:
    made = generated_ids(job_id, rows.orders)
    if rows.given is None:
        return Identified(rows, made, np.zeros(len(made), np.bool_), ALIASES.empty_table(), ())
    may_meet = pc.is_valid(rows.given).to_numpy(zero_copy_only=False)
    return Identified(rows, pc.coalesce(rows.given, made), may_meet, ALIASES.empty_table(), ())


# --- keys that are no keys --------------------------------------------------------------------------------------------


def _has_key(rows: Rows) -> Flags:
    assert rows.entity.key is not None
    usable = np.ones(len(rows.orders), np.bool_)
    for name in rows.entity.key:
        column = rows.table[name]
        usable &= pc.is_valid(column).to_numpy()
        if pa.types.is_floating(column.type):
            usable &= pc.fill_null(pc.is_finite(column), False).to_numpy()
    return usable


def _infinite_keys(rows: Rows) -> list[Problem]:
    """Problems of keys that are not finite. Null keys are reported elsewhere, as missing required properties."""
    assert rows.entity.key is not None
    found = []
    for name in rows.entity.key:
        column = rows.table[name]
        if pa.types.is_floating(column.type):
            wrong = pc.indices_nonzero(pc.fill_null(pc.invert(pc.is_finite(column)), False))
            message = f"key property '{name}' of {rows.entity.name} is not a finite number; a key must be finite"
            found += [Problem(int(rows.orders[place]), message) for place in wrong.to_pylist()]
    return found


# --- other spellings --------------------------------------------------------------------------------------------------


def _spells_key(entity: Entity, rows: Rows, ids: pa.Array) -> Flags:
    """Which given ids denote the key of their row: its value in another spelling, or one component of a compound key."""
    assert entity.key is not None
    assert rows.given is not None
    matching = np.zeros(len(ids), np.bool_)
    given: list[str] = rows.given.to_pylist()
    if not given:
        return matching
    for name in entity.key:
        alone: Entity = replace(entity, key=(name,))
        own = derive_ids(alone, rows.table)
        spelled = _canonical(alone, name, given)
        matching |= pc.fill_null(pc.equal(own, spelled), False).to_numpy(zero_copy_only=False)
    if len(entity.key) > 1:
        matching |= _spells_array(entity, rows, given)
    return matching


def _spells_array(entity: Entity, rows: Rows, given: list[str]) -> Flags:
    """Which given ids are a JSON array of all components of the key, each in any spelling."""
    assert entity.key is not None
    arrays = [_components(text, len(entity.key)) for text in given]
    matching = np.array([array is not None for array in arrays], np.bool_)
    for place, name in enumerate(entity.key):
        alone: Entity = replace(entity, key=(name,))
        spelled = _canonical(alone, name, ["" if array is None else array[place] for array in arrays])
        matching &= pc.fill_null(pc.equal(derive_ids(alone, rows.table), spelled), False).to_numpy(zero_copy_only=False)
    return matching


def _components(text: str, count: int) -> list[str] | None:
    try:
        array = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    fits = isinstance(array, list) and len(array) == count and all(isinstance(item, str) for item in array)
    return array if fits else None


def _canonical(entity: Entity, name: str, texts: list[str]) -> pa.Array:
    """The canonical id of each text read as a value of a key property; null where the text is no such value."""
    declared = entity.properties.get(name)
    kind = declared.type if declared is not None else _TEXT
    values = [_value(text, kind) for text in texts]
    places = [place for place, value in enumerate(values) if value is not None]
    column = column_of([values[place] for place in places], kind)
    canonical = derive_ids(entity, pa.table({name: column}))
    positions = np.full(len(texts), len(places), np.int64)
    positions[places] = np.arange(len(places))
    return pa.concat_arrays([canonical, pa.nulls(1, pa.string())]).take(pa.array(positions))


def _value(text: str, kind: PropType) -> PlainValue:
    """A text as a value of a key type; None when it is no such value."""
    try:
        match kind.scalar:
            case Scalar.STRING:
                return text
            case Scalar.BOOL:
                return {"true": True, "false": False}.get(text)
            case Scalar.DATE:
                value: object = int(text) if _DIGITS.fullmatch(text) else parse_date(text)
            case Scalar.DATETIME:
                value = int(text) if _DIGITS.fullmatch(text) else parse_datetime(text)
            case scalar if scalar in INTEGERS:
                value = int(text) if _DIGITS.fullmatch(text) else None
            case scalar if scalar in FLOATS:
                value = float(text)
                if not np.isfinite(value):
                    return None
            case _:
                return None
        found = from_json(value, kind)
        assert not isinstance(found, bytes)
        return found
    except ValueError:
        return None


def _aliases(rows: Rows, ids: pa.Array, places: npt.NDArray[np.int64]) -> pa.Table:
    assert rows.given is not None
    chosen = pa.array(places)
    return pa.Table.from_arrays(
        [
            pa.array([rows.entity.type_key] * len(places), pa.string()),
            rows.given.take(chosen),
            ids.take(chosen),
            pa.array(rows.orders[places]),
        ],
        schema=ALIASES,
    )
