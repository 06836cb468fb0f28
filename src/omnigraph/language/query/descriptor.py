"""Operation descriptors: the parameters and result columns of a query, and the types that it reads and writes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from omnigraph.language.query import ir
from omnigraph.language.query.check import Block, CheckedMutation, CheckedQuery, CheckedRead, CheckedUnion
from omnigraph.language.query.check.tree import CheckedMatch
from omnigraph.language.schema.catalog import Catalog
from omnigraph.language.types import PropType, Scalar

_KINDS = {
    Scalar.STRING: "string",
    Scalar.BLOB: "blob",
    Scalar.BOOL: "bool",
    Scalar.I32: "int",
    Scalar.U32: "int",
    Scalar.I64: "bigint",
    Scalar.U64: "bigint",
    Scalar.F32: "float",
    Scalar.F64: "float",
    Scalar.DATE: "date",
    Scalar.DATETIME: "datetime",
    Scalar.VECTOR: "vector",
    Scalar.OBJECT: "object",
}


@dataclass(frozen=True, slots=True)
class ValueDescriptor:
    """A parameter or a result column. `item_kind` is given for a list, `vector_dim` for a vector."""

    name: str
    kind: str
    nullable: bool
    item_kind: str | None = None
    vector_dim: int | None = None

    def to_dict(self) -> dict[str, Any]:
        shape = {"item_kind": self.item_kind, "vector_dim": self.vector_dim}
        given = {name: value for name, value in shape.items() if value is not None}
        return {"name": self.name, "kind": self.kind, **given, "nullable": self.nullable}


@dataclass(frozen=True, slots=True)
class OperationDescriptor:
    """`reads` and `writes` are type keys such as `node:Person`, sorted."""

    name: str
    kind: str
    params: tuple[ValueDescriptor, ...]
    columns: tuple[ValueDescriptor, ...]
    reads: tuple[str, ...]
    writes: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "kind": self.kind,
            "params": [param.to_dict() for param in self.params],
            "result": [column.to_dict() for column in self.columns],
            "reads": list(map(_type_reference, self.reads)),
            "writes": list(map(_type_reference, self.writes)),
        }


def _type_reference(type_key: str) -> dict[str, str]:
    """A type key such as `node:Person` in the JSON form of the HTTP interface."""
    kind, _, name = type_key.partition(":")
    return {"kind": kind, "type_name": name}


def describe(checked: CheckedQuery, catalog: Catalog) -> OperationDescriptor:
    """The descriptor of a checked query."""
    query, body = checked.query, checked.body
    params = tuple(describe_value(param.name, param.type) for param in query.params)
    if isinstance(body, CheckedRead | CheckedUnion):
        columns = tuple(describe_value(column.name, column.type) for column in body.columns)
        return OperationDescriptor(query.name, "read", params, columns, _sorted(_types_read(body)), ())
    reads, writes = _types_changed(body, catalog)
    return OperationDescriptor(query.name, "mutation", params, (), reads, writes)


def describe_value(name: str, kind: PropType) -> ValueDescriptor:
    """A name and a property type in the terms of the HTTP interface."""
    if kind.is_list:
        return ValueDescriptor(name, "list", kind.nullable, item_kind=_KINDS[kind.scalar])
    return ValueDescriptor(name, _KINDS[kind.scalar], kind.nullable, vector_dim=kind.dimension)


def _sorted(type_keys: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(set(type_keys)))


def _types_read(read: CheckedRead | CheckedUnion) -> Iterator[str]:
    if isinstance(read, CheckedUnion):
        yield from (*_types_read(read.left), *_types_read(read.right))
        return
    if read.before is not None:
        yield from _types_read(read.before.read)
    yield from _types_matched(read.block)
    for attached in read.attached:
        yield from _types_matched(attached.nested.block)


def _types_matched(block: Block) -> Iterator[str]:
    for part in block.parts:
        yield from (f"node:{name}" for node in part.nodes.values() for name in node.name.split("|"))
        for step in (*part.steps, *(path.step for path in part.paths)):
            yield from (f"edge:{edge.name}" for edge in step.edges)
            yield f"edge:{step.edge_type}"
    for nested in block.nested:
        yield from _types_matched(nested.block)


def _types_changed(mutation: CheckedMutation, catalog: Catalog) -> tuple[tuple[str, ...], tuple[str, ...]]:
    reads: list[str] = []
    writes: list[str] = []
    for checked in mutation.statements:
        statement = checked
        if isinstance(statement, CheckedMatch):
            reads += _types_matched(statement.block)
            for attached in statement.attached:
                reads += _types_matched(attached.nested.block)
            statement = statement.statement(ir.Matches(ir.Outer(()), ""))
        reads += _read_by(statement, catalog)
        writes += _written_by(statement, catalog)
    return _sorted(reads), _sorted(writes)


def _read_by(statement: ir.Statement, catalog: Catalog) -> list[str]:
    match statement:
        case ir.InsertMatched():
            return _read_by(statement.statement, catalog)
        case ir.UpdateMatched() | ir.DeleteMatched():
            return [statement.type_key]
        case ir.InsertNode():
            return []
        case ir.InsertEdge():
            edge = catalog.edges[statement.edge_type]
            return [f"node:{edge.from_type}", f"node:{edge.to_type}"]
        case ir.UpsertNode() | ir.UpdateNodes() | ir.DeleteNodes():
            return [f"node:{statement.node_type}"]
        case ir.UpdateEdges() | ir.DeleteEdges():
            return [f"edge:{statement.edge_type}"]


def _written_by(statement: ir.Statement, catalog: Catalog) -> list[str]:
    match statement:
        case ir.InsertMatched():
            return _written_by(statement.statement, catalog)
        case ir.UpdateMatched():
            return [statement.type_key]
        case ir.DeleteMatched():
            kind, name = statement.type_key.split(":")
            return [statement.type_key] if kind == "edge" else _with_edges(name, catalog)
        case ir.InsertNode() | ir.UpsertNode() | ir.UpdateNodes():
            return [f"node:{statement.node_type}"]
        case ir.InsertEdge() | ir.UpdateEdges() | ir.DeleteEdges():
            return [f"edge:{statement.edge_type}"]
        case ir.DeleteNodes():
            return _with_edges(statement.node_type, catalog)


def _with_edges(node_type: str, catalog: Catalog) -> list[str]:
    """The types that deleting nodes changes: the node type, and the edge types whose edges are deleted with the nodes."""
    incident = [edge.type_key for edge in catalog.edges.values() if node_type in (edge.from_type, edge.to_type)]
    return [f"node:{node_type}", *incident]
