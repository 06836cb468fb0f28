"""Checks the merged graph with the common rule checks; every violation becomes a conflict."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.language.schema.catalog import Catalog, EdgeType, NodeType
from omnigraph.merge.result import Conflict, ConflictKind
from omnigraph.merge.target import Target
from omnigraph.validation.rows import Violation, check_rows
from omnigraph.validation.sets import Changes, check_sets

_KINDS = {
    "unique": ConflictKind.UNIQUE_VIOLATION,
    "endpoint": ConflictKind.ORPHAN_EDGE,
    "cardinality": ConflictKind.CARDINALITY_VIOLATION,
}


def rule_columns(entity: NodeType | EdgeType) -> tuple[str, ...]:
    """The columns that rules about many rows need; nothing else of a row is kept while a merge is checked."""
    ends = ("src", "dst") if isinstance(entity, EdgeType) else ()
    return tuple(dict.fromkeys(["id", *ends, *(name for columns in entity.uniques for name in columns)]))


def row_conflicts(entity: NodeType | EdgeType, rows: pa.Table) -> Iterator[Conflict]:
    """Conflicts of rows that break a rule about single rows."""
    return map(_conflict, check_rows(entity, rows))


def image_conflicts(catalog: Catalog, changes: Changes, committed: Target) -> Iterator[Conflict]:
    """Conflicts of rows that would break a rule about many rows after these changes."""
    yield from _once(map(_conflict, check_sets(changes, committed)))
    yield from _once(_orphans(catalog, changes, committed))


def stored_conflicts(violations: Iterable[Violation]) -> Iterator[Conflict]:
    """Conflicts of stored rows that break a rule."""
    return _once(map(_conflict, violations))


def _conflict(violation: Violation) -> Conflict:
    kind = _KINDS.get(violation.kind, ConflictKind.VALUE_CONSTRAINT_VIOLATION)
    return Conflict(kind.value, violation.type_key, violation.entity_id, violation.message)


def _once(conflicts: Iterable[Conflict]) -> Iterator[Conflict]:
    """At most one conflict of a kind per entity: an edge may lack both of its ends."""
    seen = set()
    for conflict in conflicts:
        named = (conflict.kind, conflict.type_key, conflict.entity_id)
        if conflict.entity_id is None or named not in seen:
            seen.add(named)
            yield conflict


def _orphans(catalog: Catalog, changes: Changes, committed: Target) -> Iterator[Conflict]:
    """Conflicts of unchanged target edges whose node is deleted. Edges with a conflict of their own are left out."""
    for edge in catalog.edges.values():
        if edge.type_key in committed.settled:
            continue
        own = changes.get(edge.type_key)
        open_ids = committed.undecided.get(edge.type_key)
        for end, type_name in (("src", edge.from_type), ("dst", edge.to_type)):
            nodes = changes.get(f"node:{type_name}")
            if nodes is None or not len(nodes.deleted):
                continue
            kept = committed.by_value(edge.type_key, end, nodes.deleted, ["id", end])
            if own is not None:
                kept = kept.filter(pc.invert(pc.is_in(kept["id"], value_set=own.touched())))
            if open_ids is not None:
                kept = kept.filter(pc.invert(pc.is_in(kept["id"], value_set=open_ids)))
            side = "from" if end == "src" else "to"
            for edge_id, node_id in zip(kept["id"].to_pylist(), kept[end].to_pylist(), strict=True):
                message = f"edge {edge.name}: its `{side}` node {type_name} {node_id!r} was deleted by the other side"
                yield Conflict(ConflictKind.ORPHAN_EDGE.value, edge.type_key, edge_id, message)
