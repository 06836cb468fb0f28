"""Judging the changes of theirs against what ours has, a batch at a time."""

from __future__ import annotations

from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.changes.compare import differing
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
from omnigraph.merge.difference import Change, Difference, Version
from omnigraph.merge.part import NO_ADDRESSES, NO_IDS, Addresses, Part, together
from omnigraph.merge.result import Conflict
from omnigraph.merge.rules import row_conflicts, rule_columns
from omnigraph.merge.target import MOST_LOOKED_UP, find
from omnigraph.storage.tables.table import ROW_ADDRESS

#: Rows, and the version of the table they are of.
_Rows = tuple[pa.Table, Version]

_MESSAGES = {
    Verdict.DIVERGENT_INSERT: "was inserted on both sides with different content",
    Verdict.DIVERGENT_UPDATE: "was updated differently on both sides",
    Verdict.DELETE_VS_UPDATE: "was deleted on one side and updated on the other",
}


def judge_table(difference: Difference) -> Part:
    """Judge everything that theirs changed in a table, or in a range of its ids."""
    if not difference.delta.candidates:
        return Part()
    bench = _Judge(difference)
    return together([Part(), *(bench.judge(change) for change in difference.changes())])


class _Judge:
    """Holds the three versions of a table while its changes are judged."""

    def __init__(self, difference: Difference) -> None:
        self._difference = difference
        self._spec = difference.spec
        self._decided = pa.array(self._spec.decided, pa.string())
        self._values = [name for name in difference.columns if name != "id"]
        self._known = self._look_ahead()

    def _look_ahead(self) -> pa.Table | None:
        """Where ours has entities that theirs changed, when they are many: one scan instead of many look-ups."""
        if self._difference.delta.candidates <= MOST_LOOKED_UP or self._spec.unopposed:
            return None
        sides = [side for side in (self._difference.delta.before, self._difference.delta.after) if side is not None]
        ids = [batch.column("id") for side in sides for batch in side.scan(["id"])]
        wanted = pa.concat_arrays(ids) if ids else NO_IDS
        return find(self._difference.ours, "id", wanted, ["id"], with_row_address=True)

    def judge(self, change: Change) -> Part:
        """The judgement on one batch of changes of one kind."""
        op, before, after = change
        before, after, decided = self._undecided(before, after)
        rows = after if after is not None else before
        assert rows is not None
        ids = flat(rows["id"])
        if not len(ids):
            return Part(skipped=decided)
        stored, present = self._stored(op, ids)
        marks: dict[str, Mask] = {}
        ours: pa.Table | None = None
        if self._spec.unopposed:
            verdicts = unopposed(op, len(ids))
        else:
            if (present.any() and (op != "insert" or self._known is not None)) or present.any():
                ours = self._ours(ids, present)
            verdicts = classify(
                op,
                present,
                self._equal(ours, after, "theirs", ids, present),
                self._equal(ours, before, "base", ids, present),
            )
            if self._spec.property_level and op == "update" and ours is not None:
                assert before is not None
                assert after is not None
                marks = self._combine(verdicts, before, ours, after, ids)
            if self._spec.strategy is not None:
                verdicts = decide(self._spec.strategy, op, verdicts, present)
        return self._part(op, ids, verdicts, stored, after, ours, marks, decided)

    def _undecided(
        self, before: pa.Table | None, after: pa.Table | None
    ) -> tuple[pa.Table | None, pa.Table | None, pa.Array]:
        """The rows about which the caller has not decided, and the ids of the others."""
        rows = after if after is not None else before
        assert rows is not None
        if not len(self._decided):
            return before, after, NO_IDS
        is_decided = pc.is_in(rows["id"], value_set=self._decided)
        left = pc.invert(is_decided)
        return (
            None if before is None else before.filter(left),
            None if after is None else after.filter(left),
            flat(rows["id"].filter(is_decided)),
        )

    # --- what ours has ----------------------------------------------------------------------------------------------

    def _stored(self, op: Op, ids: pa.Array) -> tuple[pa.Table, Mask]:
        """The addresses of these ids in ours, in their order, and which there are."""
        if op == "insert" and self._spec.unopposed:
            return pa.table({"id": ids, ROW_ADDRESS: np.zeros(len(ids), np.uint64)}), np.zeros(len(ids), np.bool_)
        if self._known is None:
            found = find(self._difference.ours, "id", ids, ["id"], with_row_address=True)
        else:
            found = self._known.filter(pc.is_in(self._known["id"], value_set=ids))
        return align(found, ids)

    def _ours(self, ids: pa.Array, present: Mask) -> pa.Table:
        """The rows of ours with these ids, in their order."""
        return align(self._difference.rows("ours", ids.filter(pa.array(present))), ids)[0]

    def _equal(self, ours: pa.Table | None, rows: pa.Table | None, side: Version, ids: pa.Array, present: Mask) -> Mask:
        """Where ours has the entity exactly as these rows of a version have it."""
        equal = np.zeros(len(ids), np.bool_)
        if ours is None or rows is None:
            return equal
        places = np.flatnonzero(present)
        equal[places] = ~self._differ((ours, "ours"), (rows, side), ids, places, self._values)
        return equal

    def _differ(self, one: _Rows, other: _Rows, ids: pa.Array, places: npt.NDArray[np.int64], names: list[str]) -> Mask:
        """Which of the rows at these places differ in one of these columns."""
        chosen = pa.array(places)
        read = partial(self._blob_bytes, one[1], other[1], ids.take(chosen))
        return differing(one[0].take(chosen), other[0].take(chosen), names, read)

    def _blob_bytes(
        self, one: Version, other: Version, ids: pa.Array, name: str, places: npt.NDArray[np.int64]
    ) -> tuple[pa.Array, pa.Array]:
        """The bytes of one blob column in some of these entities, of two versions."""
        wanted = ids.take(pa.array(places))
        read = (self._difference.rows(version, wanted, ["id", name], blobs="bytes") for version in (one, other))
        first, second = (flat(align(rows, wanted)[0][name]) for rows in read)
        return first, second

    # --- property by property ---------------------------------------------------------------------------------------

    def _combine(
        self, verdicts: Verdicts, before: pa.Table, ours: pa.Table, after: pa.Table, ids: pa.Array
    ) -> dict[str, Mask]:
        """Turn divergent updates of different properties into combinations; says which values come from theirs."""
        places = np.flatnonzero(verdicts == Verdict.DIVERGENT_UPDATE)
        base: _Rows = (before, "base")
        mine: _Rows = (ours, "ours")
        other: _Rows = (after, "theirs")
        marks: dict[str, Mask] = {}
        clashing = np.zeros(len(places), np.bool_)
        for name in self._values:
            by_theirs = self._differ(base, other, ids, places, [name])
            by_ours = self._differ(base, mine, ids, places, [name])
            clash = by_theirs & by_ours & self._differ(mine, other, ids, places, [name])
            clashing |= clash
            taken = by_theirs & ~by_ours if self._spec.strategy != "theirs" else by_theirs
            marks[name] = np.zeros(len(verdicts), np.bool_)
            marks[name][places] = taken
        if self._spec.strategy is not None:
            clashing[:] = False
        verdicts[places[~clashing]] = Verdict.COMBINE
        return marks

    # --- the outcome ------------------------------------------------------------------------------------------------

    def _part(
        self,
        op: Op,
        ids: pa.Array,
        verdicts: Verdicts,
        stored: pa.Table,
        after: pa.Table | None,
        ours: pa.Table | None,
        marks: dict[str, Mask],
        decided: pa.Array,
    ) -> Part:
        entity = self._spec.entity
        written = (verdicts == Verdict.INSERT) | (verdicts == Verdict.REPLACE)
        mixed = verdicts == Verdict.COMBINE
        outcome = [] if after is None else [after.filter(pa.array(written))]
        combined = None
        if mixed.any():
            assert ours is not None
            assert after is not None
            chosen = pa.array(mixed)
            of_mixed = {name: mask[mixed] for name, mask in marks.items()}
            outcome.append(mix(ours.filter(chosen).select(after.column_names), after.filter(chosen), of_mixed))
            combined = pa.table({"id": ids.filter(chosen), **{name: pa.array(mask) for name, mask in of_mixed.items()}})
        replaced = (verdicts == Verdict.REPLACE) | (verdicts == Verdict.DELETE) | mixed
        return Part(
            inserted=int((verdicts == Verdict.INSERT).sum()),
            updated=int(((verdicts == Verdict.REPLACE) | mixed).sum()),
            deleted=int((verdicts == Verdict.DELETE).sum()),
            identical=int((verdicts == Verdict.KEEP).sum()),
            new_rows=int(written.sum()) if op == "insert" else 0,
            changed_rows=int(written.sum()) if op == "update" else 0,
            skipped=decided if op == "delete" else pa.concat_arrays([decided, ids.filter(pa.array(~written))]),
            combined=combined,
            marked=_addresses(stored, replaced),
            removed=ids.filter(pa.array(verdicts == Verdict.DELETE)),
            checked=pa.concat_tables([rows.select(rule_columns(entity)) for rows in outcome]) if outcome else None,
            conflicts=(
                *self._conflicts(ids, verdicts),
                *(conflict for rows in outcome for conflict in row_conflicts(entity, rows)),
            ),
            undecided=ids.filter(pa.array(verdicts >= FIRST_CONFLICT)),
        )

    def _conflicts(self, ids: pa.Array, verdicts: Verdicts) -> list[Conflict]:
        entity = self._spec.entity
        found = []
        for verdict, kind in CONFLICTS.items():
            for entity_id in ids.filter(pa.array(verdicts == verdict)).to_pylist():
                message = f"{entity.name} {entity_id!r} {_MESSAGES[verdict]}"
                found.append(Conflict(kind.value, entity.type_key, entity_id, message))
        return found


def _addresses(stored: pa.Table, chosen: Mask) -> Addresses:
    if not chosen.any():
        return NO_ADDRESSES
    addresses: Addresses = stored[ROW_ADDRESS].to_numpy()[chosen].astype(np.uint64)
    return addresses
