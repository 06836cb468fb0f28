"""What commits, recovery and branch operations of one open graph share: stores, manifest, locks, limits."""

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
    """Limits of writes. Tests open graphs with other values; nothing patches them."""

    #: How often an attempt is restarted when its base moved before its first effect; 0 turns restarts off.
    restarts: int = 5
    #: The most rows that a write may put or remove to be published in a group.
    group_rows: int = 200
    #: Up to this size of input in bytes, the rows of a load stay in memory until its checks have passed; 0: never.
    held_bytes: int = 4 << 20


def limits_from_environment() -> Limits:
    """The limits from environment variables, for a graph that is being opened; `BadRequest` if a value is not a number."""
    text = os.environ.get(HELD_BYTES_VARIABLE, "").strip()
    if not text:
        return Limits()
    if not text.isdecimal():
        raise BadRequest(f"{HELD_BYTES_VARIABLE} is a number, not '{text}'")
    return Limits(held_bytes=int(text))


#: The table locations that each branch shared at its fork point, by branch name and incarnation. They never change.
_Inherited = dict[tuple[str, str], frozenset[Location]]


class Forks:
    """Tells, for one open graph, whether a write must fork a table first."""

    def __init__(self, manifest: Manifest) -> None:
        self._manifest = manifest
        self._inherited: _Inherited = {}

    def is_shared(self, state: ManifestState, entry: TableEntry) -> bool:
        """Whether this branch still shares the table with its parent. Main shares no table."""
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
        """The queues of writers by branch, whose writes can be published together."""
        return Queues()

    @cached_property
    def forks(self) -> Forks:
        """Tells which tables a branch still shares with its parent."""
        return Forks(self.manifest)

    @cached_property
    def place(self) -> Place:
        """The record of where the graph lies and which graph it is."""
        return Place(self.store, self.root)

    def make_durable(self, *paths: str) -> None:
        """With durability "power": flush everything written under these paths to disk before going on."""
        if self.durability == POWER:
            for path in paths:
                self.store.sync(path)
