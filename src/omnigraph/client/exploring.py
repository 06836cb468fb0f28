"""The exploring verbs as generators of requests; see `requests`. They take the arguments of the verbs in `omnigraph.graph`."""

from __future__ import annotations

from omnigraph.changes.comparison import Comparison, TypeCounts
from omnigraph.changes.filter import Names
from omnigraph.client.handle import Handle, Reference, Target, words
from omnigraph.client.requests import Ask, get, post
from omnigraph.evolution.plan import steps_of
from omnigraph.graph.branching import BranchState
from omnigraph.graph.exploring import Direction, NeighbourGroup, Neighbours, Seen
from omnigraph.shown import Listing
from omnigraph.wire import results


def neighbours(
    handle: Handle,
    type: str,
    id: str,
    *,
    edge: str | None = None,
    direction: Direction | None = None,
    limit: int = 25,
    skip: int = 0,
    branch: str | None = None,
    snapshot: Reference = None,
) -> Ask[Neighbours]:
    """A node with its edges and the nodes at their other ends, read from one snapshot; see `Graph.neighbours`."""
    asked = {"type": type, "id": id, "edge": edge, "direction": direction, "limit": limit, "skip": skip}
    given = {name: value for name, value in asked.items() if value is not None}
    told = yield from get("/neighbours", given | handle._place(branch, snapshot))
    return Neighbours(
        told["graph_commit_id"],
        _seen(told["node"]),
        tuple(NeighbourGroup(**group) for group in told["groups"]),
        tuple(map(_seen, told["nodes"])),
        tuple(map(_seen, told["edges"])),
    )


def _seen(told: results.Told) -> Seen:
    return Seen(told["type"], told["id"], told["label"], told["properties"], told.get("from"), told.get("to"))


def compare(
    handle: Handle,
    before: Target,
    after: Target = None,
    *,
    kinds: Names = None,
    types: Names = None,
    ops: Names = None,
    limit: int = 100,
    page_token: str | None = None,
) -> Ask[Comparison]:
    """What changed from one read target to another: counts of each type, then changes in pages; see `Graph.compare`."""
    body = {
        "before": handle._target(before) or handle.branch,
        "after": handle._target(after) or handle.branch,
        "kinds": words(kinds),
        "types": words(types),
        "ops": words(ops),
        "limit": limit,
        "page_token": page_token,
    }
    told = (yield post("/compare", body)).json
    counts = None if "counts" not in told else tuple(TypeCounts(**count) for count in told["counts"])
    changes = tuple(map(results.change_of, told["changes"]))
    steps = steps_of(told.get("schema", ()))
    return Comparison(told["before"], told["after"], counts, changes, told.get("next_page_token"), steps)


def branch_states(handle: Handle) -> Ask[list[BranchState]]:
    """All branches with their newest commits and how far they are from main; main first, then by name."""
    told = yield from get("/branches/status")
    return Listing(
        BranchState(found["name"], results.commit_of(found["head"]), found["ahead"], found["behind"])
        for found in told["branches"]
    )
