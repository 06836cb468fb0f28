"""A process in which loads, transactions and mutations wait for a branch together.

together_child.py <uri>: they are published together; run with OMNIGRAPH_FAILPOINTS=<name>=kill, it dies on the way.
together_child.py <uri> <name>: three threads write five rows each, whose keys begin with this name: one by loads, one by
transactions, one by mutations.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import omnigraph as og
from tests.load.loading import edge, lines, node
from tests.mutation.waiting import publish_together


def calls(graph: og.Graph) -> dict[str, Callable[[], Any]]:
    """By idempotency key. Together they touch several tables; the third is refused."""

    def load(key: str, *documents: Any, mode: Any = "append") -> Callable[[], Any]:
        options: dict[str, Any] = {"actor": f"by {key}", "message": f"for {key}", "idempotency_key": key}
        return partial(graph.load, lines(documents), mode, engine="local", **options)

    def many(key: str, *sources: str) -> Callable[[], Any]:
        texts = [f"query q() {{ {source} }}" for source in sources]
        return partial(graph.mutate_many, texts, actor=f"by {key}", message=f"for {key}", idempotency_key=key)

    return {
        "one": load("one", node("Staff", handle="eve", level=22), edge("Mentors", "eve", "ada")),
        "two": many("two", 'insert Staff { handle: "fay" }', 'insert Mentors { from: "fay", to: "ada" }'),
        "bad": load("bad", edge("Mentors", "nobody", "ada")),
        "three": many("three", 'update Staff set { level: 99 } where handle = "ben"'),
        "four": load("four", node("Staff", handle="ada", level=7), node("Team", code="ops"), mode="merge"),
    }


def main(uri: str) -> None:
    graph = og.open(uri)
    told = publish_together(graph, list(calls(graph).values()))
    print([str(getattr(one, "commit", one)) for one in told])


def crowd(uri: str, name: str) -> None:
    graph = og.open(uri)

    def work(thread: int) -> None:
        for turn in range(5):
            handle = f"{name}{thread}{turn}"
            insert = f'query q() {{ insert Staff {{ handle: "{handle}" }} }}'
            if thread == 0:
                graph.load(lines([node("Staff", handle=handle)]), engine="local")
            elif thread == 1:
                graph.mutate_many([insert])
            else:
                graph.mutate(insert)

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(work, range(3)))


if __name__ == "__main__":
    (main if len(sys.argv) == 2 else crowd)(*sys.argv[1:])
