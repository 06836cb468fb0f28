"""What every commit, recovery and branch operation of one open graph works with."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from omnigraph.commit.forks import Forks
from omnigraph.commit.groups import Queues
from omnigraph.commit.limits import Limits
from omnigraph.commit.manifest import Manifest
from omnigraph.commit.place import Place
from omnigraph.storage.locks import BranchLocks
from omnigraph.storage.objects import ObjectStore
from omnigraph.storage.root import Root
from omnigraph.storage.tables.handles import Tables

PROCESS = "process"
POWER = "power"
DURABILITY_MODES = (PROCESS, POWER)


@dataclass(frozen=True)
class CommitContext:
    """The stores, the manifest and the locks of one graph."""

    root: Root
    store: ObjectStore
    tables: Tables
    manifest: Manifest
    locks: BranchLocks
    durability: str = PROCESS
    limits: Limits = field(default_factory=Limits)

    @cached_property
    def queues(self) -> Queues[Any]:
        """The writers that wait for a branch and can be published together."""
        return Queues()

    @cached_property
    def forks(self) -> Forks:
        """Which tables a branch still shares with its parent."""
        return Forks(self.manifest)

    @cached_property
    def place(self) -> Place:
        """Where the graph lies, and which one it is."""
        return Place(self.store, self.root)

    def make_durable(self, *paths: str) -> None:
        """With durability "power": force what was written under these paths to disk before going on."""
        if self.durability == POWER:
            for path in paths:
                self.store.sync(path)
