"""Where a load keeps data for its tasks: a folder of this machine, or the graph's own storage for a cluster."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from omnigraph.commit.staging_jobs import scratch_folder, staging_job
from omnigraph.ids import new_ulid
from omnigraph.load.exchange import Exchange, InFiles, InObjects
from omnigraph.storage.files import InputFile
from omnigraph.storage.objects import open_store
from omnigraph.storage.outputs import Output
from omnigraph.storage.root import Root
from omnigraph.storage.scratch import ScratchFolder, make_scratch

_COPIED_AT_ONCE = 8 << 20


class Scratch:
    """Folders that are made at first use, and removed with everything in them."""

    def __init__(self, graph: Root, branch: str) -> None:
        self.graph = graph
        self._branch = branch
        self._made: ScratchFolder | None = None
        self._shared_job: str | None = None
        self._job = ExitStack()
        self._copies = 0

    def folder(self) -> Path:
        """A scratch folder of this machine."""
        if self._made is None:
            self._made = make_scratch("load")
        return self._made.path

    def shared_job(self) -> str:
        """The id of the staging record that marks `shared_path` as in use."""
        if self._shared_job is None:
            self._shared_job = new_ulid()
            self._job.enter_context(staging_job(open_store(self.graph), self._shared_job, "load", self._branch, ()))
        return self._shared_job

    def shared_path(self) -> str:
        """The path of a scratch folder in the graph's storage, which every machine sees."""
        return scratch_folder(self.shared_job())

    def shared(self) -> Output:
        """The folder of `shared_path` as an output."""
        below = f"{self.graph.uri.rstrip('/')}/{self.shared_path()}"
        return Output(below, Root(below, self.graph.options))

    def share(self, file: InputFile) -> InputFile:
        """Copy a local file to the shared folder; returns the copy."""
        self._copies += 1
        place = self.shared().child(".".join([f"input-{self._copies:05d}", *file.suffixes]))
        place.write(_parts(file), parents=True)
        return written_file(place, file.name, file.size)

    def close(self) -> None:
        if self._made is not None:
            self._made.remove()
            self._made = None
        self._job.close()
        self._shared_job = None


def written_file(place: Output, name: str, size: int) -> InputFile:
    """A file that was written to an output, as an input. `name`: the caller's name for it."""
    return InputFile(name, place.root, place.root.uri if place.root.is_local else place.root.prefix, size)


def _parts(file: InputFile) -> Iterator[bytes]:
    for start in range(0, file.size, _COPIED_AT_ONCE):
        yield file.read(start, start + _COPIED_AT_ONCE)


def exchange_for(scratch: Scratch, graph: Root, job_id: str, partitions: int, *, shared_disk: bool) -> Exchange:
    """The exchange of a load that stages its rows."""
    if shared_disk:
        return InFiles(scratch.folder() / "keys", partitions)
    return InObjects(graph, job_id, partitions)
