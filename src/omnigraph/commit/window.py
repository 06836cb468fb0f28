"""Where an attempt at a write is prepared: while others write, or inside the effect window of the branch, where nothing moves."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from omnigraph.commit.context import CommitContext
from omnigraph.commit.recovery import heal
from omnigraph.commit.sidecar import list_sidecars
from omnigraph.storage.locks import HeldLock

#: How often an attempt whose base moved before its first effect is started over.
WRITE_RESTART_BUDGET = 5


@contextmanager
def effect_window(context: CommitContext, branch: str, *, lost_before: bool) -> Iterator[HeldLock | None]:
    """The branch's lock with all healed that waited there, after a lost attempt or next to a writer at work; else None."""
    if not lost_before and not list_sidecars(context.store):
        yield None
        return
    # A branch that is not there has no lock either.
    context.manifest.load(branch)
    with context.locks.hold(branch) as held:
        heal(context, holding={branch})
        yield held
