"""The judgement of recovery is pure: every combination of small values is checked against the table of the specification."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, combinations_with_replacement, product

import pytest

from omnigraph.commit.classify import Class, Decision, Observed, classify, decide, mode_of
from omnigraph.commit.sidecar import Kind, PlannedTable
from omnigraph.commit.writers import Mode

C = Class


def table(
    expected: int | None, plan: int | None = None, *, confirmed: int | None = None, transaction_id: str | None = "ours"
) -> PlannedTable:
    return PlannedTable("node:Staff", "nodes/1-1", None, expected, plan, transaction_id, confirmed_version=confirmed)


def at(head: int | None, pin: int | None, ours: bool = True, displaced: bool = False) -> Observed:
    return Observed(head=head, pin=pin, ours=ours, displaced=displaced)


ROWS = [
    pytest.param(Mode.STRICT, table(5, 6), at(4, 5), C.INVARIANT_VIOLATION, id="strict-head-below-pin"),
    pytest.param(Mode.LOOSE, table(5, 6), at(4, 5), C.INVARIANT_VIOLATION, id="loose-head-below-pin"),
    pytest.param(Mode.CONFIRMED, table(5, 6), at(4, 5), C.INVARIANT_VIOLATION, id="confirmed-head-below-pin"),
    pytest.param(Mode.STRICT, table(5, 6), at(None, 5), C.INVARIANT_VIOLATION, id="table-vanished"),
    pytest.param(Mode.STRICT, table(5, 6), at(5, None), C.INVARIANT_VIOLATION, id="table-not-in-the-manifest"),
    pytest.param(Mode.STRICT, table(5, 6), at(5, 5), C.NO_MOVEMENT, id="strict-head-is-pin"),
    pytest.param(Mode.LOOSE, table(5, 6), at(5, 5), C.NO_MOVEMENT, id="loose-head-is-pin"),
    pytest.param(Mode.CONFIRMED, table(5, 6), at(5, 5), C.NO_MOVEMENT, id="confirmed-head-is-pin"),
    pytest.param(Mode.STRICT, table(999, 1000), at(5, 5), C.NO_MOVEMENT, id="expected-far-above-reality"),
    pytest.param(Mode.STRICT, table(5, 6), at(6, 5), C.ROLLED_PAST_EXPECTED, id="REC-03"),
    pytest.param(Mode.STRICT, table(4, 6), at(6, 5), C.UNEXPECTED_AT_P1, id="REC-04-other-expected-version"),
    pytest.param(Mode.STRICT, table(5, 7), at(6, 5), C.UNEXPECTED_AT_P1, id="REC-04-other-plan"),
    pytest.param(Mode.STRICT, table(5, None), at(6, 5), C.UNEXPECTED_AT_P1, id="REC-04-no-plan"),
    pytest.param(Mode.STRICT, table(4, 6), at(6, 5, ours=False), C.UNEXPECTED_AT_P1, id="REC-04-before-identity"),
    pytest.param(Mode.STRICT, table(5, 6), at(7, 5), C.UNEXPECTED_MULTISTEP, id="REC-05"),
    pytest.param(Mode.STRICT, table(5, 7), at(7, 5), C.UNEXPECTED_MULTISTEP, id="REC-05-even-when-planned"),
    pytest.param(Mode.LOOSE, table(5, 6), at(6, 5), C.ROLLED_PAST_EXPECTED, id="one-step"),
    pytest.param(Mode.LOOSE, table(5, 6), at(9, 5), C.ROLLED_PAST_EXPECTED, id="many-steps"),
    pytest.param(Mode.LOOSE, table(5, 6), at(9, 5, ours=False), C.ROLLED_PAST_EXPECTED, id="not-tagged"),
    pytest.param(Mode.LOOSE, table(4, 6), at(9, 5), C.UNEXPECTED_MULTISTEP, id="other-expected-version"),
    pytest.param(
        Mode.CONFIRMED, table(5, 8, confirmed=8), at(8, 5), C.ROLLED_PAST_EXPECTED, id="REC-07-confirmed-is-head"
    ),
    pytest.param(
        Mode.CONFIRMED, table(5, 8, confirmed=7), at(8, 5), C.UNEXPECTED_MULTISTEP, id="REC-07-confirmed-is-not-head"
    ),
    pytest.param(Mode.CONFIRMED, table(5, 8), at(8, 5), C.INCOMPLETE_PHASE_B, id="REC-07-not-confirmed"),
    pytest.param(
        Mode.CONFIRMED, table(4, 8, confirmed=8), at(8, 5), C.UNEXPECTED_MULTISTEP, id="REC-07-other-expected-version"
    ),
    pytest.param(mode_of(Kind.BRANCH_MERGE, 1), table(5, 6), at(8, 5), C.ROLLED_PAST_EXPECTED, id="REC-08-merge"),
    pytest.param(mode_of(Kind.SCHEMA_APPLY, 1), table(5, 6), at(8, 5), C.ROLLED_PAST_EXPECTED, id="REC-08-schema"),
    pytest.param(Mode.STRICT, table(5, 6), at(6, 5, ours=False), C.UNEXPECTED_EFFECT_IDENTITY, id="REC-09"),
    pytest.param(Mode.STRICT, table(5, 6), at(8, 8), C.ALREADY_PUBLISHED, id="REC-14-strict"),
    pytest.param(Mode.LOOSE, table(2, 3), at(3, 3), C.ALREADY_PUBLISHED, id="REC-16-second-sidecar"),
    pytest.param(Mode.STRICT, table(None, 1), at(None, None), C.NO_MOVEMENT, id="created-absent"),
    pytest.param(Mode.STRICT, table(None, 1), at(1, None), C.ROLLED_PAST_EXPECTED, id="created-ours"),
    pytest.param(
        Mode.STRICT, table(None, 1), at(1, None, ours=False), C.UNEXPECTED_EFFECT_IDENTITY, id="created-foreign"
    ),
    pytest.param(Mode.STRICT, table(None, 1), at(1, 1), C.ALREADY_PUBLISHED, id="created-and-published"),
    pytest.param(Mode.STRICT, table(5, 6), at(6, 5, displaced=True), C.UNEXPECTED_MULTISTEP, id="fork-displaced"),
]


@pytest.mark.parametrize(("mode", "planned", "seen", "expected"), ROWS)
def test_row(mode: Mode, planned: PlannedTable, seen: Observed, expected: Class) -> None:
    assert classify(mode, planned, seen) is expected


def specified(mode: Mode, planned: PlannedTable, seen: Observed) -> Class:
    """The table of the specification for a table that has a pin, read from top to bottom."""
    h, m, p, ours = seen.head, seen.pin, planned.expected_version, seen.ours
    assert h is not None
    assert m is not None
    assert p is not None
    strict, confirmed = mode is Mode.STRICT, planned.confirmed_version
    fits = p == m and planned.post_commit_pin == h
    rows = [
        (h < m, C.INVARIANT_VIOLATION),
        (h == m and p < m, C.ALREADY_PUBLISHED),
        (h == m, C.NO_MOVEMENT),
        (strict and h == m + 1 and fits and ours, C.ROLLED_PAST_EXPECTED),
        (strict and h == m + 1 and fits, C.UNEXPECTED_EFFECT_IDENTITY),
        (strict and h == m + 1, C.UNEXPECTED_AT_P1),
        (strict, C.UNEXPECTED_MULTISTEP),
        (mode is Mode.LOOSE and p == m, C.ROLLED_PAST_EXPECTED),
        (mode is Mode.CONFIRMED and p == m and confirmed == h, C.ROLLED_PAST_EXPECTED),
        (mode is Mode.CONFIRMED and p == m and confirmed is None, C.INCOMPLETE_PHASE_B),
    ]
    return next((found for holds, found in rows if holds), C.UNEXPECTED_MULTISTEP)


@pytest.mark.parametrize("mode", Mode)
def test_every_small_state(mode: Mode) -> None:
    small = range(1, 5)
    maybe = [None, *small]
    for h, m, p, plan, confirmed, ours in product(small, small, small, maybe, maybe, (True, False)):
        planned, seen = table(p, plan, confirmed=confirmed), at(h, m, ours)
        assert classify(mode, planned, seen) is specified(mode, planned, seen), (h, m, p, plan, confirmed, ours)


@pytest.mark.parametrize(("mode", "ours"), list(product(Mode, (True, False))))
def test_every_mode_judges_a_created_table_alike(mode: Mode, ours: bool) -> None:
    """A table without a pin is judged by its identity alone."""
    assert classify(mode, table(None, 1), at(None, None, ours)) is C.NO_MOVEMENT
    assert classify(mode, table(None, 1), at(1, 1, ours)) is C.ALREADY_PUBLISHED
    expected = C.ROLLED_PAST_EXPECTED if ours else C.UNEXPECTED_EFFECT_IDENTITY
    assert classify(mode, table(None, 1), at(1, None, ours)) is expected


MODES = {
    (Kind.MUTATION, 1): Mode.STRICT,
    (Kind.MUTATION, 2): Mode.STRICT,
    (Kind.LOAD, 1): Mode.STRICT,
    (Kind.LOAD, 2): Mode.STRICT,
    (Kind.SCHEMA_APPLY, 1): Mode.LOOSE,
    (Kind.SCHEMA_APPLY, 2): Mode.STRICT,
    (Kind.BRANCH_MERGE, 1): Mode.LOOSE,
    (Kind.BRANCH_MERGE, 2): Mode.CONFIRMED,
    (Kind.ENSURE_INDICES, 1): Mode.LOOSE,
    (Kind.ENSURE_INDICES, 2): Mode.LOOSE,
    (Kind.OPTIMIZE, 1): Mode.LOOSE,
    (Kind.OPTIMIZE, 2): Mode.LOOSE,
}


@pytest.mark.parametrize(("kind", "version"), list(product(Kind, (1, 2))))
def test_mode(kind: Kind, version: int) -> None:
    assert mode_of(kind, version) is MODES[kind, version]


DECISIONS = [
    pytest.param([], Decision.ROLL_BACK, id="no-tables"),
    pytest.param([C.ROLLED_PAST_EXPECTED], Decision.ROLL_FORWARD, id="all-moved"),
    pytest.param([C.ROLLED_PAST_EXPECTED] * 3, Decision.ROLL_FORWARD, id="all-of-three-moved"),
    pytest.param([C.ROLLED_PAST_EXPECTED, C.NO_MOVEMENT], Decision.ROLL_BACK, id="one-did-not-move"),
    pytest.param([C.ROLLED_PAST_EXPECTED, C.UNEXPECTED_AT_P1], Decision.ROLL_BACK, id="one-unexpected"),
    pytest.param([C.NO_MOVEMENT], Decision.ROLL_BACK, id="nothing-moved"),
    pytest.param([C.ALREADY_PUBLISHED], Decision.ALREADY_PUBLISHED, id="REC-14-published"),
    pytest.param([C.ALREADY_PUBLISHED, C.NO_MOVEMENT], Decision.ROLL_BACK, id="published-and-not-moved"),
    pytest.param([C.ALREADY_PUBLISHED, C.ROLLED_PAST_EXPECTED], Decision.ROLL_BACK, id="published-and-moved"),
    pytest.param([C.ROLLED_PAST_EXPECTED, C.INVARIANT_VIOLATION], Decision.ABORT, id="abort-wins"),
]


@pytest.mark.parametrize(("classes", "expected"), DECISIONS)
def test_decision(classes: Sequence[Class], expected: Decision) -> None:
    assert decide(classes) is expected


def test_every_decision_over_three_tables() -> None:
    """One broken invariant aborts; only unanimity goes forward; the order of the tables does not matter."""
    for classes in chain.from_iterable(combinations_with_replacement(Class, size) for size in (1, 2, 3)):
        if C.INVARIANT_VIOLATION in classes:
            expected = Decision.ABORT
        elif set(classes) == {C.ROLLED_PAST_EXPECTED}:
            expected = Decision.ROLL_FORWARD
        elif set(classes) == {C.ALREADY_PUBLISHED}:
            expected = Decision.ALREADY_PUBLISHED
        else:
            expected = Decision.ROLL_BACK
        assert decide(classes) is expected, classes
        assert decide(classes[::-1]) is expected, classes
