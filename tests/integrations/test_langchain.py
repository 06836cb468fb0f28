"""LangChain's own standard tests for our classes, and what they do not ask: filters, scores, expansion, typed metadata."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding, Embeddings
from langchain_core.retrievers import BaseRetriever
from langchain_tests.integration_tests.retrievers import RetrieversIntegrationTests
from langchain_tests.integration_tests.vectorstores import VectorStoreIntegrationTests

import omnigraph as og
from omnigraph import errors
from omnigraph.integrations.langchain import OmnigraphRetriever, OmnigraphVectorStore
from tests.own_loop import run_alone

SCHEMA = """
node Topic { name: String @key }
node Paper {
  doi: String @key
  body: String @index
  year: I32?
  published: Date?
  tags: [String]?
  metadata: String?
  vector: Vector(6)? @metric("cosine")
}
edge About: Paper -> Topic
edge Cites: Paper -> Paper
"""


class TestVectorStore(VectorStoreIntegrationTests):
    @pytest.fixture
    def vectorstore(self, tmp_path: Path) -> OmnigraphVectorStore:
        return OmnigraphVectorStore.create(tmp_path / "store.omni", self.get_embeddings())


@pytest.fixture(scope="module")
def papers(tmp_path_factory: pytest.TempPathFactory) -> OmnigraphVectorStore:
    graph = og.init(tmp_path_factory.mktemp("papers") / "g.omni", SCHEMA)
    store = OmnigraphVectorStore(graph, DeterministicFakeEmbedding(size=6), type="Paper", text="body")
    store.add_texts(
        ["Tea is brewed with care", "Coffee is brewed fast", "Green ink", "Tea leaves", "Nothing else"],
        [{"year": 1990 + place, "published": date(2020, 1, 1 + place), "x": {"deep": place}} for place in range(5)],
        ids=["a", "b", "c", "d", "e"],
    )
    graph.load(
        [
            {"type": "Topic", "data": {"name": "drinks"}},
            *({"edge": "About", "from": one, "to": "drinks"} for one in "ab"),
            {"edge": "Cites", "from": "b", "to": "a"},
            {"edge": "Cites", "from": "c", "to": "a"},
        ]
    )
    return store


class TestRetriever(RetrieversIntegrationTests):
    @pytest.fixture(autouse=True)
    def _store(self, papers: OmnigraphVectorStore) -> None:
        self._papers = papers

    @property
    def retriever_constructor(self) -> type[BaseRetriever]:
        return OmnigraphRetriever

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return {"store": self._papers}

    @property
    def retriever_query_example(self) -> str:
        return "brewed tea"


def ids(documents: list[Document]) -> list[str | None]:
    return [document.id for document in documents]


def test_metadata_is_typed_where_the_schema_says_so(papers: OmnigraphVectorStore) -> None:
    (found,) = papers.get_by_ids(["a", "a", "zz"])
    assert found.metadata == {"year": 1990, "published": date(2020, 1, 1), "x": {"deep": 0}}
    assert papers.graph.query("match { $p: Paper { year: 1990 } } return { $p.doi }").rows == [{"p.doi": "a"}]


FILTERS: list[tuple[Any, list[str]]] = [
    ({"year": 1991}, ["b"]),
    ({"year": {"$gte": 1991, "$lt": 1993}}, ["b", "c"]),
    ({"year": {"$in": [1990, 1994]}}, ["a", "e"]),
    ({"year": {"$in": []}}, []),
    ({"year": {"$nin": [1990, 1991, 1992]}}, ["d", "e"]),
    ({"$or": [{"year": 1990}, {"published": date(2020, 1, 5)}]}, ["a", "e"]),
    ({"$not": {"year": {"$lt": 1994}}}, ["e"]),
    ({"year": {"$exists": False}}, []),
    ({"tags": None}, ["a", "b", "c", "d", "e"]),
    ('$d.year > 1992 and $d.body contains "Tea"', ["d"]),
    ({}, ["a", "b", "c", "d", "e"]),
    ({"doi": "x' or true"}, []),
]


@pytest.mark.parametrize(("given", "found"), FILTERS, ids=[str(row[0])[:40] for row in FILTERS])
def test_filters(papers: OmnigraphVectorStore, given: Any, found: list[str]) -> None:
    assert sorted(str(one) for one in ids(papers.similarity_search("tea", k=10, filter=given))) == found


WRONG: list[tuple[Any, str]] = [
    ({"yaer": 1}, "did you mean `year`"),
    ({"year": {"$gte ": 1}}, "no operator"),
    ({"$nor": []}, "no operator"),
    ({"year": {"$in": 3}}, "takes a list"),
    ({"year": {}}, "is empty"),
    ({"x": 1}, "kept as JSON"),
    (lambda document: True, "a function"),
    ({"year": "abc"}, ""),
    ("$d.year >", ""),
    (7, "not a int"),
]


@pytest.mark.parametrize(("given", "message"), WRONG, ids=[row[1] or str(row[0]) for row in WRONG])
def test_wrong_filters(papers: OmnigraphVectorStore, given: Any, message: str) -> None:
    with pytest.raises(errors.BadRequest) as refused:
        papers.similarity_search("tea", filter=given)
    assert message in refused.value.message


def test_scores_are_distances_and_relevance_lies_between_0_and_1(papers: OmnigraphVectorStore) -> None:
    scored = papers.similarity_search_with_score("Green ink", k=5)
    assert scored[0][0].id == "c"
    assert scored[0][1] == pytest.approx(0, abs=1e-5)
    assert [score for _, score in scored] == sorted(score for _, score in scored)
    (best, *_) = papers.similarity_search_with_relevance_scores("Green ink", k=1)
    assert best[1] == pytest.approx(1, abs=1e-5)


def test_documents_that_differ(papers: OmnigraphVectorStore) -> None:
    found = papers.max_marginal_relevance_search("Green ink", k=3, fetch_k=5, filter={"year": {"$gt": 1990}})
    assert len(found) == 3
    assert found[0].id == "c"
    assert ids(run_alone(papers.amax_marginal_relevance_search("Green ink", k=1))) == ["c"]
    assert papers.max_marginal_relevance_search("tea", k=2, filter={"year": 7}) == []


def test_a_retriever_follows_edges(papers: OmnigraphVectorStore) -> None:
    retriever = OmnigraphRetriever(store=papers, k=1, by="text", expand=["about", "<cites"])
    found = retriever.invoke("care")
    assert [(document.id, document.metadata.get("via")) for document in found] == [
        ("a", None),
        ("drinks", "about"),
        ("b", "<cites"),
        ("c", "<cites"),
    ]
    assert found[1].page_content == "Topic drinks\nname: drinks"
    assert found[2].metadata["of"] == "a"
    assert len(retriever.invoke("care", expand=["<cites"])) == 3
    with pytest.raises(errors.BadRequest, match="did you mean `Cites`"):
        retriever.invoke("care", expand=["citess"])
    hybrid = OmnigraphRetriever(store=papers, k=2, filter={"year": {"$gt": 1990}})
    assert "a" not in ids(hybrid.invoke("brewed tea"))


def test_from_texts_and_what_a_type_needs(tmp_path: Path) -> None:
    embedding: Embeddings = DeterministicFakeEmbedding(size=4)
    store = OmnigraphVectorStore.from_texts(["x", "y"], embedding, ids=["1", "2"], uri=tmp_path / "g.omni")
    assert len(store.graph.commits()) == 2
    again = OmnigraphVectorStore.from_texts(["z"], embedding, [{"a": 1}], graph=store.graph)
    assert len(again.similarity_search("z", k=9)) == 3
    assert store.delete(["1", "nothing"]) is True
    assert store.delete([]) is True
    assert len(store.similarity_search("z", k=9)) == 2
    assert store.similarity_search("z", k=0) == []
    store.delete()
    assert store.similarity_search("z") == []
    with pytest.raises(errors.BadRequest, match="has 4 numbers"):
        OmnigraphVectorStore(store.graph, DeterministicFakeEmbedding(size=5)).similarity_search("z")
    with pytest.raises(ValueError, match="1 ids for 2 documents"):
        store.add_texts(["a", "b"], ids=["1"])
    with pytest.raises(errors.BadRequest, match="give `graph`"):
        OmnigraphVectorStore.from_texts(["z"], embedding)
    with pytest.raises(errors.BadRequest, match="no node type 'Documnt'; did you mean `Document`"):
        OmnigraphVectorStore(store.graph, embedding, type="Documnt")
    with pytest.raises(errors.BadRequest, match="kept as JSON"):
        store.add_texts(["a"], [{"x": object()}])
    bare = og.init(tmp_path / "h.omni", "node Document { k: String @key  text: String  v: Vector(4)? }")
    with pytest.raises(errors.BadRequest, match="no property for x"):
        OmnigraphVectorStore(bare, embedding).add_texts(["a"], [{"x": 1}])


def test_the_provider_of_the_graph_embeds(tmp_path: Path) -> None:
    schema = "node Note { k: String @key  text: String @index  v: Vector(8)? @embed(text) }"
    graph = og.init(tmp_path / "g.omni", schema, embedding="mock")
    store = OmnigraphVectorStore(graph, type="Note")
    store.add_texts(["tea", "ink"], ids=["1", "2"])
    assert ids(store.similarity_search("ink", k=1)) == ["2"]
    assert ids(OmnigraphRetriever(store=store, k=1).invoke("ink")) == ["2"]


def test_a_branch_of_ones_own(papers: OmnigraphVectorStore) -> None:
    papers.graph.create_branch("trial")
    trial = OmnigraphVectorStore(papers.graph, papers.embeddings, type="Paper", text="body", branch="trial")
    trial.add_texts(["only here"], ids=["t"])
    assert ids(trial.get_by_ids(["t"])) == ["t"]
    assert papers.get_by_ids(["t"]) == []
