"""Branches in numbers: with thousands alive, with a thousand deleted, and a schema change beside many."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import count
from pathlib import Path

import omnigraph
from bench.measure import Floor, Measure, Row, benchmark, in_turn, scratch_folder, seconds, summary
from bench.s3_requests import Recorder, Recording, recorded
from bench.storage_graphs import schema
from tests.s3 import S3Server, running_server

FEW, MANY = 10, 10_000
#: More than one page of a listing on S3.
MANY_ON_S3 = 1_200
DELETED = 1_000
BESIDE = 50
STEADY = 1.5
OPEN_STEADY = 1.2
APPLY_STEADY = 1.2
LIST_SECONDS = 1.0
_ROUNDS = 20

_PUT = "query put($h: String) { insert Staff { handle: $h } }"


@benchmark("branches.alive")
def many_alive() -> Iterator[Row]:
    """Creating, opening, writing and deleting with a few live branches and with thousands, in turn."""
    with scratch_folder() as folder:
        few, many = (_with_branches(folder / str(number), number) for number in (FEW, MANY))
        yield from _compared(few, many)
        listed = summary(seconds(partial(_list_all, many)) for _ in range(_ROUNDS))
        yield Row(f"list {MANY:,} branches", listed, goal=LIST_SECONDS)


def _with_branches(place: Path, number: int) -> omnigraph.Graph:
    """A graph with so many live branches of main; making them is timed, and told while it runs."""
    graph = omnigraph.init(place, schema(4))
    begun = time.perf_counter()
    for at in range(number):
        graph.create_branch(f"b{at:05}")
    taken = time.perf_counter() - begun
    print(f"  {number:,} branches made in {taken:.1f} s", file=sys.stderr, flush=True)
    return graph


def _list_all(graph: omnigraph.Graph) -> None:
    assert len(graph.branches()) == MANY + 1


def _compared(few: omnigraph.Graph, many: omnigraph.Graph) -> Iterator[Row]:
    for what, actions in (
        ("open a graph with {} branches", [partial(omnigraph.open, graph.uri) for graph in (few, many)]),
        ("create a branch beside {} others", [_creating(graph) for graph in (few, many)]),
        ("delete a branch beside {} others", [_deleting(graph) for graph in (few, many)]),
        ("delete a branch with a commit beside {} others", [_deleting(graph, written=True) for graph in (few, many)]),
    ):
        least, most = _in_pairs(actions)
        floor = Floor(f"with {FEW}", least)
        yield Row(what.format(f"{MANY:,}"), most, floor, goal=STEADY * least.median)


def _creating(graph: omnigraph.Graph) -> Callable[[], float]:
    """Creates a branch and says how long that took; it is deleted outside the time."""

    def create() -> float:
        taken = seconds(lambda: graph.create_branch("extra"))
        graph.delete_branch("extra")
        return taken

    return create


def _deleting(graph: omnigraph.Graph, *, written: bool = False) -> Callable[[], float]:
    numbers = count()

    def delete() -> float:
        graph.create_branch("extra")
        if written:
            graph.mutate(_PUT, params={"h": f"h{next(numbers)}"}, branch="extra")
        return seconds(lambda: graph.delete_branch("extra"))

    return delete


def _in_pairs(actions: Sequence[Callable[[], object]]) -> list[Measure]:
    """Like `in_turn`; an action that says how long it took is believed."""
    times: list[list[float]] = [[] for _ in actions]
    for number in range(-2, _ROUNDS):
        for action, taken in zip(actions, times, strict=True):
            begun = time.perf_counter()
            told = action()
            if number >= 0:
                taken.append(told if isinstance(told, float) else time.perf_counter() - begun)
    return [summary(taken) for taken in times]


@benchmark("branches.deleted")
def many_deleted() -> Iterator[Row]:
    """Opening a graph that a thousand branches were merged into and deleted from, and one without."""
    with scratch_folder() as folder:
        none = omnigraph.init(folder / "none", schema(4))
        some = omnigraph.init(folder / "some", schema(4))
        none.mutate(_PUT, params={"h": "h"})
        for number in range(DELETED):
            some.create_branch("work")
            some.mutate(_PUT, params={"h": f"h{number}"}, branch="work")
            some.merge("work", delete_branch=True)
        least, most = in_turn([partial(omnigraph.open, graph.uri) for graph in (none, some)], 2 * _ROUNDS)
        floor = Floor("with none", least)
        yield Row(f"open a graph with {DELETED:,} deleted branches", most, floor, goal=OPEN_STEADY * least.median)


@benchmark("branches.schema")
def schema_beside_branches() -> Iterator[Row]:
    """One property more on main, in a graph with many branches that have commits and in one without."""
    with scratch_folder() as folder:
        alone, beside = (omnigraph.init(folder / name, schema(4)) for name in ("alone", "beside"))
        for number in range(BESIDE):
            for graph in (alone, beside):
                graph.mutate(_PUT, params={"h": f"h{number}"})
            beside.create_branch(f"b{number}")
            beside.mutate(_PUT, params={"h": "own"}, branch=f"b{number}")
        least, most = in_turn([_applying(graph) for graph in (alone, beside)], _ROUNDS)
        floor = Floor("without branches", least)
        yield Row(f"add a property beside {BESIDE} branches", most, floor, goal=APPLY_STEADY * least.median)


def _applying(graph: omnigraph.Graph) -> Callable[[], object]:
    numbers = count(1)

    def apply() -> object:
        properties = " ".join(f"p{number}: I32?" for number in range(next(numbers)))
        return graph.apply_schema(schema(4).replace("level: I32?", f"level: I32? {properties}"))

    return apply


@benchmark("branches.requests")
def requests_on_s3() -> Iterator[Row]:
    """The requests that creating and deleting a branch take on S3, with few others and with many."""
    with running_server() as server, recorded(server) as (proxy, recorder):
        few, many = (_recorded(server, proxy, recorder, number) for number in (FEW, MANY_ON_S3))
    for verb in few:
        for part, asked in (("in all", lambda one: one.total), ("in sequence", lambda one: one.in_sequence)):
            least, most = (summary(map(asked, found[verb]), "requests") for found in (few, many))
            floor = Floor(f"with {FEW}", least)
            what = f"{verb} a branch on S3 beside {MANY_ON_S3:,} others, {part}"
            yield Row(what, most, floor, goal=least.median)


def _recorded(server: S3Server, proxy: S3Server, recorder: Recorder, number: int) -> dict[str, list[Recording]]:
    root = server.new_root()
    maker = omnigraph.init(root.uri, schema(4), storage_options=root.storage_options)
    for at in range(number):
        maker.create_branch(f"b{at:05}")
    graph = omnigraph.open(root.uri, storage_options=proxy.options)
    found: dict[str, list[Recording]] = {"create": [], "delete": []}
    for _ in range(4):
        with recorder.recording() as creating:
            graph.create_branch("extra")
        with recorder.recording() as deleting:
            graph.delete_branch("extra")
        found["create"].append(creating())
        found["delete"].append(deleting())
    # The first round reads what later ones know.
    return {verb: recordings[1:] for verb, recordings in found.items()}
