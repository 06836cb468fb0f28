"""A merge as a plan: what happens to every table that theirs has moved, and every conflict that stands in the way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import pyarrow as pa

from omnigraph.commit.context import CommitContext
from omnigraph.commit.model import Identity, ManifestState, TableEntry, sorted_entries
from omnigraph.errors import BadRequest, ChangeSchemaBoundary
from omnigraph.language.schema.catalog import Catalog, EdgeType, NodeType
from omnigraph.merge.decided import carry_out
from omnigraph.merge.difference import Difference, TableSpec, Version, open_difference
from omnigraph.merge.images import with_images
from omnigraph.merge.kept import EdgeVersions, kept_ends, restored_edges, restores
from omnigraph.merge.options import Options
from omnigraph.merge.part import Part, together
from omnigraph.merge.resolutions import Resolution, Resolutions
from omnigraph.merge.result import Conflict, Decision
from omnigraph.merge.rules import image_conflicts, rule_columns
from omnigraph.merge.spread import judge_spread
from omnigraph.merge.states import moved, same_table
from omnigraph.merge.target import Target
from omnigraph.merge.view import View
from omnigraph.validation.sets import TableChange


@dataclass(frozen=True)
class TablePlan:
    """What happens to one table: the judgement on theirs, the decisions, both together."""

    difference: Difference
    #: The judgement on what theirs changed.
    judged: Part
    #: Rows that the caller has decided on.
    decided_rows: pa.Table | None
    #: All of it.
    whole: Part

    @property
    def entity(self) -> NodeType | EdgeType:
        return self.difference.spec.entity

    @property
    def entry(self) -> TableEntry:
        """The table of the target."""
        return self.difference.spec.ours

    def change(self) -> TableChange:
        """The change in the form the evaluator judges."""
        checked = self.whole.checked
        if checked is None:
            checked = self.difference.ours.table.schema.empty_table().select(rule_columns(self.entity))
        return TableChange(self.entity, checked, self.whole.removed)


@dataclass(frozen=True)
class Plan:
    """Everything a merge will write, or why it can not."""

    tables: tuple[TablePlan, ...]
    conflicts: tuple[Conflict, ...]

    @property
    def writing(self) -> tuple[TablePlan, ...]:
        """The tables that change. One whose changes cancel out, or are there already, keeps its version."""
        return tuple(table for table in self.tables if table.whole.writes)

    def stats(self) -> dict[str, Any]:
        """How many entities are inserted, updated and deleted, in all and by type."""
        by_type = {table.entity.type_key: _counts(table.whole) for table in self.writing}
        sums = {name: sum(counts[name] for counts in by_type.values()) for name in _counts(Part())}
        identical = sum(table.whole.identical for table in self.tables)
        taken = Counter(decision.take for decision in self.decided)
        return {**sums, "identical": identical, "decided": dict(sorted(taken.items())), "tables": by_type}

    @cached_property
    def decided(self) -> tuple[Decision, ...]:
        """What a strategy, a resolution or a kept node decided about, nodes before edges."""
        return tuple(decision for table in self.tables for decision in table.whole.decided)


def _counts(part: Part) -> dict[str, int]:
    return {"inserted": part.inserted, "updated": part.updated, "deleted": part.deleted}


@dataclass(frozen=True, slots=True)
class Sides:
    """The three states of a merge. `commit`: the one that is reverted or picked, for messages.

    `crossed`: other bases, and where each and the base come from; what they have touched counts too.
    """

    base: ManifestState
    ours: ManifestState
    theirs: ManifestState
    commit: str = ""
    crossed: tuple[tuple[ManifestState, ManifestState], ...] = ()


def make_plan(context: CommitContext, catalog: Catalog, sides: Sides, options: Options) -> Plan:
    """Compare, classify and check; nothing is written."""
    _refuse_schema_boundary(sides)
    _refuse_undecidable(sides, options)
    specs = _Specs(catalog, sides, options)
    target = Target(context, sides.ours)
    tables = [_plan_table(context, spec, options.resolutions, options) for spec in specs.to_look_at("node")]
    # What was decided about nodes decides about their edges too.
    nodes = {table.entity.type_key: table.whole for table in tables}
    specs = replace(specs, nodes=nodes, implied=_implied(context, catalog, specs, nodes, target))
    tables += [_plan_table(context, spec, specs.resolutions, options) for spec in specs.to_look_at("edge")]
    target.undecided = {table.entity.type_key: table.whole.undecided for table in tables}
    if not options.resolutions:
        # A decision may bring what neither side had; then everything is looked up.
        target.settled = _settled(sides)
    changes = {table.entity.type_key: table.change() for table in tables if table.whole.writes}
    found = [conflict for table in tables for conflict in table.whole.conflicts]
    found += image_conflicts(catalog, changes, target)
    if options.images:
        keys = {conflict.type_key for conflict in found}
        found = with_images(found, {key: _views(context, specs, sides.ours.by_key[key]) for key in keys})
    return Plan(tuple(tables), tuple(sorted(found, key=lambda conflict: conflict.order)))


def _implied(
    context: CommitContext, catalog: Catalog, specs: _Specs, nodes: Mapping[str, Part], target: Target
) -> Resolutions:
    """The edges that come back with a node, as decisions by type key and id."""
    implied: dict[str, Mapping[str, Resolution]] = {}
    for edge in catalog.edges.values():
        ours = specs.sides.ours.by_key.get(edge.type_key)
        if ours is not None and restores(edge, nodes) and specs.has_all(ours):
            difference = open_difference(context, specs.of(ours))
            tables = EdgeVersions(difference.base.table, difference.ours.table, difference.theirs.table)
            implied[edge.type_key] = restored_edges(edge, nodes, target, tables)
    return implied


def _settled(sides: Sides) -> frozenset[str]:
    """The types whose table is the same on both sides: an edge of theirs finds its nodes there as it found them before."""
    return frozenset(
        entry.key
        for identity, entry in sides.ours.tables.items()
        if same_table(entry, sides.theirs.tables.get(identity))
    )


def _refuse_schema_boundary(sides: Sides) -> None:
    """What theirs changed in a type that not all sides have can not be applied."""
    for identity in moved(sides.base, sides.theirs):
        entries = [state.tables.get(identity) for state in (sides.base, sides.ours, sides.theirs)]
        if None in entries:
            key = next(entry.key for entry in entries if entry is not None)
            raise ChangeSchemaBoundary(
                f"{key} does not exist on all sides: a change across a schema change can not be applied",
                commit=sides.commit,
                type_name=key.partition(":")[2],
            )


def _refuse_undecidable(sides: Sides, options: Options) -> None:
    """Between versions that there are not, nothing can be decided."""
    for key, decisions in options.resolutions.items():
        entry = sides.ours.by_key.get(key)
        if entry is not None and entry.identity in sides.base.tables and entry.identity in sides.theirs.tables:
            continue
        if any(decision.take != "ours" for decision in decisions.values()):
            raise BadRequest(
                f"resolution: {key} does not exist on all sides; change its entities by a write of their own"
            )


def _views(context: CommitContext, specs: _Specs, ours: TableEntry) -> dict[Version, View]:
    """The versions of a table that can be shown beside each other; only the target's where the schema has changed."""
    try:
        if specs.has_all(ours):
            difference = open_difference(context, specs.of(ours))
            return {"base": difference.base, "ours": difference.ours, "theirs": difference.theirs}
    except ChangeSchemaBoundary:
        pass
    return {"ours": View(context.tables.open(ours.location, ours.version))}


@dataclass(frozen=True)
class _Specs:
    """Which tables a merge looks at, and how."""

    catalog: Catalog
    sides: Sides
    options: Options
    #: What happens to the tables of nodes, by type key; known before the tables of edges are looked at.
    nodes: Mapping[str, Part] = field(default_factory=dict)
    #: Decisions about edges that follow from decisions about nodes.
    implied: Resolutions = field(default_factory=dict)

    @cached_property
    def resolutions(self) -> Resolutions:
        """The caller's decisions, and those that follow from them; the caller's come first."""
        given = self.options.resolutions
        return {key: {**self.implied.get(key, {}), **given.get(key, {})} for key in {**self.implied, **given}}

    def to_look_at(self, kind: Literal["node", "edge"]) -> Iterator[TableSpec]:
        """Those that theirs has moved and ours does not have just so, and those decided about."""
        sides = self.sides
        for ours in sorted_entries(sides.ours.tables.values()):
            if not ours.key.startswith(f"{kind}:") or not self.has_all(ours):
                continue
            spec = self.of(ours)
            untouched = same_table(spec.base, spec.theirs) and not spec.crossed
            if spec.decided or not (untouched or same_table(ours, spec.theirs)):
                yield spec

    def has_all(self, ours: TableEntry) -> bool:
        """Whether a table of the target is there in the other versions too."""
        return ours.identity in self.sides.base.tables and ours.identity in self.sides.theirs.tables

    def of(self, ours: TableEntry) -> TableSpec:
        """One table of the target with its other versions."""
        base, crossed = _bases(self.sides, ours.identity)
        entity = self._entities[ours.identity]
        return TableSpec(
            entity=entity,
            base=base,
            ours=ours,
            theirs=self.sides.theirs.tables[ours.identity],
            strategy=self.options.strategy,
            property_level=self.options.property_level,
            commit=self.sides.commit,
            decided=tuple(self.resolutions.get(ours.key, {})),
            kept_ends=kept_ends(entity, self.nodes) if isinstance(entity, EdgeType) else (),
            crossed=crossed,
        )

    @cached_property
    def _entities(self) -> dict[Identity, NodeType | EdgeType]:
        types: list[NodeType | EdgeType] = [*self.catalog.nodes.values(), *self.catalog.edges.values()]
        return {(entity.id, entity.incarnation): entity for entity in types}


def _bases(sides: Sides, identity: Identity) -> tuple[TableEntry, tuple[tuple[TableEntry, TableEntry], ...]]:
    """The base of one table, and the other bases that have touched it as well, each with where both come from."""
    base, crossed = sides.base.tables[identity], []
    for other_state, root_state in sides.crossed:
        other, root = other_state.tables.get(identity), root_state.tables.get(identity)
        if other is None or root is None or same_table(other, base) or same_table(other, root):
            continue
        if same_table(base, root):
            # Only the other one has touched it since.
            base = other
        else:
            crossed.append((other, root))
    return base, tuple(crossed)


def _plan_table(context: CommitContext, spec: TableSpec, resolutions: Resolutions, options: Options) -> TablePlan:
    difference = open_difference(context, spec)
    judged = judge_spread(context, difference, options.engine, options.spark)
    decisions = resolutions.get(spec.ours.key, {})
    if not decisions:
        return TablePlan(difference, judged, None, judged)
    decided = carry_out(difference, decisions)
    return TablePlan(difference, judged, decided.rows, together([judged, decided.part]))
