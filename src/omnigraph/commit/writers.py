"""The kinds of writers, one record each: how their sidecars are judged, and when an attempt is restarted.

All differences between writers, except what they stage, are here; `commit.write_loop` and `commit.protocol` read them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from omnigraph import failpoints
from omnigraph.commit.sidecar import CONFIRMATION_SINCE, Kind
from omnigraph.errors import AlreadyExists, ExpectedVersionMismatch, OmnigraphError, PreconditionFailed, ReadSetChanged

_PHASES = ("pre_phase_a", "post_phase_a", "mid_phase_b", "post_phase_b_pre_manifest_commit", "post_phase_c")


class Mode(StrEnum):
    """How strictly recovery judges the effects of a writer."""

    STRICT = "Strict"
    LOOSE = "Loose"
    CONFIRMED = "Confirmed"


@dataclass(frozen=True, slots=True)
class Writer:
    """The properties of one kind of writer that the protocol, recovery and the write loop need."""

    kind: Kind
    #: The prefix of its failpoints, such as `mutation` in `mutation.post_phase_a`.
    failpoint: str
    mode: Mode
    #: The kind of its commits, for sidecars that do not name one.
    commit_kind: str
    #: Sidecars of earlier record versions are judged loosely.
    mode_since: int = 1
    #: Whether each step is a single transaction on a pin, so that its commit detects by itself that the table has moved.
    checked_by_commits: bool = False
    #: The errors that mean "the base moved, nothing was written"; such an attempt may be restarted.
    restarts_on: tuple[type[OmnigraphError], ...] = (ReadSetChanged, ExpectedVersionMismatch)
    #: How often it is restarted at most; `commit.context.Limits.restarts` limits all writers.
    restarts: int = 5
    #: How many attempts are prepared while others write; later attempts are prepared inside the effect window.
    unlocked_attempts: int = 1
    #: Whether preparing takes long; then the first attempt does not hold the lock just because another writer is at work.
    is_long: bool = False

    def mode_at(self, schema_version: int) -> Mode:
        """The mode in which a sidecar of this record version is judged."""
        return self.mode if schema_version >= self.mode_since else Mode.LOOSE

    def hit(self, phase: str) -> None:
        """Reach the failpoint of a phase."""
        failpoints.hit(f"{self.failpoint}.{phase}")


MUTATION = Writer(Kind.MUTATION, "mutation", Mode.STRICT, "mutation", checked_by_commits=True)
LOAD = Writer(
    Kind.LOAD,
    "load",
    Mode.STRICT,
    "load",
    checked_by_commits=True,
    # The branch it was to create may have been created meanwhile.
    restarts_on=(ReadSetChanged, ExpectedVersionMismatch, AlreadyExists),
)
#: Also for rebase, revert and cherry-pick. The result is valid for one head of the target; any other head is a lost race.
BRANCH_MERGE = Writer(
    Kind.BRANCH_MERGE,
    "branch_merge",
    Mode.CONFIRMED,
    "merge",
    mode_since=CONFIRMATION_SINCE,
    restarts_on=(ReadSetChanged, ExpectedVersionMismatch, PreconditionFailed),
)
SCHEMA_APPLY = Writer(
    Kind.SCHEMA_APPLY,
    "schema_apply",
    Mode.STRICT,
    "schema",
    mode_since=CONFIRMATION_SINCE,
    restarts=1,
    is_long=True,
)
ENSURE_INDICES = Writer(
    Kind.ENSURE_INDICES,
    "ensure_indices",
    Mode.LOOSE,
    "maintenance",
    restarts_on=(ExpectedVersionMismatch,),
    restarts=3,
    unlocked_attempts=3,
    is_long=True,
)
#: The long work is done before the loop, which only fits the result to the current tables.
OPTIMIZE = Writer(
    Kind.OPTIMIZE,
    "optimize",
    Mode.LOOSE,
    "maintenance",
    restarts_on=(ExpectedVersionMismatch,),
    restarts=2,
    unlocked_attempts=0,
)

WRITERS: Mapping[Kind, Writer] = {
    writer.kind: writer for writer in (MUTATION, LOAD, BRANCH_MERGE, SCHEMA_APPLY, ENSURE_INDICES, OPTIMIZE)
}

for _writer in WRITERS.values():
    failpoints.declare(*(f"{_writer.failpoint}.{phase}" for phase in _PHASES))
