"""The first reading of an export: its labels, relationship types and values; memory grows with kinds, not rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from omnigraph.errors import BadRequest
from omnigraph.integrations.neo4j.model import End, ForeignNode, Labels, Problems, Source
from omnigraph.integrations.proposal import MOST_TYPES, Seen

#: An end without looking its node up: its labels, or else its id space.
EndKey = Labels | str
#: A relationship type and both ends.
Between = tuple[str, EndKey, EndKey]
_Key = TypeVar("_Key")


@dataclass
class Survey:
    """The contents of an export: nodes by id space and labels, relationships by type and ends."""

    nodes: dict[tuple[str, Labels], Seen] = field(default_factory=dict)
    edges: dict[Between, Seen] = field(default_factory=dict)

    def labels_of_space(self, space: str) -> set[Labels]:
        """All sets of labels that nodes of an id space have."""
        return {labels for found, labels in self.nodes if found == space}

    @property
    def spaces(self) -> Mapping[Labels, set[str]]:
        """The id spaces in which nodes have these labels."""
        found: dict[Labels, set[str]] = {}
        for space, labels in self.nodes:
            found.setdefault(labels, set()).add(space)
        return found


def survey(source: Source) -> Survey:
    """Read everything once; raises LoadRejected with every line that can not be read."""
    found, problems = Survey(), Problems()
    for file in source.files:
        for entity in file.entities(problems):
            try:
                if isinstance(entity, ForeignNode):
                    _seen(found.nodes, (entity.space, entity.labels), "sets of labels").add(entity.properties)
                else:
                    between = (entity.type, _known(entity.start), _known(entity.end))
                    _seen(found.edges, between, "relationship types between labels").add(entity.properties)
            except TypeError as error:
                problems.add(file.name, entity.line, str(error))
    problems.refuse()
    return found


def _known(end: End) -> EndKey:
    return end.space if end.labels is None else end.labels


def _seen(where: dict[_Key, Seen], key: _Key, what: str) -> Seen:
    found = where.get(key)
    if found is None:
        if len(where) >= MOST_TYPES:
            raise BadRequest(
                f"the export has more than {MOST_TYPES} {what}; turn labels that hold data into properties first"
            )
        found = where[key] = Seen()
    return found


@dataclass(frozen=True)
class Primaries:
    """Chooses the label that names the type of a node: the most frequent label that is not ignored."""

    counts: Mapping[str, int]
    ignored: frozenset[str]

    def of(self, labels: Labels) -> str:
        """The label that names the type; empty for a node without labels."""
        candidates = [label for label in labels if label not in self.ignored] or labels
        return min(candidates, key=lambda label: (-self.counts.get(label, 0), label), default="")


def primaries(found: Survey, ignored: Iterable[str]) -> tuple[Primaries, list[str]]:
    """The chooser of labels, and the labels that are ignored because every node has them beside another label."""
    counts: Counter[str] = Counter()
    total = 0
    for (_, labels), seen in found.nodes.items():
        total += seen.count
        for label in labels:
            counts[label] += seen.count
    sets: Sequence[Labels] = [labels for _, labels in found.nodes]
    common = [label for label in counts if counts[label] == total and all(len(labels) > 1 for labels in sets)]
    # One of the labels that all nodes have must stay when no other label distinguishes nodes.
    telling = [label for label in counts if label not in common]
    if len(telling) < 2:
        common = []
    return Primaries(counts, frozenset([*ignored, *common])), sorted(common)


def node_entities(source: Source, problems: Problems) -> Iterator[ForeignNode]:
    """All nodes of an export."""
    for file in source.files:
        for entity in file.entities(problems):
            if isinstance(entity, ForeignNode):
                yield entity
