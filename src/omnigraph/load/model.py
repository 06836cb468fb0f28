"""The request and the result of a load."""

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
    """What a load did. `base_branch`: the branch from which `branch` was, or would have been, created."""

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
    """The progress of a load: the stage, and the work done; in bytes while reading, in partitions while checking.

    `note`: the chosen engine and the reason; set in the stage `engine`, which is reported once at the start.
    """

    stage: str
    done: int
    total: int
    rows: int
    note: str = ""


ProgressCall = Callable[[Progress], None]


@dataclass(frozen=True)
class Request:
    """One call of load or ingest. `base`: if the branch does not exist, it is created from this one."""

    catalog: Catalog
    schema: SchemaIs
    branch: str
    mode: str
    embedder: Embedder
    base: str | None = None
    actor: str | None = None
    message: str | None = None
    #: The origin of the rows for the default message, such as the name of a file; None for rows without one.
    title: str | None = None
    if_commit: str | None = None
    idempotency_key: str | None = None
    #: When two calls under one key count as the same: if their `contents` are equal, or always (`key`).
    idempotency: str = "contents"
    lenient: bool = False
    external_blobs: tuple[str, ...] = ()
    progress: ProgressCall | None = None
