"""The kinds of writers, one record each: how their recovery records are judged, and when an attempt starts over.

Everything that differs between writers apart from what they stage is here; `commit.write_loop` and `commit.protocol` read it.
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
    """How strictly the effects of a writer are judged."""

    STRICT = "Strict"
    LOOSE = "Loose"
    CONFIRMED = "Confirmed"


@dataclass(frozen=True, slots=True)
class Writer:
    """What the protocol, recovery and the write loop need to know of one kind of writer."""

    kind: Kind
    #: How the names of its failpoints begin: `mutation.post_phase_a`.
    failpoint: str
    mode: Mode
    #: The kind of its commits, for records that do not name one.
    commit_kind: str
    #: Records of earlier versions are judged loosely.
    mode_since: int = 1
    #: Its steps are single transactions on a pin: the commit of one says itself whether the table had moved.
    checked_by_commits: bool = False
    #: The conflicts that say "the base moved, nothing was written": an attempt that meets one may start over.
    restarts_on: tuple[type[OmnigraphError], ...] = (ReadSetChanged, ExpectedVersionMismatch)
    #: How often it starts over; `commit.context.Limits.restarts` is the limit for all.
    restarts: int = 5
    #: How many attempts are prepared while others write. Later ones are prepared inside the effect window.
    unlocked_attempts: int = 1
    #: Preparing takes long: the lock is not held for it only because some other writer is at work.
    is_long: bool = False

    def mode_at(self, schema_version: int) -> Mode:
        """How a record of this version is judged."""
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
    # The branch that it was to create may have come into being meanwhile.
    restarts_on=(ReadSetChanged, ExpectedVersionMismatch, AlreadyExists),
)
#: Also rebase, revert and cherry-pick. Its outcome holds for one head of the target, so any other head is a lost race.
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
#: The long work is done before; what the loop prepares is only fitted to the tables as they are then.
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
