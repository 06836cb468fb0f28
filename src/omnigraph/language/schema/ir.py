"""The canonical schema of a graph: a catalog whose types and properties have stable ids, and the next free ids."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TypeVar

from omnigraph.errors import SchemaContractError
from omnigraph.language.schema.catalog import Catalog, EdgeType, EntityType, NodeType
from omnigraph.language.schema.catalog_json import (
    Document,
    Fields,
    Malformed,
    catalog_from_document,
    catalog_to_document,
    hex_id,
)
from omnigraph.language.schema.constraints import ENDPOINTS

FORMAT = 1

_Entity = TypeVar("_Entity", NodeType, EdgeType)


@dataclass(frozen=True)
class SchemaIR:
    """An accepted schema. Numbers below a counter (`next_…`) were given out and are never given out again."""

    catalog: Catalog
    next_type_id: int
    #: For each type key, the id of the next new property of the type.
    next_property_ids: Mapping[str, int]
    #: For types and properties that two branches added alike and a merge unified: the dropped identity → the kept identity. A
    #: type
    #: is written `<id>-<incarnation>` in hex digits, a property `<type>/<id>`.
    aliases: Mapping[str, str] = field(default_factory=dict)

    def to_json(self) -> str:
        """The canonical JSON: equal schemas have equal texts."""
        document: Document = {
            "format": FORMAT,
            "next_type_id": hex_id(self.next_type_id),
            "next_property_ids": dict(self.next_property_ids),
            "catalog": catalog_to_document(self.catalog),
        }
        # Left out when empty, so that the hashes of schemas without aliases do not change.
        return _canonical(document | {"aliases": dict(self.aliases)} if self.aliases else document)

    @classmethod
    def from_json(cls, text: str | bytes, path: str | None = None) -> SchemaIR:
        """Read what `to_json` wrote; `path` is only a name for messages. Raises SchemaContractError."""
        try:
            document = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise _contract_error("unreadable", f"is not JSON ({error})", path) from None
        try:
            return _read(document)
        except (ValueError, RecursionError) as error:
            raise _contract_error("malformed", f"does not describe a schema: {error}", path) from None


def catalog_of(ir: SchemaIR) -> Catalog:
    """The catalog of an accepted schema, with ids and incarnations."""
    return ir.catalog


def ir_hash(ir: SchemaIR) -> str:
    """The SHA-256 of the canonical JSON: equal for the same schema with the same identities."""
    return _sha256(ir.to_json())


def fingerprint(schema: SchemaIR | Catalog) -> str:
    """A hash of the meaning of a schema; formatting, order, comments, ids and incarnations do not change it."""
    catalog = schema.catalog if isinstance(schema, SchemaIR) else schema
    return _sha256(_canonical(catalog_to_document(_without_identity(catalog))))


def _canonical(document: Document) -> str:
    return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _without_identity(catalog: Catalog) -> Catalog:
    return replace(
        catalog,
        nodes={name: _anonymous(node) for name, node in catalog.nodes.items()},
        edges={name: _anonymous(edge) for name, edge in catalog.edges.items()},
    )


def _anonymous(entity: _Entity) -> _Entity:
    properties = {name: replace(prop, id=0) for name, prop in entity.properties.items()}
    # The order of a key comes from the names at its creation, so it is a part of the identity too.
    key = tuple(sorted(entity.key)) if entity.key else None
    return replace(entity, id=0, incarnation=0, properties=properties, key=key)


# --- reading ----------------------------------------------------------------------------------------------------------


def _contract_error(reason: str, problem: str, path: str | None) -> SchemaContractError:
    return SchemaContractError(
        f"the accepted schema {path or 'document'} {problem}; restore it from the graph's `_schemas` folder",
        reason=reason,
        path=path,
    )


def _read(document: object) -> SchemaIR:
    if not isinstance(document, dict):
        raise Malformed("it is not a JSON object")
    fields = Fields(document, "schema")
    if fields.get("format", int) != FORMAT:
        raise Malformed(f"its format is {document['format']}, and this version reads {FORMAT}")
    ir = SchemaIR(
        catalog=catalog_from_document(Fields(fields.get("catalog", dict), "catalog")),
        next_type_id=fields.hex("next_type_id"),
        next_property_ids=fields.integers("next_property_ids"),
        aliases=_aliases(document.get("aliases", {})),
    )
    _check_identities(ir)
    _check_references(ir.catalog)
    # Compared as bytes, since JSON can contain half a surrogate pair, which no file can hold.
    if ir.to_json().encode() != _canonical(document).encode():
        raise Malformed("it has fields or an order that no accepted schema has")
    return ir


def _aliases(found: object) -> Mapping[str, str]:
    if not isinstance(found, dict) or not all(isinstance(name, str) for pair in found.items() for name in pair):
        raise Malformed("aliases is not an object of texts")
    return found


def _check_identities(ir: SchemaIR) -> None:
    entities: list[NodeType | EdgeType] = [*ir.catalog.nodes.values(), *ir.catalog.edges.values()]
    _check_numbers("type ids", [entity.id for entity in entities], ir.next_type_id)
    if ir.next_property_ids.keys() != {entity.type_key for entity in entities}:
        raise Malformed("next_property_ids does not name exactly its types")
    for entity in entities:
        numbers = [prop.id for prop in entity.properties.values()]
        _check_numbers(f"property ids of {entity.type_key}", numbers, ir.next_property_ids[entity.type_key])


def _check_numbers(what: str, numbers: Sequence[int], next_number: int) -> None:
    if len(set(numbers)) != len(numbers) or not all(0 < number < next_number for number in numbers):
        raise Malformed(f"the {what} are not distinct numbers below the next one")


def _check_references(catalog: Catalog) -> None:
    for node in catalog.nodes.values():
        _check_known(f"{node.type_key} implements", node.implements, catalog.interfaces)
        _check_known(node.type_key, _columns(node), node.properties)
    for edge in catalog.edges.values():
        _check_known(f"{edge.type_key} joins", (edge.from_type, edge.to_type), catalog.nodes)
        _check_known(edge.type_key, _columns(edge), {*edge.properties, *ENDPOINTS})


def _columns(entity: EntityType) -> Iterator[str]:
    """Every column that a constraint names."""
    yield from entity.key or ()
    yield from chain.from_iterable(entity.uniques + entity.indexes)
    yield from (constraint.property for constraint in entity.ranges + entity.checks)


def _check_known(who: str, names: Iterable[str], known: Collection[str]) -> None:
    for name in names:
        if name not in known:
            raise Malformed(f"{who} `{name}`, which does not exist")
