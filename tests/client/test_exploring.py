"""The verbs for looking around give the same over HTTP as on storage."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import omnigraph as og
from tests.own_loop import run_alone
from tests.server.serving import AGE, TOKEN, Served

VERBS: dict[str, Callable[[Any], Any]] = {
    "neighbours": lambda g: g.neighbours("Person", "ada"),
    "one group of neighbours": lambda g: g.neighbours("Person", "ada", edge="Knows", direction="out", limit=1, skip=0),
    "neighbours on a branch": lambda g: g.neighbours("Person", "ada", branch="b"),
    "comparison": lambda g: g.compare("main", "b"),
    "counts": lambda g: g.compare("main", "b", limit=0, types="Person", ops=["update"]),
    "schemas and data": lambda g: g.compare("main", "s"),
    "schemas alone": lambda g: g.compare("main", "s", limit=0),
    "difference of schemas": lambda g: g.diff("s", "main"),
    "branches": lambda g: g.branch_states(),
}


@pytest.fixture
def branched(served: Served) -> Served:
    served.post("/branches", {"name": "b"})
    served.mutate(AGE, "b", name="ada", age=1)
    served.mutate(AGE, "b", name="ben", age=2)
    served.post("/branches", {"name": "s"})
    wanted = served.get("/schema").json()["schema_source"].replace("age: I32?", "age: I64?  mail: String?")
    assert served.post("/schema/apply?branch=s", {"schema_source": wanted}).status_code == 200
    served.mutate(AGE, "s", name="ada", age=3)
    return served


def test_the_same_over_http(branched: Served) -> None:
    with og.open(branched.path, "ro") as here, og.connect(branched.url, graph="people", token=TOKEN) as there:
        for name, verb in VERBS.items():
            assert verb(there) == verb(here), name
        first = there.compare("main", "b", limit=1)
        assert first.next_page_token is not None
        second = there.compare("main", "b", limit=1, page_token=first.next_page_token)
        assert [change.id for change in (*first.changes, *second.changes)] == ["ada", "ben"]
        assert [step.kind for step in there.compare("main", "s").schema] == ["add_property", "widen"]
        with pytest.raises(og.errors.EntityNotFound):
            there.neighbours("Person", "zoe")


def test_the_same_awaited(branched: Served) -> None:
    async def ask() -> list[Any]:
        async with await og.connect_async(branched.url, graph="people", token=TOKEN) as graph:
            return [await verb(graph) for verb in VERBS.values()]

    with og.open(branched.path, "ro") as here:
        assert run_alone(ask()) == [verb(here) for verb in VERBS.values()]
