"""A tour of what a graph promises, with a handful of people. Everything happens in a scratch folder."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import omnigraph as og
from omnigraph.errors import LanguageError, OmnigraphError

SCHEMA = """\
node Person {
  name: String @key
  age: I32? @range(age, 0..150)
}
node City { name: String @key }
edge Knows: Person -> Person { since: Date? }
edge LivesIn: Person -> City @card(0..1)
"""

QUERIES = """\
query people() {
  insert City { name: "Oslo" }
  insert Person { name: "Ada", age: 36 }
  insert Person { name: "Ben", age: 41 }
  insert Person { name: "Cleo", age: 29 }
  insert Knows { from: "Ada", to: "Ben", since: date("2020-05-01") }
  insert Knows { from: "Ben", to: "Cleo" }
  insert LivesIn { from: "Ada", to: "Oslo" }
}
query friends_of_friends($name: String) {
  match {
    $p: Person { name: $name }
    $p knows{2,2} $friend
    not { $p knows $friend }
  }
  return { $friend.name, $friend.age }
}
query homeless() {
  match { $p: Person not { $p livesIn $_ } }
  return { $p.name }
  order { $p.name }
}
query move($who: String, $where: String) { insert LivesIn { from: $who, to: $where } }
query age($who: String, $years: I32) { update Person set { age: $years } where name = $who }
query adults() {
  match { $p: Person $p.agee >= 18 }
  return { $p.name }
}
"""

#: A writer that dies between committing its tables and publishing: the worst moment.
DYING_WRITER = """\
import sys, omnigraph
graph = omnigraph.open(sys.argv[1], actor="doomed")
graph.mutate(sys.argv[2], "age", {"who": "Ada", "years": 99})
"""


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        tour(Path(scratch) / "people.omni")


def tour(place: Path) -> None:
    heading("1. A schema declares node types and edge types; a graph is made from it")
    print(SCHEMA)
    graph = og.init(place, SCHEMA, actor="demo")
    print(f"Created a graph with {len(graph.snapshot().entries())} tables. First commit: {graph.head().kind}.")

    heading("2. A mutation of seven statements is one commit")
    result = graph.mutate(QUERIES, "people")
    print(f"{result.affected_nodes} nodes and {result.affected_edges} edges in commit {graph.head().id}")

    heading("3. Queries walk the graph")
    print("Friends of Ada's friends whom she does not know:")
    print(graph.query(QUERIES, "friends_of_friends", {"name": "Ada"}))

    heading("4. Mistakes are found before anything runs")
    try:
        graph.query(QUERIES, "adults")
    except LanguageError as error:
        print(error)
    for name, params in (("move", {"who": "Ada", "where": "Atlantis"}), ("age", {"who": "Ada", "years": 200})):
        try:
            graph.mutate(QUERIES, name, params)
        except OmnigraphError as error:
            print(f"{type(error).__name__}: {error}")

    heading("5. Work on a branch does not touch main")
    graph.create_branch("agent/1")
    agent = graph.at("agent/1")
    agent.mutate(QUERIES, "move", {"who": "Ben", "where": "Oslo"}, actor="agent-1")
    print(f"without a home on main:    {names(graph)}")
    print(f"without a home on agent/1: {names(agent)}")

    heading("6. A writer is killed in the middle of its write; the next open puts it right")
    killed = subprocess.run(
        [sys.executable, "-c", DYING_WRITER, str(place), QUERIES],
        env={**os.environ, "OMNIGRAPH_FAILPOINTS": "mutation.post_phase_b_pre_manifest_commit=kill"},
        check=False,
    )
    print(f"The writer died (signal {-killed.returncode}). Readers still see Ada at {age_of(graph, 'Ada')}.")
    graph = og.open(place)
    recovered = graph.recoveries()[-1]
    print(
        f"After reopening: {recovered.recovery_kind}, for {recovered.recovery_for_actor}; Ada is {age_of(graph, 'Ada')}."
    )

    heading("7. Every commit is there, and every state can be read again")
    for commit in graph.commits():
        shown = graph.snapshot(at=commit.id)
        print(f"{commit.id}  {commit.kind:<9} {commit.actor or '-':<19} {shown.entry('node:Person').row_count} people")


def names(graph: og.Graph) -> str:
    return ", ".join(row["p.name"] for row in graph.query(QUERIES, "homeless"))


def age_of(graph: og.Graph, name: str) -> int:
    person = graph.entity("node", "Person", name)
    assert person is not None
    return int(person["age"])


def heading(text: str) -> None:
    print(f"\n{text}\n{'-' * len(text)}")


if __name__ == "__main__":
    main()
