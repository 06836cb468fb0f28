"""The bodies, parameters and answers of the operations for looking around and for upkeep, as types."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType, field

from omnigraph.server.answers import EntityChange, SchemaChange
from omnigraph.server.bodies import LARGEST, Branch


class LintBody(Struct):
    """A text of queries that is checked against the schema of a branch, main unless given."""

    query: str
    branch: Branch | None = None


class CompareBody(Struct):
    """Two read targets, as in `DiffBody`; a page of so many changes (0: counts only), or the one behind a token."""

    before: str
    after: str | None = None
    kinds: list[str] | None = None
    types: list[str] | None = None
    ops: list[str] | None = None
    limit: int | None = None
    page_token: str | None = None


class UpkeepBody(Struct):
    """Work on the storage of a branch; `dry_run` only says what would be done."""

    branch: Branch | None = None
    dry_run: bool = False
    message: Annotated[str | None, Meta(description="Kept with the commit.")] = None


class IndexBody(UpkeepBody):
    """Indexes that are built; `types`: only those of some types, such as node:Person."""

    types: list[str] | None = None


class CleanupBody(Struct):
    """Old versions that may go: of each branch all but the newest `keep` commits, and what is older than, such as 7d."""

    keep: Annotated[int, Meta(gt=0, le=LARGEST)] | None = None
    older_than: str | None = None
    dry_run: bool = False


class StudioKeyBody(Struct):
    """The one-time key that `omnigraph studio` gave to its browser."""

    key: str


class NeighbourParameters(Struct):
    """A node, and which of its edges are wanted: of one type or one way, so many of each group, behind so many."""

    type: str
    id: str
    edge: str | None = None
    direction: Literal["out", "in"] | None = None
    limit: int | None = None
    skip: int | None = None
    branch: Branch | None = None
    snapshot: str | None = None


class NamedCommit(Struct):
    """One commit with all that is known about it."""

    id: str
    branch: str
    parent: str | None
    merged_parent: str | None
    actor: str | None
    created_at: int
    manifest_version: int
    kind: str
    recovery_for_actor: str | None
    recovers: str | None
    message: str | None


class BranchStanding(Struct):
    """A branch, its newest commit, and the numbers of commits that it has and main lacks, and the other way round."""

    name: str
    head: NamedCommit
    ahead: int
    behind: int


class BranchStandings(Struct):
    """All branches, main first."""

    branches: list[BranchStanding]


class SeenNode(Struct):
    """A node with its values, without vectors and blobs; long texts are cut."""

    type: str
    id: str
    label: str
    properties: dict[str, Any]


class SeenEdge(SeenNode):
    """An edge with its values and the ids of its ends."""

    source: str = field(name="from")
    target: str = field(name="to")


class NeighbourGroup(Struct):
    """The edges of a node of one type and direction: all of them, and those in the answer. `type`: of the other ends."""

    edge: str
    direction: Literal["out", "in"]
    type: str
    total: int
    given: int


class Neighbourhood(Struct):
    """A node, its edges and the nodes at their other ends, all of one commit."""

    graph_commit_id: str
    node: SeenNode
    groups: list[NeighbourGroup]
    nodes: list[SeenNode]
    edges: list[SeenEdge]


class CountedType(Struct):
    """How many entities of a type changed."""

    kind: Literal["node", "edge"]
    type: str
    inserts: int
    updates: int
    deletes: int


class Compared(Struct):
    """The commits that were compared; on the first page the steps of their schemas, where these differ, and counts; changes."""

    before: str
    after: str
    changes: list[EntityChange]
    schema: list[SchemaChange] | UnsetType = UNSET
    counts: list[CountedType] | UnsetType = UNSET
    next_page_token: str | UnsetType = UNSET


class Diagnostic(Struct):
    """One problem of a text, with its place where it has one: line and column from 1, offsets in bytes."""

    severity: Literal["error", "warning", "info"]
    code: str | None
    message: str
    line: int | None
    column: int | None
    start: int | None
    end: int | None


class LintAnswer(Struct):
    """What was found in a text of queries, per query and in all."""

    status: Literal["ok", "error"]
    results: list[dict[str, Any]]
    diagnostics: list[Diagnostic]


class CatalogProperty(Struct):
    """A property; `kind` is the word of its type without list, bounds and null."""

    name: str
    type: str
    kind: str
    nullable: bool
    is_list: bool
    enum: list[str] | None
    description: str | None


class CatalogType(Struct):
    """A node type or an edge type; edges have ends."""

    name: str
    kind: Literal["node", "edge"]
    key: list[str] | None
    indexes: list[list[str]]
    description: str | None
    properties: list[CatalogProperty]
    source: str | UnsetType = field(default=UNSET, name="from")
    target: str | UnsetType = field(default=UNSET, name="to")


class CatalogFunction(Struct):
    """A function of the query language: how it is written, and what it gives."""

    name: str
    usage: str
    help: str


class CatalogAnswer(Struct):
    """The accepted schema as data, and the words and functions of the query language."""

    types: list[CatalogType]
    functions: list[CatalogFunction]
    words: list[str]


class PermissionParameters(Struct):
    """The branch that is asked about, and the actor: who asks, unless given."""

    branch: Branch | None = None
    actor: str | None = None


class Permissions(Struct):
    """Which actions an actor may do on a branch, and for each of the others why not, in one line.

    `branch_merge`: merge some branch into main. `change_new_branch`: make a branch from this one and change that.
    """

    actor_id: str | None
    read_only: bool
    branch: str
    may: dict[str, bool]
    why_not: dict[str, str]


class StatsAnswer(Struct):
    """The size and the state of each type's table."""

    branch: str
    commit: str
    manifest_versions: int
    manifest_bytes: int
    tables: list[dict[str, Any]]
    config: dict[str, str]


class ConfigBody(Struct, forbid_unknown_fields=True):
    """A setting of a graph and its value; null gives it its default back."""

    name: str
    value: str | None


class Config(Struct):
    """The settings of a graph by name."""

    config: dict[str, str]


class ConfigSet(Struct):
    """The settings of a graph by name, after one was set."""

    config: dict[str, str]
    actor_id: str | None


class Recoveries(Struct):
    """Operations of dead writers that were settled, newest last, and how many wait."""

    recoveries: list[dict[str, Any]]
    waiting: int


class UpkeepAnswer(Struct):
    """What upkeep did, or would do."""

    dry_run: bool
    report: dict[str, Any]


class StudioSession(Struct):
    """The token that a one-time key stands for."""

    token: str
