"""Which indexes a schema asks for: one function maps a property to the kinds of index it has."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import isqrt
from typing import Any

from omnigraph.language.schema.catalog import EdgeType, NodeType, Property
from omnigraph.query.search.analyser import INDEX_OPTIONS

BTREE, INVERTED, LABEL_LIST, VECTOR = "BTREE", "INVERTED", "LABEL_LIST", "IVF_FLAT"


@dataclass(frozen=True)
class DeclaredIndex:
    """One index that a type should have. `declared` is None for the implicit columns."""

    column: str
    kind: str
    declared: Property | None = None
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Made of the property's stable id, so that a rename needs no new index."""
        stem = self.column if self.declared is None else f"p{self.declared.id}"
        return f"{stem}_{self.kind.lower()}"


def index_kinds(declared: Property, *, key: bool) -> tuple[str, ...]:
    """The kinds of index of a property that is declared as key or indexed. A blob has none."""
    kind = declared.type
    if kind.is_blob:
        return ()
    if kind.is_vector:
        return (VECTOR,)
    if kind.is_list:
        return (LABEL_LIST,)
    if kind.is_text and kind.enum is None:
        return (BTREE, INVERTED) if key else (INVERTED,)
    return (BTREE,)


def declared_indexes(entity: NodeType | EdgeType) -> tuple[DeclaredIndex, ...]:
    """Every index a type should have, the implicit ones first."""
    implicit = ("id", "src", "dst") if isinstance(entity, EdgeType) else ("id",)
    found = [DeclaredIndex(name, BTREE) for name in implicit]
    key = entity.key or ()
    names = dict.fromkeys(name for group in (key, *entity.indexes) for name in group)
    for name in names:
        declared = entity.properties.get(name)
        if declared is not None:
            found += [
                DeclaredIndex(name, kind, declared, _options(kind)) for kind in index_kinds(declared, key=name in key)
            ]
    return tuple(found)


def _options(kind: str) -> dict[str, Any]:
    return INDEX_OPTIONS if kind == INVERTED else {}


def vector_options(declared: Property, vectors: int) -> dict[str, Any]:
    """How a vector index is trained: about as many partitions as each of them then has vectors."""
    return {"metric": declared.metric, "num_partitions": max(1, isqrt(vectors))}
