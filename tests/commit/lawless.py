"""A writer that ignores every lock: what a process that lost its lease, or never knew of locks, looks like to others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from omnigraph.commit.context import CommitContext
from omnigraph.storage.locks import BranchLocks, HeldLock, HeldLocks, Turn


class NoProcessLock:
    """A lock that is always free and always ours."""

    uninterrupted = False
    poll_seconds = (0.0, 0.0)

    def attempt(self) -> bool:
        return True

    def abandon(self) -> None: ...

    def still_held(self) -> bool:
        return True

    def release(self) -> None: ...


class NoLocks(BranchLocks):
    """Branch locks that keep nobody out."""

    @contextmanager
    def hold(self, branch: str, *, timeout: float = 0) -> Iterator[HeldLock]:
        yield HeldLock(branch, Turn(), NoProcessLock())

    @contextmanager
    def try_hold(self, branch: str) -> Iterator[HeldLock | None]:
        with self.hold(branch) as held:
            yield held

    @contextmanager
    def hold_all(self, branches: Iterable[str], *, timeout: float = 0) -> Iterator[HeldLocks]:
        yield HeldLocks([HeldLock(branch, Turn(), NoProcessLock()) for branch in branches])


def lawless(context: CommitContext) -> CommitContext:
    """The same graph, without respect for locks."""
    return replace(context, locks=NoLocks(context.store, context.root))
