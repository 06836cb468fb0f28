"""A made-up library of research papers: the same for every machine. Some 100,000 entities at full size."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

DIMENSION = 32

SCHEMA = f"""\
node Author {{
  name: String @key
  country: String @index
}}
node Paper {{
  code: String @key
  title: String
  abstract: String @index
  year: I32 @index @range(year, 1950..2030)
  status: enum(draft, published, retracted)
  embedding: Vector({DIMENSION}) @index
}}
node Topic {{ name: String @key }}
edge Wrote: Author -> Paper {{ position: I32 }}
edge Cites: Paper -> Paper
edge About: Paper -> Topic {{ weight: F32 }}
"""

TOPICS = {
    "graph databases": "graph traversal edges nodes pattern storage index branch",
    "information retrieval": "ranking documents queries relevance index tokens recall",
    "climate": "temperature ocean carbon emission warming drought rainfall",
    "genomics": "gene sequence genome mutation cell expression protein",
    "robotics": "robot motion grasp sensor planning control arm",
    "astronomy": "star galaxy telescope orbit planet spectrum cosmic",
    "economics": "market price inflation trade labour policy income",
    "linguistics": "grammar syntax speech language phoneme corpus dialect",
    "materials": "crystal alloy lattice conductor polymer strength surface",
    "medicine": "patient trial therapy dose clinical symptom outcome",
}
_ADJECTIVES = ("scalable", "robust", "adaptive", "probabilistic", "efficient", "interpretable", "sparse", "causal")
_METHODS = ("models", "methods", "measurements", "algorithms", "surveys", "simulations", "benchmarks", "estimates")
_FIRST = ("Ada", "Ben", "Cleo", "Dov", "Eve", "Femi", "Grete", "Hugo", "Ines", "Jun", "Kaya", "Lars", "Mira", "Nils")
_LAST = ("Abel", "Bauer", "Costa", "Diaz", "Eriksen", "Farkas", "Gupta", "Haas", "Ito", "Jansen", "Kim", "Lopez")
_COUNTRIES = ("Brazil", "France", "Germany", "India", "Japan", "Kenya", "Norway", "Peru")

Line = dict[str, Any]


@dataclass(frozen=True)
class Library:
    """How large it is; everything else follows from the number of papers."""

    papers: int

    @property
    def authors(self) -> int:
        return max(20, self.papers * 2 // 3)

    def lines(self) -> Iterator[Line]:
        """Nodes, then edges."""
        random = np.random.default_rng(1)
        names = list(TOPICS)
        topics = random.integers(0, len(names), self.papers)
        for name in names:
            yield {"type": "Topic", "data": {"name": name}}
        for number in range(self.authors):
            country = _COUNTRIES[number % len(_COUNTRIES)]
            yield {"type": "Author", "data": {"name": author(number), "country": country}}
        for number, topic in enumerate(topics.tolist()):
            yield paper(number, names[topic], random)
        for number, topic in enumerate(topics.tolist()):
            yield from _edges(number, names[topic], self, random)

    def revision(self) -> Iterator[Line]:
        """What an agent brings: every 20th paper retracted or corrected, and some new ones with their authors."""
        random = np.random.default_rng(2)
        names = list(TOPICS)
        topics = np.random.default_rng(1).integers(0, len(names), self.papers).tolist()
        for number in range(0, self.papers, 20):
            changed = paper(number, names[topics[number]], random)
            changed["data"]["status"] = "retracted" if number % 200 == 0 else "published"
            changed["data"]["title"] += " (revised)"
            yield changed
        for number in range(self.papers, self.papers + self.papers // 20):
            topic = names[number % len(names)]
            yield paper(number, topic, random, year=2026)
            yield from _edges(number, topic, self, random)


def author(number: int) -> str:
    first, last = _FIRST[number % len(_FIRST)], _LAST[number // len(_FIRST) % len(_LAST)]
    return f"{first} {last} {number // (len(_FIRST) * len(_LAST)) + 1}"


def paper(number: int, topic: str, random: np.random.Generator, year: int | None = None) -> Line:
    words = TOPICS[topic].split()
    some = [words[place] for place in random.integers(0, len(words), 6)]
    adjective, method = _ADJECTIVES[random.integers(len(_ADJECTIVES))], _METHODS[random.integers(len(_METHODS))]
    abstract = (
        f"We present {adjective} {method} of {some[0]} and {some[1]}. On {topic}, the {some[2]} of each {some[3]} "
        f"improves when {some[4]} is known; a study of {some[5]} confirms it."
    )
    vector = topic_vector(topic) + random.normal(0, 0.15, DIMENSION)
    return {
        "type": "Paper",
        "data": {
            "code": f"P{number:06d}",
            "title": f"{adjective.capitalize()} {method} for {topic}",
            "abstract": abstract,
            "year": year or int(random.integers(1980, 2026)),
            "status": "draft" if number % 50 == 7 else "published",
            "embedding": [round(value, 4) for value in vector.tolist()],
        },
    }


def mistakes() -> Iterator[Line]:
    """Lines that no load may accept."""
    wrong = paper(0, "climate", np.random.default_rng(3), year=1700)
    yield wrong
    yield {"type": "Paper", "data": wrong["data"] | {"code": "P1", "year": 2000, "status": "lost"}}
    yield {"type": "Topic", "data": {"name": "chess", "colour": "red"}}
    yield {"edge": "Cites", "from": "P1", "to": "P2"}


def topic_vector(topic: str) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Where the papers of a topic lie."""
    return np.random.default_rng(100 + list(TOPICS).index(topic)).normal(0, 1, DIMENSION)


def _edges(number: int, topic: str, library: Library, random: np.random.Generator) -> Iterator[Line]:
    code = f"P{number:06d}"
    yield {"edge": "About", "from": code, "to": topic, "data": {"weight": 1.0}}
    writers = dict.fromkeys(random.integers(0, library.authors, 1 + number % 4).tolist())
    for position, writer in enumerate(writers, start=1):
        yield {"edge": "Wrote", "from": author(writer), "to": code, "data": {"position": position}}
    for cited in dict.fromkeys(random.integers(0, library.papers, 3).tolist()):
        yield {"edge": "Cites", "from": code, "to": f"P{cited:06d}", "data": {}}


def write_lines(path: Path, lines: Iterable[Line]) -> int:
    """Write JSON lines; returns how many there are."""
    count = 0
    with path.open("w") as file:
        for line in lines:
            file.write(json.dumps(line) + "\n")
            count += 1
    return count
