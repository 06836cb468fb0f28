"""Graphs for the tests of queries: rows as JSON lines, appended to their tables in one commit."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

import omnigraph as og
from omnigraph.commit.context import CommitContext, Forks
from omnigraph.commit.model import MAIN, Lineage
from omnigraph.commit.protocol import Step, TableEffect, Write, execute
from omnigraph.commit.sidecar import Kind
from omnigraph.commit.updates import SchemaIs
from omnigraph.ids import new_ulid, now_micros
from omnigraph.language.literals import PlainValue
from omnigraph.language.schema.catalog import Catalog, EdgeType, NodeType
from omnigraph.language.temporal import parse_date, parse_datetime
from omnigraph.language.types import PropType, Scalar
from omnigraph.storage.tables.staged import stage_append
from omnigraph.values.columns import table_of
from omnigraph.values.identity import derive_ids


def graph_with(path: Path, schema: str, lines: str) -> og.Graph:
    """A new graph that holds these JSON lines."""
    graph = og.init(path, schema)
    load(graph, lines)
    return graph


def load(graph: og.Graph, lines: str, branch: str = MAIN) -> None:
    """Append JSON lines."""
    append(graph, (json.loads(line) for line in lines.strip().splitlines()), branch)


def append(graph: og.Graph, documents: Iterable[dict[str, Any]], branch: str = MAIN) -> None:
    """Append entities: `{"type": …, "data": …}` and `{"edge": …, "from": …, "to": …, "data": …}`."""
    catalog = graph.contract().catalog
    rows: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for document in documents:
        entity = _entity(catalog, document)
        rows[entity.type_key].append(_row(entity, document))
    commit_tables(graph, {key: _table(_by_key(catalog, key), found) for key, found in rows.items()}, branch)


def _entity(catalog: Catalog, document: dict[str, Any]) -> NodeType | EdgeType:
    return catalog.nodes[document["type"]] if "type" in document else catalog.edges[document["edge"]]


def _by_key(catalog: Catalog, key: str) -> NodeType | EdgeType:
    kind, name = key.split(":")
    return catalog.nodes[name] if kind == "node" else catalog.edges[name]


def _row(entity: NodeType | EdgeType, document: dict[str, Any]) -> dict[str, Any]:
    row: dict[str, Any] = {"id": document.get("id") or document.get("data", {}).get("id") or new_ulid()}
    if isinstance(entity, EdgeType):
        row |= {"src": document["from"], "dst": document["to"]}
    for name, value in document.get("data", {}).items():
        if name != "id":
            row[name] = _value(value, entity.properties[name].type)
    return row


def _value(value: Any, kind: PropType) -> PlainValue:
    if isinstance(value, list):
        return tuple(_value(item, kind.element()) for item in value)
    if value is not None and kind.scalar is Scalar.DATE:
        return parse_date(value)
    if value is not None and kind.scalar is Scalar.DATETIME:
        return parse_datetime(value)
    plain: PlainValue = value
    return plain


def _table(entity: NodeType | EdgeType, rows: list[dict[str, Any]]) -> pa.Table:
    table = table_of(entity, rows)
    if entity.key is None:
        return table
    return table.set_column(0, table.schema.field("id"), derive_ids(entity, table))


def commit_tables(graph: og.Graph, tables: dict[str, pa.Table], branch: str = MAIN) -> None:
    """Append whole tables, by type key, in one commit."""
    context: CommitContext = graph._context
    state = context.manifest.load(branch)
    forks = Forks(context.manifest)
    effects = []
    for key, table in tables.items():
        entry = state.by_key[key]
        step = Step(partial(stage_append, data=table))
        effects.append(TableEffect(entry, (step,), forks=forks.is_shared(state, entry)))
    lineage = Lineage(new_ulid(), now_micros(), "load", "act-test")
    execute(context, Write(Kind.LOAD, branch, lineage, tuple(effects), SchemaIs(state.schema_hash)))
