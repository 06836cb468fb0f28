"""The crash matrix as data: for every writer, place and failpoint, where its process dies and what recovery makes of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain

from tests.commit.scenarios import FIRST_WRITE, MAIN_LINE, SCENARIOS, SECOND_WRITE, Scenario


class Outcome(StrEnum):
    """What is to be found after recovery."""

    UNTOUCHED = "before, nothing was pending"
    NOTHING_MOVED = "before, recorded as rolled back"
    UNDONE = "before, by a recovery commit where a published table had moved"
    FORWARD = "after, recorded as rolled forward"
    DONE = "after, nothing was pending"


@dataclass(frozen=True)
class Death:
    """A process dies at the nth passing of a failpoint; `failing`: after another one failed with an error."""

    failpoint: str
    passing: int = 1
    failing: str | None = None

    def __str__(self) -> str:
        name = self.failpoint if self.passing == 1 else f"{self.failpoint}-{self.passing}"
        return name if self.failing is None else f"{self.failing}-fails-{name}"


@dataclass(frozen=True)
class Case:
    """The writer dies, then one process after the other that tries to recover; the next one must succeed."""

    writer: str
    place: str
    write: Death
    outcome: Outcome
    recoveries: tuple[Death, ...] = ()

    def __str__(self) -> str:
        return "-".join([self.writer, self.place, *(str(death) for death in (self.write, *self.recoveries))])


# --- deaths of the writer ---------------------------------------------------------------------------------------------


#: How often the second table's first commit passes `table_commit.before_commit`, counting those of the first table.
SECOND_TABLE = {"mutation": 2, "load": 2, "branch_merge": 4, "ensure_indices": 2, "optimize": 4}
#: When the second table has moved and its acknowledgement is lost: the passing, and what is made of it. A merge has
#: not confirmed then; a compaction does not pass this failpoint.
SECOND_LOST = {
    "mutation": (2, Outcome.FORWARD),
    "load": (2, Outcome.FORWARD),
    "schema_apply": (2, Outcome.FORWARD),
    "branch_merge": (4, Outcome.UNDONE),
    "ensure_indices": (2, Outcome.FORWARD),
}


def deaths(writer: str) -> Iterator[tuple[Death, Outcome]]:
    """Every place a writer can die at, in the order it passes them."""
    yield Death("recovery.sidecar_list"), Outcome.UNTOUCHED
    yield Death(f"{writer}.pre_phase_a"), Outcome.UNTOUCHED
    yield Death("recovery.sidecar_write"), Outcome.UNTOUCHED
    yield Death(f"{writer}.post_phase_a"), Outcome.NOTHING_MOVED
    yield Death("table_commit.before_commit"), Outcome.NOTHING_MOVED
    yield Death("table_commit.lost_acknowledgement"), Outcome.UNDONE
    if writer == "branch_merge":
        yield Death("branch_merge.after_append"), Outcome.UNDONE
        yield Death("branch_merge.after_upsert"), Outcome.UNDONE
        yield Death("branch_merge.after_delete"), Outcome.UNDONE
    if writer == "optimize":
        yield Death("optimize.between_compact_and_index"), Outcome.UNDONE
    yield Death(f"{writer}.mid_phase_b"), Outcome.UNDONE
    if writer in SECOND_TABLE:
        yield Death("table_commit.before_commit", SECOND_TABLE[writer]), Outcome.UNDONE
    if writer in SECOND_LOST:
        passing, outcome = SECOND_LOST[writer]
        yield Death("table_commit.lost_acknowledgement", passing), outcome
    if writer == "branch_merge":
        yield Death("recovery.sidecar_write", 2), Outcome.UNDONE
        yield Death("branch_merge.post_confirm"), Outcome.FORWARD
    yield Death(f"{writer}.post_phase_b_pre_manifest_commit"), Outcome.FORWARD
    yield Death("publisher.load_contention"), Outcome.FORWARD
    yield Death("publisher.before_commit"), Outcome.FORWARD
    yield Death("publisher.after_commit"), Outcome.FORWARD
    yield Death(f"{writer}.post_phase_c"), Outcome.FORWARD
    if writer == "schema_apply":
        yield Death("recovery.sidecar_write", 2), Outcome.FORWARD
        yield Death("schema_apply.before_promote"), Outcome.FORWARD
        yield Death("schema_apply.mid_promote"), Outcome.FORWARD
        yield Death("schema_apply.mid_promote", 2), Outcome.FORWARD
        yield Death("schema_apply.mid_promote", 3), Outcome.FORWARD
        yield Death("schema_apply.after_promote"), Outcome.FORWARD
    yield Death("recovery.sidecar_delete"), Outcome.FORWARD


# --- deaths of recovery -----------------------------------------------------------------------------------------------

RECORDING = ("recovery.before_audit", "recovery.record_audit", "recovery.after_audit", "recovery.sidecar_delete")
PUBLISHING = ("publisher.load_contention", "publisher.before_commit", "publisher.after_commit")


def deaths_forward() -> Iterator[Death]:
    """Where recovery can die while it rolls forward."""
    names = ("recovery.sidecar_list", "recovery.before_roll_forward", *PUBLISHING, "recovery.after_roll_forward")
    yield from map(Death, (*names, *RECORDING))


def deaths_back(writer: str, place: str) -> Iterator[Death]:
    """Where recovery can die while it rolls back. Forks are dropped, not undone, so nothing is published then."""
    yield Death("recovery.sidecar_list")
    if place != FIRST_WRITE:
        yield from map(Death, ("recovery.before_undo", "undo.before_commit"))
        if writer in ("load", "schema_apply"):
            yield Death("undo.before_restore")
        yield from map(Death, ("table_commit.lost_acknowledgement", "recovery.after_undo", *PUBLISHING))
    yield from map(Death, ("recovery.after_roll_back", *RECORDING))


# --- the matrix -------------------------------------------------------------------------------------------------------


def writer_cases(scenario: Scenario) -> Iterator[Case]:
    """The writer dies, the next process recovers."""
    for place in scenario.places:
        for death, outcome in deaths(scenario.writer):
            yield Case(scenario.writer, place, death, outcome)


def recovery_cases(scenario: Scenario) -> Iterator[Case]:
    """The writer dies, the one that recovers dies, the next one recovers."""
    writer = scenario.writer
    moved = Death(f"{writer}.post_phase_b_pre_manifest_commit")
    half_moved = Death(f"{writer}.mid_phase_b")
    for place in scenario.places:
        for death in deaths_forward():
            yield Case(writer, place, moved, Outcome.FORWARD, (death,))
        for death in deaths_back(writer, place):
            yield Case(writer, place, half_moved, Outcome.UNDONE, (death,))


def settling_cases(scenario: Scenario) -> Iterator[Case]:
    """The writer fails, and dies while it settles its own failure."""
    writer = scenario.writer
    forward = ("recovery.before_roll_forward", "recovery.after_roll_forward", "recovery.record_audit")
    back = ("recovery.after_roll_back", "recovery.record_audit", "recovery.sidecar_delete")
    undoing = ("recovery.before_undo", "recovery.after_undo", "publisher.after_commit")
    for place in scenario.places:
        for name in forward:
            death = Death(name, failing=f"{writer}.post_phase_b_pre_manifest_commit")
            yield Case(writer, place, death, Outcome.FORWARD)
        for name in back if place == FIRST_WRITE else (*undoing, *back):
            yield Case(writer, place, Death(name, failing=f"{writer}.mid_phase_b"), Outcome.UNDONE)


def chains(scenario: Scenario) -> Iterator[Case]:
    """Recovery dies three times in a row, each time a little later."""
    writer = scenario.writer
    forward = map(Death, ("publisher.before_commit", "recovery.after_roll_forward", "recovery.after_audit"))
    back = map(Death, ("recovery.after_undo", "publisher.after_commit", "recovery.after_audit"))
    yield Case(writer, MAIN_LINE, Death(f"{writer}.post_phase_b_pre_manifest_commit"), Outcome.FORWARD, tuple(forward))
    yield Case(writer, MAIN_LINE, Death(f"{writer}.mid_phase_b"), Outcome.UNDONE, tuple(back))


#: The crowded manifest that makes a writer compact it is set up by the test.
COMPACTING = Case("mutation", MAIN_LINE, Death("publisher.before_compact"), Outcome.DONE)

#: One writer of each mode of judgement runs by default, on main and where it forks.
REPRESENTATIVE = {"mutation", "branch_merge", "optimize"}


def matrix() -> list[Case]:
    """Every case."""
    return [
        COMPACTING,
        *chain.from_iterable(
            chain(writer_cases(scenario), settling_cases(scenario), recovery_cases(scenario), chains(scenario))
            for scenario in SCENARIOS.values()
        ),
    ]


def is_representative(case: Case) -> bool:
    """Whether a case is part of the short matrix: all deaths of three writers, and recovery's with one of them."""
    if case.writer not in REPRESENTATIVE or case.place == SECOND_WRITE:
        return False
    plain = not case.recoveries and case.write.failing is None
    return plain or (case.writer == "mutation" and case.place == MAIN_LINE)
