"""Commits, branches and opening on local disk, against the same with less history or fewer types, or bare Lance."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import lance

import omnigraph
from bench.bare_lance import BareManifest
from bench.measure import Floor, Measure, Row, benchmark, in_turn, scratch_folder, seconds, summary
from bench.storage_graphs import commit_many, commit_one, compact_table, schema
from omnigraph.commit.branches import create_branch, delete_branch
from omnigraph.commit.context import CommitContext
from omnigraph.graph.lifecycle import connect
from tests.commit.org import STAFF, new_graph, staff

AGES = (10, 1_000, 5_000)
MANY_TYPES = 112
FLAT = 1.3
#: Of branches, between a graph of one type and one of many.
FLAT_OVER_TYPES = 1.1
OPEN_SECONDS = 0.1
BARE_FACTOR = 3.0
#: Commits of one window; the manifest is compacted several times in it.
WINDOW = 45
_ROUNDS = 20


@benchmark("storage.history")
def cost_over_history() -> Iterator[Row]:
    """Commits on graphs of different age in turn, then opening the oldest.

    The graphs are copies of one while it grows. The fragments of the table that is written are equal: one in each graph
    when the turns begin, and as many new ones in each as there are turns.
    """
    with scratch_folder() as folder:
        contexts = _graphs_by_age(folder)
        for context in contexts:
            compact_table(context)
        first, *later = in_turn([partial(commit_one, context) for context in contexts], WINDOW)
        yield Row(f"single-row commit, graph of {AGES[0]} commits", first)
        for age, measure in zip(AGES[1:], later, strict=True):
            floor = Floor(f"at {AGES[0]} commits", first)
            yield Row(f"single-row commit, graph of {age:,} commits", measure, floor, goal=FLAT * first.median)
        yield from _opening(contexts[-1].root.uri)


def _graphs_by_age(folder: Path) -> list[CommitContext]:
    growing = new_graph(str(folder / "growing"), schema(4))
    contexts, made = [], 0
    for age in AGES:
        commit_many(growing, age - made)
        made = age
        # Without branches a graph may be copied.
        copy = shutil.copytree(growing.root.uri, folder / f"at {age}")
        contexts.append(connect(str(copy)))
    return contexts


def _opening(uri: str) -> Iterator[Row]:
    here = summary(seconds(lambda: omnigraph.open(uri)) for _ in range(_ROUNDS))
    yield Row(f"open a graph of {AGES[-1]:,} commits, in a running process", here, goal=OPEN_SECONDS)
    runs = [_open_in_fresh_process(uri) for _ in range(5)]
    fresh = summary(opened for opened, _ in runs)
    yield Row("… in a fresh process, after the imports", fresh, goal=OPEN_SECONDS)
    yield Row("… in a fresh process, with its start and the imports", summary(whole for _, whole in runs))


_OPEN = """
import json, sys, time
from omnigraph import open
start = time.perf_counter()
open(sys.argv[1])
print(json.dumps(time.perf_counter() - start))
"""


def _open_in_fresh_process(uri: str) -> tuple[float, float]:
    """Seconds of the call, and of the whole process."""
    start = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", _OPEN, uri], check=True, capture_output=True, text=True)
    return json.loads(done.stdout), time.perf_counter() - start


@benchmark("storage.branches")
def branches_over_types() -> Iterator[Row]:
    """Branches of a graph of one type and of one with many, in turn.

    The name is the same each time. The first branch of a name also makes its lock file, and how long a file system
    takes to make a file depends on what lies around it.
    """
    with scratch_folder() as folder:
        few = new_graph(str(folder / "few"), schema(1))
        many = new_graph(str(folder / "many"), schema(MANY_TYPES))
        times: dict[tuple[str, CommitContext], list[float]] = {}
        for number in range(-1, _ROUNDS):
            for context in (few, many):
                created = seconds(partial(create_branch, context, "b", "main"))
                deleted = seconds(partial(delete_branch, context, "b"))
                if number >= 0:
                    times.setdefault(("create", context), []).append(created)
                    times.setdefault(("delete", context), []).append(deleted)
        for verb in ("create", "delete"):
            one = summary(times[verb, few])
            what, floor = f"{verb} a branch, {MANY_TYPES} types", Floor("1 type", one)
            yield Row(what, summary(times[verb, many]), floor, goal=FLAT_OVER_TYPES * one.median)


@benchmark("storage.bare")
def commit_over_bare_lance() -> Iterator[Row]:
    """A commit against the two Lance writes it can not do without, on tables like its own, in turn."""
    with scratch_folder() as folder:
        context = new_graph(str(folder / "graph"), schema(4))
        entry = context.manifest.load().by_key[STAFF]
        table = lance.write_dataset(staff(["x"]), folder / "table", enable_stable_row_ids=True)
        manifest = BareManifest(folder / "manifest", entry)

        def append_one() -> None:
            table.insert(staff(["x"]))

        actions: list[Callable[[], object]] = [partial(commit_one, context), append_one, manifest.publish]
        ours, append, merge = in_turn(actions, WINDOW, manifest.upkeep)
        bare = Measure(append.median + merge.median, append.low + merge.low, append.high + merge.high)
        floor = Floor("bare Lance append + merge-insert", bare)
        yield Row("single-row commit", ours, floor, goal=BARE_FACTOR * bare.median)
