"""Reading nodes and edges: the needed columns of the matching rows, as rows of bindings."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.language.query.ir import Nearest, NodePattern, Predicate, columns_of
from omnigraph.language.types import Scalar
from omnigraph.query.cache import LOOKUP
from omnigraph.query.limits import Budget
from omnigraph.query.rows import Gathered, Rows, Values, address_name, column_name, gathered
from omnigraph.query.run import Run
from omnigraph.query.scan.columns import named_columns, scan_in_memory, without_memory
from omnigraph.query.scan.entities import Entities
from omnigraph.query.scan.pushdown import Pushed, push
from omnigraph.query.search.bm25 import indexed_bm25
from omnigraph.query.search.scores import score_name, scores
from omnigraph.query.search.text import indexed_text, search_batches, uncovered_batches
from omnigraph.query.shape.evaluate import plain, satisfying
from omnigraph.storage.tables.lance_errors import translated
from omnigraph.storage.tables.table import IDS_PER_LOOKUP, ROW_ADDRESS, Filter, Table
from omnigraph.values.columns import arrow_type
from omnigraph.values.compare import Comparison, coerce
from omnigraph.values.identity import derive_ids

#: Larger than the default of a table read: queries stream their batches, and fewer batches cost less.
_BATCH_ROWS = 65536
#: The cost of reading and sorting one id of a node table, in units of `query.cache`.
_PER_ID_READ = 3.5
#: Filtering a row takes about as long as so many steps of a loop.
_STEPS_PER_ROW = 100


@dataclass(frozen=True, slots=True)
class Request:
    """The rows and columns that are wanted of a table."""

    entities: Entities
    variable: str
    columns: tuple[str, ...]
    predicates: tuple[Predicate, ...] = ()
    #: A column and values: only rows with one of these values, looked up through the index on the column.
    among: tuple[str, pa.Array] | None = None
    limit: int | None = None
    #: Whether row addresses are wanted; they are always read together with the id.
    located: bool = False
    #: The vector distances to compute for each row; the vectors are dropped after each batch.
    distances: tuple[Nearest, ...] = ()
    #: Only rows of these Lance fragments: the share of one task. None: all fragments.
    fragments: tuple[int, ...] | None = None

    @property
    def addresses(self) -> bool:
        return self.located or "id" in self.columns


def scan_nodes(node: NodePattern, run: Run, limit: int | None = None) -> Rows:
    """One row for each node that matches a pattern; at most `limit` rows."""
    return gathered(scan_batches(node, run, limit), run.budget)


def scan_batches(node: NodePattern, run: Run, limit: int | None = None, first: int | None = None) -> Iterator[Rows]:
    """`scan_nodes` in batches. `first`: about so many rows may be enough, so the first batch is small."""
    entities = run.nodes(node.node_type)
    columns = node_columns(node, run)
    among: tuple[str, pa.Array] | None = None
    if node.lookup is not None:
        id_ = _lookup_id(node, entities, run)
        plainly = not node.predicates and not node.distances and node.variable not in run.ranked
        if columns == ("id",) and plainly and limit is None and id_ is not None:
            yield _found_id(entities, node.variable, id_, run)
            return
        among = _having(id_)
    elif limit is None and node.variable not in run.ranked:
        in_memory = scan_in_memory(node, columns, run)
        if in_memory is not None:
            yield from sliced(in_memory, run.budget)
            return
    request = Request(entities, node.variable, columns, node.predicates, among, limit, distances=node.distances)
    if limit is not None or among is not None:
        rows = read(request, run)
        yield rows if limit is not None else _with_scores(rows, node.variable, run)
        return
    batches = read_batches(request, run, first)
    if any(score.field.variable == node.variable for score in run.scored):
        without_memory(node, columns, run)
        rows = gathered(batches, run.budget)
        yield _with_scores(rows, node.variable, run)
        return
    without_memory(node, columns, run)
    yield from batches


def share_of_nodes(node: NodePattern, run: Run, fragments: tuple[int, ...] | None) -> Request:
    """The request for the rows of a pattern in some fragments; a pattern with a key looks its node up in all fragments."""
    entities = run.nodes(node.node_type)
    columns = node_columns(node, run)
    if node.lookup is not None:
        among = _having(_lookup_id(node, entities, run))
        return Request(entities, node.variable, columns, node.predicates, among, distances=node.distances)
    return Request(entities, node.variable, columns, node.predicates, distances=node.distances, fragments=fragments)


def sliced(rows: Rows, budget: Budget) -> Iterator[Rows]:
    """Rows that are in memory, cut into batches of the budget's size."""
    if rows.count <= budget.rows:
        yield rows
        return
    for start in range(0, rows.count, budget.rows):
        budget.check()
        yield rows.slice(start, budget.rows)


def _with_scores(rows: Rows, variable: str, run: Run) -> Rows:
    """The rows with their bm25 scores, when the index does not cover all rows.
    The index scores a text independently of the other rows. Texts that it does not cover are scored against each other, over
    all rows of the scan; the scores are computed here, because a later step that drops rows must not change them.
    """
    for score in run.scored:
        if score.field.variable == variable and rows.has(variable, score.field.property):
            values = indexed_bm25(score, rows, run, only_when_behind=True)
            rows = rows if values is None else rows.with_columns({score_name(score): values})
    return rows


def _having(id_: str | None) -> tuple[str, pa.Array]:
    """The `among` of a request for the row with this id; no rows when the id is None."""
    return "id", pa.array([] if id_ is None else [id_], pa.string())


def _found_id(entities: Entities, variable: str, id_: str, run: Run) -> Rows:
    """The node with this id, or no rows: read from the table, or from memory once look-ups have cost as much as loading."""
    key = entities.table.identity
    if run.caches.by_id.get(key) is None and run.caches.spending.of(key) < _PER_ID_READ * entities.rows:
        run.caches.spending.add(key, LOOKUP)
        return read(Request(entities, variable, ("id",), among=_having(id_)), run)
    run.note("lookup by id, in memory")
    index = run.caches.node_index(entities.table, entities.rows, run.budget)
    found = index.find(id_)
    return Rows(len(found)).with_positions(variable, index.nodes, found)


def node_columns(node: NodePattern, run: Run) -> tuple[str, ...]:
    """The columns to read of a node: the plan's, and the id when a ranking compares nodes of this variable."""
    properties = run.nodes(node.node_type).entity.properties
    columns = node.columns
    if columns is None:
        columns = ("id", *(name for name, declared in properties.items() if not declared.type.is_blob))
    return columns if "id" in columns or node.variable not in run.ranked else (*columns, "id")


def _lookup_id(node: NodePattern, entities: Entities, run: Run) -> str | None:
    """The id of the only node that can have this key; None when no node can."""
    assert node.lookup is not None
    names = ("id",) if node.lookup_by_id else node.key
    values = [plain(run.value(value)) for value in node.lookup]
    if len(names) == 1 and entities.kind(names[0]).scalar is Scalar.STRING:
        # A key of one text property is the id itself.
        return None if values[0] is None else str(values[0])
    columns = {}
    for name, value in zip(names, values, strict=True):
        coerced = coerce(entities.kind(name), "=", value)
        if not isinstance(coerced, Comparison):
            return None
        columns[name] = pa.array([coerced.value.as_py()], coerced.value.type)
    return str(derive_ids(entities.entity, columns)[0].as_py())


def read(request: Request, run: Run) -> Rows:
    """The rows of a request."""
    return gathered(read_batches(request, run), run.budget)


def read_batches(request: Request, run: Run, first: int | None = None) -> Iterator[Rows]:
    """The rows of a request in at least one batch, which may be empty. `first`: about so many rows may be enough."""
    pushed = push(request.predicates, request.entities, run, texts=request.among is None)
    if pushed.never or request.limit == 0:
        yield _empty(request)
        return
    anything = request.columns or request.located or request.distances or pushed.rest
    if request.among is None and request.fragments is None and not anything:
        _note(request, pushed, run)
        count = _count(request.entities, pushed.filter, run)
        yield Rows(count if request.limit is None else min(count, request.limit))
        return
    # Small scan batches are gathered to the batch size of operators; with `first`, the first one is yielded at once.
    gathering = Gathered(run.budget)
    wanted = request.limit
    made = False
    try:
        for rows in _parts(request, pushed, run):
            some = rows if wanted is None else rows.slice(0, wanted)
            gathering.add(some)
            if wanted is not None:
                wanted -= some.count
                if wanted <= 0:
                    break
            full = gathering.count >= run.budget.rows or gathering.held >= run.budget.batch_bytes
            if full or (first is not None and gathering.count):
                made = True
                yield from sliced(gathering.rows(), run.budget)
                gathering.release()
                first = None
        if gathering.count or not made:
            yield from sliced(gathering.rows() if gathering.count else _empty(request), run.budget)
    finally:
        gathering.release()


def _count(entities: Entities, filter_: Filter | None, run: Run) -> int:
    """How many rows of a table pass a filter."""
    if filter_ is None or not run.budget.is_watched:
        return entities.table.count_rows(filter_)
    return run.budget.patiently(lambda: entities.table.count_rows(filter_), _STEPS_PER_ROW * entities.rows)


def read_parts(request: Request, run: Run) -> Iterator[Rows]:
    """The rows of a request as they are read, batch by batch; possibly no batch at all."""
    pushed = push(request.predicates, request.entities, run, texts=request.among is None)
    if not pushed.never:
        yield from _parts(request, pushed, run)


def _parts(request: Request, pushed: Pushed, run: Run) -> Iterator[Rows]:
    """The rows of a request, filtered batch by batch, so that rows that do not match are dropped before the next read."""
    variable = request.variable
    asked = {column.property for predicate in pushed.rest for column in columns_of(predicate)}
    asked |= {distance.field.property for distance in request.distances}
    needed = tuple(dict.fromkeys((*request.columns, *sorted(asked))))
    extra = [column_name(variable, name) for name in asked - set(request.columns)]
    _note(request, pushed, run)
    for batch, rest in _batches(request, pushed, needed, run):
        rows = Rows(batch.num_rows, named_columns(batch, request.entities, variable, needed))
        if request.addresses:
            rows = rows.with_numbers(address_name(variable), batch[ROW_ADDRESS].to_numpy())
        rows = satisfying(rest, rows, run)
        for distance in request.distances:
            rows = rows.with_columns({score_name(distance): scores(distance, rows, run)})
        yield rows.without(extra) if extra else rows


def _batches(
    request: Request, pushed: Pushed, needed: tuple[str, ...], run: Run
) -> Iterator[tuple[pa.RecordBatch, tuple[Predicate, ...]]]:
    """The batches of a table, each with the predicates that still have to be evaluated on it."""
    table = request.entities.table
    stored = [name for name in map(request.entities.stored.__getitem__, needed) if name is not None]
    # A batch without columns would lose its row count, so the address is read.
    addresses = request.addresses or not stored
    # Some fragments of a table are scanned: an index would answer for all fragments.
    text = None if request.fragments is not None else indexed_text(pushed.rest, request.entities, run)
    for filter_ in _filters(request, pushed):
        if text is None:
            most = run.budget.batch_bytes
            scanned = table.scan(
                stored,
                filter_,
                batch_size=_BATCH_ROWS,
                batch_bytes=most,
                with_row_address=addresses,
                fragments=request.fragments,
            )
            looked_up = request.among is not None or request.limit is not None
            pulled = scanned if looked_up else run.budget.pulled(scanned, request.entities.rows)
            yield from ((batch, pushed.rest) for batch in pulled)
            continue
        run.note(f"index: {text.index.name} ({text.index.kind})")
        answered = tuple(predicate for predicate in pushed.rest if predicate != text.predicate)
        found = search_batches(table, text, stored, filter_, addresses=addresses)
        yield from ((batch, answered) for batch in found)
        newer = uncovered_batches(table, text, stored, filter_, addresses=addresses)
        yield from ((batch, pushed.rest) for batch in newer)


def _filters(request: Request, pushed: Pushed) -> Iterator[Filter | None]:
    if request.among is None:
        yield pushed.filter
        return
    name, values = request.among
    stored = request.entities.stored[name]
    assert stored is not None
    for start in range(0, len(values), IDS_PER_LOOKUP):
        some = values.slice(start, IDS_PER_LOOKUP)
        lookup = pc.field(stored) == some[0] if len(some) == 1 else pc.field(stored).isin(some)
        yield lookup if pushed.filter is None else lookup & pushed.filter


def _empty(request: Request) -> Rows:
    columns: dict[str, Values] = {
        column_name(request.variable, name): pa.array([], arrow_type(request.entities.kind(name)))
        for name in request.columns
    }
    columns |= {score_name(distance): pa.array([], pa.float64()) for distance in request.distances}
    rows = Rows(0, columns)
    return rows.with_numbers(address_name(request.variable), np.zeros(0, np.uint64)) if request.addresses else rows


def _note(request: Request, pushed: Pushed, run: Run) -> None:
    """Notes for `explain`: the predicates that are pushed down, and the indexes that Lance plans to use."""
    if not run.explaining:
        return
    if pushed.shown:
        run.note(f"pushed: {' and '.join(pushed.shown)}")
    if request.among:
        run.note(f"lookup by {request.among[0]}")
    for filter_ in _filters(request, pushed):
        if filter_ is not None:
            for name in planned_indexes(request.entities.table, filter_):
                run.note(f"index: {name}")


_PLANNED_INDEX = re.compile(r"\]@(?P<name>\w+)\((?P<kind>\w+)\)")


def planned_indexes(table: Table, filter_: Filter) -> list[str]:
    """The names and kinds of the indexes in Lance's plan of a filtered scan."""
    with translated(str(table.location), "plan"):
        plan = table.dataset.scanner(columns=["id"], filter=filter_).explain_plan()
    return [f"{found['name']} ({found['kind'].upper()})" for found in _PLANNED_INDEX.finditer(plan)]
