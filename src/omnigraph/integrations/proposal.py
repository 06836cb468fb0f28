"""Proposing a schema for data without one: types from labels, properties from values, an edge type per pair of node types."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from omnigraph.errors import BadRequest
from omnigraph.integrations.names import Names
from omnigraph.integrations.observed import Observed
from omnigraph.language.schema.catalog import Catalog, EdgeType, NodeType, Property
from omnigraph.language.schema.printer import print_type
from omnigraph.language.types import PropType, Scalar

#: With more types or properties than this, data was probably mistaken for names.
MOST_TYPES = 2_000
MOST_PROPERTIES = 2_000


@dataclass(frozen=True)
class Note:
    """A note on data that differs in the graph from the source."""

    about: str
    message: str

    def to_dict(self) -> dict[str, str]:
        return {"about": self.about, "message": self.message}

    def __str__(self) -> str:
        return f"{self.about}: {self.message}"


@dataclass(slots=True)
class Seen:
    """The observed entities of one kind: their number, and the values of their properties."""

    count: int = 0
    properties: dict[str, Observed] = field(default_factory=dict)

    def add(self, properties: Mapping[str, object]) -> None:
        """Count one entity; raises TypeError with the name of the property for a value that no property can hold."""
        self.count += 1
        for name, value in properties.items():
            observed = self.properties.get(name)
            if observed is None:
                observed = self.properties[name] = Observed()
                if len(self.properties) > MOST_PROPERTIES:
                    raise BadRequest(
                        f"more than {MOST_PROPERTIES} different properties, such as {name!r}: these are data, not names; "
                        "turn them into nodes or values first"
                    )
            try:
                observed.add(value)
            except TypeError as error:
                raise TypeError(f"property {name!r}: {error}") from None

    def include(self, other: Seen) -> None:
        """Add the counts of another observation."""
        self.count += other.count
        for name, observed in other.properties.items():
            self.properties.setdefault(name, Observed()).include(observed)


@dataclass(frozen=True)
class Target:
    """A proposed type: its name, and the new name and type of each property of the source."""

    name: str
    properties: Mapping[str, tuple[str, PropType]]
    #: Nodes: the property that holds the id; None for edges.
    key: str | None = None
    #: Nodes that may have several labels: the property that holds all of them.
    labels: str | None = None


def propose_node(
    name: str, seen: Seen, key: str, *, labels: bool, dates: bool, names: Names | None = None
) -> tuple[Target, NodeType, list[Note]]:
    """A node type for observed entities. `key`: the name of the String property that identifies a node."""
    names = names or Names()
    key_name = names.property_name(key)
    labels_name = names.property_name("labels") if labels else None
    properties, declared, notes = _properties(name, seen, names, dates, kind="node")
    declared[key_name] = Property(key_name, PropType(Scalar.STRING))
    if labels_name is not None:
        declared[labels_name] = Property(labels_name, PropType(Scalar.STRING, is_list=True))
    node = NodeType(name, dict(sorted(declared.items())), key=(key_name,))
    return Target(name, properties, key_name, labels_name), node, notes


def propose_edge(
    name: str, from_type: str, to_type: str, seen: Seen, *, dates: bool
) -> tuple[Target, EdgeType, list[Note]]:
    """An edge type for observed relationships between two node types."""
    properties, declared, notes = _properties(name, seen, Names(), dates, kind="edge")
    edge = EdgeType(name, dict(sorted(declared.items())), from_type=from_type, to_type=to_type)
    return Target(name, properties), edge, notes


def _properties(
    owner: str, seen: Seen, names: Names, dates: bool, *, kind: str
) -> tuple[dict[str, tuple[str, PropType]], dict[str, Property], list[Note]]:
    properties: dict[str, tuple[str, PropType]] = {}
    declared: dict[str, Property] = {}
    notes: list[Note] = []
    # Names that need no change come first, so that they stay unchanged.
    for name in sorted(seen.properties, key=lambda name: (names_change(name), name)):
        given = names.property_name(name)
        found, remark = seen.properties[name].settle(dates=dates)
        if found.is_blob and kind == "edge":
            found, remark = PropType(Scalar.STRING, nullable=True), "bytes on edges: kept as base64 texts"
        properties[name] = (given, found)
        declared[given] = Property(given, found)
        if given != name:
            notes.append(Note(f"{owner}.{given}", f"is called {name!r} in the source"))
        if remark is not None:
            notes.append(Note(f"{owner}.{given}", remark))
    return properties, declared, notes


def names_change(name: str) -> bool:
    """Whether a name must be changed to become the name of a property."""
    return Names().property_name(name) != name


def schema_text(nodes: Iterable[NodeType], edges: Iterable[EdgeType]) -> str:
    """The schema as `.pg` text: nodes, then edges, each by name."""
    entities: Sequence[NodeType | EdgeType] = [
        *sorted(nodes, key=lambda node: node.name),
        *sorted(edges, key=lambda edge: edge.name),
    ]
    return "\n".join(print_type(entity) for entity in entities)


def adopted(target: Target, catalog: Catalog, notes: list[Note], *, is_edge: bool) -> Target:
    """A target with the types of a given schema; undeclared properties are left out, with a note."""
    declared = (catalog.edges if is_edge else catalog.nodes).get(target.name)
    if declared is None:
        kind = "edge" if is_edge else "node"
        raise BadRequest(
            f"the schema that is given has no {kind} type {target.name}, which the data needs; "
            "begin with the proposed schema and change that"
        )
    kept: dict[str, tuple[str, PropType]] = {}
    for source, (name, _) in target.properties.items():
        if name in declared.properties:
            kept[source] = (name, declared.properties[name].type)
        else:
            notes.append(Note(f"{target.name}.{name}", "the schema that is given does not declare it: left out"))
    for own in (target.key, target.labels):
        if own is not None and own not in declared.properties:
            raise BadRequest(f"the schema that is given has no property {own} in {target.name}, which the data needs")
    return Target(target.name, kept, target.key, target.labels)
