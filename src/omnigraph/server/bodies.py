"""The bodies and the query parameters of requests as types: requests are decoded by them, and documented by them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, field

Params = dict[str, Any]
Mode = Literal["merge", "append", "update", "overwrite"]
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
