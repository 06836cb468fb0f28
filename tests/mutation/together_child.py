"""A process in which mutations wait for a branch together.

together_child.py <uri> <branch>: they are published together; run with OMNIGRAPH_FAILPOINTS=<name>=kill, it dies on the way.
together_child.py <uri> <branch> <name>: four threads insert five rows each, whose keys begin with this name.
"""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import omnigraph as og
from tests.mutation.waiting import publish_together

#: By idempotency key. Together they touch several tables; the third is refused.
MUTATIONS = {
    "one": 'query q() { insert Staff { handle: "eve", level: 22 } insert Mentors { from: "eve", to: "ada" } }',
    "two": 'query q() { update Staff set { level: 99 } where handle = "ben" }',
    "bad": 'query q() { insert Mentors { from: "nobody", to: "ada" } }',
    "three": 'query q() { delete Staff where handle = "dov" }',
    "four": 'query q() { insert MemberOf { from: "eve", to: "core" } }',
}


def main(uri: str, branch: str) -> None:
    graph = og.open(uri)
    calls = [
        partial(graph.mutate, source, branch=branch, actor=f"by {key}", message=f"for {key}", idempotency_key=key)
        for key, source in MUTATIONS.items()
    ]
    told = publish_together(graph, calls, branch)
    print([str(one.commit if isinstance(one, og.MutationResult) else one) for one in told])


def crowd(uri: str, branch: str, name: str) -> None:
    graph = og.open(uri)

    def work(thread: int) -> None:
        for turn in range(5):
            handle = f"{name}{thread}{turn}"
            graph.mutate(f'query q() {{ insert Staff {{ handle: "{handle}" }} }}', branch=branch, actor=name)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))


if __name__ == "__main__":
    (main if len(sys.argv) == 3 else crowd)(*sys.argv[1:])
