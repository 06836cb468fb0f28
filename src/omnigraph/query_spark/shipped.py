"""The data that the tasks of a query need: pinned tables, schema, parameters and limits, as one small object.
A task makes a `Run` from it, so that its rows are read and computed by the code of the local engine.
"""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from omnigraph.commit.model import TableEntry
from omnigraph.errors import BadRequest, NotFound
from omnigraph.language.literals import TypedValue
from omnigraph.language.query.ir import Bm25, Nearest, Plan, Rrf, expressions_in, operands
from omnigraph.language.query.ir.expressions import Expr, UnknownAlias
from omnigraph.language.schema.catalog import Catalog
from omnigraph.query.caches import Caches
from omnigraph.query.facts import facts_of
from omnigraph.query.limits import Budget, Limits
from omnigraph.query.run import Run
from omnigraph.query.search.vectors import query_vector
from omnigraph.storage.root import Root
from omnigraph.storage.tables.handles import Tables
from omnigraph.storage.tables.table import Table

#: The vector of each embedded text: (text, dimension, model) as in `Run`.
_Vectors = Mapping[tuple[str, int, str | None], tuple[float, ...]]


@dataclass(frozen=True)
class Pinned:
    """A view of a graph in another process: table versions by type key."""

    tables: Tables
    entries: Mapping[str, TableEntry]
    commit: str

    def entry(self, type_key: str) -> TableEntry:
        return self.entries[type_key]

    def open(self, type_key: str) -> Table:
        entry = self.entries[type_key]
        return self.tables.open(entry.location, entry.version)


@dataclass(frozen=True)
class Shipped:
    """The parts of a run that its tasks need."""

    root: Root
    entries: Mapping[str, TableEntry]
    commit: str
    catalog: Catalog
    params: Mapping[str, TypedValue]
    now: int
    vectors: _Vectors
    limits: Limits
    ranked: frozenset[str]
    scored: frozenset[Bm25]
    node_types: Mapping[str, str]

    def run(self) -> Run:
        """A run in this (worker) process."""
        view = Pinned(Tables(self.root), self.entries, self.commit)
        budget = Budget(self.limits)
        return Run(
            view,
            self.catalog,
            self.params,
            self.now,
            Caches(),
            _embed_nothing,
            budget,
            ranked=self.ranked,
            scored=self.scored,
            node_types=self.node_types,
            _embedded=dict(self.vectors),
        )


def _embed_nothing(text: str, dimension: int, model: str | None) -> tuple[float, ...]:
    raise AssertionError(f"the driver has embedded every text of the query, and '{text}' is none of them")


def shipped(plan: Plan, run: Run, root: Root) -> bytes:
    """The pickled run of a plan for its tasks. Texts of `nearest` are embedded here, once."""
    for expr in expressions_in(plan):
        _embed(expr, run)
    facts = facts_of(plan)
    limits = Limits(memory=run.budget.limits.memory, batch_rows=run.budget.limits.batch_rows)
    return pickle.dumps(
        Shipped(
            root,
            _entries(run),
            run.view.commit,
            run.catalog,
            dict(run.params),
            run.now,
            dict(run._embedded),
            limits,
            facts.ranked,
            facts.scored,
            dict(facts.node_types),
        )
    )


def _entries(run: Run) -> dict[str, TableEntry]:
    """The tables of the snapshot by type key; types that the snapshot does not have yet are left out."""
    found = {}
    keys = [entity.type_key for entity in run.catalog.nodes.values()]
    keys += [entity.type_key for entity in run.catalog.edges.values()]
    for key in keys:
        try:
            entry = run.view.entry(key)
        except NotFound:
            continue
        if entry.part is not None:
            raise BadRequest(
                f"commit {run.view.commit} was published together with others, and the executors know only the state after "
                "all of them; use engine='local', or take the last commit of its group"
            )
        found[key] = entry
    return found


def _embed(expr: Expr | UnknownAlias, run: Run) -> None:
    if isinstance(expr, Nearest):
        query_vector(expr, run)
    elif isinstance(expr, Rrf):
        _embed(expr.left, run)
        _embed(expr.right, run)
    else:
        for operand in operands(expr):
            _embed(operand, run)


@lru_cache(maxsize=8)
def run_of(payload: bytes) -> Run:
    """The run of a payload in this process; consecutive tasks share its open tables and caches."""
    data = pickle.loads(payload)
    assert isinstance(data, Shipped)
    return data.run()
