"""The values that a manifest consists of: table entries, commits, and the state of one branch at one version."""

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

#: The possible kinds of a graph commit.
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
    """One table of the graph: which version of which dataset (and of which Lance branch of it) is published."""

    key: str
    path: str
    identity: Identity
    version: int
    branch: str | None
    row_count: int
    #: Which rows of the version count, for a state between two commits of a group; None: all rows.
    part: Part | None = None

    @property
    def location(self) -> Location:
        return Location(self.path, self.branch, self.part)


@dataclass(frozen=True, slots=True)
class Group:
    """A commit's place in a group: `id` names the publish; `place` counts the commits in order, from 1 to `size`."""

    id: str
    place: int
    size: int


@dataclass(frozen=True, slots=True)
class Touched:
    """What one commit of a group did to a table: the ids it wrote or removed, and the growth of the number of rows."""

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
    #: The message of its maker.
    message: str | None = None
    #: Its place in a group; None for a commit that was published alone.
    group: Group | None = None
    #: How many rows it changed; None if it did not count them, or an earlier release made it.
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
    """What a write says about the commit it is going to make. Created once per write; the same over retries and recovery."""

    id: str
    created_at: int
    kind: str
    actor: str | None = None
    merged_parent: str | None = None
    recovery_for_actor: str | None = None
    #: The id of the operation that a recovery commit undid.
    recovers: str | None = None
    #: The message of the writer.
    message: str | None = None
    #: Its place in a group, and what it did itself, by table identity as text; set only for commits of a group.
    group: Group | None = None
    touched: Mapping[str, Touched] = field(default_factory=dict)
    #: How many rows the write changes; None if it does not count them.
    changed: Changed | None = None

    def __post_init__(self) -> None:
        if self.message is not None and not is_text(self.message):
            raise BadRequest(f"a message is a text, not {self.message!r}")
        if self.actor is not None and not is_text(self.actor):
            raise BadRequest(f"an actor is a text, not {self.actor!r}")


def is_text(given: object) -> bool:
    """Whether a value is a text that can be stored; a text with half a surrogate pair can not."""
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
    #: The version that the newest commit made. Later versions come from compaction or tags, and readers are not shown them.
    commit_version: int
    #: Lance's identity of the branch; it changes when a branch is deleted and created again. Empty for main.
    incarnation: str
    stamp: int
    fence: int
    head: str
    tables: Mapping[Identity, TableEntry]
    tags: Mapping[str, str]
    #: Row addresses of the rows that a publish may replace, by object id, so that it need not search for them.
    addresses: Mapping[str, int] = field(default_factory=dict, repr=False)
    #: The newest commit if this process has just made it; None: look it up by its id, `head`.
    newest: Commit | None = field(default=None, repr=False, compare=False)
    fragment_count: int = 1
    #: The hash of the compiled schema of this state; None in graphs of formats that did not store it.
    schema_hash: str | None = None
    #: Whether the branch is deleted: then the state comes from a retired line and is only for reading.
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
        """The text that names this state: branch and version; the head's id for a deleted branch or within a group."""
        if self.retired or any(entry.part is not None for entry in self.tables.values()):
            return self.head
        return f"manifest:{self.branch}:v{self.commit_version}"


def sorted_entries(entries: Iterable[TableEntry]) -> list[TableEntry]:
    """Table entries in order: nodes before edges, then by type name."""
    return sorted(entries, key=lambda entry: (not entry.key.startswith("node:"), entry.key))
