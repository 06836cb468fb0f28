"""`@embed` vectors that inserts leave out."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.embedding.embedder import Embedder
from omnigraph.errors import BadRequest, EmbeddingError, ValidationError
from tests.embedding.provider_server import Answer, Asked, Service, running_service
from tests.mutation.org_graph import ids, rows

SCHEMA = """node Doc { slug: String @key body: String? note: String? emb: Vector(4) @embed(body) }
node Memo { text: String? title: String? emb: Vector(4)? @embed(text) head: Vector(3)? @embed(title) }
node Card { slug: String @key body: String? emb: Vector(4)? @embed(body) }"""
PUT = "query put($s: String, $t: String?) { insert Doc { slug: $s, body: $t } }"
PUT_VECTOR = "query put($s: String, $t: String, $v: Vector(4)) { insert Doc { slug: $s, body: $t, emb: $v } }"
MEMO = "query memo($t: String?) { insert Memo { text: $t } }"
VECTOR = [1.0, 2.0, 3.0, 4.0]


@pytest.fixture(autouse=True)
def silent_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in os.environ:
        if name.startswith("OMNIGRAPH_EMBED") or name.endswith("_API_KEY"):
            monkeypatch.delenv(name)


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    return og.init(tmp_path / "g", SCHEMA, embedding="mock")


@pytest.fixture
def service() -> Iterator[Service]:
    with running_service() as running:
        yield running


def served(path: Path, service: Service, schema: str = SCHEMA, **options: Any) -> og.Graph:
    usual = {"kind": "openai", "base_url": service.url, "api_key": "k", "model": "m/x", "retry_backoff_ms": 1}
    return og.init(path / "g", schema, embedding={**usual, **options})


def mock(text: str, dimension: int = 4) -> list[float]:
    return list(Embedder("mock").embed_query(text, dimension))


def vectors(graph: og.Graph, branch: str | None = None) -> dict[str, list[float]]:
    return {row["slug"]: row["emb"] for row in rows(graph, "node:Doc", branch)}


# --- which rows -------------------------------------------------------------------------------------------------------


@pytest.mark.row("QT-56")
def test_a_vector_that_is_left_out_is_embedded(graph: og.Graph, row: list[str]) -> None:
    graph.mutate(PUT, params={"s": "a", "t": "river"})
    assert vectors(graph) == {"a": mock("river")}


def test_a_given_vector_is_kept_as_it_is(graph: og.Graph) -> None:
    graph.mutate(PUT_VECTOR, params={"s": "a", "t": "river", "v": VECTOR})
    assert vectors(graph) == {"a": VECTOR}


def test_without_its_source_a_required_vector_is_missing(graph: og.Graph) -> None:
    with pytest.raises(ValidationError, match="property 'emb' of Doc is required") as caught:
        graph.mutate(PUT, params={"s": "a", "t": None})
    assert caught.value.kind == "required"
    assert ids(graph, "node:Doc") == []


def test_an_optional_vector_is_embedded_when_it_can_be(graph: og.Graph) -> None:
    graph.mutate(
        """query q($v: Vector(4)?) {
          insert Memo { text: "river" } insert Memo { title: "sea" } insert Memo { text: "lake", emb: $v }
        }""",
        params={"v": None},
    )
    found = {(row["text"], row["title"]): (row["emb"], row["head"]) for row in rows(graph, "node:Memo")}
    assert found == {
        ("river", None): (mock("river"), None),
        (None, "sea"): (None, mock("sea", 3)),
        ("lake", None): (None, None),  # null was asked for
    }


def test_an_empty_text_is_a_text(graph: og.Graph) -> None:
    graph.mutate(PUT, params={"s": "a", "t": ""})
    assert vectors(graph) == {"a": mock("")}


def test_the_last_of_several_rows_with_one_key_counts(graph: og.Graph) -> None:
    graph.mutate(
        """query q($v: Vector(4)) {
          insert Doc { slug: "a", body: "first" } insert Doc { slug: "a", body: "last" }
          insert Doc { slug: "b", body: "first" } insert Doc { slug: "b", body: "last", emb: $v }
          insert Doc { slug: "c", body: "first", emb: $v } insert Doc { slug: "c", body: "last" }
        }""",
        params={"v": VECTOR},
    )
    assert vectors(graph) == {"a": mock("last"), "b": VECTOR, "c": mock("last")}


def test_the_last_row_may_ask_for_null(graph: og.Graph) -> None:
    graph.mutate(
        """query q($v: Vector(4)?) {
          insert Card { slug: "a", body: "first" } insert Card { slug: "a", body: "last", emb: $v }
        }""",
        params={"v": None},
    )
    assert [(row["body"], row["emb"]) for row in rows(graph, "node:Card")] == [("last", None)]


def test_later_statements_change_what_is_embedded(graph: og.Graph) -> None:
    graph.mutate(
        """query q($v: Vector(4)) {
          insert Doc { slug: "a", body: "first" } insert Doc { slug: "b", body: "first" } insert Doc { slug: "c", body: "x" }
          update Doc set { body: "last" } where slug = "a"
          update Doc set { emb: $v } where slug = "b"
          update Doc set { note: "seen" } where slug = "c"
        }""",
        params={"v": VECTOR},
    )
    assert vectors(graph) == {"a": mock("last"), "b": VECTOR, "c": mock("x")}


def test_an_update_keeps_the_vector(graph: og.Graph) -> None:
    graph.mutate(PUT, params={"s": "a", "t": "river"})
    graph.mutate('query q() { update Doc set { body: "sea" } where slug = "a" }')
    assert vectors(graph) == {"a": mock("river")}


def test_an_update_makes_no_vector_where_there_was_none(graph: og.Graph) -> None:
    graph.mutate(
        "query q($v: Vector(4)?) { insert Memo { text: $t, emb: $v } }".replace("$t", '"lake"'), params={"v": None}
    )
    graph.mutate('query q() { update Memo set { title: "sea" } where text = "lake" }')
    (memo,) = rows(graph, "node:Memo")
    assert (memo["emb"], memo["head"], memo["title"]) == (None, None, "sea")


def test_an_upsert_embeds_anew(graph: og.Graph) -> None:
    graph.mutate(PUT, params={"s": "a", "t": "river"})
    graph.mutate(PUT, params={"s": "a", "t": "sea"})
    assert vectors(graph) == {"a": mock("sea")}


def test_on_a_branch(graph: og.Graph) -> None:
    graph.create_branch("b")
    graph.at("b").mutate(PUT, params={"s": "a", "t": "river"})
    assert vectors(graph, "b") == {"a": mock("river")}
    assert vectors(graph) == {}


# --- how the provider is asked ----------------------------------------------------------------------------------------


def test_one_request_for_each_property(tmp_path: Path, service: Service) -> None:
    graph = served(tmp_path, service)
    graph.mutate(
        """query q() {
          insert Doc { slug: "a", body: "river" } insert Doc { slug: "b", body: "sea" } insert Doc { slug: "c", body: "river" }
          insert Memo { text: "lake", title: "pond" } insert Memo { text: "lake", title: "ford" }
        }"""
    )
    assert [asked.texts for asked in service.asked] == [["river", "sea"], ["lake"], ["pond", "ford"]]
    assert [asked.body["dimensions"] for asked in service.asked] == [4, 4, 3]
    found = vectors(graph)
    assert found["a"] == found["c"] != found["b"]


def test_a_given_vector_needs_no_provider(tmp_path: Path) -> None:
    graph = og.init(tmp_path / "g", SCHEMA)
    graph.mutate(PUT_VECTOR, params={"s": "a", "t": "river", "v": VECTOR})
    assert vectors(graph) == {"a": VECTOR}


@pytest.mark.row("SEA-15")
def test_without_a_key_nothing_is_written(tmp_path: Path, row: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    graph = og.init(tmp_path / "g", SCHEMA)
    before = graph.head()
    for source, params in ((PUT, {"s": "a", "t": "river"}), (MEMO, {"t": "river"})):
        with pytest.raises(EmbeddingError, match="OPENROUTER_API_KEY or OPENAI_API_KEY"):
            graph.mutate(source, params=params)
    assert graph.head() == before
    monkeypatch.setenv("OMNIGRAPH_EMBEDDINGS_MOCK", "1")
    graph.mutate(PUT, params={"s": "a", "t": "river"})
    assert vectors(graph) == {"a": mock("river")}


def test_a_failing_provider_writes_nothing(tmp_path: Path, service: Service) -> None:
    graph = served(tmp_path, service, retry_attempts=2)
    before = graph.head()
    service.answers = [Answer(500), Answer(500)]
    with pytest.raises(EmbeddingError, match="answered 500"):
        graph.mutate(PUT, params={"s": "a", "t": "river"})
    assert graph.head() == before
    assert not graph.pending_operations()
    graph.mutate(PUT, params={"s": "a", "t": "river"})
    assert ids(graph, "node:Doc") == ["a"]


@pytest.mark.parametrize(("model", "works"), [("m/x", True), ("other", False)])
def test_the_recorded_model(tmp_path: Path, service: Service, model: str, works: bool) -> None:
    schema = f'node Doc {{ slug: String @key body: String emb: Vector(4) @embed("body", model="{model}") }}'
    graph = served(tmp_path, service, schema)
    asking = 'query q() { insert Doc { slug: "a", body: "river" } }'
    if works:
        graph.mutate(asking)
    else:
        with pytest.raises(EmbeddingError, match="records the embedding model 'other'"):
            graph.mutate(asking)
    assert len(service.asked) == (1 if works else 0)
    assert ids(graph, "node:Doc") == (["a"] if works else [])


def test_a_repeated_request_is_not_embedded_again(tmp_path: Path, service: Service) -> None:
    graph = served(tmp_path, service)
    params = {"s": "a", "t": "river"}
    first = graph.mutate(PUT, params=params, idempotency_key="k")
    assert graph.mutate(PUT, params=params, idempotency_key="k") == first
    assert len(service.asked) == 1


class Overtaking(Service):
    """Another writer commits while the first one waits for its vectors."""

    def __init__(self, other: og.Graph) -> None:
        super().__init__()
        self.other = other

    def answer(self, asked: Asked) -> Answer:
        self.other.mutate(PUT_VECTOR, params={"s": "other", "t": "x", "v": VECTOR})
        return super().answer(asked)


def test_a_mutation_that_starts_over_does_not_ask_again(tmp_path: Path) -> None:
    other = og.init(tmp_path / "g", SCHEMA)
    with running_service(Overtaking(other)) as service:
        graph = og.open(tmp_path / "g", embedding={"kind": "openai", "base_url": service.url, "api_key": "k"})
        graph.mutate(PUT, params={"s": "a", "t": "river"})
        assert ids(graph, "node:Doc") == ["a", "other"]
        assert len(service.asked) == 1


@pytest.mark.parametrize("embedding", ["opnai", {"modle": "m"}, 7])
def test_a_wrong_option_is_refused_before_anything_is_made(tmp_path: Path, embedding: Any) -> None:
    with pytest.raises(BadRequest, match="embedding"):
        og.init(tmp_path / "g", SCHEMA, embedding=embedding)
    assert not (tmp_path / "g").exists()
    og.init(tmp_path / "g", SCHEMA)
    with pytest.raises(BadRequest, match="embedding"):
        og.open(tmp_path / "g", embedding=embedding)
