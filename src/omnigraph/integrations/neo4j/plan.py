"""The import plan: a node type for each label, an edge type for each relationship type and pair of node types."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from omnigraph.integrations.names import Names
from omnigraph.integrations.neo4j.model import End, ForeignEdge, ForeignNode, Labels, Problems, Source
from omnigraph.integrations.neo4j.survey import EndKey, Primaries, Survey, node_entities, primaries
from omnigraph.integrations.observed import fitted
from omnigraph.integrations.proposal import (
    Note,
    Seen,
    Target,
    adopted,
    propose_edge,
    propose_node,
    schema_text,
)
from omnigraph.language.schema.build import compile_schema
from omnigraph.language.schema.catalog import EdgeType, NodeType

_INDEXED_AT_ONCE = 10_000
#: The type of a node without labels.
UNLABELLED = "Node"


class Lookup:
    """A file with the type of each node by id, for relationships whose ends have neither labels nor a typed id space."""

    def __init__(self, path: Path) -> None:
        self._database = sqlite3.connect(path)
        self._database.execute("pragma journal_mode = off")
        self._database.execute("pragma synchronous = off")
        self._database.execute("create table nodes (place text primary key, type text) without rowid")

    def fill(self, places: Iterable[tuple[str, str]]) -> None:
        """Store the type of each node; for a duplicate node the first counts (the load will refuse it)."""
        listed = iter(places)
        while some := list(islice(listed, _INDEXED_AT_ONCE)):
            self._database.executemany("insert or ignore into nodes values (?, ?)", some)
        self._database.commit()

    def type_of(self, place: str) -> str | None:
        with closing(self._database.execute("select type from nodes where place = ?", (place,))) as found:
            row = found.fetchone()
        return row[0] if row else None

    def close(self) -> None:
        self._database.close()


@dataclass
class Plan:
    """How the nodes and relationships of an export are written: types, names and values; and notes about changes."""

    schema: str
    notes: list[Note]
    nodes: Mapping[str, Target]
    edges: Mapping[tuple[str, str, str], Target]
    type_of_labels: Mapping[Labels, str]
    chosen: Primaries
    type_of_primary: Mapping[str, str]
    #: The node types whose ids come from several id spaces.
    spaced: frozenset[str]
    type_of_space: Mapping[str, str]
    lookup: Lookup | None = None
    _known: dict[Labels, str | None] = field(default_factory=dict)

    def node_line(self, node: ForeignNode) -> dict[str, Any]:
        """A node as a line of a load."""
        target = self.nodes[self.type_of_labels[node.labels]]
        assert target.key is not None
        data = self._data(target, node.properties)
        data[target.key] = self._id(target.name, node.space, node.id)
        if target.labels is not None:
            data[target.labels] = list(node.labels)
        return {"type": target.name, "data": data}

    def edge_line(self, edge: ForeignEdge) -> dict[str, Any]:
        """A relationship as a line of a load; raises ValueError when an end is unknown."""
        start, end = self.end_type(edge.start), self.end_type(edge.end)
        target = self.edges[(edge.type, start, end)]
        return {
            "edge": target.name,
            "from": self._id(start, edge.start.space, edge.start.id),
            "to": self._id(end, edge.end.space, edge.end.id),
            "data": self._data(target, edge.properties),
        }

    def end_type(self, end: End) -> str:
        """The node type of an end; raises ValueError when the node is not part of the export."""
        if end.labels is not None:
            found = self._type_of(end.labels)
        else:
            found = self.type_of_space.get(end.space)
            if found is None and self.lookup is not None:
                found = self.lookup.type_of(f"{end.space}/{end.id}")
        if found is None:
            raise ValueError(f"the relationship refers to the node {end.id!r}, which is not part of the export")
        return found

    def _type_of(self, labels: Labels) -> str | None:
        return self.type_of_labels.get(labels) or self.type_of_primary.get(self.chosen.of(labels))

    def _id(self, type_name: str, space: str, node_id: str) -> str:
        return f"{space}/{node_id}" if type_name in self.spaced else node_id

    @staticmethod
    def _data(target: Target, properties: Mapping[str, Any]) -> dict[str, Any]:
        names = target.properties
        data = {}
        for name, value in properties.items():
            if name in names:
                given, kind = names[name]
                data[given] = fitted(value, kind)
        return data


@dataclass(frozen=True)
class Options:
    """How labels and values are read. `dates`: texts that all are ISO dates become dates."""

    dates: bool = True
    ignore_labels: tuple[str, ...] = ()


def make_plan(source: Source, found: Survey, options: Options, schema: str | None, scratch: Path) -> Plan:
    """Decide on types and names; relationships are read again only when their ends must be looked up.
    `schema`: `.pg` text to use instead of the proposed schema; it must use the same type names.
    """
    chosen, common = primaries(found, options.ignore_labels)
    notes = [*source.notes()]
    notes += [Note(f"label {label}", "every node has it: it names no type and is kept in `labels`") for label in common]
    plan, nodes = _nodes(source, found, chosen, options, notes)
    pairs = _pairs(source, found, plan, scratch)
    edges = _edges(pairs, options, notes, plan)
    plan.schema = schema_text(nodes, edges.values())
    if schema is not None:
        catalog = compile_schema(schema)
        plan.schema = schema
        plan.nodes = {name: adopted(target, catalog, notes, is_edge=False) for name, target in plan.nodes.items()}
        plan.edges = {key: adopted(target, catalog, notes, is_edge=True) for key, target in plan.edges.items()}
    return plan


def _nodes(
    source: Source, found: Survey, chosen: Primaries, options: Options, notes: list[Note]
) -> tuple[Plan, list[NodeType]]:
    members: dict[str, list[tuple[str, Labels]]] = {}
    for space, labels in found.nodes:
        members.setdefault(chosen.of(labels), []).append((space, labels))
    names = Names()
    targets: dict[str, Target] = {}
    types: list[NodeType] = []
    type_of_primary: dict[str, str] = {}
    type_of_labels: dict[Labels, str] = {}
    spaced: set[str] = set()
    types_of_space: dict[str, set[str]] = {}
    # Labels that are legal type names come first, so that they keep their names.
    for primary in sorted(members, key=lambda label: (Names().type_name(label) != label, label)):
        name = names.type_name(primary, UNLABELLED)
        seen = Seen()
        for member in members[primary]:
            seen.include(found.nodes[member])
        spaces = {space for space, _ in members[primary]}
        several = [labels for _, labels in members[primary] if len(labels) > 1]
        keys = {source.key_of(space) for space in spaces}
        key = next(iter(keys)) if len(keys) == 1 else source.key
        targets[name], declared, told = propose_node(name, seen, key, labels=bool(several), dates=options.dates)
        types.append(declared)
        type_of_primary[primary] = name
        type_of_labels |= {labels: name for _, labels in members[primary]}
        for space in spaces:
            types_of_space.setdefault(space, set()).add(name)
        if len(spaces) > 1:
            spaced.add(name)
            listed = ", ".join(sorted(space or "(none)" for space in spaces))
            notes.append(
                Note(name, f"its ids come from the id spaces {listed}: each id begins with the name of its space")
            )
        if not primary:
            notes.append(Note(name, f"nodes without a label: {seen.count}"))
        elif name != primary:
            notes.append(Note(name, f"is the label {primary!r} in the source"))
        if several:
            listed = ", ".join(sorted({":".join(labels) for labels in several})[:10])
            notes.append(Note(f"{name}.labels", f"holds all labels of a node, which has one type here ({listed})"))
        notes += told
    only = {space: next(iter(found)) for space, found in types_of_space.items() if len(found) == 1}
    plan = Plan("", notes, targets, {}, type_of_labels, chosen, type_of_primary, frozenset(spaced), only)
    return plan, types


def _pairs(source: Source, found: Survey, plan: Plan, scratch: Path) -> dict[tuple[str, str, str], Seen]:
    """The observations of each relationship type between two node types."""
    pairs: dict[tuple[str, str, str], Seen] = {}
    unclear = False
    problems = Problems()

    def type_of(end: EndKey) -> str | None:
        return plan.type_of_space.get(end) if isinstance(end, str) else plan._type_of(end)

    for (name, start, end), seen in found.edges.items():
        from_type, to_type = type_of(start), type_of(end)
        for side, kind in ((start, from_type), (end, to_type)):
            if kind is None and (not isinstance(side, str) or not found.labels_of_space(side)):
                what = f"of the id space {side!r}" if isinstance(side, str) else f"labelled {':'.join(side)}"
                problems.add(name, 0, f"{seen.count} relationships join nodes {what}, which the export does not hold")
        if from_type is None or to_type is None:
            unclear = True
        else:
            pairs.setdefault((name, from_type, to_type), Seen()).include(seen)
    problems.refuse()
    if unclear:
        # All relationships are counted again, including those whose ends were known.
        pairs = {}
        plan.lookup = Lookup(scratch / "nodes.sqlite")
        plan.lookup.fill(
            (f"{node.space}/{node.id}", plan.type_of_labels[node.labels]) for node in node_entities(source, problems)
        )
        for file in source.files:
            for entity in file.entities(problems):
                if not isinstance(entity, ForeignEdge):
                    continue
                try:
                    key = (entity.type, plan.end_type(entity.start), plan.end_type(entity.end))
                except ValueError as error:
                    problems.add(file.name, entity.line, str(error))
                    continue
                pairs.setdefault(key, Seen()).add(entity.properties)
        problems.refuse()
    return pairs


def _edges(
    pairs: Mapping[tuple[str, str, str], Seen], options: Options, notes: list[Note], plan: Plan
) -> Mapping[tuple[str, str, str], EdgeType]:
    names = Names()
    targets: dict[tuple[str, str, str], Target] = {}
    declared: dict[tuple[str, str, str], EdgeType] = {}
    ends: dict[str, list[tuple[str, str]]] = {}
    for name, start, end in sorted(pairs):
        ends.setdefault(name, []).append((start, end))
    for name in sorted(ends, key=lambda name: (Names().type_name(name) != name, name)):
        for start, end in ends[name]:
            wanted = name if len(ends[name]) == 1 else f"{name}_{start}_{end}"
            given = names.type_name(wanted, "Edge")
            key = (name, start, end)
            targets[key], declared[key], told = propose_edge(given, start, end, pairs[key], dates=options.dates)
            if given != name:
                why = "" if len(ends[name]) == 1 else f", which joins {len(ends[name])} pairs of node types"
                notes.append(Note(given, f"is the relationship type {name!r} from {start} to {end}{why}"))
            notes += told
    plan.edges = targets
    return declared
