"""What every handle of a graph can do, embedded or served: `Graph` and `RemoteGraph` both have these verbs.

Code that takes an `AnyGraph` works with both. Arguments that only one of them has are not listed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

from omnigraph.commit.model import Commit
from omnigraph.query.explain import Explanation
from omnigraph.query.limits import Cancel
from omnigraph.query.result import Result

if TYPE_CHECKING:
    from omnigraph.changes.commits import CommitChanges
    from omnigraph.changes.feed import FeedPage
    from omnigraph.changes.filter import Names
    from omnigraph.changes.model import ChangeSet
    from omnigraph.evolution.apply import Applied
    from omnigraph.evolution.plan import Plan
    from omnigraph.load.model import LoadResult
    from omnigraph.merge.result import MergeResult
    from omnigraph.mutation.execute import MutationResult

#: A commit id, a tag, a snapshot id or a manifest version.
Place = str | int | None
EntityKind = Literal["node", "edge"]
LoadMode = Literal["append", "merge", "update", "overwrite"]


class AnySnapshot(Protocol):
    """The graph as of one commit."""

    @property
    def id(self) -> str: ...
    @property
    def branch(self) -> str: ...
    @property
    def version(self) -> int: ...
    @property
    def commit(self) -> str: ...
    def to_dict(self) -> dict[str, Any]: ...


class AnyBlob(Protocol):
    """One blob value."""

    @property
    def kind(self) -> Literal["managed", "external"]: ...
    @property
    def length(self) -> int | None: ...
    @property
    def etag(self) -> str | None: ...
    @property
    def uri(self) -> str | None: ...
    @property
    def snapshot_id(self) -> str: ...
    def read(self, start: int = 0, end: int | None = None) -> bytes: ...
    def __iter__(self) -> Iterator[bytes]: ...


class AnyBaseline(Protocol):
    """All that a branch holds, written down, and the cursor of the changes behind it."""

    @property
    def commit(self) -> str: ...
    @property
    def cursor(self) -> str: ...
    @property
    def entities(self) -> int: ...
    def to_dict(self) -> dict[str, Any]: ...


class AnyGraph(Protocol):
    """A handle of a graph; see `Graph` for what each verb does."""

    branch: str

    @property
    def uri(self) -> str: ...
    def at(self, branch: str) -> AnyGraph: ...
    def close(self) -> None: ...

    # --- queries and writes -----------------------------------------------------------------------------------------

    def query(
        self,
        source: str | Path,
        name: str | None = None,
        params: Mapping[str, object] | None = None,
        *,
        branch: str | None = None,
        snapshot: Place = None,
        engine: str = "local",
        schema: Literal["now", "then"] = "now",
        memory_limit: int | str | None = None,
        timeout: float | None = None,
        cancel: Cancel | None = None,
    ) -> Result: ...

    def explain(
        self,
        source: str | Path,
        name: str | None = None,
        params: Mapping[str, object] | None = None,
        *,
        branch: str | None = None,
        snapshot: Place = None,
        analyze: bool = False,
        timeout: float | None = None,
    ) -> Explanation: ...

    def mutate(
        self,
        source: str | Path,
        name: str | None = None,
        params: Mapping[str, object] | None = None,
        *,
        branch: str | None = None,
        actor: str | None = None,
        if_commit: str | None = None,
        idempotency_key: str | None = None,
        message: str | None = None,
    ) -> MutationResult: ...

    def load(
        self,
        data: Any,
        mode: LoadMode = "append",
        *,
        branch: str | None = None,
        base: str | None = None,
        actor: str | None = None,
        lenient: bool = False,
        format: Literal["jsonl", "parquet", "csv"] | None = None,
        type: str | None = None,
        edge: str | None = None,
        mapping: Mapping[str, str] | None = None,
        if_commit: str | None = None,
        idempotency_key: str | None = None,
    ) -> LoadResult: ...

    def ingest(
        self, data: Any, branch: str, base: str | None = None, mode: LoadMode = "merge", **options: Any
    ) -> LoadResult: ...

    # --- branches ---------------------------------------------------------------------------------------------------

    def branches(self) -> list[str]: ...
    def create_branch(self, name: str, base: str | None = None, *, actor: str | None = None) -> AnySnapshot: ...
    def delete_branch(self, name: str, *, actor: str | None = None) -> None: ...
    def merge(self, source: str, into: str | None = None, *, delete_branch: bool = False) -> MergeResult: ...
    def revert(self, commit: str, branch: str | None = None) -> MergeResult: ...
    def cherry_pick(self, commit: str, onto: str | None = None) -> MergeResult: ...

    # --- history and changes ----------------------------------------------------------------------------------------

    def commits(self, branch: str | None = None) -> list[Commit]: ...
    def commit(self, commit_id: str) -> Commit: ...
    def head(self, branch: str | None = None) -> Commit: ...
    def snapshot(self, branch: str | None = None, at: Place = None) -> AnySnapshot: ...

    def diff(
        self,
        before: Commit | Place,
        after: Commit | Place = None,
        *,
        kinds: Names = None,
        types: Names = None,
        ops: Names = None,
    ) -> ChangeSet: ...

    def commit_changes(
        self,
        commit_id: str,
        *,
        limit: int | None = None,
        page_token: str | None = None,
        kinds: Names = None,
        types: Names = None,
        ops: Names = None,
    ) -> CommitChanges: ...

    def changes(
        self,
        branch: str | None = None,
        *,
        cursor: str | None = None,
        start: str | None = None,
        page_token: str | None = None,
        limit: int | None = None,
        max_commits: int | None = None,
        kinds: Names = None,
        types: Names = None,
        ops: Names = None,
    ) -> FeedPage: ...

    def baseline(
        self,
        branch: str | None = None,
        out: Any = None,
        *,
        kinds: Names = None,
        types: Names = None,
        ops: Names = None,
    ) -> AnyBaseline: ...

    def tag(self, name: str, commit: Commit | Place = None, *, actor: str | None = None) -> str: ...
    def tags(self) -> dict[str, str]: ...
    def delete_tag(self, name: str, *, actor: str | None = None) -> None: ...

    # --- entities, schema, export -----------------------------------------------------------------------------------

    def entity(
        self, kind: EntityKind, type_name: str, entity_id: str, *, branch: str | None = None, snapshot: Place = None
    ) -> dict[str, Any] | None: ...

    def read_blob(
        self,
        kind: EntityKind,
        type_name: str,
        entity_id: str,
        property: str,
        *,
        branch: str | None = None,
        snapshot: Place = None,
    ) -> AnyBlob: ...

    def schema(self) -> str: ...
    def plan_schema(self, schema: str | Path, *, allow_data_loss: bool = False) -> Plan: ...
    def apply_schema(
        self, schema: str | Path, *, allow_data_loss: bool = False, actor: str | None = None
    ) -> Applied: ...

    def export(
        self,
        out: str | PathLike[str],
        *,
        branch: str | None = None,
        snapshot: Place = None,
        types: Collection[str] | None = None,
        format: Literal["jsonl", "parquet"] = "jsonl",
        files: Literal["one", "many"] = "one",
    ) -> int: ...

    def export_chunks(
        self, *, branch: str | None = None, snapshot: Place = None, types: Collection[str] | None = None
    ) -> Iterator[bytes]: ...

    def refresh(self) -> list[Any]: ...
