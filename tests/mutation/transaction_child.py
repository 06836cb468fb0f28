"""A process that runs one transaction and is killed on the way. Run with OMNIGRAPH_FAILPOINTS=<name>=kill.

transaction_child.py <uri> <branch>
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import omnigraph as og

STEPS = (
    'query q() { insert Staff { handle: "eve", level: 22 } insert Mentors { from: "eve", to: "ada" } }',
    "query q() { update Staff set { level: 99 } where level < 30 }",
    'query q() { insert Team { code: "ops" } insert MemberOf { from: "dov", to: "ops" } }',
    'query q() { delete Staff where handle = "ada" }',
    'query q() { insert Staff { handle: "ada", level: 1 } }',
)
ASKED = "query q() { match { $s: Staff not { $s mentors $_ } } return { $s.handle } }"


def run(graph: og.Graph, branch: str) -> og.MutationResult:
    """Everything a transaction can do, with questions in between."""
    with graph.transaction(branch=branch, idempotency_key="once", message="all of it") as transaction:
        for step in STEPS:
            transaction.mutate(step)
            transaction.query(ASKED)
    assert transaction.result is not None
    return transaction.result


if __name__ == "__main__":
    run(og.open(sys.argv[1]), sys.argv[2])
