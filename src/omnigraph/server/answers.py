"""The shapes of answers as types: the OpenAPI document is made from them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType, field

from omnigraph.server.bodies import Mode

Level = Annotated[
    Literal["entity", "property"], Meta(description="What was compared: whole entities, or each property of them.")
]


class CommitGroup(Struct):
    """The commits that were published together: the name of the publish, the place of one among them, and how many they are."""

    id: str
    place: int
    size: int


class CommitCounts(Struct):
    """How many nodes and edges a commit inserted, updated or deleted."""

    nodes: int
    edges: int


class Commit(Struct):
    """One graph commit; null as its branch means main; `created_at` in microseconds since 1970."""

    graph_commit_id: str
    graph_branch: str | None
    graph_manifest_version: int
    parent_commit_id: str | None
    merged_parent_commit_id: str | None
    actor_id: str | None
    created_at: int
    kind: str
    group: CommitGroup | UnsetType = UNSET
    message: str | UnsetType = UNSET
    changed: CommitCounts | UnsetType = UNSET


class Health(Struct):
    """The process answers."""

    status: Literal["ok"]
    version: str
    internal_schema_version: int
    source_version: str | UnsetType = UNSET


class Ready(Struct):
    """Whether every graph can be read; per graph for callers with a token."""

    status: Literal["ready", "unavailable"]
    graphs: dict[str, str] | UnsetType = UNSET


class Graph(Struct):
    """A served graph."""

    graph_id: str
    uri: str


class Graphs(Struct):
    """The graphs of a server, by id."""

    graphs: list[Graph]


class ClusterOutcome(Struct):
    """What a command on a cluster came to; whether it succeeded is `ok`, and why not is in `diagnostics`.

    Of a declaration that can not be used only these fields are there.
    """

    ok: bool
    config_dir: str
    diagnostics: list[dict[str, Any]]
    desired_revision: dict[str, Any] | UnsetType = UNSET
    state_observations: dict[str, Any] | UnsetType = UNSET
    changes: list[dict[str, Any]] | UnsetType = UNSET


class ClusterPlan(ClusterOutcome):
    """What applying a declaration would change, and which of it waits for an approval."""

    resource_digests: dict[str, str] | UnsetType = UNSET
    dependencies: list[dict[str, str]] | UnsetType = UNSET
    blast_radius: list[dict[str, Any]] | UnsetType = UNSET
    approvals_required: list[dict[str, Any]] | UnsetType = UNSET


class ClusterApply(ClusterOutcome):
    """What applying a declaration changed. `served_revision`: the revision that the answering process serves now."""

    served_revision: int | None = None
    actor: str | UnsetType = UNSET
    applied_count: int | UnsetType = UNSET
    deferred_count: int | UnsetType = UNSET
    converged: bool | UnsetType = UNSET
    state_written: bool | UnsetType = UNSET
    resource_statuses: dict[str, Any] | UnsetType = UNSET


class Dataset(Struct):
    """One type's table at a snapshot."""

    entity_kind: Literal["node", "edge"]
    type_name: str
    dataset_path: str
    published_dataset_version: int
    entity_count: int
    native_dataset_branch: str | UnsetType = UNSET


class SnapshotAnswer(Struct):
    """The tables of a branch."""

    graph_branch: str
    graph_manifest_version: int
    internal_schema_version: int
    datasets: list[Dataset]


class Target(Struct):
    """What was asked: a branch or a snapshot."""

    branch: str | None
    snapshot: str | None


class OlderReadOutput(Struct):
    """The rows of a query."""

    query_name: str
    target: Target
    row_count: int
    columns: list[str]
    rows: list[dict[str, Any]]


class ReadOutput(OlderReadOutput):
    """The rows of a query, and the commit they come from."""

    graph_commit_id: str


class ChangeOutput(Struct):
    """What a mutation did; no commit when it changed nothing."""

    branch: str
    query_name: str
    affected_nodes: int
    affected_edges: int
    actor_id: str | None
    commit: Commit | None


class OneChange(Struct):
    """What one mutation of a transaction did."""

    query_name: str
    affected_nodes: int
    affected_edges: int


class TransactionOutput(ChangeOutput):
    """What a transaction did as a whole, and what each of its mutations did."""

    mutations: list[OneChange]


class QueryParameter(Struct):
    """A parameter of a stored query."""

    name: str
    kind: str
    nullable: bool
    item_kind: str | UnsetType = UNSET
    vector_dim: int | UnsetType = UNSET


class StoredQuery(Struct):
    """A stored query."""

    name: str
    tool_name: str
    mutation: bool
    params: list[QueryParameter]
    description: str | UnsetType = UNSET
    instruction: str | UnsetType = UNSET


class StoredQueries(Struct):
    """The stored queries of a graph, by name."""

    queries: list[StoredQuery]


class SchemaAnswer(Struct):
    """The accepted schema."""

    schema_source: str


class SchemaApplied(Struct):
    """What applying a schema did."""

    uri: str
    supported: bool
    step_count: int
    steps: list[dict[str, Any]]
    applied: bool
    graph_manifest_version: int
    commit: str | None
    hints: list[dict[str, Any]] | None = None


class SchemaPlanned(Struct):
    """What applying a schema would do."""

    uri: str
    supported: bool
    step_count: int
    steps: list[dict[str, Any]]
    hints: list[dict[str, Any]] | None = None


class LoadedType(Struct):
    """How many entities of a type were loaded."""

    name: str
    entities_loaded: int


class StreamLoaded(Struct):
    """What a load did."""

    branch: str
    base_branch: str | None
    branch_created: bool
    mode: Mode
    nodes: list[LoadedType]
    edges: list[LoadedType]
    total_entities: int
    actor_id: str | None
    commit: Commit


class Loaded(StreamLoaded):
    """What a load did, and to which graph."""

    uri: str


class Branches(Struct):
    """The names of the branches, sorted."""

    branches: list[str]
    next_page_token: str | UnsetType = UNSET


class BranchCreated(Struct):
    """A branch that was made."""

    uri: str
    base: str = field(name="from")
    name: str
    actor_id: str | None


class BranchDeleted(Struct):
    """A branch that was deleted."""

    uri: str
    name: str
    actor_id: str | None


class Merged(Struct):
    """What a merge did. A refused deletion of the source is no error."""

    source: str
    target: str
    outcome: Literal["already_up_to_date", "fast_forward", "merged", "conflicts"]
    actor_id: str | None
    level: Level | UnsetType = UNSET
    branch_deleted: bool | UnsetType = UNSET
    branch_delete_error: str | UnsetType = UNSET


class Rebased(Struct):
    """What a rebase did."""

    branch: str
    onto: str
    outcome: Literal["already_up_to_date", "fast_forward", "rebased", "conflicts"]
    level: Level
    actor_id: str | None


class Commits(Struct):
    """The history of a branch, newest first."""

    commits: list[Commit]
    next_page_token: str | UnsetType = UNSET


class Cause(Struct):
    """The commit that made some changes."""

    graph_commit_id: str
    authored_branch: str | None
    authored_at: int
    parent_commit_id: str | UnsetType = UNSET
    merged_parent_commit_id: str | UnsetType = UNSET
    actor_id: str | UnsetType = UNSET


class ChangedType(Struct):
    """The type of a changed entity; its id survives a rename."""

    id: str
    name: str


class EntityChange(Struct):
    """One changed entity; an image is `{properties, endpoints?: {from, to}}`."""

    kind: Literal["node", "edge"]
    type: ChangedType
    id: str
    op: Literal["insert", "update", "delete"]
    before: dict[str, Any] | UnsetType = UNSET
    after: dict[str, Any] | UnsetType = UNSET


class ChangeBlock(Struct):
    """What one commit did."""

    cause: Cause
    changes: list[EntityChange]


class CommitChanges(ChangeBlock):
    """What one commit did, or a page of it."""

    next_page_token: str | UnsetType = UNSET


class FeedPage(Struct):
    """Some blocks of the change feed; the last page has the cursor to go on from."""

    blocks: list[ChangeBlock]
    cursor: str | UnsetType = UNSET
    caught_up: bool | UnsetType = UNSET
    next_page_token: str | UnsetType = UNSET


class Explanation(Struct):
    """How a query is answered."""

    plan: str
    rewritten: str
    steps: str
    analyzed: bool


class EntityAnswer(Struct):
    """One entity, or null."""

    entity: dict[str, Any] | None


class SchemaChange(Struct):
    """A step from one schema to another: its kind, its words, and what they are about, such as `type_name`."""

    kind: str
    text: str


class Difference(Struct):
    """What changed between two states: the steps of their schemas, where these differ, entities, and the counts."""

    changes: list[EntityChange]
    stats: dict[str, Any]
    schema: list[SchemaChange] | UnsetType = UNSET


class Tags(Struct):
    """Commit ids by tag."""

    tags: dict[str, str]


class Tagged(Struct):
    """A tag and its commit."""

    name: str
    graph_commit_id: str
    actor_id: str | None


class TagDeleted(Struct):
    """A tag that was deleted."""

    name: str
    actor_id: str | None


class Picked(Struct):
    """What taking a commit back, or applying it, did."""

    graph_commit_id: str
    target: str
    outcome: str
    level: Level
    actor_id: str | None


class JobProgress(Struct):
    """How far a job is: bytes while it reads, partitions while it checks."""

    stage: str
    done: int
    total: int
    rows: int


class JobAnswer(Struct):
    """A job: a request that is answered before it is done. `status` and `result` or `error` are its answer."""

    job_id: str
    graph_id: str
    operation: str
    actor_id: str | None
    state: Literal["running", "done", "failed", "lost"]
    started_at: int
    ended_at: int | UnsetType = UNSET
    progress: JobProgress | UnsetType = UNSET
    status: int | UnsetType = UNSET
    result: dict[str, Any] | UnsetType = UNSET
    error: dict[str, Any] | UnsetType = UNSET


class ErrorBody(Struct):
    """Every error: what is wrong, a code, and details that depend on the error."""

    error: str
    request_id: str
    code: str | UnsetType = UNSET
