"""A social graph: persons who follow each other, live in cities and have interests. The same for every seed and machine."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

import omnigraph
from omnigraph.ids import new_ulid
from tests.query.loading import commit_tables

SCHEMA = """
node Person { key: String @key gender: enum(female, male) age: I32 @index }
node City { key: String @key }
node State { key: String @key }
node Country { key: String @key }
node Interest { key: String @key }
edge Follows: Person -> Person
edge WorksWith: Person -> Person
edge LivesIn: Person -> City
edge HasInterest: Person -> Interest
edge CityIn: City -> State
edge StateIn: State -> Country
"""
CITIES, STATES, COUNTRIES, INTERESTS = 7_000, 270, 3, 41
#: Very popular persons, who get half of all followers.
POPULAR = 0.005
#: How many others a person works with, on average.
COLLEAGUES = 3

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Social:
    """The tables by name: nodes with `key` and properties, edges with `src` and `dst` (keys)."""

    nodes: dict[str, pa.Table]
    edges: dict[str, pa.Table]


def make_social(persons: int = 100_000, follows: int = 2_400_000, seed: int = 7) -> Social:
    """The graph as Arrow tables."""
    random = np.random.default_rng(seed)
    popular = random.choice(persons, max(1, int(persons * POPULAR)), replace=False)
    to_all, to_popular = random.integers(0, persons, follows // 2), random.choice(popular, follows - follows // 2)
    followed = np.concatenate([to_all, to_popular])
    followers = random.integers(0, persons, follows)
    pairs = np.unique(followers * persons + followed)
    pairs = pairs[pairs // persons != pairs % persons]
    interests = np.unique(random.integers(0, persons * INTERESTS, persons * 2))
    person = pa.table(
        {
            "key": _keys("p", np.arange(persons)),
            "gender": pa.array(np.array(["female", "male"])[random.integers(0, 2, persons)]),
            "age": pa.array(random.integers(18, 75, persons), pa.int32()),
        }
    )
    places = {"City": ("c", CITIES), "State": ("s", STATES), "Country": ("n", COUNTRIES), "Interest": ("i", INTERESTS)}
    nodes = {name: pa.table({"key": _keys(prefix, np.arange(count))}) for name, (prefix, count) in places.items()}
    cities, states = np.arange(CITIES), np.arange(STATES)
    lives_in = random.integers(0, CITIES, persons)
    # Nobody works with somebody they follow: a pair has one edge, and counts the same for every engine.
    colleagues = np.setdiff1d(random.integers(0, persons * persons, persons * COLLEAGUES), pairs)
    colleagues = colleagues[colleagues // persons != colleagues % persons]
    edges = {
        "Follows": _edges("p", pairs // persons, "p", pairs % persons),
        "WorksWith": _edges("p", colleagues // persons, "p", colleagues % persons),
        "LivesIn": _edges("p", np.arange(persons), "c", lives_in),
        "HasInterest": _edges("p", interests // INTERESTS, "i", interests % INTERESTS),
        "CityIn": _edges("c", cities, "s", cities % STATES),
        "StateIn": _edges("s", states, "n", states % COUNTRIES),
    }
    return Social({"Person": person, **nodes}, edges)


def _keys(prefix: str, numbers: Numbers) -> pa.Array:
    return pa.array([f"{prefix}{number}" for number in numbers.tolist()])


def _edges(source: str, sources: Numbers, target: str, targets: Numbers) -> pa.Table:
    return pa.table({"src": _keys(source, sources), "dst": _keys(target, targets)})


def load_social(social: Social, path: Path) -> omnigraph.Graph:
    """The graph in OmniGraph, with its indexes."""
    graph = omnigraph.init(path, SCHEMA)
    tables: dict[str, pa.Table] = {}
    for name, table in social.nodes.items():
        tables[f"node:{name}"] = _fitting(graph, f"node:{name}", table.add_column(0, "id", table["key"]))
    for name, table in social.edges.items():
        stem = new_ulid()
        ids = pa.array([f"{stem}{number}" for number in range(table.num_rows)])
        tables[f"edge:{name}"] = _fitting(graph, f"edge:{name}", table.add_column(0, "id", ids))
    commit_tables(graph, tables)
    graph.ensure_indices()
    return graph


def _fitting(graph: omnigraph.Graph, type_key: str, table: pa.Table) -> pa.Table:
    schema = graph.snapshot().open(type_key).schema
    return pa.Table.from_arrays([table[name] for name in schema.names], schema=schema)
