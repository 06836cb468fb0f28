"""One run of a query: the data that its operators share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from time import perf_counter

from omnigraph.language.literals import PlainValue, TypedValue
from omnigraph.language.query.ir import Bm25, Column, Constant, Now, Parameter, Rrf
from omnigraph.language.schema.catalog import Catalog
from omnigraph.query.caches import Caches
from omnigraph.query.facts import Facts
from omnigraph.query.limits import Budget
from omnigraph.query.scan.entities import Entities, View, open_edges, open_nodes

#: Turns the text of a `nearest` into a vector: (text, dimension, model recorded in the schema) → numbers.
Embed = Callable[[str, int, str | None], tuple[float, ...]]


@dataclass
class Trace:
    """What an operator did, for `explain`: notes always, rows and seconds when it ran."""

    notes: list[str] = field(default_factory=list)
    rows: int | None = None
    seconds: float | None = None


@dataclass(frozen=True)
class Run:
    """The snapshot, parameters and caches of one run. `now` is the same in the whole query, in milliseconds since 1970."""

    view: View
    catalog: Catalog
    params: Mapping[str, TypedValue]
    now: int
    caches: Caches
    embed: Embed
    #: The memory and time that the run may use, and how much of them it has used.
    budget: Budget
    #: The variables whose nodes are ranked against each other.
    ranked: frozenset[str] = frozenset()
    #: The bm25 scores that the plan asks for.
    scored: frozenset[Bm25] = frozenset()
    #: The scores and fused ranks of the result, which depend on all rows that match.
    compared: tuple[Bm25 | Rrf, ...] = ()
    #: The node type of each variable that stands for a node.
    node_types: Mapping[str, str] = field(default_factory=dict)
    #: The columns that each projection reads, by the identity of the operator.
    shown: Mapping[int, tuple[Column, ...]] = field(default_factory=dict)
    #: Whether notes for `explain` are wanted although they cost time to make.
    explaining: bool = False
    #: The trace of each operator, by identity, since a plan may contain equal operators.
    traces: dict[int, Trace] = field(default_factory=dict)
    _opened: dict[str, Entities] = field(default_factory=dict)
    _embedded: dict[tuple[str, int, str | None], tuple[float, ...]] = field(default_factory=dict)
    _active: list[Trace] = field(default_factory=list)

    def on(self, view: View) -> Run:
        """The same run on another state."""
        return replace(self, view=view, traces={}, _opened={}, _active=[])

    def of(self, facts: Facts) -> Run:
        """The same run with the facts of a plan; it shares the notes, opened tables and budget of this run."""
        # Calling the constructor with every field, as `replace` does, is 3 % of a short traversal.
        made = object.__new__(Run)
        vars(made).update(
            vars(self),
            ranked=facts.ranked,
            scored=facts.scored,
            compared=facts.compared,
            node_types=facts.node_types,
            shown=facts.shown,
        )
        return made

    def value(self, constant: Constant) -> PlainValue:
        """The plain value of a constant, a parameter or `now()` in this run."""
        match constant:
            case TypedValue():
                return constant.value
            case Parameter():
                return self.params[constant.name].value
            case Now():
                return self.now

    def vector_of(self, text: str, dimension: int, model: str | None) -> tuple[float, ...]:
        """The vector of a text. The embedding provider is asked once per run and text."""
        key = (text, dimension, model)
        if key not in self._embedded:
            self._embedded[key] = self.embed(*key)
        return self._embedded[key]

    def nodes(self, name: str) -> Entities:
        """The nodes of a type at this snapshot."""
        key = f"node:{name}"
        if key not in self._opened:
            self._opened[key] = open_nodes(self.view, self.catalog, name)
        return self._opened[key]

    def edges(self, name: str) -> Entities:
        """The edges of a type at this snapshot."""
        key = f"edge:{name}"
        if key not in self._opened:
            self._opened[key] = open_edges(self.view, self.catalog, name)
        return self._opened[key]

    @contextmanager
    def tracing(self, operator: object) -> Iterator[Trace]:
        """Notes made inside this context belong to `operator`; its time includes the time of the operators below it."""
        trace = self.traces.setdefault(id(operator), Trace())
        self._active.append(trace)
        start = perf_counter()
        try:
            yield trace
        finally:
            trace.seconds = (trace.seconds or 0.0) + perf_counter() - start
            self._active.pop()

    def note(self, text: str) -> None:
        """Add a line that `explain` shows below the current operator."""
        if self._active and text not in self._active[-1].notes:
            self._active[-1].notes.append(text)
