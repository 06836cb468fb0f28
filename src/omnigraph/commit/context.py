"""What every commit, recovery and branch operation of one open graph works with."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from omnigraph.commit.branch_refs import read_ref
from omnigraph.commit.groups import Queues
from omnigraph.commit.manifest import Manifest, branch_not_found
from omnigraph.commit.model import MAIN, ManifestState, TableEntry
from omnigraph.commit.place import Place
from omnigraph.errors import BadRequest
from omnigraph.storage.locks import BranchLocks
from omnigraph.storage.objects import ObjectStore
from omnigraph.storage.root import Root
from omnigraph.storage.tables.handles import Tables
from omnigraph.storage.tables.location import Location

HELD_BYTES_VARIABLE = "OMNIGRAPH_HELD_LOAD_BYTES"


@dataclass(frozen=True, slots=True)
class Limits:
    """Counts and sizes that a write keeps to. Tests open graphs with other values; nothing patches them."""

    #: How often an attempt whose base moved before its first effect is started over; 0 turns it off.
    restarts: int = 5
    #: How many rows a write may put or remove to be published together with others.
    group_rows: int = 200
    #: Up to this size in bytes the rows of a load are kept in memory until its checks have passed; 0: never.
    held_bytes: int = 4 << 20


def limits_from_environment() -> Limits:
    """The limits of a graph that is opened now; `BadRequest` when a variable is no number."""
    text = os.environ.get(HELD_BYTES_VARIABLE, "").strip()
    if not text:
        return Limits()
    if not text.isdecimal():
        raise BadRequest(f"{HELD_BYTES_VARIABLE} is a number, not '{text}'")
    return Limits(held_bytes=int(text))


#: What each branch shared with its parent at the fork, by branch name and incarnation. A fork point never changes.
_Inherited = dict[tuple[str, str], frozenset[Location]]


class Forks:
    """Answers, for one open graph, whether a write must fork a table first."""

    def __init__(self, manifest: Manifest) -> None:
        self._manifest = manifest
        self._inherited: _Inherited = {}

    def is_shared(self, state: ManifestState, entry: TableEntry) -> bool:
        """Whether this branch still shares the table with its parent. Main owns whatever it publishes."""
        return state.branch != MAIN and entry.location in self._inherited_by(state)

    def _inherited_by(self, state: ManifestState) -> frozenset[Location]:
        key = (state.branch, state.incarnation)
        known = self._inherited.get(key)
        if known is None:
            ref = read_ref(self._manifest.store, state.branch)
            if ref is None or ref.incarnation != state.incarnation:
                raise branch_not_found(state.branch)
            at_fork = self._manifest.load_at(state.branch, ref.parent_version)
            known = self._inherited[key] = frozenset(entry.location for entry in at_fork.tables.values())
        return known


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
