"""Graph documents of LangChain in a typed graph."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document

import omnigraph as og
from omnigraph import errors
from omnigraph.integrations.langchain import OmnigraphGraphStore


@dataclass
class Node:
    """The fields of LangChain's node of a graph document."""

    id: Any
    type: str = "Node"
    properties: dict[str, Any] = field(default_factory=dict)


@dataclass
class Relationship:
    source: Node
    target: Node
    type: str
    properties: dict[str, Any] = field(default_factory=dict)


@dataclass
class GraphDocument:
    nodes: list[Node]
    relationships: list[Relationship]
    source: Document | None = None


SCHEMA = "node Person {\n  name: String @key\n  age: I32?\n}\nedge Knows: Person -> Person\n"
ADA, BEN, PARIS = Node("Ada", "Person", {"age": 36}), Node("Ben", "Person"), Node("Paris", "City", {"area": 105.4})


def test_documents_extend_the_schema_and_the_graph(tmp_path: Path) -> None:
    graph = og.init(tmp_path / "g.omni", SCHEMA)
    store = OmnigraphGraphStore(graph)
    text = Document(page_content="Ada lives in Paris", metadata={"page": 1})
    lives = [Relationship(ADA, PARIS, "LIVES_IN", {"since": 2020}), Relationship(ADA, BEN, "KNOWS")]
    document = GraphDocument([ADA, PARIS], lives, text)
    store.add_graph_documents([document], include_source=True)
    asked = "match { $p: Person  $p $l: lives_in $c } return { $p.name, $p.age, $l.since, $c.area }"
    assert store.query(asked) == [{"p.name": "Ada", "p.age": 36, "l.since": 2020, "c.area": 105.4}]
    mentioned = "match { $d: SourceDocument  $d mentions_sourcedocument_person $p } return { count($p) as n }"
    assert store.query(mentioned) == [{"n": 2}]
    assert "Knows" in graph.contract().catalog.edges
    assert "KNOWS" not in graph.contract().catalog.edges
    before = graph.schema()
    store.add_graph_documents([document, GraphDocument([Node("Ada", "Person", {"mood": "fine"})], [])])
    assert store.query("match { $p: Person  $p lives_in $c } return { $p.age, $p.mood }") == [
        {"p.age": 36, "p.mood": "fine"}
    ]
    assert "mood: String?" in graph.schema()
    assert "mood" not in before
    assert {"start": "Person", "type": "LIVES_IN", "end": "City"} in store.get_structured_schema["relationships"]
    assert store.get_schema == graph.schema()
    store.refresh_schema()
    store.add_graph_documents([])


def test_what_is_refused(tmp_path: Path) -> None:
    store = OmnigraphGraphStore(og.init(tmp_path / "g.omni", SCHEMA), evolve=False)
    with pytest.raises(errors.BadRequest, match="no node type City"):
        store.add_graph_documents([GraphDocument([PARIS], [])])
    with pytest.raises(errors.BadRequest, match="no property Person.mood"):
        store.add_graph_documents([GraphDocument([Node("Ada", "Person", {"mood": 1})], [])])
    with pytest.raises(errors.LoadRejected, match="age"):
        store.add_graph_documents([GraphDocument([Node("Ada", "Person", {"age": "old"})], [])])
    with pytest.raises(errors.BadRequest, match="no value"):
        store.add_graph_documents([GraphDocument([Node("Ada", "Person", {"age": object()})], [])])
    assert store.query("match { $p: Person } return { $p.name }") == []
    store.add_graph_documents([GraphDocument([ADA, BEN], [Relationship(ADA, BEN, "KNOWS")])])
    assert store.query('update Person set { age: 1 } where name = "Ben"') == [
        {"affected_nodes": 1, "affected_edges": 0}
    ]


def test_one_relationship_type_between_several_types(tmp_path: Path) -> None:
    store = OmnigraphGraphStore(og.init(tmp_path / "g.omni", SCHEMA))
    likes = [Relationship(ADA, PARIS, "LIKES"), Relationship(ADA, BEN, "LIKES"), Relationship(ADA, BEN, "LIKES")]
    store.add_graph_documents([GraphDocument([], likes)])
    names = {one["type"] for one in store.get_structured_schema["relationships"]}
    assert names == {"Knows", "LIKES_Person_City", "LIKES_Person_Person"}
