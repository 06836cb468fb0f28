"""Builds indexes that a table lacks, here or as Spark tasks per group of fragments, and stages them as one transaction.

An index over some fragments is a segment; the segments are merged into one index, which answers like one that was built as a
whole. Vector indexes are always built as a whole: in an index with one byte per number each segment would have its own
scale, which merging loses (measured: neighbours are missed).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby
from typing import Any

from lance.dataset import Index

from omnigraph import failpoints
from omnigraph.maintenance.index_plan import Build, IndexKind
from omnigraph.maintenance.workplace import Workplace
from omnigraph.spark.runner import Display, Inline
from omnigraph.storage.root import Root
from omnigraph.storage.tables.handles import Tables
from omnigraph.storage.tables.location import Location
from omnigraph.storage.tables.staged import (
    Staged,
    build_index_segment,
    stage_index,
    stage_index_segments,
    stage_indexes,
)
from omnigraph.storage.tables.table import Table

#: The most rows that one task covers, unless a single fragment has more.
ROWS_PER_TASK = 4_000_000

failpoints.declare("index_build.segments_built")


def stage_builds(workplace: Workplace, table: Table, builds: Sequence[Build]) -> Staged:
    """Build the indexes and stage them as one transaction; each replaces an index of the same name."""
    rows = table.count_rows()
    count = workplace.counter("index", rows * len(builds))
    runner = workplace.runner(rows, table.fragment_count)
    if isinstance(runner, Inline):
        staged = []
        for build in builds:
            staged.append(stage_index(table, build.column, build.lance_kind, build.index.name, options=build.options))
            count(rows)
        return stage_indexes(staged)
    sizes = [(part.fragment_id, part.metadata.num_rows) for part in table.dataset.get_fragments()]
    groups = groups_of(sizes, runner.parallelism)
    specs = [spec for build in builds for spec in _specs(workplace.root, table, build, groups)]
    segments = runner.run(build_segment, specs, display=Display(rows_of_segment, count), stage="build an index")
    failpoints.hit("index_build.segments_built")
    by_name: dict[str, list[Index]] = {}
    for spec, segment in zip(specs, segments, strict=True):
        by_name.setdefault(spec.name, []).append(segment.index)
    return stage_indexes(
        [stage_index_segments(table, build.lance_kind, build.index.name, by_name[build.index.name]) for build in builds]
    )


@dataclass(frozen=True)
class Group:
    """Adjacent fragments of a table that one task covers."""

    fragments: tuple[int, ...]
    rows: int


def groups_of(sizes: Sequence[tuple[int, int]], at_least: int) -> list[Group]:
    """Group fragments so that groups have about the same number of rows, with at least `at_least` groups if possible."""
    total = sum(rows for _, rows in sizes)
    wanted = min(len(sizes), max(at_least, -(-total // ROWS_PER_TASK)))
    before = accumulate((rows for _, rows in sizes), initial=0)
    places = [min(wanted - 1, reached * wanted // max(1, total)) for reached, _ in zip(before, sizes, strict=False)]
    groups = []
    for _, members in groupby(zip(places, sizes, strict=True), key=lambda member: member[0]):
        listed = [size for _, size in members]
        groups.append(Group(tuple(id_ for id_, _ in listed), sum(rows for _, rows in listed)))
    return groups


@dataclass(frozen=True)
class SegmentSpec:
    """One segment of one index to build, in a form that can be sent to another process."""

    root: Root
    location: Location
    version: int
    column: str
    kind: str
    name: str
    options: Mapping[str, Any]
    group: Group


@dataclass(frozen=True)
class Segment:
    """The data that Lance needs to commit a segment, and the number of rows it covers."""

    index: Index
    rows: int


def _specs(root: Root, table: Table, build: Build, groups: Sequence[Group]) -> list[SegmentSpec]:
    if build.index.kind is IndexKind.VECTOR:
        groups = [Group(table.fragment_ids, sum(group.rows for group in groups))]
    return [
        SegmentSpec(
            root,
            table.location,
            table.version,
            build.column,
            build.lance_kind,
            build.index.name,
            dict(build.options),
            group,
        )
        for group in groups
    ]


def rows_of_segment(segment: Segment) -> int:
    """How many rows a segment covers, to report progress."""
    return segment.rows


def build_segment(spec: SegmentSpec) -> Segment:
    """Write the files of one segment, in any process."""
    table = Tables(spec.root).open(spec.location, spec.version)
    index = build_index_segment(
        table, spec.column, spec.kind, spec.name, fragment_ids=spec.group.fragments, options=spec.options
    )
    return Segment(index, spec.group.rows)
