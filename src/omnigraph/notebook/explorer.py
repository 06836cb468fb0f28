"""An explorable picture: a widget with the graph view of Studio. A click on a node loads its neighbours."""

from __future__ import annotations

from importlib import import_module
from importlib.resources import files
from typing import Any

from omnigraph.client.graph import RemoteGraph
from omnigraph.drawing.shape import COLOURS
from omnigraph.errors import BadRequest, OmnigraphError
from omnigraph.graph.exploring import Neighbours, Seen
from omnigraph.graph.graph import Graph
from omnigraph.language.schema.build import compile_schema

#: The most edges of each group that a click loads, and the most nodes of a picture.
_EDGES_AT_ONCE = 15
_MOST_NODES = 500


def explore(
    graph: Graph | RemoteGraph,
    type: str,
    id: str,
    *,
    branch: str | None = None,
    snapshot: str | None = None,
) -> Any:
    """A widget that begins with one node and what is around it; everything is read from one snapshot.

    Needs the extra `notebook`, which brings anywidget. The widget's `nodes` are the types and ids it shows.
    """
    try:
        anywidget, traitlets = import_module("anywidget"), import_module("traitlets")
    except ImportError:
        raise BadRequest("exploring needs anywidget: run `pip install 'omnigraph[notebook]'`") from None
    script = files("omnigraph.server") / "studio_files" / "notebook" / "explorer.js"
    if not script.is_file():
        raise BadRequest("the widget has not been built here: run scripts/build_studio.py")
    view = graph.snapshot(branch, snapshot).id if snapshot is None else snapshot
    picture = Growing(graph, view)
    picture.add(graph.neighbours(type, id, snapshot=view, limit=_EDGES_AT_ONCE))

    class Explorer(anywidget.AnyWidget):  # type: ignore[misc,name-defined]
        """The picture as the notebook shows it."""

        _esm = script.read_text()
        marks = traitlets.List().tag(sync=True)
        lines = traitlets.List().tag(sync=True)
        note = traitlets.Unicode("click a node to see what is around it").tag(sync=True)

        @property
        def nodes(self) -> list[tuple[str, str]]:
            """The types and ids of the nodes that are shown."""
            return list(picture.nodes)

    widget = Explorer(marks=picture.marks(), lines=picture.lines())

    def told(_: object, message: Any, __: object) -> None:
        widget.note = picture.expand(message.get("expand") if isinstance(message, dict) else None)
        widget.marks, widget.lines = picture.marks(), picture.lines()

    widget.on_msg(told)
    return widget


class Growing:
    """The nodes and edges of one growing picture, from one snapshot."""

    def __init__(self, graph: Graph | RemoteGraph, view: str) -> None:
        self._graph, self._view = graph, view
        types = list(compile_schema(graph.schema()).nodes)
        self._colours = {name: COLOURS[place % len(COLOURS)] for place, name in enumerate(types)}
        self.nodes: dict[tuple[str, str], Seen] = {}
        self._edges: dict[tuple[str, str], tuple[Seen, tuple[str, str], tuple[str, str]]] = {}

    def add(self, found: Neighbours) -> str:
        """Take in what is around a node; returns what to tell the reader."""
        new = [node for node in (found.node, *found.nodes) if (node.type, node.id) not in self.nodes]
        if len(self.nodes) + len(new) > _MOST_NODES:
            return f"the picture has {len(self.nodes)} nodes and takes at most {_MOST_NODES}"
        self.nodes |= {(node.type, node.id): node for node in new}
        ends = {(group.edge, group.direction): group.type for group in found.groups}
        here = (found.node.type, found.node.id)
        for edge in found.edges:
            outward = edge.source == found.node.id and (edge.type, "out") in ends
            there = (ends[edge.type, "out" if outward else "in"], (edge.target if outward else edge.source) or "")
            self._edges[edge.type, edge.id] = (edge, here if outward else there, there if outward else here)
        hidden = sum(group.total - group.given for group in found.groups)
        more = f", {hidden:,} more edges are not shown" if hidden else ""
        return f"{found.node.type} {found.node.label}: {sum(group.total for group in found.groups):,} edges{more}"

    def expand(self, key: object) -> str:
        """Bring the neighbours of a shown node; what a page sends is checked before it is asked for."""
        node = next((known for known in self.nodes if _key(*known) == key), None)
        if node is None:
            return "this node is not part of the picture"
        try:
            return self.add(self._graph.neighbours(*node, snapshot=self._view, limit=_EDGES_AT_ONCE))
        except OmnigraphError as error:
            return error.message

    def marks(self) -> list[dict[str, str]]:
        """The nodes as the view takes them."""
        return [
            {
                "key": _key(*place),
                "label": node.label,
                "colour": self._colours.get(node.type, "#8a8f98"),
                "detail": "\n".join(
                    [f"{node.type} {node.id}", *(f"{name}: {value}" for name, value in node.properties.items())]
                ),
            }
            for place, node in self.nodes.items()
        ]

    def lines(self) -> list[dict[str, str]]:
        """The edges between shown nodes."""
        return [
            {"key": _key(*place), "from": _key(*start), "to": _key(*end), "label": edge.type}
            for place, (edge, start, end) in self._edges.items()
            if start in self.nodes and end in self.nodes
        ]


def _key(type_name: str, id_: str) -> str:
    return f"{type_name}\0{id_}"
