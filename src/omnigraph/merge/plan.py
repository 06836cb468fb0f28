"""The plan of a merge: what happens to every table that theirs has changed, and all conflicts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, Literal

import pyarrow as pa

from omnigraph.commit.context import CommitContext
from omnigraph.commit.model import TableEntry
from omnigraph.errors import BadRequest
from omnigraph.evolution.existing import must_be_judged, violations
from omnigraph.language.schema.catalog import Catalog, EdgeType, NodeType
from omnigraph.language.schema.ir import SchemaIR
from omnigraph.language.schema.sameness import types_of
from omnigraph.merge.decided import carry_out
from omnigraph.merge.difference import Difference, TableSpec, Version, open_difference
from omnigraph.merge.kept import EdgeVersions, kept_ends, restored_edges, restores
from omnigraph.merge.options import Options
from omnigraph.merge.part import Part, together
from omnigraph.merge.resolutions import Resolution, Resolutions, check_resolutions
from omnigraph.merge.result import Conflict, Decision
from omnigraph.merge.rules import image_conflicts, rule_columns, stored_conflicts
from omnigraph.merge.schemas import SchemaMerge, Schemas, merge_states
from omnigraph.merge.spread import Pieces, judge_spread
from omnigraph.merge.states import Sides, same_table
from omnigraph.merge.target import Target
from omnigraph.merge.view import View, view_of
from omnigraph.validation.sets import TableChange
from omnigraph.values.render import plain, stored_kind


@dataclass(frozen=True)
class TablePlan:
    """What happens to one table: the judgement on theirs, the caller's decisions, and both combined."""

    difference: Difference
    #: The judgement on the changes of theirs.
    judged: Part
    #: The rows to write because of the caller's decisions.
    decided_rows: pa.Table | None
    #: `judged` and the decisions combined.
    whole: Part
    #: The pieces that tasks read and write; None: this process writes the table in one piece.
    pieces: Pieces | None = None

    @property
    def entity(self) -> NodeType | EdgeType:
        return self.difference.spec.entity

    @property
    def entry(self) -> TableEntry | None:
        """The table in the target; None: this merge creates it."""
        return self.difference.spec.ours

    def change(self) -> TableChange:
        """The change in the form that the rule checks take."""
        checked = self.whole.checked
        if checked is None:
            fields = [column.field for column in self.difference.ours.columns.values()]
            names = rule_columns(self.entity)
            checked = pa.schema([field for field in fields if field.name in names]).empty_table().select(names)
        return TableChange(self.entity, checked, self.whole.removed)


@dataclass(frozen=True)
class Plan:
    """Everything a merge will write, and the conflicts that prevent it."""

    tables: tuple[TablePlan, ...]
    conflicts: tuple[Conflict, ...]
    schema: SchemaMerge

    @property
    def is_empty(self) -> bool:
        """Whether it changes nothing."""
        return not self.writing and self.schema.files is None

    @property
    def writing(self) -> tuple[TablePlan, ...]:
        """The tables that change. A table whose changes cancel out, or are already in ours, keeps its version."""
        return tuple(table for table in self.tables if table.whole.writes)

    def stats(self) -> dict[str, Any]:
        """The counts of inserted, updated and deleted entities, in total and by type, and of decisions; schema steps."""
        by_type = {table.entity.type_key: _counts(table.whole) for table in self.writing}
        sums = {name: sum(counts[name] for counts in by_type.values()) for name in _counts(Part())}
        identical = sum(table.whole.identical for table in self.tables)
        taken = Counter(decision.take for decision in self.decided)
        steps = [{**step.to_dict(), "text": str(step)} for step in self.schema.steps]
        about = {"schema": steps} if steps else {}
        return {**sums, "identical": identical, "decided": dict(sorted(taken.items())), "tables": by_type, **about}

    @cached_property
    def decided(self) -> tuple[Decision, ...]:
        """All decisions by a strategy, a resolution or a kept node: about the schema, then nodes, then edges."""
        return (*self.schema.decided, *(decision for table in self.tables for decision in table.whole.decided))


def _counts(part: Part) -> dict[str, int]:
    return {"inserted": part.inserted, "updated": part.updated, "deleted": part.deleted}


def make_plan(context: CommitContext, schemas: Schemas, sides: Sides, options: Options) -> Plan:
    """Compare, judge and check; nothing is written."""
    schema = merge_states(context, schemas, sides, options)
    if schema.conflicts:
        # Rows are judged under the merged schema, which does not exist yet.
        return Plan((), schema.conflicts, schema)
    catalog, resolutions = schema.ir.catalog, options.resolutions
    check_resolutions(resolutions, catalog)
    specs = _Specs(schema, sides, options, resolutions)
    specs.refuse_undecidable()
    target = Target(partial(_target_view, context, specs))
    tables = [_plan_table(context, spec, resolutions, options) for spec in specs.to_look_at("node")]
    # Decisions about nodes apply to their edges too.
    nodes = {table.entity.type_key: table.whole for table in tables}
    specs = replace(specs, nodes=nodes, implied=_implied(context, catalog, specs, nodes, target))
    tables += [_plan_table(context, spec, specs.decisions, options) for spec in specs.to_look_at("edge")]
    target.undecided = {table.entity.type_key: table.whole.undecided for table in tables}
    if not resolutions:
        # A decision may add nodes or edges that neither side had, so with decisions everything is looked up.
        target.settled = specs.settled()
    changes = {table.entity.type_key: table.change() for table in tables if table.whole.writes}
    found = [conflict for table in tables for conflict in table.whole.conflicts]
    found += image_conflicts(catalog, changes, target)
    found += _stored_conflicts(context, specs, changes)
    if options.images:
        keys = {conflict.type_key for conflict in found if conflict.entity_id is not None}
        found = with_images(found, {key: _views(context, specs, key) for key in keys})
    return Plan(tuple(tables), tuple(sorted(found, key=lambda conflict: conflict.order)), schema)


def _implied(
    context: CommitContext, catalog: Catalog, specs: _Specs, nodes: Mapping[str, Part], target: Target
) -> Resolutions:
    """The edges that are restored with a node, as decisions by type key and id."""
    implied: dict[str, Mapping[str, Resolution]] = {}
    for edge in catalog.edges.values():
        if restores(edge, nodes) and None not in specs.entries(edge):
            found = open_difference(context, specs.of(edge))
            base, ours, theirs = found.base.table, found.ours.table, found.theirs.table
            assert base is not None
            assert ours is not None
            assert theirs is not None
            implied[edge.type_key] = restored_edges(edge, nodes, target, EdgeVersions(base, ours, theirs))
    return implied


def _stored_conflicts(context: CommitContext, specs: _Specs, changes: Mapping[str, TableChange]) -> Iterator[Conflict]:
    """Conflicts of target rows that this merge does not change but that break a rule which the other side has added."""
    before = {entity.id: entity for entity in types_of(specs.schema.ours)}
    for entity in types_of(specs.schema.ir):
        was, ours = before.get(entity.id), specs.entries(entity)[1]
        if was is None or ours is None or not must_be_judged(was, entity):
            continue
        change = changes.get(entity.type_key)
        table = context.tables.open(ours.location, ours.version)
        yield from stored_conflicts(violations(was, entity, table, change))


def _target_view(context: CommitContext, specs: _Specs, type_key: str) -> View:
    entity = specs.by_key[type_key]
    ours = specs.entries(entity)[1]
    names = {} if ours is None else specs.schema.names(entity).get(ours.identity[0], {})
    return view_of(None if ours is None else context.tables.open(ours.location, ours.version), entity, names)


def _views(context: CommitContext, specs: _Specs, type_key: str) -> dict[Version, View]:
    """The views of a table in base, ours and theirs."""
    found = open_difference(context, specs.of(specs.by_key[type_key]))
    return {"base": found.base, "ours": found.ours, "theirs": found.theirs}


@dataclass(frozen=True)
class _Specs:
    """Which tables a merge examines, and how."""

    schema: SchemaMerge
    sides: Sides
    options: Options
    #: The caller's decisions.
    given: Resolutions
    #: What happens to the tables of nodes, by type key; known before edge tables are examined.
    nodes: Mapping[str, Part] = field(default_factory=dict)
    #: Decisions about edges that follow from decisions about nodes.
    implied: Resolutions = field(default_factory=dict)

    @cached_property
    def decisions(self) -> Resolutions:
        """All decisions; the caller's override the implied ones."""
        return {key: {**self.implied.get(key, {}), **self.given.get(key, {})} for key in {**self.implied, **self.given}}

    @cached_property
    def by_key(self) -> dict[str, NodeType | EdgeType]:
        return {entity.type_key: entity for entity in types_of(self.schema.ir)}

    @cached_property
    def _tables(self) -> tuple[dict[int, TableEntry], ...]:
        """The tables of base, ours and theirs, by the type's number in the merged schema."""
        states = (self.sides.base, self.sides.ours, self.sides.theirs)
        return tuple(
            {self.schema.same.type(identity[0]): entry for identity, entry in state.tables.items()} for state in states
        )

    def entries(self, entity: NodeType | EdgeType) -> tuple[TableEntry | None, TableEntry | None, TableEntry | None]:
        """The tables of a type in base, ours and theirs; None where there is none."""
        base, ours, theirs = (tables.get(entity.id) for tables in self._tables)
        return base, ours, theirs

    def to_look_at(self, kind: Literal["node", "edge"]) -> Iterator[TableSpec]:
        """The tables that theirs has changed differently from ours, that a decision is about, or that ours lacks."""
        for key in sorted(self.by_key):
            if not key.startswith(f"{kind}:"):
                continue
            spec = self.of(self.by_key[key])
            untouched = same_table(spec.base, spec.theirs) and not spec.crossed and not self._keeps_dropped(spec)
            moved = spec.theirs is not None and not untouched and not same_table(spec.ours, spec.theirs)
            if spec.decided or spec.ours is None or moved:
                yield spec

    def _keeps_dropped(self, spec: TableSpec) -> bool:
        """Whether one side has dropped a property that the base had and the merged type keeps."""
        if spec.base is None or spec.ours is None or spec.theirs is None:
            return False
        base, ours, theirs = (self._has(ir, spec) for ir in (self.schema.base, self.schema.ours, self.schema.theirs))
        return bool(base - (ours & theirs))

    def _has(self, ir: SchemaIR, spec: TableSpec) -> set[str]:
        """The properties of the merged type that a schema has, by their names in the merged type."""
        return {
            name
            for entity in types_of(ir)
            if self.schema.same.type(entity.id) == spec.entity.id
            for declared in entity.properties.values()
            if (name := spec.names.get(entity.id, {}).get(declared.id)) is not None
        }

    def of(self, entity: NodeType | EdgeType) -> TableSpec:
        """The spec of one type of the merged schema, with the versions of its table."""
        base, ours, theirs = self.entries(entity)
        crossed: tuple[tuple[TableEntry, TableEntry], ...] = ()
        if ours is None:
            # Everything in theirs is new to the target.
            base = None
        elif base is not None:
            base, crossed = _bases(self.sides, base)
        spec = TableSpec(
            entity=entity,
            base=base,
            ours=ours,
            theirs=theirs,
            names=self.schema.names(entity),
            strategy=self.options.strategy,
            property_level=self.options.property_level,
            commit=self.sides.commit,
            decided=tuple(self.decisions.get(entity.type_key, {})),
            kept_ends=kept_ends(entity, self.nodes) if isinstance(entity, EdgeType) else (),
            crossed=crossed,
        )
        # A property that one side lacks must not conflict with other properties that this side has changed.
        return replace(spec, property_level=True) if self._keeps_dropped(spec) else spec

    def settled(self) -> frozenset[str]:
        """The types whose table is equal in ours and theirs, so that ends of edges which were valid in theirs stay valid."""
        found = {key: self.entries(entity) for key, entity in self.by_key.items()}
        return frozenset(
            key for key, (_, ours, theirs) in found.items() if ours is not None and same_table(ours, theirs)
        )

    def refuse_undecidable(self) -> None:
        """Raise for decisions about a type that only ours has, because there is no other version to choose."""
        for key, decisions in self.given.items():
            base, _, theirs = self.entries(self.by_key[key])
            if base is None and theirs is None and any(decision.take != "ours" for decision in decisions.values()):
                raise BadRequest(
                    f"resolution: {key} exists on one side only; change its entities by a write of their own"
                )


def _bases(sides: Sides, base: TableEntry) -> tuple[TableEntry, tuple[tuple[TableEntry, TableEntry], ...]]:
    """The base of one table, and the other bases that have changed it too, each with its common ancestor with the base."""
    identity, crossed = base.identity, []
    for other_state, root_state in sides.crossed:
        other, root = other_state.tables.get(identity), root_state.tables.get(identity)
        if other is None or root is None or same_table(other, base) or same_table(other, root):
            continue
        if same_table(base, root):
            # Only the other base has changed it since the common ancestor.
            base = other
        else:
            crossed.append((other, root))
    return base, tuple(crossed)


def _plan_table(context: CommitContext, spec: TableSpec, resolutions: Resolutions, options: Options) -> TablePlan:
    difference = open_difference(context, spec)
    judged, pieces = judge_spread(context, difference, options.engine, options.spark)
    decisions = resolutions.get(spec.entity.type_key, {})
    if not decisions:
        return TablePlan(difference, judged, None, judged, pieces)
    decided = carry_out(difference, decisions)
    return TablePlan(difference, judged, decided.rows, together([judged, decided.part]), pieces)


# --- images of conflicts ----------------------------------------------------------------------------------------------


def with_images(conflicts: Sequence[Conflict], views: Mapping[str, Mapping[Version, View]]) -> list[Conflict]:
    """The conflicts with the images of their entity in each version, as JSON values without blobs."""
    wanted: dict[str, list[str]] = {}
    for conflict in conflicts:
        if conflict.entity_id is not None and conflict.type_key in views:
            wanted.setdefault(conflict.type_key, []).append(conflict.entity_id)
    images = {key: _images(views[key], pa.array(ids, pa.string())) for key, ids in wanted.items()}
    return [
        replace(conflict, **images.get(conflict.type_key, {}).get(conflict.entity_id or "", {}))
        for conflict in conflicts
    ]


def _images(views: Mapping[Version, View], ids: pa.Array) -> dict[str, dict[str, Any]]:
    columns = [
        name
        for name, column in views["ours"].columns.items()
        if not isinstance(column.field.type, pa.BaseExtensionType)
    ]
    found: dict[str, dict[str, Any]] = {}
    for version, view in views.items():
        rows = view.rows(ids, columns)
        values = {name: plain(rows[name], stored_kind(rows.schema.field(name).type)) for name in columns}
        for place, entity_id in enumerate(values["id"]):
            found.setdefault(entity_id, {})[version] = {name: column[place] for name, column in values.items()}
    return found
