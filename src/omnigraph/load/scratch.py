"""Where a job keeps what its tasks exchange: a folder of this machine, or the graph's own storage for a cluster."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from omnigraph.commit.staging_jobs import scratch_folder
from omnigraph.errors import StorageError
from omnigraph.load.exchange import Exchange, InFiles, InObjects
from omnigraph.storage.root import Root


class Scratch:
    """A folder that is made when something first needs it, and removed with everything in it."""

    def __init__(self) -> None:
        self._folder: Path | None = None

    def folder(self) -> Path:
        if self._folder is None:
            try:
                self._folder = Path(tempfile.mkdtemp(prefix="omnigraph-load-"))
            except OSError as error:
                raise StorageError(
                    f"can not make a scratch folder in {tempfile.gettempdir()}: {error.strerror}; set TMPDIR",
                    kind="configuration",
                ) from error
        return self._folder

    def close(self) -> None:
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None


def exchange_for(scratch: Scratch, graph: Root, job_id: str, partitions: int, *, shared_disk: bool) -> Exchange:
    """The exchange of a staged load."""
    if shared_disk:
        return InFiles(scratch.folder() / "keys", partitions)
    return InObjects(graph, f"{scratch_folder(job_id)}/keys", partitions)
