"""Resolutions, a caller's decisions: which image of an entity is used in the merged graph, overriding both sides.

    [{"type_key": "node:Staff", "id": "ada", "take": "theirs"},
     {"type_key": "node:Staff", "id": "ben", "take": "value", "value": {"level": 33}}]

`take` is ours, theirs, base, or value; a value replaces properties of the image in ours (of theirs, if ours has none), and may
stand in place of `take`. Resolutions can also settle broken rules: keep the node that an edge needs, or remove the edge.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa

from omnigraph.commit.model import is_text
from omnigraph.errors import BadRequest
from omnigraph.language.schema.catalog import Catalog, EdgeType, NodeType
from omnigraph.language.source import did_you_mean, nearest_name
from omnigraph.language.types import PropType, Scalar
from omnigraph.merge.combine import flat
from omnigraph.values.columns import column_of
from omnigraph.values.json_values import from_json

TAKES = ("ours", "theirs", "base", "value")
_FIELDS = {"type_key", "id", "take", "value"}
#: The names of the ends of an edge in JSON, and their columns.
_ENDS = {"from": "src", "to": "dst"}

Given = str | os.PathLike[str] | Iterable[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Resolution:
    """The decision about one entity."""

    type_key: str
    id: str
    take: str
    value: Mapping[str, Any] | None = None
    #: Whether it follows from a decision about a node and is not the caller's.
    implied: bool = False

    def to_dict(self) -> dict[str, Any]:
        return {"type_key": self.type_key, "id": self.id, "take": self.take, "value": self.value}


#: Decisions by type key, then by entity id.
Resolutions = Mapping[str, Mapping[str, Resolution]]


def read_resolutions(given: Given | None) -> Resolutions:
    """Decisions from a list, or from a JSON file; `check_resolutions` checks them against a schema."""
    found: dict[str, dict[str, Resolution]] = {}
    for number, item in enumerate(listed_resolutions(given), 1):
        resolution = _resolution(item, f"resolution {number}")
        of_type = found.setdefault(resolution.type_key, {})
        if of_type.setdefault(resolution.id, resolution) != resolution:
            raise BadRequest(
                f"resolution {number}: {resolution.type_key} {resolution.id!r} was decided otherwise before"
            )
    return found


def check_resolutions(resolutions: Resolutions, catalog: Catalog) -> None:
    """Raise if a decision names a type or property that the schema lacks."""
    listed = [resolution for by_id in resolutions.values() for resolution in by_id.values()]
    for number, resolution in enumerate(listed, 1):
        where, type_key = f"resolution {number}", resolution.type_key
        entity = entity_of(catalog, type_key)
        if entity is None:
            known = [f"node:{name}" for name in catalog.nodes] + [f"edge:{name}" for name in catalog.edges]
            raise BadRequest(f"{where}: unknown type '{type_key}'{did_you_mean(nearest_name(type_key, known))}")
        if resolution.value is not None:
            _check_value(entity, resolution.value, where)


def listed_resolutions(given: Given | None) -> Sequence[Any]:
    """The decisions of a list or a JSON file, not yet parsed."""
    if given is None:
        return []
    if not isinstance(given, Iterable | os.PathLike):
        raise BadRequest("resolutions are a list of them, or a JSON file that holds one")
    return _read(Path(given)) if isinstance(given, str | os.PathLike) else list(given)


def entity_of(catalog: Catalog, type_key: str) -> NodeType | EdgeType | None:
    """The type with the key `node:Type` or `edge:Type`; None when there is none."""
    kind, _, name = type_key.partition(":")
    return catalog.nodes.get(name) if kind == "node" else catalog.edges.get(name) if kind == "edge" else None


def _read(path: Path) -> Sequence[Any]:
    try:
        listed = orjson.loads(path.read_bytes())
    except OSError as error:
        raise BadRequest(f"cannot read '{path}': {error.strerror or error}") from None
    except orjson.JSONDecodeError as error:
        raise BadRequest(f"'{path}' is not valid JSON: {error}") from None
    if not isinstance(listed, list):
        raise BadRequest(f"'{path}' must hold a JSON array of resolutions")
    return listed


def _resolution(item: object, where: str) -> Resolution:
    if not isinstance(item, Mapping):
        raise BadRequest(f"{where}: expected an object with type_key, id and take")
    if unknown := sorted(str(name) for name in set(item) - _FIELDS):
        raise BadRequest(f"{where}: unknown field '{unknown[0]}'{did_you_mean(nearest_name(unknown[0], _FIELDS))}")
    type_key, entity_id, take, value = (item.get(name) for name in ("type_key", "id", "take", "value"))
    if not isinstance(type_key, str) or not isinstance(entity_id, str) or not is_text(entity_id):
        raise BadRequest(f"{where}: type_key and id must be texts")
    if isinstance(take, Mapping) and value is None:
        take, value = "value", take
    if not isinstance(take, str) or take not in TAKES:
        raise BadRequest(f"{where}: take is one of {', '.join(TAKES)}")
    if (take == "value") != (value is not None):
        raise BadRequest(f'{where}: `value` goes with take "value", and only with it')
    if value is None:
        return Resolution(type_key, entity_id, take)
    if not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value):
        raise BadRequest(f"{where}: value must be an object of properties")
    return Resolution(type_key, entity_id, take, dict(value))


def _check_value(entity: NodeType | EdgeType, value: Mapping[str, Any], where: str) -> None:
    ends = _ENDS if isinstance(entity, EdgeType) else {}
    for name in value:
        declared = entity.properties.get(name)
        if declared is None and name not in ends:
            raise BadRequest(
                f"{where}: {entity.name} has no property '{name}'{did_you_mean(nearest_name(name, entity.properties))}"
            )
        if declared is not None and declared.type.is_blob:
            raise BadRequest(f"{where}: the Blob {entity.name}.{name} can not be given; take ours, theirs or base")
        if ends.get(name, name) in (entity.key or ()):
            raise BadRequest(f"{where}: {entity.name}.{name} is part of the key, which says which entity it is")
    _typed(entity, value)


def laid_over(entity: NodeType | EdgeType, row: pa.Table, value: Mapping[str, Any]) -> pa.Table:
    """A row with the given properties replaced."""
    for name, column in _typed(entity, value).items():
        place = row.schema.get_field_index(name)
        row = row.set_column(place, row.schema.field(place), [flat(column).cast(row.schema.field(place).type)])
    return row


def _typed(entity: NodeType | EdgeType, value: Mapping[str, Any]) -> dict[str, pa.Array]:
    """Given properties as columns of one row, by column name; missing required values are found later, with the image."""
    columns = {}
    for name, given in value.items():
        declared = entity.properties.get(name)
        kind = replace(declared.type, nullable=True) if declared else PropType(Scalar.STRING)
        try:
            plain = from_json(given, kind)
        except ValueError as problem:
            raise BadRequest(f"resolution: {entity.name}.{name} ({kind}): {problem}") from None
        assert not isinstance(plain, bytes), "blobs are refused"
        columns[name if declared else _ENDS[name]] = column_of([plain], kind)
    return columns
