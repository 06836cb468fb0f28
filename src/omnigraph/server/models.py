"""The bodies and parameters of requests, and the shapes of answers, as types: decoded by them, and documented by them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType, field

Params = dict[str, Any]
Mode = Literal["merge", "append", "update", "overwrite"]
Level = Annotated[
    Literal["entity", "property"], Meta(description="What was compared: whole entities, or each property of them.")
]
Branch = Annotated[str, Meta(description="The name of a branch; main unless given.")]
#: The largest number that an answer can hold.
LARGEST = 2**63 - 1
#: A number that an answer can hold.
Whole = Annotated[int, Meta(ge=-LARGEST - 1, le=LARGEST)]


# --- bodies -----------------------------------------------------------------------------------------------------------


class QueryBody(Struct):
    """A read query: its source, which query of it, its parameters, and the branch or the commit it is asked of.

    `schema`: a snapshot is read with the schema of today, or of its own time. `memory_limit`: bytes its rows may take.
    """

    query: str
    name: str | None = None
    params: Params | None = None
    branch: Branch | None = None
    snapshot: str | None = None
    schema: Literal["now", "then"] | None = None
    memory_limit: Annotated[int, Meta(gt=0, le=LARGEST)] | None = None


class Declaration(Struct):
    """The files of a declared cluster: cluster.yaml, and every file it names, by the path it names it with."""

    files: dict[str, str]


class ReadBody(Struct):
    """The older form of `QueryBody`."""

    query_source: str
    query_name: str | None = None
    params: Params | None = None
    branch: Branch | None = None
    snapshot: str | None = None


class MutateBody(Struct):
    """A mutation: its source (`query` or `query_source`), which query of it, its parameters and its branch."""

    query: str | None = None
    query_source: str | None = None
    name: str | None = None
    query_name: str | None = None
    params: Params | None = None
    branch: Branch | None = None
    message: Annotated[str | None, Meta(description="Kept with the commit.")] = None


class OneMutation(Struct):
    """One mutation of a transaction: its source, which query of it, and its parameters."""

    query: str
    name: str | None = None
    params: Params | None = None


class TransactionBody(Struct):
    """Mutations that are one commit: in order, each on what those before have left; a failure of one undoes all.

    `if_commit`: only while this commit is the head of the branch.
    """

    mutations: Annotated[list[OneMutation], Meta(min_length=1, max_length=10_000)]
    branch: Branch | None = None
    message: Annotated[str | None, Meta(description="Kept with the commit.")] = None
    if_commit: str | None = None


class InvokeBody(Struct):
    """What a stored query is called with. `expect_mutation`: refuse a query of the other kind. `message`: of the commit."""

    params: Params | None = None
    branch: Branch | None = None
    snapshot: str | None = None
    expect_mutation: bool | None = None
    message: str | None = None


class SchemaBody(Struct):
    """A wanted schema."""

    schema_source: str
    allow_data_loss: bool | None = None
    backfill: Annotated[
        list[str] | None, Meta(description="What rows get that have no value, such as `Person.slug = lower(name)`.")
    ] = None
    message: Annotated[str | None, Meta(description="Kept with the commit.")] = None


class LoadBody(Struct):
    """Rows as a text of JSON values, and what becomes of them."""

    data: str
    branch: Branch | None = None
    base: str | None = field(default=None, name="from")
    mode: Mode | None = None
    message: Annotated[str | None, Meta(description="Kept with the commit.")] = None


class BranchBody(Struct):
    """A new branch and what it starts from, main unless given."""

    name: str
    base: str | None = field(default=None, name="from")


class MergeOptions(Struct, forbid_unknown_fields=True):
    """How a merge, revert or cherry-pick meets conflicts, and whether it writes."""

    dry_run: bool = False
    strategy: str | None = None
    resolutions: list[dict[str, Any]] | None = None
    #: As the setting `merge.level` of the graph says, unless given.
    property_level: bool | None = None
    images: bool = True
    #: The text of the schema that the merge is to lead to.
    schema: str | None = None


class MergeBody(Struct):
    """Which branch is merged into which, main unless given."""

    source: str
    target: str | None = None
    delete_branch: bool | None = None
    options: MergeOptions | None = None
    message: Annotated[str | None, Meta(description="Kept with the commit.")] = None


class RebaseBody(Struct, forbid_unknown_fields=True):
    """Which branch is brought up to which, main unless given."""

    branch: str
    onto: str | None = None
    options: MergeOptions | None = None
    message: Annotated[str | None, Meta(description="Kept with the commit.")] = None


class ExportBody(Struct, forbid_unknown_fields=True):
    """What is exported: a branch, and some of its types."""

    branch: Branch | None = None
    type_names: list[str] | None = None
    snapshot: str | None = None


class BaselineBody(Struct):
    """What a baseline holds."""

    branch: Branch | None = None
    kind: list[str] | str | None = None
    type: list[str] | str | None = None
    op: list[str] | str | None = None


class ExplainBody(QueryBody):
    """A read query that is explained; `analyze` also measures it."""

    analyze: bool | None = None


class DiffBody(Struct):
    """Two read targets: branches, tags, commits or snapshots; the later one is main unless given."""

    before: str
    after: str | None = None
    kinds: list[str] | None = None
    types: list[str] | None = None
    ops: list[str] | None = None


class TagBody(Struct):
    """A name for a commit, the head of main unless given."""

    name: str
    commit: str | None = None


class AgentMessage(Struct):
    """One message of JSON-RPC 2.0, as the Model Context Protocol has it: a request with an `id`, or a notification."""

    jsonrpc: Literal["2.0"]
    method: str | None = None
    id: str | int | None = None
    params: dict[str, Any] | None = None


class PickBody(Struct):
    """A commit that is taken back, or applied to a branch."""

    commit: str
    branch: Branch | None = None
    options: MergeOptions | None = None
    message: Annotated[str | None, Meta(description="Kept with the commit.")] = None


# --- query parameters -------------------------------------------------------------------------------------------------


class NoParameters(Struct):
    """A route without parameters; unknown ones are ignored."""


class SnapshotParameters(Struct):
    """The branch that is read, or a commit, tag, snapshot id or manifest version."""

    branch: Branch | None = None
    snapshot: str | None = None


class BranchParameters(Struct):
    """The branch that is asked about."""

    branch: Branch | None = None


class AgentParameters(Struct, forbid_unknown_fields=True):
    """How an agent is confined: to writes on one branch, or to reads; and how large an answer of a tool may be."""

    branch: Branch | None = None
    read_only: bool | None = None
    max_bytes: Annotated[int, Meta(ge=2048, le=4194304)] | None = None


class PageParameters(Struct):
    """A page of a list: how many entries, and the token of the page before."""

    limit: Whole | None = None
    page_token: str | None = None


class CommitsParameters(Struct):
    """The branch whose history is listed, a page of it, and which commits are wanted (times in microseconds since 1970)."""

    branch: Branch | None = None
    limit: Whole | None = None
    page_token: str | None = None
    actor: str | None = None
    kind: str | None = None
    since: Whole | None = None
    until: Whole | None = None

    @property
    def filters(self) -> dict[str, Any]:
        """What is wanted of the history, as `Graph.commits` takes it."""
        return {"actor": self.actor, "kind": self.kind, "since": self.since, "until": self.until}


class BlobParameters(Struct, forbid_unknown_fields=True):
    """Which blob value is read."""

    entity: Literal["node", "edge"]
    type: str
    id: str
    property: str
    branch: Branch | None = None
    snapshot: str | None = None


class CommitChangesParameters(Struct, forbid_unknown_fields=True):
    """A page of the changes of a commit, and which of them are wanted."""

    page_token: str | None = None
    limit: Whole | None = None
    kind: list[str] = []
    type: list[str] = []
    op: list[str] = []


class FeedParameters(Struct, forbid_unknown_fields=True):
    """Where a poll of the change feed begins, how large a page is, and which changes are wanted."""

    branch: Branch | None = None
    cursor: str | None = None
    start: str | None = None
    page_token: str | None = None
    limit: Whole | None = None
    max_commits: Whole | None = None
    kind: list[str] = []
    type: list[str] = []
    op: list[str] = []


class StreamParameters(Struct, forbid_unknown_fields=True):
    """Where a followed change feed begins, and which changes are wanted."""

    branch: Branch | None = None
    cursor: str | None = None
    start: str | None = None
    kind: list[str] = []
    type: list[str] = []
    op: list[str] = []


class LoadParameters(Struct):
    """Where streamed rows go, and what becomes of them. `if_commit`: only while this commit is the head of the branch."""

    branch: Branch | None = None
    base: str | None = field(default=None, name="from")
    mode: Mode | None = None
    if_commit: str | None = None
    lenient: bool = False
    message: Annotated[str | None, Meta(description="Kept with the commit.")] = None
    title: Annotated[str | None, Meta(description="What the rows came from, for the default message.")] = None


class EntityParameters(Struct):
    """Which entity is read."""

    entity: Literal["node", "edge"]
    type: str
    id: str
    branch: Branch | None = None
    snapshot: str | None = None


# --- answers ----------------------------------------------------------------------------------------------------------


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


class Difference(Struct):
    """What changed between two states, and the counts."""

    changes: list[EntityChange]
    stats: dict[str, Any]


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
