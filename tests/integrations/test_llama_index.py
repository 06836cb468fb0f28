"""The contract of LlamaIndex's `PropertyGraphStore`, and `PropertyGraphIndex` on top of our store.

LlamaIndex publishes no test suite for property graph stores as a package; these tests follow the documented contract of the base
class, and compare with the store in memory that LlamaIndex ships.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from llama_index.core import Document, MockEmbedding, PropertyGraphIndex
from llama_index.core.graph_stores import SimplePropertyGraphStore
from llama_index.core.graph_stores.types import ChunkNode, EntityNode, LabelledNode, Relation
from llama_index.core.indices.property_graph import ImplicitPathExtractor
from llama_index.core.schema import TextNode
from llama_index.core.vector_stores.types import (
    FilterCondition,
    FilterOperator,
    MetadataFilter,
    MetadataFilters,
    VectorStoreQuery,
)

import omnigraph as og
from omnigraph import errors
from omnigraph.integrations.llama_index import OmnigraphPropertyGraphStore
from tests.own_loop import run_alone

ADA = EntityNode(name="Ada", label="person", properties={"age": 36, "born": "London"}, embedding=[1.0, 0.0, 0.0])
BEN = EntityNode(name="Ben", label="person", properties={"age": 29}, embedding=[0.0, 1.0, 0.0])
CHUNK = ChunkNode(text="Ada met Ben", id_="c1", properties={"ref_doc_id": "d1"}, embedding=[0.9, 0.1, 0.0])
KNOWS = Relation(label="KNOWS", source_id="Ada", target_id="Ben", properties={"since": 2020})
LIVES = Relation(label="LIVES_IN", source_id="Ben", target_id="Paris")
FROM = Relation(label="SOURCE", source_id="Ada", target_id="c1")


@pytest.fixture
def store(tmp_path: Path) -> OmnigraphPropertyGraphStore:
    made = OmnigraphPropertyGraphStore.create(tmp_path / "g.omni", 3)
    made.upsert_nodes([ADA, BEN, CHUNK])
    made.upsert_relations([KNOWS, LIVES, FROM])
    return made


def shown(nodes: Any) -> list[str]:
    return sorted(node.id for node in nodes)


def triples(found: Any) -> list[tuple[str, str, str]]:
    return sorted((start.id, relation.label, end.id) for start, relation, end in found)


def test_nodes_come_back_as_they_were(store: OmnigraphPropertyGraphStore) -> None:
    plain: list[LabelledNode] = [node.model_copy(update={"embedding": None}) for node in (ADA, BEN, CHUNK)]
    assert sorted(store.get(ids=["Ada", "Ben", "c1"]), key=lambda node: node.id) == plain
    (made,) = store.get(ids=["Paris"])
    assert (made.label, made.properties) == ("entity", {})
    assert len(store.get()) == 4


GET: list[tuple[dict[str, Any], list[str]]] = [
    ({"properties": {"age": 36}}, ["Ada"]),
    ({"properties": {"age": 36, "born": "London"}}, ["Ada"]),
    ({"properties": {"age": 36, "born": "Rome"}}, []),
    ({"properties": {"age": "36"}}, []),
    ({"properties": {"nothing": None}}, []),
    ({"ids": ["Ben", "nobody"]}, ["Ben"]),
    ({"ids": []}, []),
    ({"ids": ["Ben"], "properties": {"age": 36}}, []),
]


@pytest.mark.parametrize(("given", "found"), GET, ids=[str(row[0]) for row in GET])
def test_get(store: OmnigraphPropertyGraphStore, given: dict[str, Any], found: list[str]) -> None:
    assert shown(store.get(**given)) == found


TRIPLETS: list[dict[str, Any]] = [
    {},
    {"entity_names": ["Ada"]},
    {"entity_names": ["Ben"]},
    {"relation_names": ["KNOWS", "SOURCE"]},
    {"ids": ["c1"]},
    {"properties": {"since": 2020}},
    {"properties": {"age": 29}},
    {"entity_names": ["Ada"], "relation_names": ["SOURCE"]},
    {"ids": ["Ada"], "properties": {"ref_doc_id": "d1"}},
    {"entity_names": ["nobody"]},
]


@pytest.mark.parametrize("given", TRIPLETS, ids=str)
def test_triplets_are_those_of_the_store_in_memory(store: OmnigraphPropertyGraphStore, given: dict[str, Any]) -> None:
    memory = SimplePropertyGraphStore()
    memory.upsert_nodes([ADA, BEN, CHUNK])
    memory.upsert_relations([KNOWS, LIVES, FROM])
    assert triples(store.get_triplets(**given)) == triples(memory.get_triplets(**given))


def test_what_is_around_nodes(store: OmnigraphPropertyGraphStore) -> None:
    assert triples(store.get_rel_map([ADA], depth=1)) == [("Ada", "KNOWS", "Ben"), ("Ada", "SOURCE", "c1")]
    assert len(store.get_rel_map([ADA], depth=2)) == 3
    assert triples(store.get_rel_map([ADA], depth=2, ignore_rels=["SOURCE"])) == [
        ("Ada", "KNOWS", "Ben"),
        ("Ben", "LIVES_IN", "Paris"),
    ]
    assert len(store.get_rel_map([ADA], depth=2, limit=1)) == 1
    assert store.get_rel_map([]) == []


def test_what_is_written_again_replaces(store: OmnigraphPropertyGraphStore) -> None:
    store.upsert_nodes([EntityNode(name="Ada", label="person", properties={"age": 37})])
    store.upsert_relations([KNOWS.model_copy(update={"properties": {"since": 2021}})])
    (ada,) = store.get(ids=["Ada"])
    assert ada.properties == {"age": 37}
    ((_, relation, _),) = store.get_triplets(relation_names=["KNOWS"])
    assert relation.properties == {"since": 2021}
    store.upsert_nodes([])
    store.upsert_relations([])


def test_delete(store: OmnigraphPropertyGraphStore) -> None:
    store.delete()
    store.delete(ids=[])
    assert len(store.get()) == 4
    before = len(store.client.commits())
    store.delete(relation_names=["SOURCE"], properties={"age": 29}, ids=["c1"])
    assert len(store.client.commits()) == before + 1
    assert shown(store.get()) == ["Ada", "Paris"]
    store.delete(entity_names=["Ada"])
    assert shown(store.get()) == ["Paris"]


def test_llama_nodes(store: OmnigraphPropertyGraphStore) -> None:
    node = TextNode(text="A long text" * 50, id_="t1", embedding=[0.0, 0.0, 1.0])
    store.upsert_llama_nodes([node])
    (found,) = store.get_llama_nodes(["t1"])
    assert found.get_content() == node.text
    store.delete_llama_nodes(node_ids=["t1"], ref_doc_ids=["d1"])
    assert shown(store.get()) == ["Ada", "Ben", "Paris"]
    store.delete_llama_nodes(ref_doc_ids=["unknown"])
    assert len(store.get()) == 3


def asked(*filters: Any, condition: FilterCondition = FilterCondition.AND, k: int = 5) -> VectorStoreQuery:
    return VectorStoreQuery(
        query_embedding=[1.0, 0.0, 0.0],
        similarity_top_k=k,
        filters=MetadataFilters(filters=list(filters), condition=condition) if filters else None,
    )


def test_vector_queries(store: OmnigraphPropertyGraphStore) -> None:
    assert store.supports_vector_queries
    nodes, scores = store.vector_query(asked(k=2))
    assert [node.id for node in nodes] == ["Ada", "c1"]
    assert scores[0] == pytest.approx(1, abs=1e-6)
    assert scores == sorted(scores, reverse=True)
    is_29 = MetadataFilter(key="age", value=29)
    assert shown(store.vector_query(asked(is_29))[0]) == ["Ben"]
    not_29 = MetadataFilter(key="age", value=29, operator=FilterOperator.NE)
    assert shown(store.vector_query(asked(not_29))[0]) == ["Ada", "c1"]
    either = MetadataFilter(key="age", value=[29, 36], operator=FilterOperator.IN)
    assert shown(store.vector_query(asked(either))[0]) == ["Ada", "Ben"]
    born = MetadataFilter(key="born", value="London")
    assert shown(store.vector_query(asked(is_29, born, condition=FilterCondition.OR))[0]) == ["Ada", "Ben"]
    with pytest.raises(errors.BadRequest, match="not with '>'"):
        store.vector_query(asked(MetadataFilter(key="age", value=3, operator=FilterOperator.GT)))
    with pytest.raises(errors.BadRequest, match="query_embedding"):
        store.vector_query(VectorStoreQuery(query_str="x"))
    with pytest.raises(errors.BadRequest, match="embeddings of 3 numbers, not 1"):
        store.vector_query(VectorStoreQuery(query_embedding=[1.0]))


def test_structured_queries(store: OmnigraphPropertyGraphStore) -> None:
    text = "match { $a: LlamaNode { label: $l } } return { $a.name } order { $a.name }"
    assert store.structured_query(text, {"l": "person"}) == [{"a.name": "Ada"}, {"a.name": "Ben"}]
    changed = store.structured_query('update LlamaNode set { label: "human" } where node_id = "Ada"')
    assert changed == {"affected_nodes": 1, "affected_edges": 0}
    assert "node LlamaNode" in store.get_schema_str()


def test_everything_can_be_awaited(store: OmnigraphPropertyGraphStore) -> None:
    async def work() -> None:
        await store.aupsert_nodes([EntityNode(name="Cleo")])
        await store.aupsert_relations([Relation(label="KNOWS", source_id="Cleo", target_id="Ada")])
        assert shown(await store.aget(ids=["Cleo"])) == ["Cleo"]
        assert len(await store.aget_triplets(entity_names=["Cleo"])) == 1
        assert len(await store.aget_rel_map([ADA], depth=1)) == 3
        assert len((await store.avector_query(asked(k=1)))[0]) == 1
        assert len(await store.astructured_query("match { $a: LlamaNode } return { $a.name }")) == 5
        await store.adelete(ids=["Cleo"])
        assert await store.aget(ids=["Cleo"]) == []
        assert "LlamaNode" in await store.aget_schema_str()

    run_alone(work())


def test_what_can_not_be_stored(store: OmnigraphPropertyGraphStore) -> None:
    with pytest.raises(errors.BadRequest, match="kept as JSON"):
        store.upsert_nodes([EntityNode(name="X", properties={"x": object()})])
    with pytest.raises(errors.BadRequest, match="embedding of 2 numbers"):
        store.upsert_nodes([EntityNode(name="X", embedding=[1.0, 2.0])])
    assert store.get(ids=["X"]) == []


def test_beside_types_of_ones_own(tmp_path: Path) -> None:
    own = "node Person { name: String @key }\n"
    graph = og.init(tmp_path / "g.omni", own)
    with pytest.raises(errors.BadRequest, match="declarations"):
        OmnigraphPropertyGraphStore(graph)
    graph.apply_schema(own + OmnigraphPropertyGraphStore.declarations(3))
    store = OmnigraphPropertyGraphStore(graph)
    store.upsert_nodes([ADA])
    graph.mutate('insert Person { name: "Ada" }')
    assert store.structured_query("match { $p: Person } return { $p.name }") == [{"p.name": "Ada"}]


def test_an_index_of_llama_index_works_on_it(tmp_path: Path) -> None:
    store = OmnigraphPropertyGraphStore.create(tmp_path / "g.omni", 8)
    PropertyGraphIndex.from_documents(
        [Document(text="Tea is brewed. " * 20, doc_id="d1")],
        property_graph_store=store,
        embed_model=MockEmbedding(embed_dim=8),
        kg_extractors=[ImplicitPathExtractor()],
        embed_kg_nodes=True,
        show_progress=False,
    )
    assert store.get()
