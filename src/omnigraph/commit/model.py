"""The values a graph's manifest is made of: table entries, commits, and the state of one branch at one version."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any

from omnigraph.errors import BadRequest
from omnigraph.shown import Shown
from omnigraph.storage.tables.location import Location, Part

MAIN = "main"

#: What a graph commit can be.
COMMIT_KINDS = frozenset(
    {"init", "mutation", "load", "merge", "schema", "maintenance", "recovery", "revert", "cherry_pick", "rebase"}
)

RECOVERY_ACTOR = "omnigraph:recovery"

#: (stable table id, incarnation): one lifetime of one type.
Identity = tuple[int, int]


def identity_text(identity: Identity) -> str:
    """An identity as it appears in paths and object ids: `<table id>-<incarnation>`, 16 hex digits each."""
    return f"{identity[0]:016x}-{identity[1]:016x}"


@dataclass(frozen=True, slots=True)
class TableEntry:
    """One table of the graph: which version of which dataset (and Lance branch of it) is published."""

    key: str
    path: str
    identity: Identity
    version: int
    branch: str | None
    row_count: int
    #: Where the state lies between two commits that were published together: which rows of the version count.
    part: Part | None = None

    @property
    def location(self) -> Location:
        return Location(self.path, self.branch, self.part)


@dataclass(frozen=True, slots=True)
class Group:
    """The commits that one publish made together: `id` names the publish, `place` counts from 1 to `size` in their order."""

    id: str
    place: int
    size: int


@dataclass(frozen=True, slots=True)
class Touched:
    """What one commit of a group did to a table: the ids it wrote or removed, and by how much the number of rows grew."""

    ids: tuple[str, ...]
    rows: int


@dataclass(frozen=True, slots=True)
class Changed:
    """How many nodes and edges a commit inserted, updated or deleted."""

    nodes: int
    edges: int


@dataclass(frozen=True, slots=True)
class Commit(Shown):
    """One graph commit. `branch` is where it was made; `manifest_version` is its version on that branch."""

    id: str
    branch: str
    parent: str | None
    merged_parent: str | None
    actor: str | None
    created_at: int
    manifest_version: int
    kind: str
    recovery_for_actor: str | None = None
    recovers: str | None = None
    #: What its maker says about it.
    message: str | None = None
    #: The commits it was published with; None for one that was published alone.
    group: Group | None = None
    #: How many rows it changed; None for one that did not count them, or was made by an earlier release.
    changed: Changed | None = None

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values, ready for JSON."""
        told = asdict(self)
        for name in ("group", "changed"):
            if told[name] is None:
                del told[name]
        return told


@dataclass(frozen=True, slots=True)
class Lineage:
    """What a write says about the commit it makes. Minted once per write; the same over retries and recovery."""

    id: str
    created_at: int
    kind: str
    actor: str | None = None
    merged_parent: str | None = None
    recovery_for_actor: str | None = None
    #: The operation that a recovery commit undid.
    recovers: str | None = None
    #: What the writer says about it.
    message: str | None = None
    #: The commits that are published with it, and what it did itself, by the identity of the table as a text.
    group: Group | None = None
    touched: Mapping[str, Touched] = field(default_factory=dict)
    #: How many rows the write changes, where it counts them.
    changed: Changed | None = None

    def __post_init__(self) -> None:
        if self.message is not None and not is_text(self.message):
            raise BadRequest(f"a message is a text, not {self.message!r}")
        if self.actor is not None and not is_text(self.actor):
            raise BadRequest(f"an actor is a text, not {self.actor!r}")


def is_text(given: object) -> bool:
    """Whether something is a text that can be stored; one with half a surrogate pair can not."""
    if not isinstance(given, str):
        return False
    try:
        given.encode()
    except UnicodeEncodeError:
        return False
    return True


@dataclass(frozen=True)
class ManifestState:
    """The manifest of one branch at one version: everything but the history."""

    branch: str
    version: int
    #: The version that the newest commit made. Compaction makes later ones, which nobody is shown.
    commit_version: int
    #: Lance's identity of the branch; it changes when a branch is deleted and created again. Empty for main.
    incarnation: str
    stamp: int
    fence: int
    head: str
    tables: Mapping[Identity, TableEntry]
    tags: Mapping[str, str]
    #: Row addresses of the rows that a publish may update, so that it need not look for them.
    addresses: Mapping[str, int] = field(default_factory=dict, repr=False)
    #: The newest commit, where this process has just made it; else it is to be looked for by its id, `head`.
    newest: Commit | None = field(default=None, repr=False, compare=False)
    fragment_count: int = 1
    #: The hash of the compiled schema this state was written under; None in graphs of formats that did not keep it.
    schema_hash: str | None = None
    #: The branch is gone: the state is known from what was written down about it, and only for reading.
    retired: bool = False

    @cached_property
    def by_key(self) -> Mapping[str, TableEntry]:
        """The tables by `node:Type` / `edge:Type`."""
        return MappingProxyType({entry.key: entry for entry in self.tables.values()})

    @cached_property
    def by_path(self) -> Mapping[str, TableEntry]:
        """The tables by their path under the graph root."""
        return MappingProxyType({entry.path: entry for entry in self.tables.values()})

    @property
    def snapshot_id(self) -> str:
        """What names this state; one of a deleted branch, or between two commits that were published together, has no version."""
        if self.retired or any(entry.part is not None for entry in self.tables.values()):
            return self.head
        return f"manifest:{self.branch}:v{self.commit_version}"


def sorted_entries(entries: Iterable[TableEntry]) -> list[TableEntry]:
    """Nodes before edges, then by type name."""
    return sorted(entries, key=lambda entry: (not entry.key.startswith("node:"), entry.key))
