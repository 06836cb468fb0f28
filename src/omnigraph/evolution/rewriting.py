"""Writes columns of large tables in tasks of some fragments each, in this process or on Spark."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from lance.fragment import FragmentMetadata
from lance.schema import LanceSchema

from omnigraph.spark.options import SparkOptions
from omnigraph.spark.runner import Inline, Runner, choose_runner
from omnigraph.storage.root import Root
from omnigraph.storage.tables.columns import Beside, Column, write_beside
from omnigraph.storage.tables.handles import Tables
from omnigraph.storage.tables.location import Location
from omnigraph.storage.tables.table import Table

#: Below this number of rows a Spark job takes longer than the work, even in a running session.
ROWS_FOR_A_JOB = 1_000_000
#: From this number of rows on it pays to start Spark.
ROWS_FOR_SPARK = 5_000_000


def writer(root: Root, engine: str, options: SparkOptions) -> Beside:
    """A function that writes columns to new files: here, or on Spark for large tables."""
    return partial(_write, root, engine, options)


def _write(
    root: Root, engine: str, options: SparkOptions, table: Table, columns: Sequence[Column], names: Sequence[str]
) -> tuple[list[FragmentMetadata], LanceSchema]:
    runner = _runner(engine, options, table)
    if isinstance(runner, Inline):
        return write_beside(table, columns, names)
    tasks = min(len(table.fragment_ids), max(1, runner.parallelism * 2))
    specs = [
        ColumnsSpec(root, table.location, table.version, tuple(columns), tuple(names), table.fragment_ids[first::tasks])
        for first in range(tasks)
    ]
    written = runner.run(write_some, specs, stage="columns")
    fragments = {
        fragment.id: fragment
        for part in written
        for fragment in (FragmentMetadata.from_json(text) for text in part.fragments)
    }
    return [fragments[number] for number in table.fragment_ids], written[0].schema


def _runner(engine: str, options: SparkOptions, table: Table) -> Runner:
    rows = table.count_rows()
    if engine == "auto" and (table.fragment_count < 2 or rows < ROWS_FOR_A_JOB):
        return Inline()
    return choose_runner(engine, options, is_large=lambda: rows >= ROWS_FOR_SPARK)


@dataclass(frozen=True)
class ColumnsSpec:
    """Columns to write for some fragments of a table, in a form that can be sent to another process."""

    root: Root
    location: Location
    version: int
    columns: tuple[Column, ...]
    names: tuple[str, ...]
    fragments: tuple[int, ...]


@dataclass(frozen=True)
class ColumnsWritten:
    """The data that Lance needs to commit the columns of one task."""

    fragments: tuple[str, ...]
    schema: LanceSchema


def write_some(spec: ColumnsSpec) -> ColumnsWritten:
    """Write the columns of one task, in any process."""
    table = Tables(spec.root).open(spec.location, spec.version)
    fragments, schema = write_beside(table, spec.columns, spec.names, spec.fragments)
    return ColumnsWritten(tuple(json.dumps(fragment.to_json()) for fragment in fragments), schema)
