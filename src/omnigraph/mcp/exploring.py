"""Tools for exploring an unknown graph: types, entities, neighbours, differences, and merge previews."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, Literal

from msgspec import Meta

from omnigraph.commit.model import MAIN
from omnigraph.errors import BadRequest, EntityNotFound, NotFound
from omnigraph.language.schema.catalog import Catalog, EdgeType, NodeType, Property
from omnigraph.language.source import did_you_mean, nearest_name
from omnigraph.mcp.answers import paged, sliced
from omnigraph.mcp.reading import (
    AtSnapshot,
    Branch,
    Kinds,
    Limit,
    Offset,
    Ops,
    PageToken,
    Types,
    catalog_of,
    place_of,
    read_place,
)
from omnigraph.mcp.session import Session
from omnigraph.mcp.tool import Arguments, Reply, Tool, tool
from omnigraph.policy.actions import READ, Need
from omnigraph.wire.failures import merge_conflict

#: The most characters of a text in a sample or a hit.
LONGEST_TEXT = 200
#: The default number of changes of a page.
_PAGE = 50

TypeName = Annotated[str, Meta(description="The name of a node type, as describe_type lists them.")]


class TypeAsked(Arguments):
    type: Annotated[str | None, Meta(description="A node or edge type; an overview of all types unless given.")] = None
    samples: Annotated[int, Meta(ge=0, le=20, description="How many entities are shown as examples.")] = 3
    branch: Branch = None
    snapshot: AtSnapshot = None


class EntityAsked(Arguments):
    type: Annotated[str, Meta(description="The type of the entity.")]
    id: Annotated[str, Meta(description="Its id; of a node with a key, the key.")]
    entity: Annotated[Literal["node", "edge"], Meta(description="Whether it is a node or an edge.")] = "node"
    property: Annotated[str | None, Meta(description="Only this property; a long text comes in parts by offset.")] = (
        None
    )
    offset: Offset = 0
    branch: Branch = None
    snapshot: AtSnapshot = None


class NeighboursAsked(Arguments):
    type: TypeName
    id: Annotated[str, Meta(description="The id of the node.")]
    edge: Annotated[str | None, Meta(description="Only edges of this type.")] = None
    direction: Annotated[
        Literal["out", "in"] | None, Meta(description="Only edges that leave, or arrive at, the node.")
    ] = None
    limit: Annotated[int, Meta(ge=0, le=1000, description="Edges of each group.")] = 10
    skip: Annotated[int, Meta(ge=0, description="Edges of each group that are left out before.")] = 0
    branch: Branch = None
    snapshot: AtSnapshot = None


class DiffAsked(Arguments):
    before: Annotated[str, Meta(description="A branch, tag, commit id or snapshot id.")]
    after: Annotated[
        str | None, Meta(description="The later state; the branch of this session or main unless given.")
    ] = None
    kinds: Kinds = ()
    types: Types = ()
    ops: Ops = ()
    limit: Limit = None
    page_token: PageToken = None


class PreviewAsked(Arguments):
    source: Annotated[
        str | None, Meta(description="The branch that would be merged; the branch of this session unless given.")
    ] = None
    target: Annotated[str, Meta(description="The branch it would be merged into.")] = MAIN


# --- types ------------------------------------------------------------------------------------------------------------


def known_type(catalog: Catalog, name: str) -> NodeType | EdgeType:
    """A node or edge type by its name."""
    found = catalog.nodes.get(name) or catalog.edge(name)
    if found is None:
        names = [*catalog.nodes, *catalog.edges]
        raise NotFound(f"the schema has no type '{name}'{did_you_mean(nearest_name(name, names))}")
    return found


def shown_properties(entity: NodeType | EdgeType) -> list[str]:
    """The properties that answers show: no vectors and no blobs."""
    return [name for name, about in entity.properties.items() if not about.type.is_vector and not about.type.is_blob]


def edge_word(name: str) -> str:
    """An edge type as queries write it."""
    return name[:1].lower() + name[1:]


def cut(value: Any) -> Any:
    """A value with a long text cut."""
    if isinstance(value, str) and len(value) > LONGEST_TEXT:
        return value[: LONGEST_TEXT - 1] + "…"
    return value


def _describe_type(session: Session, asked: TypeAsked) -> Reply:
    place = place_of(session, asked)
    view = session.graph.snapshot(place["branch"], at=place["snapshot"])
    catalog = catalog_of(session, snapshot=view.id)
    counts = {entry.key: entry.row_count for entry in view.entries()}
    if asked.type is None:
        types: list[NodeType | EdgeType] = [*catalog.nodes.values(), *catalog.edges.values()]
        rows = [
            [_kind(entity), entity.name, counts.get(entity.type_key, 0), _ends(entity), cut(entity.description)]
            for entity in types
        ]
        columns = ["kind", "name", "count", "connects", "description"]
        shape: dict[str, Any] = {"snapshot": view.id, "columns": columns, "rows": rows}
        return Reply(
            shape | {"next": "call describe_type with one of these types for its properties and samples"}, "rows"
        )
    entity = known_type(catalog, asked.type)
    shape = {
        "snapshot": view.id,
        "kind": _kind(entity),
        "name": entity.name,
        "count": counts.get(entity.type_key, 0),
        **({} if entity.description is None else {"description": entity.description}),
        **({} if entity.instruction is None else {"instruction": entity.instruction}),
        **({} if entity.key is None else {"key": list(entity.key)}),
        **({"unique": [list(columns) for columns in entity.uniques]} if entity.uniques else {}),
        **({"indexes": [list(columns) for columns in entity.indexes]} if entity.indexes else {}),
        "properties": [_property(about) for about in entity.properties.values()],
    }
    if isinstance(entity, EdgeType):
        shape |= {"from": entity.from_type, "to": entity.to_type, "written": f"$a {edge_word(entity.name)} $b"}
    else:
        shape["edges"] = _edges(catalog, entity.name, counts)
    return Reply(shape | {"samples": _samples(session, entity, view.id, asked.samples)}, "samples")


def _kind(entity: NodeType | EdgeType) -> str:
    return "edge" if isinstance(entity, EdgeType) else "node"


def _ends(entity: NodeType | EdgeType) -> str | None:
    return f"{entity.from_type} -> {entity.to_type}" if isinstance(entity, EdgeType) else None


def _property(about: Property) -> dict[str, Any]:
    told: dict[str, Any] = {"name": about.name, "type": str(about.type)}
    if about.type.enum is not None:
        told["enum"] = list(about.type.enum)
    if about.embed is not None:
        told["embeds"] = about.embed.source
    return told if about.description is None else told | {"description": about.description}


def _edges(catalog: Catalog, name: str, counts: dict[str, int]) -> list[str]:
    """The edge types of a node type, as query patterns with the number of edges of each type."""
    found = []
    for edge in catalog.edges.values():
        if name in (edge.from_type, edge.to_type):
            pattern = f"({edge.from_type}) {edge_word(edge.name)} ({edge.to_type})"
            found.append(f"{pattern}: {counts.get(edge.type_key, 0)}")
    return found


def _samples(session: Session, entity: NodeType | EdgeType, snapshot: str, count: int) -> list[dict[str, Any]]:
    if not count:
        return []
    names = shown_properties(entity)
    if isinstance(entity, EdgeType):
        match = f"$a: {entity.from_type}  $a $x: {edge_word(entity.name)} $b"
        columns = ["$x.@id as id", "$x.@src as src", "$x.@dst as dst"]
    else:
        match, columns = f"$x: {entity.name}", ["$x.@id as id"]
    columns += [f"$x.{name}" for name in names]
    source = f"query samples() {{ match {{ {match} }} return {{ {', '.join(columns)} }} limit {count} }}"
    result = session.graph.query(source, snapshot=snapshot, timeout=session.timeout, cancel=session.cancel)
    return [
        {name.removeprefix("x."): cut(value) for name, value in row.items() if value is not None}
        for row in result.to_dicts(json=True)
    ]


# --- entities ---------------------------------------------------------------------------------------------------------


def _entity_get(session: Session, asked: EntityAsked) -> Reply:
    place = place_of(session, asked)
    catalog = catalog_of(session, place["branch"], place["snapshot"])
    entity = known_type(catalog, asked.type)
    kind: Literal["node", "edge"] = "edge" if isinstance(entity, EdgeType) else "node"
    if kind != asked.entity and asked.entity == "edge":
        raise BadRequest(f"'{entity.name}' is a {kind} type; leave `entity` out")
    found = session.graph.entity(kind, entity.name, asked.id, **place)
    if found is None:
        raise EntityNotFound(
            f"there is no {entity.name} with the id '{asked.id[:200]}'", type_key=entity.type_key, entity_id=asked.id
        )
    if asked.property is None:
        return Reply({"entity": found})
    if asked.property not in entity.properties:
        instead = did_you_mean(nearest_name(asked.property, entity.properties))
        raise NotFound(f"{entity.name} has no property '{asked.property}'{instead}")
    value = found.get(asked.property)
    if not isinstance(value, str):
        return Reply({"type": entity.name, "id": asked.id, "property": asked.property, "value": value})
    told = sliced("value", value, asked.offset, session.answer_bytes - 500)
    return Reply({"type": entity.name, "id": asked.id[:200], "property": asked.property, "length": len(value), **told})


def _neighbours(session: Session, asked: NeighboursAsked) -> Reply:
    place = place_of(session, asked)
    # The same snapshot is used for the following pages.
    found = session.graph.neighbours(
        asked.type, asked.id, edge=asked.edge, direction=asked.direction, limit=asked.limit, skip=asked.skip, **place
    )
    nodes = {(node.type, node.id): node for node in (found.node, *found.nodes)}
    catalog = catalog_of(session, snapshot=found.commit)
    rows = []
    for edge in found.edges:
        declared = catalog.edges[edge.type]
        is_out = edge.source == asked.id and declared.from_type == asked.type
        other = (declared.to_type, edge.target) if is_out else (declared.from_type, edge.source)
        far = nodes.get((other[0], str(other[1])))
        rows.append(
            [edge.type, "out" if is_out else "in", *other, None if far is None else far.label, edge.id, edge.properties]
        )
    more = [group.edge for group in found.groups if asked.skip + group.given < group.total]
    shape: dict[str, Any] = {
        "graph_commit_id": found.commit,
        "node": {
            "type": found.node.type,
            "id": found.node.id,
            "properties": {name: cut(value) for name, value in found.node.properties.items()},
        },
        "groups": [group.to_dict() for group in found.groups],
        "columns": ["edge", "direction", "type", "id", "label", "edge_id", "edge_properties"],
        "rows": rows,
    }
    if more:
        shape["next"] = {"skip": asked.skip + asked.limit, "snapshot": found.commit}
    return Reply(shape, "rows")


# --- differences and merges -------------------------------------------------------------------------------------------


def _diff_ends(session: Session, asked: DiffAsked) -> tuple[str, str]:
    return asked.before, session.read_branch(asked.after)


def _diff_needs(session: Session, asked: DiffAsked) -> Iterable[Need]:
    branches = session.graph.branches()
    return [Need(READ, _branch_of(session, target, branches)) for target in _diff_ends(session, asked)]


def _branch_of(session: Session, target: str, branches: list[str]) -> str | None:
    """The branch of a read target; None when it does not exist, which the comparison reports."""
    if target in branches:
        return target
    try:
        return session.graph.snapshot(at=target).branch
    except (BadRequest, NotFound):
        return None


def _diff(session: Session, asked: DiffAsked) -> Reply:
    before, after = _diff_ends(session, asked)

    def ask(limit: int) -> dict[str, Any]:
        found = session.graph.compare(
            before,
            after,
            kinds=asked.kinds or None,
            types=asked.types or None,
            ops=asked.ops or None,
            limit=limit,
            page_token=asked.page_token,
        )
        return found.to_dict()

    return paged(ask, min(asked.limit or _PAGE, 1000), session.answer_bytes, "changes")


def _preview_source(session: Session, asked: PreviewAsked) -> str:
    source = asked.source or session.branch
    if source is None:
        raise BadRequest("merge_preview: name the branch that would be merged as `source`")
    return source


def _preview_needs(session: Session, asked: PreviewAsked) -> Iterable[Need]:
    """The needs to read both branches; a preview writes nothing."""
    return [Need(READ, _preview_source(session, asked)), Need(READ, asked.target)]


def _merge_preview(session: Session, asked: PreviewAsked) -> Reply:
    source = _preview_source(session, asked)
    result = session.graph.merge(source, asked.target, dry_run=True, images=True)
    counts = {name: result.stats[name] for name in ("inserted", "updated", "deleted", "tables") if name in result.stats}
    conflicts = [
        merge_conflict(conflict)
        | {side: image for side in ("base", "ours", "theirs") if (image := getattr(conflict, side)) is not None}
        for conflict in result.conflicts
    ]
    shape = {"source": source, "target": asked.target, "outcome": result.outcome, **counts, "conflicts": conflicts}
    return Reply(shape, "conflicts")


TOOLS: list[Tool] = [
    tool(
        "describe_type",
        "Describe a type",
        "One node or edge type: its properties and what they mean, its key, the edges that touch it, how many entities "
        "it has, and some of them. Without a type: all types with their counts. Start here.",
        TypeAsked,
        read_place,
        _describe_type,
    ),
    tool(
        "entity_get",
        "Get an entity",
        "One node or edge by its type and id, with all of its values; or one long property of it, part by part.",
        EntityAsked,
        read_place,
        _entity_get,
    ),
    tool(
        "neighbours",
        "Neighbours of a node",
        "The edges of a node and the nodes at their other ends, from one snapshot: some of each edge type, and how many "
        "there are.",
        NeighboursAsked,
        read_place,
        _neighbours,
    ),
    tool(
        "diff",
        "Compare two states",
        "What changed from one branch, tag or commit to another: counts of each type, then the entities with their values "
        "before and after.",
        DiffAsked,
        _diff_needs,
        _diff,
    ),
    tool(
        "merge_preview",
        "Preview a merge",
        "What merging a branch would do: how many entities are inserted, updated and deleted, and all conflicts with both "
        "sides. Writes nothing.",
        PreviewAsked,
        _preview_needs,
        _merge_preview,
    ),
]
