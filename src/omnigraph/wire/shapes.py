"""The JSON shapes of results: over HTTP, and in the command line's `--json` output."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from omnigraph.commit.model import MAIN, Commit
from omnigraph.errors import BadRequest

if TYPE_CHECKING:
    from omnigraph.errors import PreconditionFailed
    from omnigraph.evolution.apply import Applied
    from omnigraph.language.query.ast import Query
    from omnigraph.load.model import LoadReport, LoadResult
    from omnigraph.merge.result import MergeResult
    from omnigraph.mutation.execute import MutationResult
    from omnigraph.query.result import Result


class ShownTable(Protocol):
    """One table of a snapshot, of a graph on storage or of a served one."""

    @property
    def key(self) -> str: ...
    @property
    def path(self) -> str: ...
    @property
    def version(self) -> int: ...
    @property
    def branch(self) -> str | None: ...
    @property
    def row_count(self) -> int: ...


class ShownSnapshot(Protocol):
    """A snapshot of a graph on storage or of a served one."""

    @property
    def branch(self) -> str: ...
    @property
    def version(self) -> int: ...
    @property
    def stamp(self) -> int: ...
    def entries(self) -> Sequence[ShownTable]: ...


class ShownBlob(Protocol):
    """A blob value of a graph on storage or of a served one."""

    @property
    def kind(self) -> str: ...
    @property
    def length(self) -> int | None: ...
    @property
    def etag(self) -> str | None: ...
    @property
    def uri(self) -> str | None: ...
    @property
    def snapshot_id(self) -> str: ...


def commit_output(commit: Commit) -> dict[str, Any]:
    """A commit as JSON; the branch null means main.
    Present only when known: `group` (it was published together with other commits), `message`, `changed` (counts of nodes and
    edges).
    """
    told: dict[str, Any] = {
        "graph_commit_id": commit.id,
        "graph_branch": None if commit.branch == MAIN else commit.branch,
        "graph_manifest_version": commit.manifest_version,
        "parent_commit_id": commit.parent,
        "merged_parent_commit_id": commit.merged_parent,
        "actor_id": commit.actor,
        "created_at": commit.created_at,
        "kind": commit.kind,
    }
    if commit.group is not None:
        told["group"] = asdict(commit.group)
    if commit.message is not None:
        told["message"] = commit.message
    if commit.changed is not None:
        told["changed"] = asdict(commit.changed)
    return told


def read_output(query_name: str, branch: str | None, snapshot: str | None, result: Result) -> dict[str, Any]:
    """The answer of a read query, with the requested branch or snapshot (the other is null)."""
    return {
        "query_name": query_name,
        "target": {"branch": branch, "snapshot": snapshot},
        "row_count": len(result),
        "columns": result.columns,
        "rows": result.to_dicts(json=True),
        "graph_commit_id": result.commit,
    }


def change_output(branch: str, query_name: str, actor: str | None, result: MutationResult) -> dict[str, Any]:
    """What a mutation did."""
    return {
        "branch": branch,
        "query_name": query_name,
        "affected_nodes": result.affected_nodes,
        "affected_edges": result.affected_edges,
        "actor_id": actor,
        "commit": None if result.commit is None else commit_output(result.commit),
    }


def load_output(uri: str, result: LoadResult) -> dict[str, Any]:
    """What a load did, as the command line prints it."""
    return {
        "uri": uri,
        "branch": result.branch,
        "mode": result.mode,
        **({} if result.base_branch is None else {"base_branch": result.base_branch}),
        "branch_created": result.branch_created,
        **_loaded(result),
        "commit": commit_output(result.commit),
        # Results of a server and of repeated calls have no report.
        **({} if not result.report.why else {"report": _report(result.report)}),
    }


def _report(report: LoadReport) -> dict[str, Any]:
    """The report of a load: the engine and the reason for it, seconds of each stage, sizes in bytes."""
    return {
        "engine": report.engine,
        "why": report.why,
        "seconds": {stage: round(spent, 6) for stage, spent in report.seconds.items()},
        "bytes": report.bytes,
        "lines": report.lines,
        "rows": report.rows,
        "restarts": report.restarts,
        "peak_memory": report.peak_memory,
    }


def load_answer(uri: str | None, actor: str | None, result: LoadResult) -> dict[str, Any]:
    """What a load did, as the server answers; without the URI where the route has none."""
    return {
        **({} if uri is None else {"uri": uri}),
        "branch": result.branch,
        "base_branch": result.base_branch,
        "branch_created": result.branch_created,
        "mode": result.mode,
        **_loaded(result),
        "actor_id": actor,
        "commit": commit_output(result.commit),
    }


def _loaded(result: LoadResult) -> dict[str, Any]:
    """The loaded entities by type, sorted by name, and their total."""
    listed = {
        kind: [
            {"name": table.type, "entities_loaded": table.rows}
            for table in sorted(result.tables, key=lambda table: table.type)
            if table.kind == kind
        ]
        for kind in ("node", "edge")
    }
    total = result.nodes_loaded + result.edges_loaded
    return {"nodes": listed["node"], "edges": listed["edge"], "total_entities": total}


def merge_output(source: str, target: str, actor: str | None, result: MergeResult) -> dict[str, Any]:
    """What a merge did, in the shape that existing clients read.

    `level` is present only when properties were compared; `branch_deleted` only when the deletion was requested.
    """
    from omnigraph.commit.config import ENTITY_LEVEL

    shape = {"source": source, "target": target, "outcome": result.outcome, "actor_id": actor}
    if result.level != ENTITY_LEVEL:
        shape["level"] = result.level
    return shape | {
        name: result.stats[name] for name in ("branch_deleted", "branch_delete_error") if name in result.stats
    }


def schema_output(uri: str, applied: Applied) -> dict[str, Any]:
    """What applying a schema did."""
    return {"uri": uri} | applied.to_dict()


def stored_query_output(query: Query) -> dict[str, Any]:
    """A stored query as the catalogue lists it."""
    from omnigraph.language.query.descriptor import describe_value

    about = {"description": query.description, "instruction": query.instruction}
    return {
        "name": query.name,
        "tool_name": query.name,
        "mutation": query.is_mutation,
        **_known(about),
        "params": [describe_value(param.name, param.type).to_dict() for param in query.params],
    }


def precondition_output(error: PreconditionFailed) -> dict[str, Any]:
    """The body for a lost compare-and-swap."""
    failure = {"expected": error.expected} | ({} if error.actual is None else {"actual": error.actual})
    return {"error": error.message, "precondition_failure": failure}


def snapshot_output(snapshot: ShownSnapshot) -> dict[str, Any]:
    """The tables of a graph at one commit."""
    return {
        "graph_branch": snapshot.branch,
        "graph_manifest_version": snapshot.version,
        "internal_schema_version": snapshot.stamp,
        "datasets": [
            {
                "entity_kind": entry.key.partition(":")[0],
                "type_name": entry.key.partition(":")[2],
                "dataset_path": entry.path,
                "published_dataset_version": entry.version,
                **({} if entry.branch is None else {"native_dataset_branch": entry.branch}),
                "entity_count": entry.row_count,
            }
            for entry in snapshot.entries()
        ],
    }


def blob_output(
    entity: str,
    type_name: str,
    entity_id: str,
    property: str,
    blob: ShownBlob,
    branch: str | None,
    snapshot: str | None,
) -> dict[str, Any]:
    """The place and size of a blob value; its bytes are read separately."""
    about = {"size": blob.length, "etag": blob.etag, "uri": blob.uri}
    target = {"branch": branch, "snapshot": snapshot, "resolved_snapshot": blob.snapshot_id}
    return {
        "selector": {"entity": entity, "type": type_name, "id": entity_id, "property": property},
        "kind": blob.kind,
        **_known(about),
        "target": _known(target),
    }


def _known(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


Item = TypeVar("Item")
#: The largest page of commits or branches.
MOST_LISTED = 10_000


def page(
    items: list[Item], limit: int | None, page_token: str | None, key: Callable[[Item], str]
) -> tuple[list[Item], dict[str, str]]:
    """A page of a list in memory (all of it without a limit), and its page token, the key of the last entry."""
    start = 0
    if page_token is not None:
        places = [place for place, item in enumerate(items) if key(item) == page_token]
        if not places:
            raise BadRequest("the page token belongs to another list, or its entry is gone; start again without one")
        start = places[0] + 1
    if limit is None:
        return items[start:], {}
    if not 0 < limit <= MOST_LISTED:
        raise BadRequest(f"limit is 1 to {MOST_LISTED}, not {limit}")
    shown = items[start : start + limit]
    more = start + limit < len(items)
    return shown, {"next_page_token": key(shown[-1])} if more else {}
