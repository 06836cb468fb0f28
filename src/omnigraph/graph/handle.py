"""What every part of a graph's handle stands on: the store, the accepted schema, the branch it is bound to."""

from __future__ import annotations

from typing import Literal

from omnigraph.commit.context import CommitContext
from omnigraph.commit.model import MAIN, ManifestState
from omnigraph.embedding.embedder import Embedder
from omnigraph.errors import BadRequest
from omnigraph.graph.contract import Contract
from omnigraph.graph.schema_watch import SchemaWatch
from omnigraph.graph.snapshot import Reference, Snapshot, resolve
from omnigraph.graph.sources import CompiledQueries
from omnigraph.query.caches import Caches


class Handle:
    """An open graph without its verbs; each family of verbs is a class on top of this one, and `Graph` is all of them."""

    def __init__(
        self,
        context: CommitContext,
        watch: SchemaWatch,
        *,
        mode: Literal["rw", "ro"],
        actor: str | None = None,
        branch: str = MAIN,
        external_blobs: tuple[str, ...] = (),
        caches: Caches | None = None,
        embedder: Embedder | None = None,
    ) -> None:
        self._context = context
        self._watch = watch
        self._external_blobs = external_blobs
        self._queries = CompiledQueries()
        self._caches = caches or Caches()
        self._embedder = embedder or Embedder()
        self.mode = mode
        self.actor = actor
        self.branch = branch

    @property
    def uri(self) -> str:
        return self._context.root.uri

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.uri!r}, mode={self.mode!r}, branch={self.branch!r})"

    def contract(self) -> Contract:
        """The accepted schema, checked against the files on disk when they changed."""
        return self._watch.current()

    def schema(self) -> str:
        """The accepted schema source."""
        return self.contract().source

    def snapshot(self, branch: str | None = None, at: Reference = None) -> Snapshot:
        """The graph now, or at a commit id, manifest version or snapshot id."""
        if isinstance(at, Snapshot):
            return at
        return self._snapshot(resolve(self._context.manifest, branch or self.branch, at))

    def _snapshot(self, state: ManifestState) -> Snapshot:
        return Snapshot(state, self._context.tables, self.contract().names())

    def _refuse_read_only(self) -> None:
        if self.mode != "rw":
            raise BadRequest('this handle is read-only; open the graph with mode="rw" to write')
