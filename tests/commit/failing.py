"""Ways to make an operation fail, at each chance it offers: every call to the object store, every failpoint it passes.

`trials` goes through the first chance, the second, and so on until the operation comes through untouched. So nothing that
it does is left out, also what is added later.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from pathlib import Path

from omnigraph import failpoints
from omnigraph.commit.context import CommitContext
from omnigraph.errors import OmnigraphError
from omnigraph.graph.lifecycle import connect
from omnigraph.storage.faults import Fault, FaultyStore, error_after, error_before
from omnigraph.storage.objects import open_store
from omnigraph.storage.root import Root

#: More calls than any operation makes.
ALL = 200

#: What fails on a handle with this store at the nth chance; the block learns what did fail.
Way = Callable[[FaultyStore, int], AbstractContextManager[list[object]]]


@dataclass
class Trouble:
    """Something that goes wrong at the nth chance, once or from then on."""

    chance: int
    lasting: bool
    passed: int = 0
    fired: list[object] = field(default_factory=list)

    def strikes(self, where: str) -> bool:
        self.passed += 1
        struck = self.passed == self.chance or (self.lasting and self.passed > self.chance)
        if struck:
            self.fired.append(where)
        return struck


@contextmanager
def _store(store: FaultyStore, nth: int, *, fault: Callable[..., Fault], lasting: bool) -> Iterator[list[object]]:
    """The object store fails at its nth call, or from the nth call on."""
    fired: list[object] = []
    for call in range(nth, nth + ALL if lasting else nth + 1):
        store.inject(fault("*", nth=call))
    try:
        yield fired
    finally:
        fired.extend(store.fired)
        store.clear()
        store.fired.clear()


@contextmanager
def _failpoints(_: FaultyStore, nth: int, *, lasting: bool) -> Iterator[list[object]]:
    """The nth failpoint that is passed, whichever it is, fails; or all from the nth on."""
    trouble = Trouble(nth, lasting)

    def passing(name: str) -> None:
        if trouble.strikes(name):
            raise failpoints.FailpointError(f"failpoint {name}", name=name)

    with ExitStack() as stack:
        for name in sorted(failpoints.NAMES):
            stack.enter_context(failpoints.armed(name, partial(passing, name)))
        yield trouble.fired


@contextmanager
def _answers(_: FaultyStore, nth: int) -> Iterator[list[object]]:
    """The nth commit to a table or to the manifest is made, and then the connection breaks."""
    trouble = Trouble(nth, lasting=False)

    def lose() -> None:
        if trouble.strikes("commit"):
            raise OSError("connection reset by peer")

    with failpoints.armed("table_commit.lost_acknowledgement", lose):
        yield trouble.fired


WAYS: dict[str, Way] = {
    "store-refuses": partial(_store, fault=error_before, lasting=False),
    "store-loses-answer": partial(_store, fault=error_after, lasting=False),
    "store-goes-down": partial(_store, fault=error_before, lasting=True),
    "store-goes-deaf": partial(_store, fault=error_after, lasting=True),
    "failpoint": partial(_failpoints, lasting=False),
    "failpoints-from-there": partial(_failpoints, lasting=True),
    "commit-loses-answer": _answers,
}


@dataclass
class Trial:
    """A handle on a fresh graph, and one chance to fail."""

    context: CommitContext
    store: FaultyStore
    way: Way
    nth: int
    fired: list[object] = field(default_factory=list)

    def run(self, operation: Callable[..., object], *arguments: object) -> OmnigraphError | None:
        """Run an operation and let it fail; returns the typed error it raised, if any."""
        error = None
        with self.way(self.store, self.nth) as fired:
            try:
                operation(*arguments)
            except OmnigraphError as raised:
                error = raised
        self.fired.extend(fired)
        return error


def trials(way: str, folder: Path, prepare: Callable[[Path], object]) -> Iterator[Trial]:
    """A trial on a freshly prepared graph for every chance there is."""
    for nth in count(1):
        place = folder / str(nth)
        prepare(place)
        store = FaultyStore(open_store(Root.parse(place)))
        trial = Trial(connect(str(place), store=store), store, WAYS[way], nth)
        yield trial
        shutil.rmtree(place)
        if not trial.fired:
            assert nth > 1, f"{way} never met the operation"
            return
