"""Maintenance: what optimize brings back, what it costs next to bare Lance, and how cleanup grows with what it removes."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import lance
import pyarrow as pa
from lance.fragment import write_fragments

import omnigraph as og
from bench.measure import Floor, Measure, Row, benchmark, in_turn, scratch_folder, seconds, summary, timed
from omnigraph.commit.context import CommitContext
from omnigraph.commit.protocol import Step, TableEffect, Write, execute
from omnigraph.commit.sidecar import Kind
from omnigraph.graph.lifecycle import connect
from omnigraph.storage.tables.staged import ROWS_PER_FRAGMENT, stage_fragments
from tests.commit.org import MENTORS, SCHEMA, STAFF, accepted, insert, lineage, mentors, new_graph, staff, table_of

COMMITS = 5_000
ROWS, FRAGMENTS = 1_000_000, 2_000
RESTORED, BARE = 1.2, 1.5
ASK = """
query point($h: String) { match { $s: Staff { handle: $h } } return { $s.level } }
query hop($h: String) { match { $s: Staff { handle: $h } $s mentors $o } return { $o.handle } }
"""


@benchmark("maintenance.restored")
def after_many_small_commits() -> Iterator[Row]:
    """A graph that grew by single rows, optimized, next to one that was loaded at once, in turn."""
    with scratch_folder() as folder:
        people = [f"p{number}" for number in range(COMMITS // 2)]
        pairs = list(zip(people, people[1:] + people[:1], strict=True))
        grown = new_graph(str(folder / "grown"), SCHEMA)
        for name in people:
            insert(grown, {STAFF: staff([name])})
        for pair in pairs:
            insert(grown, {MENTORS: mentors([pair])})
        loaded = new_graph(str(folder / "loaded"), SCHEMA)
        insert(loaded, {STAFF: staff(people), MENTORS: mentors(pairs)}, kind=Kind.LOAD)
        old, new = og.open(grown.root.uri), og.open(loaded.root.uri)
        new.optimize()
        yield Row("one-hop before optimize", _asked(old, "hop"))
        yield Row(f"optimize after {COMMITS:,} single-row commits", summary([seconds(old.optimize)]))
        for name in ("point", "hop"):
            assert old.query(ASK, name, {"h": "p77"}).rows == new.query(ASK, name, {"h": "p77"}).rows
            asked = [partial(graph.query, ASK, name, {"h": "p77"}) for graph in (old, new)]
            yield _restored({"point": "point look-up", "hop": "one-hop"}[name], *in_turn(asked, 60))
        loads = [partial(_load_manifest, context.root.uri) for context in (grown, loaded)]
        yield _restored("manifest load, fresh handle", *in_turn(loads, 30))


def _asked(graph: og.Graph, name: str) -> Measure:
    return timed(partial(graph.query, ASK, name, {"h": "p77"}), repeat=10)


def _restored(what: str, ours: Measure, fresh: Measure) -> Row:
    return Row(f"{what}, optimized", ours, Floor("freshly loaded graph", fresh), goal=RESTORED * fresh.median)


def _load_manifest(uri: str) -> None:
    connect(uri).manifest.load()


@benchmark("maintenance.compaction")
def next_to_bare_lance() -> Iterator[Row]:
    """The same table with the same indexes: by optimize, and by Lance alone on a copy."""
    with scratch_folder() as folder:
        context = new_graph(str(folder / "graph"), SCHEMA)
        _many_fragments(context)
        og.open(context.root.uri).ensure_indices()
        path = connect(context.root.uri).manifest.load().by_key[STAFF].path
        ours, bare = [], []
        for number in range(3):
            graph = shutil.copytree(context.root.uri, folder / f"ours {number}")
            table = shutil.copytree(Path(context.root.uri) / path, folder / f"bare {number}")
            opened = og.open(graph)
            ours.append(seconds(opened.optimize))
            assert opened.snapshot().open(STAFF).fragment_count == 1
            compact = lance.dataset(str(table)).optimize.compact_files
            bare.append(seconds(partial(compact, target_rows_per_fragment=ROWS_PER_FRAGMENT)))
            assert len(lance.dataset(str(table)).get_fragments()) == 1
        floor = Floor("bare Lance compaction", summary(bare))
        what = f"optimize of {ROWS:,} rows in {FRAGMENTS:,} fragments, indexed"
        yield Row(what, summary(ours), floor, goal=BARE * floor.measure.median)


def _many_fragments(context: CommitContext) -> None:
    """One commit that appends a million rows in small fragments."""
    state = context.manifest.load()
    entry = state.by_key[STAFF]
    table = table_of(context, entry)
    names = pa.array([f"p{number}" for number in range(ROWS)])
    rows = pa.table({"id": names, "handle": names, "level": pa.array(range(ROWS), pa.int32())}, schema=staff([]).schema)
    written = write_fragments(rows, table.dataset, mode="append", max_rows_per_file=ROWS // FRAGMENTS)
    effect = TableEffect(entry, (Step(stage_fragments(table, written)),))
    execute(context, Write(Kind.LOAD, "main", lineage(Kind.LOAD), (effect,), accepted(state)))


@benchmark("maintenance.cleanup")
def cleanup_over_what_it_removes() -> Iterator[Row]:
    """The same number of commits stays each time; what goes is ten times as much."""
    with scratch_folder() as folder, _without_feed():
        context = new_graph(str(folder / "graph"), SCHEMA)
        graph = og.open(context.root.uri)
        graph.cleanup(keep=10)
        times = []
        for count in (100, 1_000):
            for number in range(count):
                insert(context, {STAFF: staff([f"p{count}-{number}"])})
            removed = sum(dataset.old_versions_removed for dataset in graph.cleanup(keep=10, dry_run=True).datasets)
            times.append((count, removed, seconds(partial(graph.cleanup, keep=10))))
        for count, removed, spent in times:
            yield Row(f"cleanup after {count:,} commits, per removed version", summary([spent / removed]))
        yield Row("cleanup with nothing to remove", timed(partial(graph.cleanup, keep=10), repeat=5, warm_up=1))


@contextmanager
def _without_feed() -> Iterator[None]:
    before = os.environ.get("OMNIGRAPH_FEED_RETENTION")
    os.environ["OMNIGRAPH_FEED_RETENTION"] = "0s"
    try:
        yield
    finally:
        if before is None:
            del os.environ["OMNIGRAPH_FEED_RETENTION"]
        else:
            os.environ["OMNIGRAPH_FEED_RETENTION"] = before
