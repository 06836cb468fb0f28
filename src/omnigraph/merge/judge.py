"""Judges the changes of theirs against ours, in batches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.merge.classify import (
    CONFLICTS,
    FIRST_CONFLICT,
    Mask,
    Op,
    Verdict,
    Verdicts,
    classify,
    decide,
    unopposed,
)
from omnigraph.merge.combine import align, flat, mix
from omnigraph.merge.difference import Change, Difference
from omnigraph.merge.kept import is_kept
from omnigraph.merge.part import NO_IDS, Part, together
from omnigraph.merge.result import Conflict, DecidedBy, Decision
from omnigraph.merge.rules import row_conflicts, rule_columns
from omnigraph.merge.view import Image, alike
from omnigraph.storage.tables.row_places import Addresses, RowPlaces
from omnigraph.storage.tables.table import IDS_PER_LOOKUP, ROW_ADDRESS

_MESSAGES = {
    Verdict.DIVERGENT_INSERT: "was inserted on both sides with different content",
    Verdict.DIVERGENT_UPDATE: "was updated differently on both sides",
    Verdict.DELETE_VS_UPDATE: "was deleted on one side and updated on the other",
}


def judge_table(difference: Difference) -> Part:
    """Judge all changes of theirs in a table, or in a range of its ids."""
    if not difference.candidates:
        return Part()
    judge = _Judge(difference)
    return together([Part(), *(judge.judge(change) for change in difference.changes())])


@dataclass(frozen=True)
class _Case:
    """Some entities that theirs changed in one way: their images, and their row addresses in ours."""

    op: Op
    base: Image
    theirs: Image
    addresses: Addresses
    in_ours: Mask
    ours: Image | None = None
    #: The ids among the changes that the caller has decided about; they are not in this case.
    decided: pa.Array = field(default_factory=lambda: NO_IDS)

    @property
    def ids(self) -> pa.Array:
        return self.base.ids


@dataclass(frozen=True)
class _Settled:
    """The verdicts on the entities of a case, and how each was reached."""

    verdicts: Verdicts
    #: Of combined entities, by property: which values come from theirs.
    marks: dict[str, Mask]
    #: The verdicts that follow from the sides alone.
    found: Verdicts
    by_strategy: Mask
    #: Marks edges that theirs deleted with a node that is kept.
    kept: Mask


class _Judge:
    """Holds the versions of a table while its changes are judged."""

    def __init__(self, difference: Difference) -> None:
        self._difference = difference
        self._spec = difference.spec
        self._decided = pa.array(self._spec.decided, pa.string())
        self._values = [name for name in difference.columns if name != "id"]
        self._known = self._look_ahead()

    def _look_ahead(self) -> pa.Table | None:
        """Addresses in ours of the entities that theirs changed, read in one scan if they are many; else None."""
        if self._difference.candidates <= IDS_PER_LOOKUP or self._spec.unopposed:
            return None
        return self._difference.ours.rows(self._difference.candidate_ids(), ["id"], with_row_address=True)

    def judge(self, change: Change) -> Part:
        """Judge one batch of changes of one kind."""
        case = self._case(change)
        if not len(case.ids):
            return Part(skipped=case.decided)
        if case.ours is None:
            return self._part(case, self._settled(case, unopposed(case.op, len(case.ids))))
        as_theirs = case.in_ours & alike(case.ours, case.theirs, self._values)
        as_base = case.in_ours & alike(case.ours, case.base, self._values)
        return self._part(case, self._settled(case, classify(case.op, case.in_ours, as_theirs, as_base)))

    def _settled(self, case: _Case, found: Verdicts) -> _Settled:
        """The final verdicts, after kept nodes, combined properties and the strategy."""
        spec, verdicts = self._spec, found.copy()
        kept = np.zeros(len(found), np.bool_)
        if case.op == "delete" and spec.kept_ends and case.base.rows is not None:
            edges_kept: Mask = is_kept(spec.kept_ends, case.base.rows).to_numpy(zero_copy_only=False)
            kept = edges_kept & case.in_ours
            verdicts[kept] = Verdict.KEEP
        marks: dict[str, Mask] = {}
        clashing = np.zeros(len(found), np.bool_)
        if spec.property_level and case.op == "update":
            marks, clashing = self._combine(case, verdicts)
        by_strategy = clashing if spec.strategy is not None else np.zeros(len(found), np.bool_)
        if spec.strategy is not None:
            by_strategy = by_strategy | (verdicts >= FIRST_CONFLICT)
            verdicts = decide(spec.strategy, case.op, verdicts, case.in_ours)
            self._keep_what_theirs_lacks(verdicts, marks, by_strategy & case.in_ours)
        return _Settled(verdicts, marks, found, by_strategy, kept)

    # --- the sides --------------------------------------------------------------------------------------------------

    def _case(self, change: Change) -> _Case:
        op, before, after = change.op, change.before, change.after
        rows = after if after is not None else before
        assert rows is not None, "a change has a row on one side"
        decided = NO_IDS
        if len(self._decided):
            is_decided = pc.is_in(rows["id"], value_set=self._decided)
            left = pc.invert(is_decided)
            decided = flat(rows["id"].filter(is_decided))
            before, after, rows = (None if side is None else side.filter(left) for side in (before, after, rows))
            assert rows is not None
        ids = flat(rows["id"])
        base = Image(ids, before, np.full(len(ids), before is not None), change.base)
        theirs = Image(ids, after, np.full(len(ids), after is not None), self._difference.theirs)
        addresses, in_ours = self._stored(op, ids)
        ours = None if self._spec.unopposed else self._ours(ids, in_ours)
        return _Case(op, base, theirs, addresses, in_ours, ours, decided)

    def _stored(self, op: Op, ids: pa.Array) -> tuple[Addresses, Mask]:
        """The addresses of these ids in ours, in order, and a mask of the ids found."""
        if self._spec.unopposed and op == "insert":
            return np.zeros(len(ids), np.uint64), np.zeros(len(ids), np.bool_)
        if self._known is None:
            found = self._difference.ours.rows(ids, ["id"], with_row_address=True)
        else:
            found = self._known.filter(pc.is_in(self._known["id"], value_set=ids))
        aligned, present = align(found, ids)
        return pc.fill_null(flat(aligned[ROW_ADDRESS]), 0).to_numpy(), present

    def _ours(self, ids: pa.Array, present: Mask) -> Image:
        """The image of these entities in ours."""
        if not present.any():
            return Image(ids, None, present, self._difference.ours)
        rows = self._difference.ours.rows(ids.filter(pa.array(present)), self._difference.columns)
        return Image(ids, *align(rows, ids), self._difference.ours)

    # --- property by property ---------------------------------------------------------------------------------------

    def _combine(self, case: _Case, verdicts: Verdicts) -> tuple[dict[str, Mask], Mask]:
        """Turn divergent updates of different properties into combinations.

        Returns which values come from theirs, by property, and a mask of entities with a property that both sides changed.
        """
        clashes = np.zeros(len(verdicts), np.bool_)
        places = np.flatnonzero(verdicts == Verdict.DIVERGENT_UPDATE)
        if not len(places) or case.ours is None:
            return {}, clashes
        base, ours, theirs = (image.take(places) for image in (case.base, case.ours, case.theirs))
        marks: dict[str, Mask] = {}
        clashing = np.zeros(len(places), np.bool_)
        for name in self._values:
            by_theirs, by_ours = ~alike(base, theirs, [name]), ~alike(base, ours, [name])
            clashing |= by_theirs & by_ours & ~alike(ours, theirs, [name])
            marks[name] = np.zeros(len(verdicts), np.bool_)
            marks[name][places] = by_theirs if self._spec.strategy == "theirs" else by_theirs & ~by_ours
        clashes[places] = clashing
        combined = places if self._spec.strategy is not None else places[~clashing]
        verdicts[combined] = Verdict.COMBINE
        return marks, clashes

    def _keep_what_theirs_lacks(self, verdicts: Verdicts, marks: dict[str, Mask], decided: Mask) -> None:
        """Turn replacements of ours by theirs into combinations that keep the columns theirs does not have."""
        places = np.flatnonzero((verdicts == Verdict.REPLACE) & decided)
        if not len(places) or not self._difference.lacking:
            return
        verdicts[places] = Verdict.COMBINE
        for name in self._values:
            marks.setdefault(name, np.zeros(len(verdicts), np.bool_))
            marks[name][places] = name not in self._difference.lacking

    # --- the outcome ------------------------------------------------------------------------------------------------

    def _part(self, case: _Case, settled: _Settled) -> Part:
        entity, ids, verdicts, marks = self._spec.entity, case.ids, settled.verdicts, settled.marks
        deleted_once = settled.by_strategy & (settled.found == Verdict.DELETE_VS_UPDATE)
        back = ids.filter(pa.array(deleted_once & (verdicts == Verdict.INSERT)))
        as_they_are = (verdicts == Verdict.INSERT) | (verdicts == Verdict.REPLACE)
        mixed = verdicts == Verdict.COMBINE
        written = [] if case.theirs.rows is None else [case.theirs.rows.filter(pa.array(as_they_are))]
        combined = None
        if mixed.any():
            written.append(_mixed(case, mixed, marks))
            takes = {name: pa.array(mask[mixed]) for name, mask in marks.items()}
            combined = pa.table({"id": ids.filter(pa.array(mixed)), **takes})
        return Part(
            inserted=int((verdicts == Verdict.INSERT).sum()),
            updated=int((verdicts == Verdict.REPLACE).sum() + mixed.sum()),
            deleted=int((verdicts == Verdict.DELETE).sum()),
            identical=int(((verdicts == Verdict.KEEP) & ~settled.by_strategy & ~settled.kept).sum()),
            new_rows=int(as_they_are.sum()) if case.op == "insert" else 0,
            changed_rows=int(as_they_are.sum()) if case.op == "update" else 0,
            skipped=_skipped(case, as_they_are),
            combined=combined,
            marked=_marked(case, (verdicts == Verdict.REPLACE) | (verdicts == Verdict.DELETE) | mixed),
            removed=ids.filter(pa.array(verdicts == Verdict.DELETE)),
            checked=pa.concat_tables([rows.select(rule_columns(entity)) for rows in written]) if written else None,
            conflicts=(
                *self._conflicts(ids, verdicts),
                *(conflict for rows in written for conflict in row_conflicts(entity, rows)),
            ),
            undecided=ids.filter(pa.array(verdicts >= FIRST_CONFLICT)),
            kept=ids.filter(pa.array(deleted_once & (verdicts == Verdict.KEEP))) if case.op == "delete" else NO_IDS,
            restored={"theirs": back} if len(back) else {},
            decided=tuple(self._decisions(ids, settled)),
        )

    def _decisions(self, ids: pa.Array, settled: _Settled) -> Iterator[Decision]:
        """The decisions that came from the strategy or from a kept node."""
        type_key, strategy = self._spec.entity.type_key, self._spec.strategy
        for place in np.flatnonzero(settled.by_strategy):
            kind = CONFLICTS[Verdict(settled.found[place])].value
            yield Decision(type_key, ids[place].as_py(), str(strategy), DecidedBy.STRATEGY.value, kind)
        for place in np.flatnonzero(settled.kept):
            yield Decision(type_key, ids[place].as_py(), "ours", DecidedBy.KEPT_NODE.value)

    def _conflicts(self, ids: pa.Array, verdicts: Verdicts) -> list[Conflict]:
        entity = self._spec.entity
        return [
            Conflict(kind.value, entity.type_key, entity_id, f"{entity.name} {entity_id!r} {_MESSAGES[verdict]}")
            for verdict, kind in CONFLICTS.items()
            for entity_id in ids.filter(pa.array(verdicts == verdict)).to_pylist()
        ]


def _mixed(case: _Case, mixed: Mask, marks: dict[str, Mask]) -> pa.Table:
    """The combined rows."""
    assert case.ours is not None
    assert case.ours.rows is not None
    assert case.theirs.rows is not None
    chosen = pa.array(mixed)
    ours = case.ours.rows.filter(chosen).select(case.theirs.rows.column_names)
    return mix(ours, case.theirs.rows.filter(chosen), {name: mask[mixed] for name, mask in marks.items()})


def _skipped(case: _Case, as_they_are: Mask) -> pa.Array:
    """The ids of rows of theirs that must not be written unchanged."""
    if case.op == "delete" or as_they_are.all():
        return case.decided
    return pa.concat_arrays([case.decided, case.ids.filter(pa.array(~as_they_are))])


def _marked(case: _Case, chosen: Mask) -> RowPlaces:
    return RowPlaces.of(case.addresses[chosen]) if chosen.any() else RowPlaces()
