"""What a load is asked and what it answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from omnigraph.commit.model import Commit
from omnigraph.commit.updates import SchemaIs
from omnigraph.embedding.embedder import Embedder
from omnigraph.language.schema.catalog import Catalog
from omnigraph.load.parsed import Ignored
from omnigraph.shown import Shown


@dataclass(frozen=True, slots=True)
class TableLoad:
    """How many rows of one type a load wrote; `kind` is node or edge."""

    kind: str
    type: str
    rows: int
    mode: str


@dataclass(frozen=True, slots=True)
class LoadReport:
    """How a load went."""

    engine: str = "local"
    #: Why this engine was chosen.
    why: str = ""
    bytes: int = 0
    #: How many rows were written.
    rows: int = 0
    lines: int = 0
    skipped_lines: int = 0
    ignored: Ignored = field(default_factory=Ignored)
    restarts: int = 0
    #: How many stored values a merge has replaced by null because its rows do not have them, by `Type.property`.
    cleared: Mapping[str, int] = field(default_factory=dict)
    #: The edge types without a key whose edges seem to have been loaded before: they are there twice now.
    edges_again: tuple[str, ...] = ()
    #: Seconds of each stage: read, check, stage, commit.
    seconds: Mapping[str, float] = field(default_factory=dict)
    #: The peak memory of this process, in bytes; workers are not part of it.
    peak_memory: int = 0


@dataclass(frozen=True, slots=True)
class LoadResult(Shown):
    """What a load did. `base_branch`: what the branch was, or would have been, created from."""

    branch: str
    base_branch: str | None
    branch_created: bool
    mode: str
    tables: tuple[TableLoad, ...]
    nodes_loaded: int
    edges_loaded: int
    commit: Commit
    report: LoadReport = field(default_factory=LoadReport)

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values, ready for JSON."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a load is: the stage, and what of its work is done; the unit is bytes while reading, partitions while checking.

    `note`: of the stage `engine`, which is told once at the start, the engine that was chosen and why.
    """

    stage: str
    done: int
    total: int
    rows: int
    note: str = ""


ProgressCall = Callable[[Progress], None]


@dataclass(frozen=True)
class Request:
    """One call of load or ingest. `base`: the branch is created from it when there is none of its name."""

    catalog: Catalog
    schema: SchemaIs
    branch: str
    mode: str
    embedder: Embedder
    base: str | None = None
    actor: str | None = None
    message: str | None = None
    #: What the rows come from, for the default message: the name of a file; None for rows that have none.
    title: str | None = None
    if_commit: str | None = None
    idempotency_key: str | None = None
    #: What makes a call under the same key the same: its `contents`, or the `key` alone.
    idempotency: str = "contents"
    lenient: bool = False
    external_blobs: tuple[str, ...] = ()
    progress: ProgressCall | None = None
