"""Checks stored rows against the rules that a schema change adds, before the change is visible.

The rules are those of `validation`. Rules about single rows are checked for every row, in batches. Rules about many rows are
checked for rows that could break them: Lance finds values that rows share, and sources with too many edges.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import ValidationError
from omnigraph.evolution.compare import kept_names
from omnigraph.evolution.image import NO_VALUES, wanted_columns
from omnigraph.evolution.look import EXAMPLES, Entity
from omnigraph.evolution.rules import Rule, rules_of
from omnigraph.language.schema.ast import Cardinality, CheckConstraint, RangeConstraint
from omnigraph.language.schema.catalog import EdgeType
from omnigraph.storage.scratch import make_scratch
from omnigraph.storage.tables.columns import Column, Values, reads_of, values_of
from omnigraph.storage.tables.commit import private_table
from omnigraph.storage.tables.groups import counts_outside, repeated_rows
from omnigraph.storage.tables.table import Table
from omnigraph.validation.rows import Violation, check_rows
from omnigraph.validation.sets import TableChange, check_sets, probe_of
from omnigraph.values.columns import whole
from omnigraph.values.identity import derive_ids


def refuse_broken(was: Entity, entity: Entity, table: Table, made: Mapping[str, Values] = NO_VALUES) -> None:
    """Raise if a stored row breaks a rule that the type does not have yet; the message has examples."""
    found = broken(was, entity, table, made)
    if not found:
        return
    first, shown = found[0], shown_violations(found)
    raise ValidationError(
        f"the schema can not be applied, rows of {entity.type_key} break it: {shown}; change them first",
        kind=first.kind,
        type_key=entity.type_key,
        property=first.property,
        entity_id=first.entity_id,
    )


def broken(was: Entity, entity: Entity, table: Table, made: Mapping[str, Values] = NO_VALUES) -> list[Violation]:
    """The first violations that prevent a change of the type."""
    return list(islice(violations(was, entity, table, made=made), EXAMPLES))


def shown_violations(found: Sequence[Violation]) -> str:
    """Violations in one line, each with the id of its row."""
    return "; ".join(map(_with_row, found))


def _with_row(violation: Violation) -> str:
    """A violation's message, with the id of its row if the message does not contain it."""
    row = violation.entity_id
    named = row is None or f"'{row}'" in violation.message
    return violation.message if named else f"{violation.message} (row '{row}')"


def violations(
    was: Entity,
    entity: Entity,
    table: Table,
    change: TableChange | None = None,
    made: Mapping[str, Values] = NO_VALUES,
) -> Iterator[Violation]:
    """Violations of new rules by the stored rows of a table; of rules about many rows only some examples.

    `change`: what is written to the table at the same time; its rows are checked elsewhere, so they are left out here.
    `made`: the computed values of some properties. Rules on properties with computed or filled values are checked too.
    """
    if not table.count_rows():
        return
    columns = {column.field.name: column for column in wanted_columns(was, entity, made)}
    judged = judged_rules(was, entity, made)
    left = change.touched() if change is not None else pa.array([], pa.string())
    yield from (
        found
        for found in _of_rows(entity, table, columns, judged, stricter(was, entity, made))
        if found.entity_id not in set(left.to_pylist())
    )
    if entity.key and not was.key:
        yield from _of_key(entity, table, [columns[name] for name in entity.key], left)
    for rule in judged:
        if rule.kind == "unique":
            yield from _of_shared_values(entity, table, [columns[name] for name in rule.columns], left)
        elif isinstance(rule.rule, Cardinality) and isinstance(entity, EdgeType):
            yield from _of_sources(entity, table, rule.rule, change)


def must_be_judged(was: Entity, entity: Entity, made: Mapping[str, Values] = NO_VALUES) -> bool:
    """Whether stored rows may break the rules of the changed type."""
    new_key = bool(entity.key and not was.key)
    return new_key or bool(judged_rules(was, entity, made) or stricter(was, entity, made))


def judged_rules(was: Entity, entity: Entity, made: Mapping[str, Values] = NO_VALUES) -> list[Rule]:
    """The rules that are new for a type, and the rules on properties that get new values."""
    old = rules_of(was, kept_names(was, entity))
    new_values = {*made, *(column.field.name for column in wanted_columns(was, entity) if column.fill is not None)}
    return [rule for text, rule in rules_of(entity).items() if text not in old or new_values & set(rule.columns)]


def stricter(was: Entity, entity: Entity, made: Mapping[str, Values] = NO_VALUES) -> frozenset[str]:
    """The properties that accept fewer values than before, are new and required, or have computed values."""
    known = {declared.id for declared in was.properties.values()}
    found = {name for name in made if name in entity.properties} | {
        name
        for name, declared in entity.properties.items()
        if declared.id not in known and not declared.type.nullable and declared.default is None
    }
    for old, new in kept_names(was, entity).items():
        before, after = was.properties[old].type, entity.properties[new].type
        lost = after.enum is not None and (before.enum is None or not set(before.enum) <= set(after.enum))
        if lost or (before.nullable and not after.nullable):
            found.add(new)
    return frozenset(found)


# --- one row ----------------------------------------------------------------------------------------------------------


def _of_rows(
    entity: Entity, table: Table, columns: dict[str, Column], judged: Sequence[Rule], narrower: frozenset[str]
) -> Iterator[Violation]:
    ranges = tuple(rule.rule for rule in judged if isinstance(rule.rule, RangeConstraint))
    checks = tuple(rule.rule for rule in judged if isinstance(rule.rule, CheckConstraint))
    names = {rule.property for rule in ranges} | {rule.property for rule in checks} | narrower
    if not names:
        return
    properties = {name: entity.properties[name] for name in sorted(names)}
    only = replace(entity, properties=properties, ranges=ranges, checks=checks)
    wanted = [columns["id"], *(columns[name] for name in properties)]
    for batch in table.scan(reads_of(wanted)):
        yield from check_rows(only, pa.Table.from_batches([_image(batch, wanted)]))


def _image(batch: pa.RecordBatch, wanted: Sequence[Column]) -> pa.RecordBatch:
    """A batch of stored rows in the form after the change."""
    arrays = [values_of(column, batch) for column in wanted]
    return pa.RecordBatch.from_arrays(arrays, names=[column.field.name for column in wanted])


# --- many rows --------------------------------------------------------------------------------------------------------


class _Settled:
    """Stands in for committed rows: the entities that the checked rows refer to exist, and no other row is read."""

    def __init__(self, entity: Entity, rows: pa.Table) -> None:
        self._type_key = entity.type_key
        self._rows = rows

    def by_id(self, type_key: str, ids: pa.Array, columns: Sequence[str]) -> pa.Table:
        if type_key == self._type_key:
            return self._rows.schema.empty_table().select(list(columns))
        return pa.table({"id": ids})

    def by_value(self, type_key: str, column: str, values: pa.Array, columns: Sequence[str]) -> pa.Table:
        return self._rows.schema.empty_table().select(list(columns))


def _judge(entity: Entity, rows: pa.Table) -> Iterator[Violation]:
    return check_sets({entity.type_key: TableChange(entity, rows)}, _Settled(entity, rows))


def _of_shared_values(entity: Entity, table: Table, columns: Sequence[Column], left: pa.Array) -> Iterator[Violation]:
    if any(column.stored is None and not column.made for column in columns):
        # A null equals nothing, so all rows without a value are fine.
        return
    if not any(column.made for column in columns):
        yield from _repeated(entity, table, columns, left)
        return
    # Computed values are written to a scratch table on disk, so that they can be queried like stored ones.
    scratch = make_scratch("schema")
    try:
        id_ = Column(pa.field("id", pa.string(), nullable=False), "id")
        wanted = [id_, *columns]
        schema = pa.schema([column.field.with_nullable(True) for column in wanted])
        rows = (_image(batch, wanted).cast(schema) for batch in table.scan(reads_of(wanted)))
        image = private_table(f"{scratch.path}/rows", schema, rows)
        yield from _repeated(entity, image, [Column(column.field, column.field.name) for column in columns], left)
    finally:
        scratch.remove()


def _of_key(entity: Entity, table: Table, key: Sequence[Column], left: pa.Array) -> Iterator[Violation]:
    """Violations of a new key: rows that would share an id, and floats that make no id."""
    if any(pa.types.is_floating(column.field.type) for column in key):
        for batch in table.scan(reads_of(key)):
            derive_ids(entity, {column.field.name: values_of(column, batch) for column in key})
    for found in _of_shared_values(entity, table, key, left):
        yield replace(found, kind="key", message=found.message.replace("@unique violation", "@key violation", 1))


def _repeated(entity: Entity, table: Table, columns: Sequence[Column], left: pa.Array) -> Iterator[Violation]:
    names = [column.stored for column in columns if column.stored is not None]
    rows = repeated_rows(table, names, EXAMPLES + len(left))
    if len(left):
        # More than two rows may share a value, and some of them may be changed by this write.
        probe = probe_of(tuple(names), table.schema)
        rows = table.take_by(probe, pc.unique(whole(rows[probe])), ["id", *names])
        rows = rows.filter(pc.invert(pc.is_in(rows["id"], value_set=left)))
    rows = rows.rename_columns(["id", *(column.field.name for column in columns)])
    judged = replace(entity, uniques=(tuple(column.field.name for column in columns),))
    if isinstance(judged, EdgeType):
        judged = replace(judged, cardinality=Cardinality())
        missing = [name for name in ("src", "dst") if name not in rows.column_names]
        for name in missing:
            rows = rows.append_column(name, pa.nulls(rows.num_rows, pa.string()))
    yield from _judge(judged, rows)


def _of_sources(
    entity: EdgeType, table: Table, cardinality: Cardinality, change: TableChange | None
) -> Iterator[Violation]:
    touched = pa.array([], pa.string()) if change is None else _sources(table, change)
    sources = counts_outside(table, "src", cardinality.minimum, cardinality.maximum, EXAMPLES + len(touched))
    # Sources whose edges are changed by this write are checked with the write.
    sources = sources.filter(pc.invert(pc.is_in(sources, value_set=touched)))[:EXAMPLES]
    if len(sources):
        rows = table.take_by("src", sources, ["id", "src", "dst"])
        yield from _judge(replace(entity, uniques=()), rows)


def _sources(table: Table, change: TableChange) -> pa.Array:
    """The source nodes of the edges that a change adds or removes."""
    stored = table.take_ids(change.touched(), ["id", "src"])
    return pc.unique(pa.concat_arrays([whole(change.upserts["src"]), whole(stored["src"])]))
