"""The change feed as a Spark structured-streaming source: one row per change; offsets are cursors of the feed.

Spark keeps the offsets in its checkpoint, so a stopped query continues where it was. Each commit is a task; a commit with many
changes is several tasks, for spans of ids of the tables it changed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import orjson
import pyarrow as pa

from omnigraph.changes.commits import CommitPart, open_told
from omnigraph.changes.filter import Filter
from omnigraph.changes.model import Change
from omnigraph.changes.track import Track, track_of
from omnigraph.commit.context import CommitContext
from omnigraph.commit.manifest import Manifest
from omnigraph.commit.model import Commit
from omnigraph.spark.session import AnySession
from omnigraph.storage.locks import BranchLocks
from omnigraph.storage.objects import open_store
from omnigraph.storage.root import Root
from omnigraph.storage.tables.handles import Tables

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

NAME = "omnigraph_changes"
#: Named `secret` so that Spark does not show it: it may hold credentials.
_OPTION = "secret.feed"
_BATCH_ROWS = 4096
#: A commit with more changes than this is read by several tasks.
CHANGES_PER_TASK = 100_000

#: The columns of the stream. Images are JSON texts of the properties; null when there is no image.
_TEXTS_OF_COMMIT = ("commit_id", "branch", "parent_commit_id", "merged_parent_commit_id", "actor")
_TEXTS_OF_CHANGE = ("op", "kind", "type", "type_id", "id", "src", "dst", "before", "after")
ROWS = pa.schema(
    [
        *((name, pa.string()) for name in _TEXTS_OF_COMMIT),
        ("authored_at", pa.timestamp("us", tz="UTC")),
        *((name, pa.string()) for name in _TEXTS_OF_CHANGE),
    ]
)
DDL = ", ".join(f"`{field.name}` {'timestamp' if field.name == 'authored_at' else 'string'}" for field in ROWS)


@dataclass(frozen=True)
class FeedTask:
    """A commit of the feed, or a part of it, for one task. `part` None: the whole commit."""

    commit: str
    part: CommitPart | None = None


@dataclass(frozen=True)
class Stream:
    """A feed for Spark: graph, branch, filter, and the cursor at which it begins.

    `most_commits`: the most commits of a micro-batch; None: no limit.
    """

    root: Root
    #: The identities of the graph: the current one first, then those from before it was moved or copied.
    identities: tuple[str, ...]
    branch: str
    wanted: Filter
    begin: str
    most_commits: int | None = None

    def packed(self) -> str:
        """The stream as text, for an option of a data source."""
        asked = [
            None if part is None else sorted(part) for part in (self.wanted.kinds, self.wanted.types, self.wanted.ops)
        ]
        told = [
            self.root.uri,
            self.root.options,
            self.identities,
            self.branch,
            asked,
            self.begin,
            self.most_commits,
        ]
        return orjson.dumps(told).decode()

    @classmethod
    def unpacked(cls, options: Any) -> Stream:
        uri, storage, identities, branch, asked, begin, most = orjson.loads(options[_OPTION])
        root = Root(uri, tuple((key, value) for key, value in storage))
        kinds, types, ops = (None if part is None else frozenset(part) for part in asked)
        return cls(root, tuple(identities), branch, Filter(kinds, types, ops), begin, most)

    def track(self) -> Track:
        return track_of(self._context(), self.identities, self.branch, self.wanted)

    def _context(self) -> CommitContext:
        store, tables = open_store(self.root), Tables(self.root)
        return CommitContext(self.root, store, tables, Manifest(store, tables), BranchLocks(store, self.root))

    # --- what Spark asks --------------------------------------------------------------------------------------------

    def newest(self) -> str:
        """The cursor after the newest commit."""
        track = self.track()
        return track.cursor(track.head)

    def end_of_batch(self, begin: str, newest: str) -> str:
        """The cursor at which a micro-batch ends that begins at `begin` and may go up to `newest`."""
        commits = [] if self.most_commits is None else self.commits(begin, newest)
        if self.most_commits is None or len(commits) <= self.most_commits:
            return newest
        return self.track().cursor(commits[self.most_commits - 1])

    def commits(self, begin: str, end: str) -> list[str]:
        """The ids of the commits after one cursor, up to another."""
        track = self.track()
        until = track.seen(end)
        return [] if until is None else [commit.id for commit in track.between(track.seen(begin), until)]

    def tasks(self, begin: str, end: str) -> list[FeedTask]:
        """The tasks that read the commits after one cursor, up to another, in order."""
        context = self._context()
        found: list[FeedTask] = []
        for commit_id in self.commits(begin, end):
            commit = context.manifest.commit_near(commit_id, self.branch)
            if commit.changed is None or commit.changed.nodes + commit.changed.edges <= CHANGES_PER_TASK:
                found.append(FeedTask(commit_id))
                continue
            parts = open_told(context, commit, self.wanted).parts(CHANGES_PER_TASK)
            found += [FeedTask(commit_id, part) for part in parts]
        return found

    def rows(self, task: FeedTask) -> Iterator[pa.RecordBatch]:
        """The changes of one commit, or of a part of it, as rows."""
        context = self._context()
        commit = context.manifest.commit_near(task.commit, self.branch)
        block = open_told(context, commit, self.wanted)
        told = (change for _, change in block.changes()) if task.part is None else block.changes_of(task.part)
        waiting: list[Change] = []
        for change in told:
            waiting.append(change)
            if len(waiting) == _BATCH_ROWS:
                yield _batch(commit, waiting)
                waiting = []
        if waiting:
            yield _batch(commit, waiting)


def stream_frame(session: AnySession, stream: Stream) -> DataFrame:
    """The stream as a data frame."""
    # The data source classes load PySpark, so they are imported only here.
    from omnigraph.changes.stream_reader import ChangeSource

    session.sql.dataSource.register(ChangeSource)
    return session.sql.readStream.format(NAME).option(_OPTION, stream.packed()).load()


def _batch(commit: Commit, changes: list[Change]) -> pa.RecordBatch:
    told = (commit.id, commit.branch, commit.parent, commit.merged_parent, commit.actor)
    columns: dict[str, list[object]] = {
        name: [value] * len(changes) for name, value in zip(_TEXTS_OF_COMMIT, told, strict=True)
    }
    columns["authored_at"] = [commit.created_at] * len(changes)
    for name in ("op", "kind", "type", "type_id", "id"):
        columns[name] = [getattr(change, name) for change in changes]
    for name in ("src", "dst"):
        columns[name] = [getattr(change.endpoints, name, None) for change in changes]
    for name in ("before", "after"):
        images = [getattr(change, name) for change in changes]
        columns[name] = [None if image is None else orjson.dumps(image).decode() for image in images]
    return pa.record_batch([pa.array(columns[field.name], field.type) for field in ROWS], schema=ROWS)
