"""How recovery judges a sidecar: each table by comparing its head with its pin, then one decision for all tables.

Pure: the caller reads heads, pins and transaction ids; this module only decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from omnigraph.commit.sidecar import Kind, PlannedTable
from omnigraph.commit.writers import WRITERS, Mode


class Class(StrEnum):
    """The finding about one table of a sidecar."""

    NO_MOVEMENT = "NoMovement"
    ROLLED_PAST_EXPECTED = "RolledPastExpected"
    ALREADY_PUBLISHED = "AlreadyPublished"
    UNEXPECTED_EFFECT_IDENTITY = "UnexpectedEffectIdentity"
    UNEXPECTED_AT_P1 = "UnexpectedAtP1"
    UNEXPECTED_MULTISTEP = "UnexpectedMultistep"
    INCOMPLETE_PHASE_B = "IncompletePhaseB"
    INVARIANT_VIOLATION = "InvariantViolation"


class Decision(StrEnum):
    """What recovery does with a whole sidecar."""

    ABORT = "Abort"
    ROLL_FORWARD = "RollForward"
    ROLL_BACK = "RollBack"
    ALREADY_PUBLISHED = "AlreadyPublished"


def mode_of(kind: Kind, schema_version: int) -> Mode:
    """The mode of a sidecar. Merges and schema changes recorded before confirmation existed are judged loosely."""
    return WRITERS[kind].mode_at(schema_version)


@dataclass(frozen=True, slots=True)
class Observed:
    """What recovery found for one planned table: head, pin, and whether the head was made by this operation.

    `displaced`: this write forked the table, but another version of the table was published on the branch meanwhile.
    """

    head: int | None
    pin: int | None
    ours: bool
    displaced: bool = False


def classify(mode: Mode, table: PlannedTable, seen: Observed) -> Class:
    """The class of one table."""
    expected, head, pin = table.expected_version, seen.head, seen.pin
    if expected is None:
        return _classify_creation(seen)
    if seen.displaced:
        return Class.UNEXPECTED_MULTISTEP
    if pin is None or head is None or head < pin:
        return Class.INVARIANT_VIOLATION
    if head == pin:
        # The pin is beyond the version this write expected, and the head agrees with it: the write was published.
        return Class.ALREADY_PUBLISHED if pin > expected else Class.NO_MOVEMENT
    match mode:
        case Mode.STRICT:
            return _classify_strict(table, head, pin, seen.ours)
        case Mode.LOOSE:
            return Class.ROLLED_PAST_EXPECTED if expected == pin else Class.UNEXPECTED_MULTISTEP
        case Mode.CONFIRMED:
            if expected == pin and table.confirmed_version is None:
                return Class.INCOMPLETE_PHASE_B
            confirmed = expected == pin and table.confirmed_version == head
            return Class.ROLLED_PAST_EXPECTED if confirmed else Class.UNEXPECTED_MULTISTEP


def _classify_creation(seen: Observed) -> Class:
    if seen.pin is not None:
        return Class.ALREADY_PUBLISHED
    if seen.head is None:
        return Class.NO_MOVEMENT
    return Class.ROLLED_PAST_EXPECTED if seen.ours else Class.UNEXPECTED_EFFECT_IDENTITY


def _classify_strict(table: PlannedTable, head: int, pin: int, ours: bool) -> Class:
    if head > pin + 1:
        return Class.UNEXPECTED_MULTISTEP
    if table.expected_version != pin or table.post_commit_pin != head:
        return Class.UNEXPECTED_AT_P1
    return Class.ROLLED_PAST_EXPECTED if ours else Class.UNEXPECTED_EFFECT_IDENTITY


def decide(classes: Sequence[Class]) -> Decision:
    """The decision for all tables of a sidecar."""
    if Class.INVARIANT_VIOLATION in classes:
        return Decision.ABORT
    if classes and all(found is Class.ALREADY_PUBLISHED for found in classes):
        return Decision.ALREADY_PUBLISHED
    if classes and all(found is Class.ROLLED_PAST_EXPECTED for found in classes):
        return Decision.ROLL_FORWARD
    return Decision.ROLL_BACK
