"""The loop of every write: capture the branch, look for an earlier answer, prepare, execute; restart if the base moved.

A first attempt is prepared while other writers run. An attempt after a lost one, or while pending writes exist, is prepared
inside the effect window of the branch, where nothing moves, so no writer loses again and again. Differences between writers
are in their `Writer` records; what a write stages is in its `Writing`.

An error before the first effect means that nothing was changed. The cause may be an earlier sending of the same request, whose
rows conflict with this one, so the receipt is looked up before anything else is decided.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Generic, TypeVar

from omnigraph.commit.context import CommitContext
from omnigraph.commit.exactly_once import earlier_receipt
from omnigraph.commit.model import ManifestState
from omnigraph.commit.protocol import Write, execute
from omnigraph.commit.recovery import heal
from omnigraph.commit.rows import Receipt
from omnigraph.commit.sidecar import list_sidecars
from omnigraph.commit.updates import HeadIs, SchemaIs, check
from omnigraph.commit.writers import Writer
from omnigraph.errors import OmnigraphError, StorageError
from omnigraph.storage.locks import HeldLock, HeldLocks

Result = TypeVar("Result")


@dataclass(frozen=True)
class Prepared(Generic[Result]):
    """What an attempt is going to do. `write` is None when there is nothing to write."""

    write: Write | None
    #: Makes the answer from the state after the publish; called with None if nothing was written.
    answer: Callable[[ManifestState | None], Result]
    #: Raises for an obstacle that no requirement of the write covers; called under the locks of the write.
    last_look: Callable[[], None] | None = None


class Writing(ABC, Generic[Result]):
    """One write as the loop handles it, over all of its attempts."""

    #: The record of its kind of writer.
    writer: Writer
    context: CommitContext
    #: The branch that is written.
    branch: str
    #: The schema it is prepared under; None if the write itself names the schema it replaces.
    requires: SchemaIs | None = None
    #: The commit that must be the head of the branch; such a write is never restarted.
    if_commit: str | None = None
    idempotency_key: str | None = None

    def locks(self) -> tuple[str, ...]:
        """The branches whose locks its effect window needs; empty for a branch that is created with the write."""
        return (self.branch,)

    def begin(self) -> None:
        """Work to do before each attempt, outside of the effect window; by default none."""

    def earlier(self) -> Receipt | None:
        """The receipt that the branch has under the idempotency key of the request; None without a key or receipt."""
        return earlier_receipt(self.context, self.branch, self.idempotency_key)

    def repeated(self, known: Receipt) -> Result:
        """The answer of the first call, for a repeat of it; `BadRequest` when the key was used for a different request."""
        raise NotImplementedError(f"{self.writer.kind} takes no idempotency key")

    def capture(self) -> ManifestState:
        """The state on which an attempt is prepared."""
        return self.context.manifest.load(self.branch)

    @abstractmethod
    def prepare(self, state: ManifestState) -> Prepared[Result]:
        """Check and stage the write on a captured state; nothing of it is visible to others."""

    def may_restart(self, conflict: OmnigraphError) -> bool:
        """Whether a restart keeps the meaning of the request, after a conflict in its writer's `restarts_on`."""
        return self.if_commit is None

    def lost(self, conflict: OmnigraphError) -> None:
        """Forget what belonged to a failed attempt; another attempt follows."""


def carry_out(writing: Writing[Result]) -> Result:
    """Carry a write out as one commit, or none if there is nothing to write. The only place where writes are restarted."""
    context, writer = writing.context, writing.writer
    most, restarts = min(writer.restarts, context.limits.restarts), 0
    while True:
        try:
            writing.begin()
            locks = writing.locks()
            with _window(writing, locks, restarts) as held:
                known = writing.earlier()
                if known is not None:
                    return writing.repeated(known)
                prepared = writing.prepare(_captured(writing))
                after = _executed(writing, prepared, locks, held)
        except StorageError:
            raise
        except OmnigraphError as error:
            known = writing.earlier()
            if known is not None:
                return writing.repeated(known)
            may = isinstance(error, writer.restarts_on) and writing.may_restart(error)
            if not may or restarts >= most:
                raise
            writing.lost(error)
            restarts += 1
        else:
            return prepared.answer(after)


def _captured(writing: Writing[Result]) -> ManifestState:
    """The state to prepare on; raises unless it has the required schema and head."""
    state = writing.capture()
    if writing.requires is not None:
        check([writing.requires], state)
    if writing.if_commit is not None:
        check([HeadIs(writing.if_commit)], state)
    return state


def _executed(
    writing: Writing[Result], prepared: Prepared[Result], locks: Sequence[str], held: HeldLock | HeldLocks | None
) -> ManifestState | None:
    """The state after the publish; None when there is nothing to write."""
    if prepared.write is None:
        return None
    context = writing.context
    if held is None and len(locks) > 1:
        with context.locks.hold_all(locks) as taken:
            return _executed(writing, prepared, locks, taken)
    if prepared.last_look is not None:
        prepared.last_look()
    return execute(context, prepared.write, held)


# --- where an attempt is prepared -------------------------------------------------------------------------------------


@contextmanager
def _window(writing: Writing[Result], locks: Sequence[str], restarts: int) -> Iterator[HeldLock | HeldLocks | None]:
    """The locks under which an attempt is prepared; None when it is prepared while others write."""
    context, writer = writing.context, writing.writer
    if not locks:
        yield None
    elif restarts < writer.unlocked_attempts and (restarts or writer.is_long):
        if not restarts:
            settle_pending(context, writing.branch)
        yield None
    else:
        with effect_window(context, *locks, lost_before=restarts >= writer.unlocked_attempts) as held:
            yield held


@contextmanager
def effect_window(
    context: CommitContext, branch: str, *others: str, lost_before: bool
) -> Iterator[HeldLock | HeldLocks | None]:
    """Hold the branch's lock with pending writes healed, after a lost attempt or if any sidecar exists; else yields None.

    `others`: further branches whose locks are held too.
    """
    if not lost_before and not list_sidecars(context.store):
        yield None
        return
    # Raises if the branch does not exist, before a lock is taken for it.
    context.manifest.load(branch)
    with context.locks.hold_all([branch, *others]) if others else context.locks.hold(branch) as held:
        heal(context, holding={branch})
        yield held


def settle_pending(context: CommitContext, branch: str) -> None:
    """Finish or undo what a dead writer left, before long work begins on the branch."""
    with effect_window(context, branch, lost_before=False):
        pass
