"""Conversion of a part of a graph to NetworkX (extra `networkx`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from omnigraph.errors import BadRequest, NotFound, ResourceLimit
from omnigraph.graph.handle import NOW
from omnigraph.graph.snapshot import Reference
from omnigraph.language.schema.catalog import Catalog
from omnigraph.language.source import did_you_mean, nearest_name
from omnigraph.query.scan.entities import Entities, open_edges, open_nodes

if TYPE_CHECKING:
    import networkx as nx

    from omnigraph.graph.querying import Querying


@dataclass(frozen=True)
class Wanted:
    """The selected nodes and edges: of some types, or the result of a query; `limit` bounds their number."""

    types: Sequence[str] | None
    edges: Sequence[str] | None
    query: str | None
    params: Mapping[str, object] | None
    limit: int


def to_networkx(graph: Querying, wanted: Wanted, branch: str | None, snapshot: Reference) -> nx.MultiDiGraph[Any]:
    """See `Graph.to_networkx`."""
    networkx = networkx_module()
    contract, view = graph._view(branch, snapshot, NOW)
    made: nx.MultiDiGraph[Any] = networkx.MultiDiGraph(
        omnigraph_uri=graph.uri, omnigraph_commit=view.commit, omnigraph_schema=contract.source
    )
    if wanted.query is not None:
        if wanted.types is not None or wanted.edges is not None:
            raise BadRequest("a query says itself what is read; give `types` and `edges`, or `query`")
        result = graph.query(wanted.query, params=wanted.params, snapshot=view)
        _refuse_more(len(result), wanted.limit)
        _add_objects(made, result.rows, contract.catalog)
        return made
    catalog = contract.catalog
    nodes = _known(wanted.types, catalog.nodes, "node")
    between = [
        name
        for name in _known(wanted.edges, catalog.edges, "edge")
        if catalog.edges[name].from_type in nodes and catalog.edges[name].to_type in nodes
    ]
    node_tables = [open_nodes(view, catalog, name) for name in nodes]
    edge_tables = [open_edges(view, catalog, name) for name in between]
    _refuse_more(sum(entities.table.count_rows() for entities in (*node_tables, *edge_tables)), wanted.limit)
    for entities in node_tables:
        made.add_nodes_from(((entities.entity.name, ids[0]), values) for ids, values in _rows(entities, ["id"]))
    for name, entities in zip(between, edge_tables, strict=True):
        start, end = catalog.edges[name].from_type, catalog.edges[name].to_type
        made.add_edges_from(
            ((start, source), (end, target), (name, own), values)
            for (own, source, target), values in _rows(entities, ["id", "src", "dst"])
        )
    return made


def networkx_module() -> Any:
    """The module NetworkX; raises BadRequest when it is not installed."""
    try:
        import networkx
    except ImportError as error:
        raise BadRequest("NetworkX is not installed; pip install 'omnigraph[networkx]'") from error
    return networkx


def _known(names: Sequence[str] | None, declared: Mapping[str, Any], kind: str) -> list[str]:
    if names is None:
        return list(declared)
    for name in names:
        if name not in declared:
            raise NotFound(f"the schema has no {kind} type '{name}'{did_you_mean(nearest_name(name, declared))}")
    return list(dict.fromkeys(names))


def _refuse_more(total: int, limit: int) -> None:
    if total > limit:
        raise ResourceLimit(
            f"{total} nodes and edges are more than the {limit} that are held in memory; take some types, a query, or raise "
            "`limit`",
            resource="entities",
            limit=limit,
            actual=total,
        )


def _rows(entities: Entities, ids: list[str]) -> Iterator[tuple[tuple[str, ...], dict[str, Any]]]:
    """The ids and the values of rows, as Python values and without nulls."""
    stored = {
        name: column
        for name, column in entities.stored.items()
        if column is not None
        and name in entities.entity.properties
        and not entities.entity.properties[name].type.is_blob
    }
    for batch in entities.table.scan([*ids, *stored.values()]):
        table = pa.Table.from_batches([batch])
        keys = zip(*(table.column(name).to_pylist() for name in ids), strict=True)
        columns = [table.column(column).to_pylist() for column in stored.values()]
        for place, key in enumerate(keys):
            values = ((name, column[place]) for name, column in zip(stored, columns, strict=True))
            yield key, {name: value for name, value in values if value is not None}


def _add_objects(made: nx.MultiDiGraph[Any], rows: Iterable[Mapping[str, Any]], catalog: Catalog) -> None:
    """Add the nodes and edges of a result; ends of edges that the result lacks become nodes without attributes."""
    edges: list[Mapping[str, Any]] = []
    for row in rows:
        for column, value in row.items():
            if value is None:
                continue
            if not isinstance(value, dict) or not {"id", "type", "properties"} <= value.keys():
                raise BadRequest(
                    f"column {column!r} is no node or edge; return `object($x)` of what the graph is made of"
                )
            if "from" in value:
                edges.append(value)
            else:
                made.add_node((value["type"], value["id"]), **_given(value))
    for value in edges:
        kind = catalog.edges[value["type"]]
        start, end = (kind.from_type, value["from"]), (kind.to_type, value["to"])
        made.add_edges_from([(start, end, (kind.name, value["id"]), _given(value))])


def _given(value: Mapping[str, Any]) -> dict[str, Any]:
    return {name: held for name, held in value["properties"].items() if held is not None}
