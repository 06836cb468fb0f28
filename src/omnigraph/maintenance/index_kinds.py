"""Which indexes a schema declares: one function says it for one property, another for a whole type."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from omnigraph.language.schema.catalog import EdgeType, NodeType, Property
from omnigraph.language.types import PropType

_NODE_COLUMNS = ("id",)
_EDGE_COLUMNS = ("id", "src", "dst")


class IndexKind(StrEnum):
    """What an index is. Lance has several kinds of vector index; which one it is depends on the number of vectors."""

    BTREE = "BTREE"
    INVERTED = "INVERTED"
    LABEL_LIST = "LABEL_LIST"
    VECTOR = "VECTOR"


@dataclass(frozen=True, slots=True)
class DeclaredIndex:
    """One index that a type should have: on a property, or on `id`, `src` or `dst`, which are not declared."""

    column: str
    declared: Property | None
    kind: IndexKind

    @property
    def name(self) -> str:
        """The index's name in its table. Properties appear by their stable id, so a rename changes nothing."""
        owner = self.column if self.declared is None else f"p{self.declared.id}"
        return f"{owner}_{self.kind.lower()}"

    @property
    def metric(self) -> str:
        """The distance that a vector index is for."""
        assert self.declared is not None, "only properties hold vectors"
        return self.declared.metric


def index_kinds(kind: PropType, *, is_key: bool) -> tuple[IndexKind, ...]:
    """The indexes of a property of this type that is declared with `@key` or with `@index`."""
    if kind.is_blob:
        return ()
    if kind.is_vector:
        return (IndexKind.VECTOR,)
    if kind.is_list:
        return (IndexKind.LABEL_LIST,)
    if kind.is_text and kind.enum is None:
        # Keys are looked up by equality, other texts are searched.
        return (IndexKind.BTREE, IndexKind.INVERTED) if is_key else (IndexKind.INVERTED,)
    return (IndexKind.BTREE,)


def declared_indexes(entity: NodeType | EdgeType) -> tuple[DeclaredIndex, ...]:
    """Every index that the table of a type should have; a constraint on several columns is one index for each."""
    fixed = _EDGE_COLUMNS if isinstance(entity, EdgeType) else _NODE_COLUMNS
    found = [DeclaredIndex(column, None, IndexKind.BTREE) for column in fixed]
    key = entity.key or ()
    indexed = {name for constraint in entity.indexes for name in constraint}
    for name, declared in entity.properties.items():
        if name in key or name in indexed:
            kinds = index_kinds(declared.type, is_key=name in key)
            found += [DeclaredIndex(name, declared, kind) for kind in kinds]
    return tuple(found)
