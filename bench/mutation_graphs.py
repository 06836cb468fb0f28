"""The graphs of the mutation benchmarks: so many rows of staff and of edges between them, indexed, and the same in bare Lance."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import lance
import pyarrow as pa

import omnigraph
from bench.bare_lance import BareManifest
from omnigraph.graph.lifecycle import connect
from tests.commit.org import MENTORS, STAFF, index, insert
from tests.mutation.org_graph import SCHEMA, WRITES

_names = itertools.count()


def staff_rows(names: list[str]) -> pa.Table:
    """Rows of staff under these names."""
    fields = [pa.field(name, pa.string(), nullable=False) for name in ("id", "handle")]
    columns = {"id": names, "handle": names, "level": pa.array([1] * len(names), pa.int32())}
    return pa.table(columns, pa.schema([*fields, pa.field("level", pa.int32())]))


def edge_rows(ids: list[str], sources: list[str], targets: list[str]) -> pa.Table:
    """Mentors edges."""
    fields = [pa.field(name, pa.string(), nullable=False) for name in ("id", "src", "dst")]
    columns = {"id": ids, "src": sources, "dst": targets, "began": pa.nulls(len(ids), pa.date32())}
    return pa.table(columns, pa.schema([*fields, pa.field("began", pa.date32())]))


@dataclass(frozen=True)
class Sized:
    """A graph with so many staff and as many edges, and two bare datasets with the same rows and indexes."""

    size: int
    folder: Path

    @property
    def names(self) -> list[str]:
        return [f"s{number:07}" for number in range(self.size)]

    @cached_property
    def graph(self) -> omnigraph.Graph:
        uri = self.folder / f"graph {self.size}"
        graph = omnigraph.init(uri, SCHEMA)
        context = connect(str(uri))
        insert(context, {STAFF: staff_rows(self.names), MENTORS: self._edges()})
        for key, column in ((STAFF, "id"), (MENTORS, "id"), (MENTORS, "src"), (MENTORS, "dst")):
            index(context, key, column)
        return graph

    @cached_property
    def bare_staff(self) -> lance.LanceDataset:
        return self._bare("staff", staff_rows(self.names), "id")

    @cached_property
    def bare_edges(self) -> lance.LanceDataset:
        return self._bare("edges", self._edges(), "id", "src", "dst")

    @cached_property
    def bare_manifest(self) -> BareManifest:
        entries = self.graph.snapshot().state.by_key
        return BareManifest(self.folder / f"manifest {self.size}", entries[STAFF], entries[MENTORS])

    def _edges(self) -> pa.Table:
        names = self.names
        return edge_rows([f"e{name}" for name in names], names, [*names[1:], names[0]])

    def _bare(self, what: str, rows: pa.Table, *indexed: str) -> lance.LanceDataset:
        place = self.folder / f"{what} {self.size}"
        dataset = lance.write_dataset(rows, place, enable_stable_row_ids=True)
        for column in indexed:
            dataset.create_scalar_index(column, "BTREE")
        return lance.dataset(place)


def call(graph: omnigraph.Graph, name: str, **params: object) -> omnigraph.MutationResult:
    """Run one of the writes of the shared fixture."""
    return graph.mutate(WRITES, name, params)


def fresh_name() -> str:
    """A name nobody has."""
    return f"new{next(_names)}"
