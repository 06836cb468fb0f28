"""Checks all stored rows of a table against the rules of their type, like `validation` does for new rows.

A table is one task. It is read in batches; rules about many rows are checked by Lance's SQL in passes of bounded memory
(`storage/tables/groups.py`), and the ids of nodes are held in slabs of at most ten million.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import ValidationError
from omnigraph.language.schema.catalog import EdgeType, NodeType
from omnigraph.maintenance.verify_report import attempted
from omnigraph.query.scan.entities import stored_columns
from omnigraph.storage.root import Root
from omnigraph.storage.tables.groups import ROWS_PER_PASS, counts_outside, repeated_rows
from omnigraph.storage.tables.handles import Tables
from omnigraph.storage.tables.lance_errors import translated
from omnigraph.storage.tables.location import Location
from omnigraph.storage.tables.table import Table
from omnigraph.validation.rows import Violation, check_rows
from omnigraph.validation.sets import cardinality_breaks, missing_end, unique_clashes
from omnigraph.values.columns import arrow_type, whole
from omnigraph.values.identity import derive_ids

#: How many violations of one table are listed.
EXAMPLES = 20

Entity = NodeType | EdgeType
Ends = Mapping[str, tuple[Location, int]]


@dataclass(frozen=True)
class JudgeSpec:
    """One version of a table, its type, and for an edge type the versions of the node tables at `src` and `dst`.

    Without a type (`__manifest`, an old version of a table) the table is only decoded.
    """

    root: Root
    entity: Entity | None
    location: Location
    version: int
    expected_rows: int | None
    ends: tuple[tuple[str, tuple[Location, int]], ...] = ()
    #: Read every column, also columns without a rule, because no recorded digest covers all files.
    decode: bool = False


@dataclass(frozen=True, slots=True)
class Judgement:
    """The violations of the rows, or why they can not be read."""

    violations: tuple[Violation, ...] = ()
    problem: str | None = None
    rows: int = 0


def judge_table(spec: JudgeSpec) -> Judgement:
    """Check one table. A task, which runs in any process that can reach the graph's storage."""

    def judge() -> Judgement:
        tables = Tables(spec.root)
        table = tables.open(spec.location, spec.version)
        rows = table.count_rows()
        if spec.expected_rows not in (None, rows):
            return Judgement(problem=f"it has {rows} rows, the graph says {spec.expected_rows}", rows=rows)
        if spec.decode:
            _decode(table)
        if spec.entity is None:
            return Judgement(rows=rows)
        found = tuple(islice(_violations(spec.entity, table, tables, dict(spec.ends)), EXAMPLES))
        return Judgement(found, rows=rows)

    judged = attempted(judge)
    return judged if isinstance(judged, Judgement) else Judgement(problem=judged)


def _decode(table: Table) -> None:
    """Read every value and every index; raises if anything can not be decoded."""
    for _ in table.scan(blobs="values"):
        pass
    for index in table.indices():
        with translated(str(table.location), f"read the index {index.name} of"):
            table.dataset.prewarm_index(index.name)


def _violations(entity: Entity, table: Table, tables: Tables, ends: Ends) -> Iterator[Violation]:
    stored = stored_columns(entity, table)
    yield from _columns(entity, table, stored)
    if not table.count_rows():
        return
    yield from _rows(entity, table, stored)
    for entity_id in counts_outside(table, "id", 1, 1, EXAMPLES).to_pylist():
        message = f"several rows of {entity.name} have the id {entity_id!r}"
        yield Violation("duplicate_id", entity.type_key, message, property="id", entity_id=entity_id)
    for columns in entity.uniques:
        names = [stored[name] for name in columns]
        if all(name is not None for name in names):
            rows = repeated_rows(table, [name for name in names if name is not None], EXAMPLES)
            rows = rows.rename_columns(["id", *columns])
            yield from unique_clashes(entity, columns, rows.schema.empty_table(), rows)
    if isinstance(entity, EdgeType):
        bounds = entity.cardinality
        sources = counts_outside(table, "src", bounds.minimum, bounds.maximum, EXAMPLES)
        if len(sources) and (bounds.minimum or bounds.maximum is not None):
            yield from cardinality_breaks(entity, sources, table.take_by("src", sources, ["src"])["src"])
        yield from _ends(entity, table, tables, ends)


def _columns(entity: Entity, table: Table, stored: Mapping[str, str | None]) -> Iterator[Violation]:
    """Check that every property has a column of its type. A nullable property may have no column yet."""
    for name, declared in entity.properties.items():
        column = stored[name]
        if column is None:
            if not declared.type.nullable and table.count_rows():
                message = f"the table of {entity.name} has no column for the required property '{name}'"
                yield Violation("required", entity.type_key, message, property=name)
            continue
        found = table.schema.field(column).type
        if not declared.type.is_blob and not found.equals(arrow_type(declared.type)):
            message = f"the column of {entity.name}.{name} is {found}, not {arrow_type(declared.type)}"
            yield Violation("type", entity.type_key, message, property=name)


def _rows(entity: Entity, table: Table, stored: Mapping[str, str | None]) -> Iterator[Violation]:
    """Check the rules about single rows, and that every id is the one its key makes."""
    fixed = ["id", "src", "dst"] if isinstance(entity, EdgeType) else ["id"]
    here = [name for name in entity.properties if stored[name] is not None]
    judged = replace(
        entity,
        properties={name: entity.properties[name] for name in here},
        ranges=tuple(rule for rule in entity.ranges if rule.property in here),
        checks=tuple(rule for rule in entity.checks if rule.property in here),
    )
    columns = [*fixed, *here]
    for batch in table.scan([stored.get(name) or name for name in columns]):
        rows = pa.Table.from_batches([batch]).rename_columns(columns)
        yield from check_rows(judged, rows)
        for name in fixed:
            if rows[name].null_count:
                yield Violation("required", entity.type_key, f"a row of {entity.name} has no {name}", property=name)
        if entity.key is not None and all(name in columns for name in entity.key):
            yield from _keys(entity, rows)


def _keys(entity: Entity, rows: pa.Table) -> Iterator[Violation]:
    try:
        derived = derive_ids(entity, rows)
    except ValidationError as error:
        yield Violation(error.kind, entity.type_key, error.message, property=error.property)
        return
    wrong = pc.not_equal(whole(rows["id"]), derived)
    for row in pc.indices_nonzero(pc.fill_null(wrong, True)).to_pylist():
        entity_id = rows["id"][row].as_py()
        message = f"the key of {entity.name} {entity_id!r} is that of {derived[row].as_py()!r}"
        yield Violation("key", entity.type_key, message, row=row, entity_id=entity_id)


def _ends(edge: EdgeType, table: Table, tables: Tables, ends: Ends) -> Iterator[Violation]:
    """Check that both ends of every edge exist. Node ids are read in slabs; an end is missing when it is in no slab."""
    for end, (location, version) in ends.items():
        lost: np.ndarray[tuple[int], np.dtype[np.bool_]] | None = None
        for slab in node_slabs(tables.open(location, version)):
            absent = [
                pc.invert(pc.is_in(batch.column(end), value_set=slab)).to_numpy(zero_copy_only=False)
                for batch in table.scan([end])
            ]
            missing = np.concatenate(absent) if absent else np.zeros(0, np.bool_)
            lost = missing if lost is None else lost & missing
        if lost is None or not lost.any():
            continue
        places = np.flatnonzero(lost)[:EXAMPLES]
        for entity_id, node in _at(table, end, places):
            yield missing_end(edge, end, node, entity_id)


def node_slabs(nodes: Table) -> Iterator[pa.Array]:
    """The ids of a node table in slabs of at most about ten million; one empty slab if there are no nodes."""
    held: list[pa.Array] = []
    size = 0
    for batch in nodes.scan(["id"]):
        held.append(batch.column("id"))
        size += batch.num_rows
        if size >= ROWS_PER_PASS:
            yield pa.concat_arrays(held)
            held, size = [], 0
    yield pa.concat_arrays(held) if held else pa.array([], pa.string())


def _at(
    table: Table, end: str, places: Sequence[int] | np.ndarray[tuple[int], np.dtype[np.int_]]
) -> Iterator[tuple[str, str]]:
    """The id and the end of the edges at these positions of a scan."""
    start, wanted = 0, set(map(int, places))
    for batch in table.scan(["id", end]):
        here = [place - start for place in sorted(wanted) if start <= place < start + batch.num_rows]
        for row in here:
            yield batch.column("id")[row].as_py(), batch.column(end)[row].as_py()
        start += batch.num_rows
        if start > max(wanted):
            return
