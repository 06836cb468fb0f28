"""Where a job keeps what its tasks exchange: a folder of this machine, or the graph's own storage for a cluster."""

from __future__ import annotations

from pathlib import Path

from omnigraph.commit.staging_jobs import scratch_folder
from omnigraph.load.exchange import Exchange, InFiles, InObjects
from omnigraph.storage.root import Root
from omnigraph.storage.scratch import ScratchFolder, make_scratch


class Scratch:
    """A folder that is made when something first needs it, and removed with everything in it."""

    def __init__(self) -> None:
        self._made: ScratchFolder | None = None

    def folder(self) -> Path:
        if self._made is None:
            self._made = make_scratch("load")
        return self._made.path

    def close(self) -> None:
        if self._made is not None:
            self._made.remove()
            self._made = None


def exchange_for(scratch: Scratch, graph: Root, job_id: str, partitions: int, *, shared_disk: bool) -> Exchange:
    """The exchange of a staged load."""
    if shared_disk:
        return InFiles(scratch.folder() / "keys", partitions)
    return InObjects(graph, f"{scratch_folder(job_id)}/keys", partitions)
