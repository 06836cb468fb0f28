"""The loop of every write: capture the branch, look for an earlier answer, prepare, execute; start over when the base moved.

A first attempt is prepared while others write. One that follows a lost attempt, or finds a writer at work or dead, is prepared
inside the effect window of the branch, where nothing moves: nobody loses again and again. What differs between writers is in
their `Writer` record, and what a write stages is in its `Writing`.

An error before the first effect means that nothing has happened. What came in between may have been an earlier sending of
the same request, on whose rows this one fails, so the receipt is looked for before anything else is decided.
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
    """What an attempt is going to do. `write` None: there is nothing to write."""

    write: Write | None
    #: The answer from the state after the publish; it is given None where nothing was written.
    answer: Callable[[ManifestState | None], Result]
    #: Raises what stands in the way and no requirement of the write tells; called under the locks of the write.
    last_look: Callable[[], None] | None = None


class Writing(ABC, Generic[Result]):
    """One write as the loop sees it, over all of its attempts."""

    #: What kind of writer it is.
    writer: Writer
    context: CommitContext
    #: The branch that is written.
    branch: str
    #: The schema that it is prepared under; None where the write itself says which one it replaces.
    requires: SchemaIs | None = None
    #: The commit that must be the head of the branch; such a write never starts over.
    if_commit: str | None = None
    idempotency_key: str | None = None

    def locks(self) -> tuple[str, ...]:
        """The locks of its effect window; none for a branch that comes into being with the write."""
        return (self.branch,)

    def begin(self) -> None:
        """Do what is done outside of the effect window before each attempt; nothing, for most."""

    def earlier(self) -> Receipt | None:
        """What the branch knows under the idempotency key of the request; None without a key."""
        return earlier_receipt(self.context, self.branch, self.idempotency_key)

    def repeated(self, known: Receipt) -> Result:
        """The answer to the first call, for a repeat of it; `BadRequest` when the key was used for another request."""
        raise NotImplementedError(f"{self.writer.kind} takes no idempotency key")

    def capture(self) -> ManifestState:
        """The state that an attempt is prepared on."""
        return self.context.manifest.load(self.branch)

    @abstractmethod
    def prepare(self, state: ManifestState) -> Prepared[Result]:
        """Judge and stage it on a captured state; nothing of that is visible to others."""

    def may_restart(self, conflict: OmnigraphError) -> bool:
        """Whether starting over keeps the meaning of the request, after a conflict that its writer restarts on."""
        return self.if_commit is None

    def lost(self, conflict: OmnigraphError) -> None:
        """An attempt has come to nothing and another one follows: forget what belonged to it."""


def carry_out(writing: Writing[Result]) -> Result:
    """Carry a write out as one commit; none when there is nothing to write. The one place where writes start over."""
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
    """The state to prepare on; raises unless it has the schema, and the head, that were asked for."""
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
    """The locks that an attempt is prepared under; None while others write."""
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
    """The branch's lock with all healed that waited there, after a lost attempt or next to a writer at work; else None.

    `others`: further locks that are held with it.
    """
    if not lost_before and not list_sidecars(context.store):
        yield None
        return
    # A branch that is not there has no lock either.
    context.manifest.load(branch)
    with context.locks.hold_all([branch, *others]) if others else context.locks.hold(branch) as held:
        heal(context, holding={branch})
        yield held


def settle_pending(context: CommitContext, branch: str) -> None:
    """Finish or undo what a dead writer left, before long work is begun on the branch."""
    with effect_window(context, branch, lost_before=False):
        pass
