"""What a policy costs a request: decisions at the boundary and again in the engine, and those that nobody asked before."""

from __future__ import annotations

from collections.abc import Callable

from bench.measure import Row, benchmark, summary, timed
from omnigraph.policy.actions import BRANCH_MERGE, CHANGE, READ, Need
from omnigraph.policy.bundle import read_bundle
from omnigraph.policy.decide import Policy

GROUPS, MEMBERS = 50, 20
#: Seconds that the decisions of one request may take.
REQUEST = 0.0001
#: Requests that are timed together: one of them is shorter than what a clock tells apart.
TOGETHER = 1000


def _policy() -> Policy:
    """A large policy: a thousand actors in fifty groups, each with rules for reading, for its drafts and for merging."""
    lines = ["version: 1", "protected_branches: [main, release]", "groups:"]
    for group in range(GROUPS):
        lines.append(f"  g{group}: [{', '.join(f'a{group}-{member}' for member in range(MEMBERS))}]")
    lines.append("rules:")
    for group in range(GROUPS):
        actors = f"actors: {{ group: g{group} }}"
        lines += [
            f"  - {{ id: read-{group}, allow: {{ {actors}, actions: [read, export, invoke_query] }} }}",
            f"  - {{ id: change-{group}, allow: {{ {actors}, actions: [change], branch_scope: unprotected }} }}",
            f"  - {{ id: merge-{group}, allow: {{ {actors}, actions: [branch_merge], target_branch_scope: protected }} }}",
        ]
    return Policy(read_bundle("\n".join(lines), "graph"), "people")


def _requests(policy: Policy, *needs: Need) -> Callable[[], None]:
    """Many requests of one actor with these needs."""

    def run() -> None:
        for _ in range(TOGETHER):
            for need in needs:
                policy.check("a7-7", need)

    return run


@benchmark("policy")
def policy() -> list[Row]:
    """The decisions of some requests."""
    known = _policy()
    change = Need(CHANGE, "draft")
    cases = {
        "policy: a query": (Need(READ, "main"),),
        # The boundary asks, and the engine asks again before it writes.
        "policy: a mutation": (change, change),
        "policy: a merge": (Need(BRANCH_MERGE, "draft", "main"), Need(BRANCH_MERGE, "draft", "main")),
    }
    rows = []
    for what, needs in cases.items():
        whole = timed(_requests(known, *needs), repeat=15)
        one = summary(value / TOGETHER for value in (whole.median, whole.low, whole.high))
        rows.append(Row(what, one, goal=REQUEST))

    def first() -> None:
        known._known.clear()
        known.check("a7-7", change)

    rows.append(Row("policy: a question that nobody asked before (1,000 actors, 150 rules)", timed(first)))
    return rows
