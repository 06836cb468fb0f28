"""A baseline: everything that a branch holds, and the cursor of the changes after it.

The cursor is made last: a caller that could not read all of the data gets none, and can not miss data by going on.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from omnigraph.changes.filter import Filter
from omnigraph.changes.track import Track
from omnigraph.commit.context import CommitContext
from omnigraph.commit.model import ManifestState
from omnigraph.errors import BadRequest, Conflict
from omnigraph.export.plan import ExportTable, plan_export
from omnigraph.export.run import export_stream
from omnigraph.language.schema.catalog import Catalog
from omnigraph.query.scan.entities import View
from omnigraph.shown import Shown
from omnigraph.storage.file_lock import try_lock, unlock
from omnigraph.storage.object_errors import from_os
from omnigraph.storage.outputs import Output


class Writable(Protocol):
    """An object that accepts bytes, such as an open file."""

    def write(self, data: bytes, /) -> object: ...


#: The caller's own type of snapshot, which is returned to it.
Captured = TypeVar("Captured", bound=View)
Sink = str | os.PathLike[str] | Writable | Callable[[bytes], object]


@dataclass(frozen=True)
class Baseline(Generic[Captured], Shown):
    """A captured snapshot: its commit, how many entities were written, and the cursor of the changes after it."""

    snapshot: Captured
    commit: str
    cursor: str
    entities: int

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values, ready for JSON."""
        return {"snapshot_commit_id": self.commit, "resume_cursor": self.cursor}


def baseline(
    context: CommitContext,
    identities: tuple[str, ...],
    catalog: Catalog,
    snapshot: Captured,
    state: ManifestState,
    wanted: Filter,
    sink: Sink | None,
) -> Baseline[Captured]:
    """Write the entities of a snapshot as export lines, then make the cursor; without a sink only the cursor."""
    wanted.refuse_unknown_types(state)
    count = 0
    if sink is not None:
        planned = plan_export(snapshot, catalog, context.root, wanted.types)
        chosen = [table for table in planned if wanted.wants_type(table.kind, [table.name])]
        count = _capture(chosen, sink, context)
    track = Track(context.manifest, identities, state, wanted)
    return Baseline(snapshot, state.head, track.cursor(state.head), count)


def _capture(tables: Sequence[ExportTable], sink: Sink, context: CommitContext) -> int:
    counted = 0

    def lines() -> Iterator[bytes]:
        nonlocal counted
        for piece in export_stream(tables):
            counted += piece.count(b"\n")
            yield piece

    if isinstance(sink, str | os.PathLike):
        output = Output.parse(os.fspath(sink), context.root.storage_options)
        with _alone(output):
            output.write(lines(), durable=True)
    else:
        take = sink if callable(sink) else sink.write
        for piece in lines():
            take(piece)
    return counted


@contextmanager
def _alone(output: Output) -> Iterator[None]:
    """Allow one capture into a local file at a time, by a lock file beside it."""
    if not output.root.is_local:
        yield
        return
    path = Path(f"{output.path}.lock")
    if not path.parent.is_dir():
        raise BadRequest(f"cannot write '{output.path}': there is no folder '{path.parent}'")
    try:
        held = try_lock(path)
    except OSError as error:
        raise from_os(error, action="lock", location=str(path), writes=False) from error
    if held is None:
        raise Conflict(f"another baseline is being written to '{output.path}'; wait for it, or name another file")
    try:
        yield
    finally:
        path.unlink(missing_ok=True)
        unlock(held)
