"""Where a data frame is written to: a type of a branch of a graph, how, and the place where its rows wait for the commit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import orjson

from omnigraph.commit.model import MAIN
from omnigraph.commit.staging_jobs import scratch_folder
from omnigraph.errors import BadRequest
from omnigraph.graph.entry import open as open_graph
from omnigraph.load.checks import APPEND, MODES, OVERWRITE
from omnigraph.load.frames import Part, written_frame
from omnigraph.load.tabular import Columns, entity_of, shape_of
from omnigraph.storage.outputs import Output
from omnigraph.storage.root import Root
from pyspark_omnigraph.options import GraphOptions, flag, graph_options

if TYPE_CHECKING:
    from omnigraph.graph.graph import Graph
    from omnigraph.load.model import LoadResult


@dataclass(frozen=True)
class Target:
    """What a writer of Spark writes to. `rejects`: a folder for refused rows of streams; None: they stop the stream."""

    root: Root
    options: GraphOptions
    branch: str
    mode: str
    columns: tuple[str, ...]
    mapping: Columns
    actor: str | None = None
    idempotency_key: str | None = None
    rejects: str | None = None

    def graph(self) -> Graph:
        """The graph, open for writing."""
        return open_graph(self.options.uri, "rw", storage_options=self.options.storage or None)

    def folder(self, job_id: str) -> Output:
        """Where the rows of a job wait."""
        below = f"{self.root.uri.rstrip('/')}/{scratch_folder(job_id)}/frame"
        return Output(below, Root(below, self.root.options))

    def load(self, job_id: str, parts: Sequence[Part], key: str | None, *, by_key: bool = False) -> LoadResult:
        """Load the rows that tasks have written, as one commit.

        It runs in this process: Spark calls it in one that has no session. `by_key`: a repeat under the key is the same load.
        """
        return self.load_files(written_frame(self.folder(job_id), list(self.columns), parts), key, by_key=by_key)

    def load_files(self, files: Any, key: str | None, *, by_key: bool = False) -> LoadResult:
        """Load files of rows of this target's type, as one commit."""
        is_edge = self.options.kind == "edge"
        with self.graph() as graph:
            mode: Any = self.mode
            return graph.load(
                files,
                mode,
                branch=self.branch,
                engine="local",
                type=None if is_edge else self.options.type_name,
                edge=self.options.type_name if is_edge else None,
                mapping=self.mapping.mapping,
                ignore_extra=self.mapping.ignore_extra,
                actor=self.actor,
                idempotency_key=key,
                idempotency="key" if by_key else "contents",
            )


def target_of(given: Mapping[str, str], columns: tuple[str, ...], *, overwrite: bool) -> Target:
    """What the options of a writer say; a wrong name, mode or column is refused before any task runs."""
    words = {name.lower(): value for name, value in given.items()}
    options = graph_options(given)
    if options.snapshot is not None:
        raise BadRequest("a snapshot is only read; write to a branch")
    mode = words.get("loadmode") or (OVERWRITE if overwrite else APPEND)
    if mode not in MODES:
        raise BadRequest(f"unknown loadMode '{mode}'; the modes are {', '.join(MODES)}")
    if overwrite != (mode == OVERWRITE):
        raise BadRequest(
            f"mode('{'overwrite' if overwrite else 'append'}') of Spark and loadMode '{mode}' do not fit; 'overwrite' goes with "
            "'overwrite', all others with 'append'"
        )
    mapping = Columns(_mapping(words.get("mapping")), flag(words, "ignoreextra"))
    with open_graph(options.uri, "rw", storage_options=options.storage or None) as graph:
        is_edge = options.kind == "edge"
        branch = options.branch or MAIN
        catalog = graph.contract(branch).catalog
        entity = entity_of(catalog, None if is_edge else options.type_name, options.type_name if is_edge else None)
        shape_of(entity, list(columns), mapping, "the data frame")
        return Target(
            graph._context.root,
            options,
            branch,
            mode,
            columns,
            mapping,
            words.get("actor"),
            words.get("idempotencykey"),
            words.get("rejects"),
        )


def _mapping(text: str | None) -> dict[str, str]:
    if text is None:
        return {}
    try:
        found = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise BadRequest(f"the option mapping is a JSON object of column and property names: {error}") from None
    if not isinstance(found, dict) or not all(isinstance(name, str) for name in found.values()):
        raise BadRequest("the option mapping is a JSON object of column and property names")
    return found
