"""The decision table of a three-way merge: from what theirs did to an entity, and its form in ours. Pure, vectorised.

theirs  | ours: absent     as theirs   as base    different
--------+----------------------------------------------------------
insert  | insert           keep        –          DivergentInsert
update  | DeleteVsUpdate   keep        replace    DivergentUpdate
delete  | keep             –           delete     DeleteVsUpdate
"""

from __future__ import annotations

from enum import IntEnum
from typing import Literal

import numpy as np
import numpy.typing as npt

from omnigraph.merge.result import ConflictKind

Op = Literal["insert", "update", "delete"]
Strategy = Literal["ours", "theirs"]
Mask = npt.NDArray[np.bool_]
Verdicts = npt.NDArray[np.uint8]


class Verdict(IntEnum):
    """The decision about one entity of the target."""

    KEEP = 0
    INSERT = 1
    REPLACE = 2
    DELETE = 3
    COMBINE = 4
    DIVERGENT_INSERT = 10
    DIVERGENT_UPDATE = 11
    DELETE_VS_UPDATE = 12


CONFLICTS = {
    Verdict.DIVERGENT_INSERT: ConflictKind.DIVERGENT_INSERT,
    Verdict.DIVERGENT_UPDATE: ConflictKind.DIVERGENT_UPDATE,
    Verdict.DELETE_VS_UPDATE: ConflictKind.DELETE_VS_UPDATE,
}
FIRST_CONFLICT = Verdict.DIVERGENT_INSERT


def classify(op: Op, present: Mask, as_theirs: Mask, as_base: Mask) -> Verdicts:
    """The verdict on each entity that theirs inserted, updated or deleted; the masks describe the entity in ours."""
    match op:
        case "insert":
            cases = [(~present, Verdict.INSERT), (as_theirs, Verdict.KEEP)]
            otherwise = Verdict.DIVERGENT_INSERT
        case "update":
            cases = [
                (~present, Verdict.DELETE_VS_UPDATE),
                (as_theirs, Verdict.KEEP),
                (as_base, Verdict.REPLACE),
            ]
            otherwise = Verdict.DIVERGENT_UPDATE
        case "delete":
            cases = [(~present, Verdict.KEEP), (as_base, Verdict.DELETE)]
            otherwise = Verdict.DELETE_VS_UPDATE
    verdicts: Verdicts = np.select(
        [mask for mask, _ in cases], [np.uint8(verdict) for _, verdict in cases], np.uint8(otherwise)
    ).astype(np.uint8)
    return verdicts


def unopposed(op: Op, count: int) -> Verdicts:
    """The verdicts if ours equals the base: all changes of theirs take effect."""
    verdict = {"insert": Verdict.INSERT, "update": Verdict.REPLACE, "delete": Verdict.DELETE}[op]
    return np.full(count, verdict, np.uint8)


def decide(strategy: Strategy, op: Op, verdicts: Verdicts, present: Mask) -> Verdicts:
    """The verdicts with every conflict decided for the side that `strategy` names."""
    conflicting = verdicts >= FIRST_CONFLICT
    if strategy == "ours":
        decided = np.full(len(verdicts), Verdict.KEEP, np.uint8)
    elif op == "delete":
        decided = np.full(len(verdicts), Verdict.DELETE, np.uint8)
    else:
        decided = np.where(present, Verdict.REPLACE, Verdict.INSERT).astype(np.uint8)
    return np.where(conflicting, decided, verdicts).astype(np.uint8)
