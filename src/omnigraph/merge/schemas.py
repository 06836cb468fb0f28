"""Merges the schemas of three states into one, with the conflicts in their declarations or with the data.

A type or property that one side dropped is dropped by the merge only if the other side has written nothing to it since the
base; this is the only question about schemas for which rows are read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.changes.delta import Side, table_delta
from omnigraph.commit.context import CommitContext
from omnigraph.commit.messages import counted
from omnigraph.commit.model import ManifestState, TableEntry
from omnigraph.commit.schema_files import COMPILED, SchemaFiles, target_hash
from omnigraph.evolution.compare import needs_other_ids, same_key, shown_key
from omnigraph.evolution.look import EXAMPLES
from omnigraph.evolution.plan import plan_change
from omnigraph.evolution.steps import Step, UnsupportedChange
from omnigraph.evolution.stored import merging_rows
from omnigraph.ids import new_distance, new_incarnation
from omnigraph.language.schema.accept import accept_schema
from omnigraph.language.schema.build import compile_schema
from omnigraph.language.schema.ir import SchemaIR, fingerprint
from omnigraph.language.schema.printer import print_property, print_schema, print_type
from omnigraph.language.schema.sameness import Entity, Sameness, sameness, types_of
from omnigraph.language.schema.three_way import Clash, Drop, Thing, merge_schemas
from omnigraph.language.schema.three_way import Side as SideName
from omnigraph.merge.combine import flat
from omnigraph.merge.options import Options
from omnigraph.merge.result import Conflict, ConflictKind, DecidedBy, Decision
from omnigraph.merge.states import Sides, same_table
from omnigraph.merge.view import View, view_of
from omnigraph.values.columns import PROPERTY_ID
from omnigraph.values.identity import derive_ids


class Schemas(Protocol):
    """Gives the schema of a state, and makes the files of a new schema."""

    def of(self, state: ManifestState) -> SchemaIR: ...

    def source_of(self, state: ManifestState) -> str: ...

    def files_of(self, state: ManifestState) -> SchemaFiles: ...

    def accepted(self, source: str, ir: SchemaIR, before: ManifestState) -> SchemaFiles: ...


@dataclass(frozen=True)
class SchemaMerge:
    """The schema that a merge leads to, and what it needs to map the tables."""

    ir: SchemaIR
    #: The schemas of base, ours and theirs, and which of their numbers mean the same type or property.
    base: SchemaIR
    ours: SchemaIR
    theirs: SchemaIR
    same: Sameness = field(default_factory=Sameness)
    #: The changes to the target's schema.
    steps: tuple[Step, ...] = ()
    conflicts: tuple[Conflict, ...] = ()
    decided: tuple[Decision, ...] = ()
    #: The files of the merged schema, and of the one it replaces; None: the target keeps its schema.
    files: SchemaFiles | None = None
    files_before: SchemaFiles | None = None

    @property
    def schemas(self) -> tuple[SchemaIR, SchemaIR, SchemaIR]:
        """The schemas of base, ours and theirs."""
        return self.base, self.ours, self.theirs

    def entry(self, state: ManifestState, number: int) -> TableEntry | None:
        """The table of a type in a state, by the type's number in the merged schema; None when there is none."""
        return next(
            (entry for identity, entry in state.tables.items() if self.same.type(identity[0]) == number),
            None,
        )

    def names(self, entity: Entity) -> Mapping[int, Mapping[int, str]]:
        """The property names of a type in the merged schema, by the type's number in a version, then the property's."""
        merged = {declared.id: name for name, declared in entity.properties.items()}
        found: dict[int, dict[int, str]] = {}
        for ir in self.schemas:
            for twin in types_of(ir):
                if self.same.type(twin.id) != entity.id:
                    continue
                for declared in twin.properties.values():
                    # Prefer the same property to another one that only means the same.
                    number = (
                        declared.id if _is_own(declared.id, twin, entity) else self.same.property(twin.id, declared.id)
                    )
                    if number in merged:
                        found.setdefault(twin.id, {})[declared.id] = merged[number]
        return found

    @property
    def target(self) -> str | None:
        """The hash of the target's new schema; None when it keeps its schema."""
        return None if self.files is None else target_hash(self.files[COMPILED])


def _is_own(number: int, twin: Entity, entity: Entity) -> bool:
    return twin.id == entity.id and any(declared.id == number for declared in entity.properties.values())


def merge_states(context: CommitContext, schemas: Schemas, sides: Sides, options: Options) -> SchemaMerge:
    """Merge the schemas of the three states."""
    base, ours, theirs = (schemas.of(state) for state in (sides.base, sides.ours, sides.theirs))
    if options.schema is None and theirs.to_json() == ours.to_json():
        known = SchemaMerge(ours, base, ours, theirs, sameness([ours, theirs, base]))
        if base.to_json() == ours.to_json():
            return known
        return replace(known, conflicts=tuple(map(_conflict, _other_ids(context, sides, known))))
    incarnation = new_incarnation()
    prefer = options.strategy
    merged = merge_schemas(base, ours, theirs, incarnation=incarnation, prefer=prefer)
    conflicts, decided = list(merged.clashes), list(merged.decided)
    if options.schema is not None:
        # The given schema decides: it may keep what either side has, and leave out anything.
        keep = frozenset(drop.thing for drop in merged.drops)
        whole = merge_schemas(base, ours, theirs, incarnation=incarnation, keep=keep)
        ir = accept_schema(compile_schema(options.schema), whole.ir, incarnation, new_distance())
        conflicts, decided = [], [*whole.clashes]
    else:
        keep = frozenset()
        for drop, clash in _against_data(context, sides, (base, ours, theirs), merged.same, merged.drops):
            (conflicts if prefer is None else decided).append(clash)
            if prefer != drop.by:
                keep |= {drop.thing}
        if keep:
            merged = merge_schemas(base, ours, theirs, incarnation=incarnation, prefer=prefer, keep=keep)
        ir = merged.ir
    return _with_steps(
        context, schemas, sides, SchemaMerge(ir, base, ours, theirs, merged.same), options, conflicts, decided
    )


def _with_steps(
    context: CommitContext,
    schemas: Schemas,
    sides: Sides,
    found: SchemaMerge,
    options: Options,
    clashes: list[Clash],
    decided: list[Clash],
) -> SchemaMerge:
    """A merged schema with the steps that lead to it; one that can not be carried out is a conflict."""
    steps: tuple[Step, ...] = ()
    if not clashes:
        steps = plan_change(found.ours, found.ir, merging_rows(context, sides.ours)).steps
        clashes = [_refused(found, step) for step in steps if isinstance(step, UnsupportedChange)]
        clashes += _other_ids(context, sides, found)
    take = options.strategy or "value"
    by = DecidedBy.RESOLUTION if options.schema is not None else DecidedBy.STRATEGY
    files = None
    if found.ir.to_json() != found.ours.to_json():
        files = schemas.accepted(_source(schemas, sides, found.ir, options), found.ir, sides.ours)
    return SchemaMerge(
        found.ir,
        found.base,
        found.ours,
        found.theirs,
        found.same,
        tuple(step for step in steps if not isinstance(step, UnsupportedChange)),
        tuple(_conflict(clash) for clash in clashes),
        tuple(_decision(clash, take, by) for clash in decided),
        files,
        None if files is None else schemas.files_of(sides.ours),
    )


def _source(schemas: Schemas, sides: Sides, ir: SchemaIR, options: Options) -> str:
    """The text of the merged schema: the text of a side whose schema is equal, else printed."""
    if options.schema is not None:
        return options.schema
    for state in (sides.ours, sides.theirs):
        if fingerprint(schemas.of(state)) == fingerprint(ir):
            return schemas.source_of(state)
    return print_schema(ir)


def _conflict(clash: Clash) -> Conflict:
    def shown(text: str | None) -> Mapping[str, str] | None:
        return None if text is None else {"declaration": text}

    return Conflict(
        ConflictKind.SCHEMA_CONFLICT.value,
        clash.type_key,
        None,
        clash.message,
        shown(clash.base),
        shown(clash.ours),
        shown(clash.theirs),
    )


def _refused(found: SchemaMerge, step: UnsupportedChange) -> Clash:
    """A step that can not be carried out, as a clash; it names a type, or a property behind a dot."""
    type_key, _, name = step.entity.partition(".")
    entity = next(one for one in types_of(found.ir) if one.type_key == type_key)
    thing = (entity.id, found.same.property(entity.id, entity.properties[name].id)) if name else (entity.id,)
    return Clash(
        type_key, name or None, f"{step.entity}: {step.reason}", *_declarations(found.schemas, found.same, thing)
    )


def _declarations(irs: tuple[SchemaIR, SchemaIR, SchemaIR], same: Sameness, thing: Thing) -> list[str | None]:
    """How base, ours and theirs declare a type or a property."""
    found: list[str | None] = []
    for ir in irs:
        twin = next((entity for entity in types_of(ir) if same.type(entity.id) == thing[0]), None)
        if twin is None or len(thing) == 1:
            found.append(None if twin is None else print_type(twin))
            continue
        declared = twin.properties.values()
        texts = (print_property(one) for one in declared if same.property(twin.id, one.id) == thing[1])
        found.append(next(texts, None))
    return found


def _decision(clash: Clash, take: str, by: DecidedBy) -> Decision:
    return Decision(clash.type_key, clash.property or "", take, by.value, ConflictKind.SCHEMA_CONFLICT.value)


# --- keys and data ----------------------------------------------------------------------------------------------------


def _other_ids(context: CommitContext, sides: Sides, found: SchemaMerge) -> Iterator[Clash]:
    """The keys of the merged schema that do not go with the ids of rows.

    Ids are made of the key. A side with another key than the merged schema has rows with other ids. That is no matter only while
    this side has left the table as it was, and the other side has made the ids.
    """
    for entity in types_of(found.ir):
        others: list[tuple[Entity, ManifestState]] = []
        for ir, state in ((found.ours, sides.ours), (found.theirs, sides.theirs)):
            twin = next((one for one in types_of(ir) if found.same.type(one.id) == entity.id), None)
            if twin is not None and _makes_other_ids(found, twin, entity):
                others.append((twin, state))
        before = found.entry(sides.base, entity.id)
        for twin, state in others:
            after = found.entry(state, entity.id)
            if after is None or (len(others) == 1 and not _moved(context, before, after)):
                continue
            if len(others) > 1 and not after.row_count:
                continue
            both = "both have written to it" if len(others) == 1 else "no side has made the ids of its rows from it"
            message = (
                f"{entity.type_key}: its key is {shown_key(twin)} on one side and {shown_key(entity)} in the merged schema, and "
                f"{both}; ids are made of the key: apply the same schema to both, then merge"
            )
            yield Clash(entity.type_key, None, message, *_declarations(found.schemas, found.same, (entity.id,)))
            break
        if not others:
            yield from _deleted_before(context, sides, found, entity)


def _deleted_before(context: CommitContext, sides: Sides, found: SchemaMerge, entity: Entity) -> Iterator[Clash]:
    """Rows of the base that one side has deleted, where both have made the ids apart: by their ids the base has none of them."""
    twin = next((one for one in types_of(found.base) if found.same.type(one.id) == entity.id), None)
    entries = [found.entry(state, entity.id) for state in (sides.base, sides.ours, sides.theirs)]
    if twin is None or not _makes_other_ids(found, twin, entity):
        return
    base, ours, theirs = (None if one is None else _view(context, found, one, entity) for one in entries)
    if base is None or ours is None or theirs is None or base.table is None:
        return
    lone: list[str] = []
    for batch in base.table.scan(["id"]):
        rows = base.rows(batch["id"], ["id", *(entity.key or ())]).drop_columns(["id"]).drop_null()
        made = derive_ids(entity, rows)
        kept, other = (pc.is_in(made, value_set=flat(side.rows(made, ["id"])["id"])) for side in (ours, theirs))
        lone += made.filter(pc.xor(kept, other)).to_pylist()
    if lone:
        shown = ", ".join(repr(one) for one in sorted(lone)[:EXAMPLES])
        message = (
            f"{entity.type_key}: {counted(len(lone), 'row')} of before its {shown_key(entity)} on one side only ({shown}); both "
            "sides have made the ids apart, so a deletion can not be told from an insert: delete or insert on the other "
            "side too, then merge"
        )
        yield Clash(entity.type_key, None, message, *_declarations(found.schemas, found.same, (entity.id,)))


def _view(context: CommitContext, found: SchemaMerge, entry: TableEntry, entity: Entity) -> View:
    names = found.names(entity).get(entry.identity[0], {})
    return view_of(context.tables.open(entry.location, entry.version), entity, names)


def _makes_other_ids(found: SchemaMerge, twin: Entity, entity: Entity) -> bool:
    """Whether the rows of a side have other ids than the key of the merged schema makes."""
    names = found.names(entity).get(twin.id, {})
    kept = {name: names[declared.id] for name, declared in twin.properties.items() if declared.id in names}
    return not same_key(twin, entity, kept) or needs_other_ids(twin, entity, kept)


def _moved(context: CommitContext, before: TableEntry | None, after: TableEntry) -> bool:
    """Whether a side has changed rows; to compact a table or to index it changes none."""
    if same_table(before, after):
        return False
    delta = table_delta(context, None if before is None else Side(before), Side(after))
    return bool(delta.candidates) and next(delta.batches(["id"]), None) is not None


# --- drops and data ---------------------------------------------------------------------------------------------------


def _against_data(
    context: CommitContext,
    sides: Sides,
    irs: tuple[SchemaIR, SchemaIR, SchemaIR],
    same: Sameness,
    drops: tuple[Drop, ...],
) -> Iterator[tuple[Drop, Clash]]:
    """The drops of one side that would lose what the other side has written since the base, each with its conflict."""
    dropped_types = {drop.thing[0] for drop in drops if len(drop.thing) == 1}
    for drop in drops:
        other: SideName = "theirs" if drop.by == "ours" else "ours"
        state = sides.theirs if other == "theirs" else sides.ours
        before, after = (_entry(one, same, drop.thing[0]) for one in (sides.base, state))
        if before is None or after is None or same_table(before, after):
            continue
        if len(drop.thing) == 2 and drop.thing[0] in dropped_types:
            continue
        if _wrote(context, before, after, same, drop.thing):
            what = drop.type_key if drop.property is None else f"{drop.type_key.partition(':')[2]}.{drop.property}"
            message = f"{what} was dropped on one side, and the other has written to it since"
            yield drop, Clash(drop.type_key, drop.property, message, *_declarations(irs, same, drop.thing))


def _entry(state: ManifestState, same: Sameness, number: int) -> TableEntry | None:
    return next((entry for identity, entry in state.tables.items() if same.type(identity[0]) == number), None)


def _wrote(context: CommitContext, before: TableEntry, after: TableEntry, same: Sameness, thing: Thing) -> bool:
    """Whether rows were inserted or changed; for a property, whether its values were."""
    delta = table_delta(context, Side(before), Side(after))
    if not delta.candidates:
        return False
    if len(thing) == 1:
        return any(batch.inserted.num_rows or batch.updated_after.num_rows for batch in delta.batches(["id"]))
    table = context.tables.open(after.location, after.version)
    name = next((f.name for f in table.schema if _number(f, after, same) == thing[1]), None)
    if name is None:
        return False
    for batch in delta.batches([name]):
        if batch.inserted[name].null_count < batch.inserted.num_rows:
            return True
        old, new = batch.updated_before, batch.updated_after
        if new.num_rows and (name not in old.column_names or not _alike(old[name], new[name])):
            return True
    return False


def _alike(one: pa.ChunkedArray, other: pa.ChunkedArray) -> bool:
    if pa.types.is_nested(one.type):
        return bool(one.to_pylist() == other.to_pylist())
    same = pc.fill_null(pc.equal(one, other), False)
    both_null = pc.and_(one.is_null(), other.is_null())
    return bool(pc.all(pc.or_(same, both_null), min_count=0).as_py())


def _number(found: pa.Field, entry: TableEntry, same: Sameness) -> int | None:
    number = (found.metadata or {}).get(PROPERTY_ID)
    return None if number is None else same.property(entry.identity[0], int(number))
