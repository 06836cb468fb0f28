"""Search over texts with vectors: each kind of search plain, with a selective filter, and with a hop after it.

The floor is the same search asked of Lance directly, on the same table with the same indexes. Recall is counted against
the exact answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from lance.query import MatchQuery

import omnigraph
from bench.measure import Floor, Measure, Row, benchmark, in_turn, scratch_folder
from omnigraph.ids import new_ulid
from tests.query.loading import commit_tables

SCHEMA = """
node Doc { slug: String @key topic: I32 @index text: String @index emb: Vector(384) @index }
node Author { name: String @key }
edge WrittenBy: Doc -> Author
"""
DOCS, DIMENSION, TOPICS, AUTHORS, VOCABULARY = 200_000, 384, 100, 2_000, 30_000
TOP = 10
#: Handles that are long in use, as those of a service are.
ROUNDS, WARM_UP = 20, 50
#: Goals: the time of the bare search, and how much of the exact answer is found.
SLOWER = 1.5
RECALL = 0.95

Vectors = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Corpus:
    """Documents around centres, so that near vectors have something in common, and the graph they are in."""

    vectors: Vectors
    topics: npt.NDArray[np.int32]
    graph: omnigraph.Graph

    def queries(self, count: int) -> list[list[float]]:
        random = np.random.default_rng(3)
        near = self.vectors[random.integers(0, DOCS, count)]
        found: list[list[float]] = (near + random.normal(0, 0.05, near.shape)).astype(np.float32).tolist()
        return found


@benchmark("search.documents")
def searches() -> Iterator[Row]:
    """Latency of nearest, bm25 and rrf, then recall."""
    with scratch_folder() as folder:
        corpus = _corpus(folder)
        for what, gq, bare in _cases(corpus):
            params = _params(corpus, gq)
            ask = partial(corpus.graph.query, gq, params=params)
            ours, floor = in_turn((ask, bare), ROUNDS, warm_up=WARM_UP)
            yield Row(what, ours, Floor("bare Lance", floor), goal=SLOWER * floor.median)
        yield _recall(corpus)
        yield _fused_recall(corpus)


def _params(corpus: Corpus, gq: str) -> dict[str, object]:
    """What a query asks for."""
    everything = {"v": corpus.queries(1)[0], "x": _WORDS, "t": 7}
    return {name: value for name, value in everything.items() if f"${name}:" in gq}


_WORDS = "w17 w901 w4242"
_RANKINGS = {
    "nearest": "nearest($d.emb, $v)",
    "bm25": "bm25($d.text, $x)",
    "rrf": "rrf(nearest($d.emb, $v), bm25($d.text, $x))",
}


def _cases(corpus: Corpus) -> Iterator[tuple[str, str, Callable[[], object]]]:
    declared = {"v": "$v: Vector(384)", "x": "$x: String"}
    for name, ranking in _RANKINGS.items():
        used = ", ".join(text for parameter, text in declared.items() if f"${parameter})" in ranking)
        head = f"query q({used}, $t: I32)"
        end = f"order {{ {ranking} }} limit {TOP} }}"
        yield name, f"{head} {{ match {{ $d: Doc }} return {{ $d.slug }} {end}", _bare(corpus, name, None)
        filtered = f"{head} {{ match {{ $d: Doc $d.topic = $t }} return {{ $d.slug }} {end}"
        yield f"{name}, 1 % of the rows", filtered, _bare(corpus, name, pc.field("topic") == 7)
        hop = f"{head} {{ match {{ $d: Doc $d writtenBy $a }} return {{ $d.slug, $a.name }} {end}"
        yield f"{name}, then one hop", hop, _bare(corpus, name, None)


def _bare(corpus: Corpus, name: str, filter_: pc.Expression | None) -> Callable[[], object]:
    """The searches one would ask of Lance; a fusion needs both."""
    dataset = corpus.graph.snapshot().open("node:Doc").dataset
    vector = np.array(corpus.queries(1)[0], np.float32)

    def nearest() -> pa.Table:
        search = {"column": "emb", "q": vector, "k": TOP, "minimum_nprobes": 44}
        return dataset.scanner(
            columns=["slug", "_distance"],
            nearest=search,
            filter=filter_,
            prefilter=True,
            disable_scoring_autoprojection=True,
        ).to_table()

    def bm25() -> pa.Table:
        query = MatchQuery(_WORDS, "text")
        return dataset.scanner(
            columns=["slug", "_score"],
            full_text_query=query,
            filter=filter_,
            prefilter=True,
            limit=TOP,
            disable_scoring_autoprojection=True,
        ).to_table()

    return {"nearest": nearest, "bm25": bm25, "rrf": lambda: (nearest(), bm25())}[name]


def _recall(corpus: Corpus) -> Row:
    """The part of the ten nearest that is missed, over some queries; less is better, like every other line."""
    gq = f"""query q($v: Vector(384)) {{ match {{ $d: Doc }} return {{ $d.slug }}
             order {{ nearest($d.emb, $v) }} limit {TOP} }}"""
    found = 0
    queries = corpus.queries(50)
    for query in queries:
        distances = ((corpus.vectors - np.array(query, np.float32)) ** 2).sum(axis=1)
        exact = {f"d{number}" for number in np.argpartition(distances, TOP)[:TOP]}
        found += len(exact & {row["d.slug"] for row in corpus.graph.query(gq, params={"v": query}).rows})
    missed = 1 - found / (len(queries) * TOP)
    return Row("nearest: part of the exact ten that is missed", Measure(missed, missed, missed, ""), goal=1 - RECALL)


def _fused_recall(corpus: Corpus) -> Row:
    """The same for rrf: the exact answer ranks every document by both, equal ones by id."""
    gq = f"""query q($v: Vector(384), $x: String) {{ match {{ $d: Doc }} return {{ $d.slug }}
             order {{ {_RANKINGS["rrf"]} }} limit {TOP} }}"""
    dataset = corpus.graph.snapshot().open("node:Doc").dataset
    random = np.random.default_rng(9)
    slugs = np.array([f"d{number}" for number in range(DOCS)])
    by_slug = np.argsort(np.argsort(slugs))
    found, queries = 0, corpus.queries(20)
    for query in queries:
        text = " ".join(f"w{word}" for word in (random.integers(5, 5000), random.integers(500, VOCABULARY)))
        fused = np.zeros(DOCS)
        distances = ((corpus.vectors - np.array(query, np.float32)) ** 2).sum(axis=1)
        fused[np.lexsort((by_slug, distances))] += 1 / (60 + np.arange(1, DOCS + 1))
        matched = dataset.scanner(columns=["slug", "_score"], full_text_query=MatchQuery(text, "text")).to_table()
        places = np.array([int(slug[1:]) for slug in matched["slug"].to_pylist()], np.int64)
        best_first = places[np.lexsort((by_slug[places], -matched["_score"].to_numpy()))]
        fused[best_first] += 1 / (60 + np.arange(1, len(best_first) + 1))
        exact = set(slugs[np.lexsort((by_slug, -fused))[:TOP]])
        found += len(exact & {row["d.slug"] for row in corpus.graph.query(gq, params={"v": query, "x": text}).rows})
    missed = 1 - found / (len(queries) * TOP)
    return Row("rrf: part of the exact ten that is missed", Measure(missed, missed, missed, ""), goal=1 - RECALL)


def _corpus(folder: Path) -> Corpus:
    random = np.random.default_rng(5)
    centres = random.normal(0, 1, (500, DIMENSION)).astype(np.float32)
    vectors = centres[random.integers(0, 500, DOCS)] + random.normal(0, 0.4, (DOCS, DIMENSION)).astype(np.float32)
    topics = random.integers(0, TOPICS, DOCS).astype(np.int32)
    words = np.minimum(random.zipf(1.2, (DOCS, 20)), VOCABULARY)
    texts = [" ".join(f"w{word}" for word in row) for row in words.tolist()]
    graph = omnigraph.init(folder / "graph", SCHEMA)
    slugs = pa.array([f"d{number}" for number in range(DOCS)])
    names = pa.array([f"a{number}" for number in range(AUTHORS)])
    embeddings = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), DIMENSION)
    stem = new_ulid()
    columns = {
        "node:Doc": {"id": slugs, "slug": slugs, "topic": pa.array(topics), "text": pa.array(texts), "emb": embeddings},
        "node:Author": {"id": names, "name": names},
        "edge:WrittenBy": {
            "id": pa.array([f"{stem}{number}" for number in range(DOCS)]),
            "src": slugs,
            "dst": names.take(pa.array(random.integers(0, AUTHORS, DOCS))),
        },
    }
    commit_tables(graph, {key: _fitting(graph, key, values) for key, values in columns.items()})
    graph.ensure_indices()
    return Corpus(vectors, topics, graph)


def _fitting(graph: omnigraph.Graph, type_key: str, columns: dict[str, pa.Array]) -> pa.Table:
    schema = graph.snapshot().open(type_key).schema
    return pa.Table.from_arrays([columns[field.name].cast(field.type) for field in schema], schema=schema)
