"""Pictures of a graph: of its schema, or of some nodes and their neighbourhood."""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnigraph.errors import BadRequest
from omnigraph.graph.handle import NOW, Handle
from omnigraph.graph.snapshot import Reference

if TYPE_CHECKING:
    from omnigraph.drawing.picture import Picture
    from omnigraph.language.schema.catalog import Catalog, EntityType

DEEPEST = 6
MOST_NODES = 2000


class Pictures(Handle):
    """The verb that draws."""

    def picture(
        self,
        type: str | None = None,
        id: str | None = None,
        *,
        depth: int = 1,
        limit: int = 100,
        branch: str | None = None,
        snapshot: Reference = None,
    ) -> Picture:
        """The schema; with `type` its nodes and what is `depth` edges around them, with `id` around one node.

        At most `limit` nodes are drawn; `is_complete` says whether those are all.
        """
        # Imported here, because only drawing needs it.
        from omnigraph.drawing.picture import Picture

        if id is not None and type is None:
            raise BadRequest("the type of the node is missing: give `type` with `id`")
        if not 0 <= depth <= DEEPEST:
            raise BadRequest(f"depth is a number of edges from 0 to {DEEPEST}, not {depth}")
        if not 1 <= limit <= MOST_NODES:
            raise BadRequest(f"limit is a number of nodes from 1 to {MOST_NODES}, not {limit}")
        contract, view = self._view(branch, snapshot, NOW)
        if type is None:
            return picture_of_schema(contract.catalog)
        from omnigraph.graph.neighbourhood import Neighbourhood

        around = Neighbourhood(contract.catalog, view, limit)
        around.start(type, id)
        for _ in range(depth):
            around.grow()
        around.join()
        title = type if id is None else f"{type} {id}"
        return Picture(title, around.marks(), around.lines(), around.is_complete, tuple(contract.catalog.nodes))


def picture_of_schema(catalog: Catalog) -> Picture:
    """The node types of a schema and the edge types between them."""
    from omnigraph.drawing.picture import Line, Mark, Picture

    marks = tuple(Mark(name, name, name, _properties(node)) for name, node in catalog.nodes.items())
    lines = tuple(Line(edge.from_type, edge.to_type, name) for name, edge in catalog.edges.items())
    return Picture("schema", marks, lines, groups=tuple(catalog.nodes))


def _properties(entity: EntityType) -> str:
    return "\n".join(f"{name}: {declared.type}" for name, declared in entity.properties.items())
