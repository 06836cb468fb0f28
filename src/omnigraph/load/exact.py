"""The exact reader: one JSON value at a time, by the rules of `values.json_values`, reporting every problem of every line.

It reads what the vectorised reader hands back as unusual, rows given as Python objects, and every lenient load.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import orjson
import pyarrow as pa

from omnigraph.errors import BadRequest, ExternalBlobSource
from omnigraph.language.json_values import shown
from omnigraph.language.schema.catalog import Catalog, EdgeType, NodeType
from omnigraph.language.schema.defaults import default_value
from omnigraph.language.source import did_you_mean, nearest_name
from omnigraph.load.parsed import Entity, Ignored, Problem, Reading, Rows, schema_without_id, tracked_names
from omnigraph.load.refused import RefusedNodes
from omnigraph.values.blobs import blob_value
from omnigraph.values.columns import blob_column
from omnigraph.values.json_values import from_json

_NO_NUMBER = re.compile(rb"\b(NaN|-?Infinity)\b")
_BLANKS = b" \t\r\n"
_ENDS = {"from": "src", "to": "dst"}


@dataclass(frozen=True)
class Rules:
    """The rules of a reader: the types, where external blobs may lie, and whether it is lenient.

    `updates`: record for each row which properties it leaves out.
    """

    catalog: Catalog
    external_blobs: tuple[str, ...] = ()
    lenient: bool = False
    updates: bool = False


@dataclass
class _Pile:
    """Rows of one type while they are being collected."""

    rows: list[dict[str, Any]] = field(default_factory=list)
    given: list[str | None] = field(default_factory=list)
    orders: list[int] = field(default_factory=list)
    left_out: dict[str, list[bool]] = field(default_factory=dict)


class ExactReader:
    """Collects rows and problems; `reading()` returns both."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._piles: dict[str, _Pile] = {}
        self._entities: dict[str, Entity] = {}
        self._problems: list[Problem] = []
        self._fields = self._properties = self._values = 0
        self._skipped = 0
        self._refused = RefusedNodes()

    # --- reading ----------------------------------------------------------------------------------------------------

    def line(self, raw: bytes, order: int) -> None:
        """Read one line of JSON text; blank lines and comments are skipped."""
        text = raw.strip(_BLANKS)
        if not text or text.startswith(b"//"):
            self._skipped += 1
            return
        try:
            document = orjson.loads(text)
        except orjson.JSONDecodeError as error:
            self._problem(order, _why_no_json(text, error))
            return
        twice = _repeated_key(text, document)
        if twice is not None:
            self._problem(order, f"the key {twice!r} stands twice in one object")
            return
        self.document(document, order)

    def skip(self) -> None:
        """Count a line that has nothing to read."""
        self._skipped += 1

    def refuse(self, order: int, message: str) -> None:
        """Record that nothing could be read at this place."""
        self._problem(order, message)

    def document(self, document: object, order: int) -> None:
        """Read one entity in its JSON form: `{"type", "data"}` or `{"edge", "from", "to", "data"}`."""
        if not isinstance(document, Mapping):
            self._problem(order, f"expected a JSON object, got {shown(document)}")
            return
        entity = self._entity_of(document, order)
        if entity is None:
            return
        before = len(self._problems)
        data = self._data_of(document, entity, order)
        row: dict[str, Any] = {}
        if isinstance(entity, EdgeType):
            for name, column in _ENDS.items():
                row[column] = self._end(document, name, entity, order)
        given = self._properties_of(data, entity, row, order)
        if len(self._problems) == before:
            self._keep(entity, row, given, data, order)
        elif isinstance(entity, NodeType):
            self._refused.add(entity, data)

    def values(self, entity: Entity, row: Mapping[str, object], order: int) -> None:
        """Read one row of a table: properties by name, and `id`, `src`, `dst` where it has them."""
        before = len(self._problems)
        kept: dict[str, Any] = {}
        if isinstance(entity, EdgeType):
            for name, column in _ENDS.items():
                kept[column] = self._end({name: row.get(column)}, name, entity, order)
        data = {name: value for name, value in row.items() if name not in ("src", "dst")}
        if data.get("id") is None:
            data.pop("id", None)
        given = self._properties_of(data, entity, kept, order)
        if len(self._problems) == before:
            self._keep(entity, kept, given, data, order)
        elif isinstance(entity, NodeType):
            self._refused.add(entity, data)

    def refuse_values(self, entity: Entity, row: Mapping[str, object], messages: Sequence[str], order: int) -> None:
        """Record a row of a table that can not be read: `messages` say why, `row` has the values that are known."""
        for message in messages:
            self._problem(order, message)
        if isinstance(entity, NodeType):
            self._refused.add(entity, row)

    # --- the parts of a document ------------------------------------------------------------------------------------

    def _entity_of(self, document: Mapping[str, Any], order: int) -> Entity | None:
        lenient = self._rules.lenient
        node, edge = "type" in document, "edge" in document
        if node and edge and not lenient:
            self._problem(order, 'a line has "type" or "edge", not both')
            return None
        if not node and not edge:
            self._problem(order, 'a line needs "type" (a node) or "edge"')
            return None
        word, known = ("type", self._rules.catalog.nodes) if node else ("edge", self._rules.catalog.edges)
        name = document[word]
        if not isinstance(name, str):
            self._problem(order, f'"{word}" is the name of a type, got {shown(name)}')
            return None
        found: Entity | None = known.get(name) if node else self._rules.catalog.edge(name)
        if found is None:
            kind = "node" if node else "edge"
            self._problem(order, f"unknown {kind} type '{name[:80]}'{did_you_mean(nearest_name(name, known))}")
            return None
        allowed = {"type", "data"} if node else {"edge", "from", "to", "data"}
        extra = [key for key in document if key not in allowed]
        if lenient:
            self._fields += len(extra)
            return found
        for key in extra:
            shape = '{"type", "data"}' if node else '{"edge", "from", "to", "data"}'
            self._problem(order, f"unknown field '{str(key)[:80]}'; a line is {shape}")
        if extra and isinstance(found, NodeType):
            self._refused.add(found, document.get("data"))
        return None if extra else found

    def _data_of(self, document: Mapping[str, Any], entity: Entity, order: int) -> Mapping[str, Any]:
        if "data" not in document and (isinstance(entity, EdgeType) or self._rules.lenient):
            return {}
        data = document.get("data")
        if not isinstance(data, Mapping):
            found = shown(data) if "data" in document else "none"
            self._problem(order, f'"data" of {entity.name} is an object of properties, got {found}')
            return {}
        return data

    def _end(self, document: Mapping[str, Any], name: str, edge: EdgeType, order: int) -> str | None:
        value = document.get(name)
        if isinstance(value, str):
            return value
        found = shown(value) if value is not None else "none"
        self._problem(order, f"edge {edge.name}: `{name}` is the id of a node as a text, got {found}")
        return None

    def _properties_of(self, data: Mapping[str, Any], entity: Entity, row: dict[str, Any], order: int) -> str | None:
        for name, value in data.items():
            declared = entity.properties.get(name)
            if declared is None:
                if name != "id":
                    self._unknown(entity, name, order)
                continue
            try:
                plain = from_json(value, declared.type)
                if declared.type.is_blob:
                    row[name] = blob_value(entity, name, plain, self._rules.external_blobs)
                else:
                    row[name] = plain
            except ValueError as problem:
                self._wrong(entity, name, str(problem), order)
            except (BadRequest, ExternalBlobSource) as problem:
                self._problem(order, problem.message)
        for name, declared in entity.properties.items():
            if name not in data and declared.default is not None:
                row[name] = default_value(declared.type, declared.default)
        given = data.get("id")
        if "id" in data and not isinstance(given, str):
            self._problem(order, f"{entity.name}.id is a text, got {shown(given)}")
        return given if isinstance(given, str) else None

    def _unknown(self, entity: Entity, name: object, order: int) -> None:
        if self._rules.lenient:
            self._properties += 1
            return
        hint = did_you_mean(nearest_name(str(name), entity.properties))
        self._problem(order, f"unknown property '{str(name)[:80]}' of {entity.name}{hint}")

    def _wrong(self, entity: Entity, name: str, reason: str, order: int) -> None:
        kind = entity.properties[name].type
        if not self._rules.lenient:
            self._problem(order, f"{entity.name}.{name} ({kind}): {reason}")
        elif kind.nullable:
            self._values += 1
        else:
            self._problem(
                order, f"property '{name}' of {entity.name} is required and has null or invalid values: {reason}"
            )

    # --- the result -------------------------------------------------------------------------------------------------

    def _problem(self, order: int, message: str) -> None:
        self._problems.append(Problem(order, message))

    def _keep(
        self, entity: Entity, row: dict[str, Any], given: str | None, data: Mapping[str, Any], order: int
    ) -> None:
        self._entities[entity.type_key] = entity
        pile = self._piles.setdefault(entity.type_key, _Pile())
        pile.rows.append(row)
        pile.given.append(given)
        pile.orders.append(order)
        for name in tracked_names(entity, updates=self._rules.updates):
            pile.left_out.setdefault(name, []).append(name not in data)

    def reading(self) -> Reading:
        """The rows of each type, all problems, and the counts so far."""
        return Reading(
            rows=tuple(_rows(self._entities[key], pile) for key, pile in self._piles.items()),
            problems=tuple(self._problems),
            skipped=self._skipped,
            ignored=Ignored(self._fields, self._properties, self._values),
            refused=self._refused.ids(),
        )


def _rows(entity: Entity, pile: _Pile) -> Rows:
    columns = []
    schema = schema_without_id(entity)
    for place in schema:
        values = [row.get(place.name) for row in pile.rows]
        declared = entity.properties.get(place.name)
        is_blob = declared is not None and declared.type.is_blob
        columns.append(blob_column(values, place.type) if is_blob else pa.array(values, place.type))
    given = pa.array(pile.given, pa.string()) if any(one is not None for one in pile.given) else None
    return Rows(
        entity,
        pa.Table.from_arrays(columns, schema=schema),
        given,
        np.array(pile.orders, np.int64),
        {name: np.array(flags, np.bool_) for name, flags in pile.left_out.items()},
    )


# --- JSON text --------------------------------------------------------------------------------------------------------


def _why_no_json(text: bytes, error: orjson.JSONDecodeError) -> str:
    try:
        text.decode()
    except UnicodeDecodeError as wrong:
        return f"not valid UTF-8 at byte {wrong.start + 1} of the line"
    number = _NO_NUMBER.search(text)
    if number is not None:
        return f"not valid JSON: {number[1].decode()} is not a number there"
    return f"not valid JSON: {error.msg} at column {error.colno}"


def _repeated_key(text: bytes, document: object) -> str | None:
    """A key that an object of this text has twice, else None; orjson silently keeps the last value."""
    if orjson.dumps(document).translate(None, b" ") == text.translate(None, _BLANKS):
        # The document serialises to the same text, so no key was dropped.
        return None
    import json

    repeated: list[str] = []

    def pairs(listed: list[tuple[str, object]]) -> dict[str, object]:
        kept = dict(listed)
        if len(kept) < len(listed):
            counts = Counter(name for name, _ in listed)
            repeated.extend(name for name, count in counts.items() if count > 1)
        return kept

    try:
        json.loads(text, object_pairs_hook=pairs, parse_int=lambda _: 0, parse_float=lambda _: 0.0)
    except (ValueError, RecursionError):
        # orjson has read the text; the two parsers differ in number formats and in nesting depth.
        return None
    return repeated[0] if repeated else None
