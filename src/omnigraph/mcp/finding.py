"""`find`: search of entities by words, meaning or id, without a query language. `paths`: the paths between two nodes.
Both run queries on one snapshot, so they work on graphs on storage and on served graphs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated, Any, Literal

from msgspec import Meta

from omnigraph.errors import BadRequest, EmbeddingError, EntityNotFound
from omnigraph.language.schema.catalog import Catalog, EdgeType, NodeType
from omnigraph.language.types import Scalar
from omnigraph.mcp.exploring import cut, edge_word, known_type, shown_properties
from omnigraph.mcp.reading import AtSnapshot, Branch, catalog_of, place_of, read_place
from omnigraph.mcp.session import Session
from omnigraph.mcp.tool import Arguments, Reply, Tool, tool

#: How many text properties of a type are searched when none of them has an index.
_UNINDEXED = 4
#: Reciprocal ranks are added with this offset, as `rrf` of the query language does.
_RANK_OFFSET = 60
#: The most nodes of one step of a path search; with more, the search ends and says so.
_WIDEST_STEP = 2000

Mode = Literal["hybrid", "words", "meaning"]


class FindAsked(Arguments):
    text: Annotated[str, Meta(min_length=1, max_length=2000, description="Words, a sentence, or an id.")]
    types: Annotated[tuple[str, ...], Meta(description="Only nodes of these types; of all unless given.")] = ()
    mode: Annotated[Mode, Meta(description="By words, by meaning (types with an @embed vector), or both.")] = "hybrid"
    limit: Annotated[int, Meta(ge=1, le=100, description="How many entities at most.")] = 10
    branch: Branch = None
    snapshot: AtSnapshot = None


class PathsAsked(Arguments):
    from_type: Annotated[str, Meta(description="The type of the first node.")]
    from_id: Annotated[str, Meta(description="The id of the first node.")]
    to_type: Annotated[str, Meta(description="The type of the last node.")]
    to_id: Annotated[str, Meta(description="The id of the last node.")]
    edges: Annotated[tuple[str, ...], Meta(description="Only along these edge types; along all unless given.")] = ()
    direction: Annotated[
        Literal["out", "any"], Meta(description="out: along the edges only; any: also against them.")
    ] = "any"
    max_hops: Annotated[int, Meta(ge=1, le=10, description="The longest path that is looked for.")] = 4
    limit: Annotated[int, Meta(ge=1, le=20, description="How many shortest paths at most.")] = 3
    branch: Branch = None
    snapshot: AtSnapshot = None


# --- find -------------------------------------------------------------------------------------------------------------

Hit = tuple[str, str]


def _find(session: Session, asked: FindAsked) -> Reply:
    place = place_of(session, asked)
    view = session.graph.snapshot(place["branch"], at=place["snapshot"])
    catalog = catalog_of(session, snapshot=view.id)
    wanted = [_node_type(catalog, name) for name in asked.types] or list(catalog.nodes.values())
    scores: dict[Hit, float] = {}
    ways: dict[Hit, list[str]] = {}
    known: dict[Hit, dict[str, Any]] = {}
    notes: list[str] = []

    def add(entity: NodeType, way: str, rows: list[dict[str, Any]], weight: float = 1.0) -> None:
        for rank, row in enumerate(rows, start=1):
            hit = (entity.name, str(row.pop("id")))
            scores[hit] = scores.get(hit, 0.0) + weight / (_RANK_OFFSET + rank)
            ways.setdefault(hit, []).append(way)
            known.setdefault(
                hit, {name.removeprefix("n."): cut(value) for name, value in row.items() if value is not None}
            )

    for entity in wanted:
        # An exact id comes first.
        add(entity, "id", _asked(session, view.id, entity, f"$n: {entity.name}  $n.@id = $q", "", asked, 1), 3.0)
        if asked.mode != "meaning":
            for name in _text_properties(entity):
                found = _by_words(session, view.id, entity, name, asked)
                add(entity, f"words in {name}", found)
        if asked.mode != "words":
            for name, about in entity.properties.items():
                if about.embed is None:
                    continue
                order = f"order {{ nearest($n.{name}, $q) }}"
                try:
                    add(
                        entity,
                        f"meaning of {about.embed.source}",
                        _asked(session, view.id, entity, f"$n: {entity.name}", order, asked),
                    )
                except EmbeddingError as error:
                    notes.append(f"{entity.name} was not searched by meaning: {error.message}")
    if asked.mode == "meaning" and not any(about.embed for entity in wanted for about in entity.properties.values()):
        raise BadRequest("none of these types has an @embed vector; use mode words")
    best = sorted(scores, key=lambda hit: (-scores[hit], hit))[: asked.limit]
    rows = [[*hit, ", ".join(ways[hit]), round(scores[hit], 4), known[hit]] for hit in best]
    shape: dict[str, Any] = {
        "graph_commit_id": view.commit,
        "columns": ["type", "id", "found_by", "score", "properties"],
        "rows": rows,
    }
    if notes:
        shape["notes"] = notes
    if not rows:
        shape["next"] = "try other words, describe_type for the types there are, or a query with `contains`"
    return Reply(shape, "rows")


def _node_type(catalog: Catalog, name: str) -> NodeType:
    found = known_type(catalog, name)
    if not isinstance(found, NodeType):
        raise BadRequest(f"'{name}' is an edge type; find looks for nodes")
    return found


def _text_properties(entity: NodeType) -> list[str]:
    """The searched text properties of a type: those with an index or an embedding, else the first few."""
    texts = [
        name
        for name, about in entity.properties.items()
        if about.type.scalar is Scalar.STRING and not about.type.is_list and about.type.enum is None
    ]
    sources = {about.embed.source for about in entity.properties.values() if about.embed is not None}
    indexed = [name for name in texts if (name,) in entity.indexes or name in sources]
    return indexed or texts[:_UNINDEXED]


def _by_words(session: Session, snapshot: str, entity: NodeType, name: str, asked: FindAsked) -> list[dict[str, Any]]:
    """The best entities by the words of one property; without any, entities with similar words (fuzzy)."""
    order = f"order {{ bm25($n.{name}, $q) desc }}"
    found = _asked(session, snapshot, entity, f"$n: {entity.name}  search($n.{name}, $q)", order, asked)
    return found or _asked(session, snapshot, entity, f"$n: {entity.name}  fuzzy($n.{name}, $q)", "", asked)


def _asked(
    session: Session,
    snapshot: str,
    entity: NodeType,
    match: str,
    order: str,
    asked: FindAsked,
    limit: int | None = None,
) -> list[dict[str, Any]]:
    columns = ", ".join(["$n.@id as id", *(f"$n.{name}" for name in shown_properties(entity))])
    source = (
        f"query find($q: String) {{ match {{ {match} }} return {{ {columns} }} {order} limit {limit or asked.limit} }}"
    )
    result = session.graph.query(
        source, params={"q": asked.text}, snapshot=snapshot, timeout=session.timeout, cancel=session.cancel
    )
    return result.to_dicts(json=True)


# --- paths ------------------------------------------------------------------------------------------------------------

#: A node: (type, id). A step: (node before, edge type, edge id, whether the edge was followed forwards).
Node = tuple[str, str]
Step = tuple[Node, str, str, bool]


def _paths(session: Session, asked: PathsAsked) -> Reply:
    place = place_of(session, asked)
    view = session.graph.snapshot(place["branch"], at=place["snapshot"])
    catalog = catalog_of(session, snapshot=view.id)
    start = (_node_type(catalog, asked.from_type).name, asked.from_id)
    end = (_node_type(catalog, asked.to_type).name, asked.to_id)
    for kind, node_id in (start, end):
        if session.graph.entity("node", kind, node_id, snapshot=view.id) is None:
            raise EntityNotFound(
                f"there is no {kind} with the id '{node_id[:200]}'", type_key=f"node:{kind}", entity_id=node_id
            )
    edges = [_edge_type(catalog, name) for name in asked.edges] or list(catalog.edges.values())
    # For each reached node, the steps of the shortest paths to it.
    came: dict[Node, list[Step]] = {start: []}
    front, hops, complete = [start], 0, True
    while end not in came and front and hops < asked.max_hops:
        hops += 1
        reached: dict[Node, list[Step]] = {}
        for node, step in _steps(session, view.id, edges, front, asked.direction):
            if node not in came:
                reached.setdefault(node, []).append(step)
        came |= reached
        front = list(reached)
        if len(front) > _WIDEST_STEP and end not in came:
            complete = False
            break
    found = [] if start == end else list(_walked(came, start, end, asked.limit))
    shape: dict[str, Any] = {
        "graph_commit_id": view.commit,
        "length": hops if found else 0 if start == end else None,
        "paths": found,
    }
    if not complete:
        shape["notes"] = [
            f"the search ended after {hops} hops, which reach {len(front)} nodes; name the edges to follow"
        ]
    elif not found and start != end:
        shape["notes"] = [f"there is no path of at most {asked.max_hops} hops"]
    return Reply(shape, "paths")


def _edge_type(catalog: Catalog, name: str) -> EdgeType:
    found = known_type(catalog, name)
    if not isinstance(found, EdgeType):
        raise BadRequest(f"'{name}' is a node type; `edges` names edge types")
    return found


def _steps(
    session: Session, snapshot: str, edges: list[EdgeType], front: list[Node], direction: str
) -> Iterator[tuple[Node, Step]]:
    """All edges from some nodes: the node at the other end, and the step."""
    by_type: dict[str, list[str]] = {}
    for kind, node_id in front:
        by_type.setdefault(kind, []).append(node_id)
    for edge in edges:
        for forward in (True, False) if direction == "any" else (True,):
            near, far = (edge.from_type, edge.to_type) if forward else (edge.to_type, edge.from_type)
            if near not in by_type:
                continue
            pattern = f"$x $e: {edge_word(edge.name)} $y" if forward else f"$y $e: {edge_word(edge.name)} $x"
            source = (
                f"query step($ids: [String]) {{ match {{ $x: {near}  $x.@id in $ids  {pattern} }} "
                f"return {{ $x.@id as near, $y.@id as far, $e.@id as edge }} }}"
            )
            result = session.graph.query(
                source, params={"ids": by_type[near]}, snapshot=snapshot, timeout=session.timeout, cancel=session.cancel
            )
            columns = [result.table.column(name).to_pylist() for name in ("near", "far", "edge")]
            for here, there, edge_id in zip(*columns, strict=True):
                yield (far, there), ((near, here), edge.name, edge_id, forward)


def _walked(came: dict[Node, list[Step]], start: Node, end: Node, limit: int) -> Iterable[list[Any]]:
    """The shortest paths from the start to the end: nodes and, between them, edges."""
    waiting: list[tuple[Node, list[Any]]] = [(end, [_shown(end)])] if end in came else []
    given = 0
    while waiting and given < limit:
        node, path = waiting.pop()
        if node == start:
            given += 1
            yield path
            continue
        for before, edge, edge_id, forward in sorted(came[node], reverse=True):
            step = {"edge": edge, "id": edge_id, "direction": "out" if forward else "in"}
            waiting.append((before, [_shown(before), step, *path]))


def _shown(node: Node) -> dict[str, str]:
    return {"type": node[0], "id": node[1]}


TOOLS: list[Tool] = [
    tool(
        "find",
        "Find entities",
        "Find nodes by words, by meaning or by id, in all types or some, best first. No query language is needed.",
        FindAsked,
        read_place,
        _find,
    ),
    tool(
        "paths",
        "Paths between two nodes",
        "The shortest paths that connect two nodes, along all edge types or some.",
        PathsAsked,
        read_place,
        _paths,
    ),
]
