"""The graph of the soak: every writer appends to a chain of its own and counts its length, in one commit each time.

At any snapshot the chain of a writer has no gap, one link less than items, and the length that its counter says.
"""

from __future__ import annotations

from collections import Counter

import omnigraph as og

SCHEMA = """
node Item {
  code: String @key
  owner: String @index
  place: I64
  note: String @index
}
node Tally {
  owner: String @key
  length: I64
}
edge Next: Item -> Item
"""
WRITES = """
query begin($o: String, $c: String) {
  insert Item { code: $c, owner: $o, place: 0, note: "the first of its chain" }
  insert Tally { owner: $o, length: 1 }
}
query append($o: String, $c: String, $p: I64, $before: String, $n: I64) {
  insert Item { code: $c, owner: $o, place: $p, note: "a link of the chain" }
  insert Next { from: $before, to: $c }
  insert Tally { owner: $o, length: $n }
}
"""
READS = """
query items() { match { $i: Item } return { $i.owner, $i.place } }
query tallies() { match { $t: Tally } return { $t.owner, $t.length } }
query links() { match { $a: Item $a next $b } return { $a.owner, $b.owner, $a.place, $b.place } }
query one($c: String) { match { $i: Item { code: $c } } return { $i.place } }
query tally($o: String) { match { $t: Tally { owner: $o } } return { $t.length } }
"""


def code(owner: str, place: int) -> str:
    return f"{owner}-{place:06}"


def append(graph: og.Graph, owner: str, place: int, branch: str | None = None) -> None:
    """One more item of a chain."""
    if place == 0:
        graph.mutate(WRITES, "begin", {"o": owner, "c": code(owner, 0)}, branch=branch)
        return
    params = {"o": owner, "c": code(owner, place), "p": place, "before": code(owner, place - 1), "n": place + 1}
    graph.mutate(WRITES, "append", params, branch=branch)


def length(graph: og.Graph, owner: str, branch: str | None = None) -> int:
    """How long a chain is, as its counter says."""
    found = graph.query(READS, "tally", {"o": owner}, branch=branch).rows
    return int(found[0]["t.length"]) if found else 0


def chains(graph: og.Graph, branch: str | None = None) -> dict[str, int]:
    """The length of every chain at one snapshot, after it was looked at from all sides."""
    view = graph.snapshot(branch)
    items: dict[str, list[int]] = {}
    for row in graph.query(READS, "items", snapshot=view).rows:
        items.setdefault(row["i.owner"], []).append(row["i.place"])
    tallies = {row["t.owner"]: row["t.length"] for row in graph.query(READS, "tallies", snapshot=view).rows}
    links: Counter[str] = Counter()
    for row in graph.query(READS, "links", snapshot=view).rows:
        assert (row["a.owner"], row["a.place"] + 1) == (row["b.owner"], row["b.place"]), f"a wrong link: {row}"
        links[row["a.owner"]] += 1
    for owner, places in items.items():
        assert sorted(places) == list(range(len(places))), f"the chain of {owner} has a gap or a double at {view.id}"
        assert tallies.get(owner) == len(places), f"{owner} counts {tallies.get(owner)}, has {len(places)} at {view.id}"
        assert links[owner] == len(places) - 1, f"{owner} has {links[owner]} links for {len(places)} at {view.id}"
    assert tallies.keys() == items.keys()
    for owner, places in items.items():
        last = len(places) - 1
        assert graph.query(READS, "one", {"c": code(owner, last)}, snapshot=view).rows == [{"i.place": last}]
    return {owner: len(places) for owner, places in items.items()}
