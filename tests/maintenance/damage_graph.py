"""A small graph with every kind of file that a graph can have, and questions whose answers are known.

As a program, `python -m tests.maintenance.damage_graph URI` prints the answers as JSON, so that a damaged graph is asked in a
process of its own.
"""

from __future__ import annotations

import base64
import hashlib
import os
import sys
from pathlib import Path
from typing import Any

import orjson

import omnigraph as og

SCHEMA = """
node Person {
  name: String @key
  age: I32?
  email: String? @unique
  mood: enum(calm, wild)? @index
  bio: String? @index
  tags: [String]?
  vector: Vector(4)? @index
  photo: Blob?
  @index(tags)
}
node City { name: String @key }
edge Knows: Person -> Person { since: I32? }
edge LivesIn: Person -> City @card(0..1)
"""
WIDER = SCHEMA.replace("age: I32?", "age: I32?\n  rank: I64 @default(7)")

WRITES = """
query put($n: String) { insert Person { name: $n, bio: "a quiet new person" } }
query age($n: String, $a: I32) { update Person set { age: $a } where name = $n }
query drop($n: String) { delete Person where name = $n }
query link($a: String, $b: String) { insert Knows { from: $a, to: $b } }
query city($n: String) { insert City { name: $n } }
"""

READS = """
query by_key($n: String) { match { $p: Person { name: $n } } return { $p.age, $p.email } }
query by_mood() { match { $p: Person { mood: "wild" } } return { $p.name } order { $p.name } }
query words() { match { $p: Person search($p.bio, "river") } return { $p.name } order { $p.name } }
query ranked() { match { $p: Person } return { $p.name } order { bm25($p.bio, "river stone") desc, $p.name } limit 5 }
query near() { match { $p: Person } return { $p.name } order { nearest($p.vector, [3.0, 1.0, 0.0, 0.0]) } limit 3 }
query friends($n: String) {
  match { $p: Person { name: $n } $p knows $q } return { $q.name, $q.age } order { $q.name }
}
query homes() { match { $p: Person $p livesIn $c } return { $c.name, count($p) as n } order { $c.name } }
"""


def person(number: int) -> dict[str, Any]:
    photo = {3: b"small", 5: b"middle" * 40_000, 7: b"large" * 900_000}.get(number)
    data = {
        "name": f"p{number}",
        "age": number,
        "email": f"{number}@x",
        "mood": "wild" if number % 3 else "calm",
        "bio": f"by the river {'stone' if number % 5 == 0 else 'sand'} {number}",
        "tags": ["a", f"t{number % 4}"],
        "vector": [float(number), 1.0, 0.0, float(number % 2)],
    }
    if photo is not None:
        data["photo"] = f"base64:{base64.b64encode(photo).decode()}"
    return {"type": "Person", "data": data}


def build(path: Path) -> None:
    """Make the graph: loads, updates, deletes, a schema change, indexes, compaction, cleanup, branches, forks, merges, tags."""
    graph = og.init(path, SCHEMA)
    people = [person(number) for number in range(60)]
    cities = [{"type": "City", "data": {"name": name}} for name in ("Ulm", "Bonn")]
    edges = [{"edge": "Knows", "from": f"p{n}", "to": f"p{(n * 7 + 1) % 60}", "data": {"since": n}} for n in range(40)]
    homes = [{"edge": "LivesIn", "from": f"p{n}", "to": "Ulm" if n % 2 else "Bonn"} for n in range(30)]
    graph.load([*people, *cities, *edges, *homes], mode="append")
    graph.ensure_indices()
    for number in range(8):
        graph.mutate(WRITES, "put", {"n": f"early{number}"})
    graph.mutate(WRITES, "drop", {"n": "p11"})
    graph.apply_schema(WIDER)
    graph.optimize()
    keep = os.environ.get("OMNIGRAPH_FEED_RETENTION")
    os.environ["OMNIGRAPH_FEED_RETENTION"] = "0s"
    graph.cleanup(keep=4)
    os.environ.pop("OMNIGRAPH_FEED_RETENTION") if keep is None else os.environ.update(OMNIGRAPH_FEED_RETENTION=keep)
    graph.tag("v1")
    graph.mutate(WRITES, "age", {"n": "p1", "a": 101})
    graph.create_branch("dev")
    graph.create_branch("feat/x")
    graph.mutate(WRITES, "put", {"n": "on dev"}, branch="dev")
    graph.mutate(WRITES, "drop", {"n": "p2"}, branch="dev")
    graph.mutate(WRITES, "link", {"a": "p5", "b": "p6"}, branch="feat/x")
    graph.mutate(WRITES, "city", {"n": "Graz"})
    graph.merge("feat/x")
    graph.create_branch("deep", base="dev")
    graph.mutate(WRITES, "put", {"n": "on deep"}, branch="deep")
    graph.mutate(WRITES, "age", {"n": "p4", "a": 44}, branch="deep")
    graph.ensure_indices("dev")
    graph.tag("v2", graph.head("dev").id)
    graph.load([person(number) for number in range(60, 70)], mode="merge")


def answers(uri: str) -> dict[str, Any]:
    """Everything that can be asked of the graph: rows, searches, blobs, history of all branches, tags and commits."""
    graph = og.open(uri, mode="ro")
    said: dict[str, Any] = {"schema": graph.schema(), "branches": graph.branches(), "tags": graph.tags()}
    for branch in graph.branches():
        said[branch] = [commit.to_dict() for commit in graph.commits(branch)]
        said[f"{branch} now"] = _state(graph.at(branch), None)
    for tag in graph.tags():
        said[f"tag {tag}"] = _state(graph, tag)
    for commit in graph.commits("deep")[:4]:
        said[commit.id] = _rows(graph, commit.id)
    return said


def _state(graph: og.Graph, at: str | None) -> dict[str, Any]:
    said: dict[str, Any] = {"rows": _rows(graph, at)}
    for name, params in (
        ("by_key", {"n": "p1"}),
        ("by_key", {"n": "p40"}),
        ("by_mood", {}),
        ("words", {}),
        ("ranked", {}),
        ("near", {}),
        ("friends", {"n": "p5"}),
        ("homes", {}),
    ):
        said[f"{name} {params}"] = graph.query(READS, name, params, snapshot=at).rows
    for number in (3, 5, 7):
        photo = graph.read_blob("node", "Person", f"p{number}", "photo", snapshot=at)
        halves = [photo.read(0, 2_500_000), photo.read(2_500_000)] if number == 7 else [photo.read()]
        said[f"photo {number}"] = hashlib.sha256(b"".join(halves)).hexdigest()
    return said


def _rows(graph: og.Graph, at: str | None) -> str:
    digest = hashlib.sha256()
    for chunk in graph.export_chunks(snapshot=at):
        digest.update(chunk)
    return digest.hexdigest()


def write_everywhere(uri: str) -> None:
    """A write of each kind on every branch: the graph must be writable."""
    graph = og.open(uri)
    for branch in graph.branches():
        at = graph.at(branch)
        at.mutate(WRITES, "put", {"n": f"late on {branch}"})
        at.mutate(WRITES, "age", {"n": "p7", "a": 77})
        at.mutate(WRITES, "link", {"a": "p7", "b": "p8"})
        at.mutate(WRITES, "drop", {"n": "p9"})
        at.optimize()


if __name__ == "__main__":
    if sys.argv[1] == "write":
        write_everywhere(sys.argv[2])
    else:
        print(orjson.dumps(answers(sys.argv[2]), option=orjson.OPT_SORT_KEYS, default=str).decode())
