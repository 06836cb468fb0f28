"""Whether the executors of a cluster see what a job needs: the graph, the files of an input, the folder of an export.

One task per executor checks, so that a place that only some machines see is reported before anything is written there. Spark's
records tell afterwards where a task ran: a preferred executor is not binding, and with speculation a copy of the task on
another
executor may win. A cluster may get further executors later; for these, tasks report the host on which a file is missing, and
written files are counted.
"""

from __future__ import annotations

import shutil
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from omnigraph.errors import OmnigraphError, SparkFailed
from omnigraph.ids import new_ulid
from omnigraph.spark.executors import Executor, active_executors, executors_of_tasks, one_element_each
from omnigraph.spark.failures import spark_errors
from omnigraph.spark.jobs import SparkRunner
from omnigraph.spark.runner import OnSpark
from omnigraph.storage.object_errors import from_os
from omnigraph.storage.objects import open_store
from omnigraph.storage.root import Root


@dataclass(frozen=True)
class Marker:
    """An object written by the driver; a task that reads the same bytes there sees the same storage."""

    root: Root
    path: str
    token: bytes


@dataclass(frozen=True)
class Look:
    """What a task checks: a marker, and files of the driver's machine with their sizes in bytes."""

    marker: Marker | None
    files: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True)
class Sight:
    """What one executor sees. `problem`: why the marker can not be read or its folder not be written to, else None."""

    host: str
    problem: str | None
    #: The files that are missing or have another size.
    missing: tuple[str, ...]


@contextmanager
def marker_in(root: Root, folder: str) -> Iterator[Marker]:
    """A marker below a folder of a store (`""`: the store itself), for the block; it is removed afterwards."""
    place = f"{folder}/probe-{new_ulid()}" if folder else f"probe-{new_ulid()}"
    marker = Marker(root, f"{place}/driver", new_ulid().encode())
    if root.is_local:
        # Written as plain files: an object store on disk would leave its lock file in the exported folder.
        local = root.local_path(place)
        try:
            local.mkdir(parents=True)
            (local / "driver").write_bytes(marker.token)
        except OSError as error:
            raise from_os(error, action="write", location=str(local), writes=False) from error
        try:
            yield marker
        finally:
            shutil.rmtree(local, ignore_errors=True)
        return
    store = open_store(root)
    store.put(marker.path, marker.token)
    try:
        yield marker
    finally:
        with suppress(OmnigraphError):  # it is a few bytes, in a folder that goes with its job
            store.delete_prefix(place)


def look_around(look: Look) -> Sight:
    """The task: what the executor that runs it sees."""
    missing = tuple(path for path, size in look.files if not _is_there(Path(path), size))
    return Sight(socket.gethostname(), None if look.marker is None else _problem(look.marker), missing)


def sights(runner: SparkRunner, look: Look) -> list[Sight]:
    """What each executor sees, in the order of their ids; empty when all tasks run on this machine.
    An executor that runs none of its tasks, because it is lost or busy, is left out. A Connect client can not choose
    executors: it
    starts as many tasks as run at once, and lists each host once.
    """
    if runner.shares_disk:
        return []
    if not isinstance(runner, OnSpark):
        seen = runner.run(look_around, [look] * runner.parallelism, stage="look at what the workers see")
        return list({sight.host: sight for sight in sorted(seen, key=_worst_last)}.values())
    # An empty first job, which waits until there are executors.
    runner.run(look_around, [Look(None)])
    context = runner.session.context
    with spark_errors(runner.session, "a look at what the workers see"):
        executors = active_executors(context)
        found = _seen_by(context, executors, look)
        for executor in executors:
            # Spark does not speculate on the only task of a job, so it runs on its preferred executor or where there is room.
            if executor not in found:
                found |= _seen_by(context, [executor], look)
    return [_named(sight, executor.host) for executor, sight in sorted(found.items())]


def require_seen(runner: SparkRunner, root: Root, folder: str, what: str, instead: str) -> None:
    """Raise SparkFailed when an executor does not see a place; the error names its host."""
    if runner.shares_disk:
        return
    with marker_in(root, folder) as marker:
        for sight in sights(runner, Look(marker)):
            if sight.problem is not None:
                raise unseen(sight, what, instead)


def unseen(sight: Sight, what: str, instead: str) -> SparkFailed:
    """The error for a place that an executor does not see."""
    return SparkFailed(f"the Spark worker {sight.host} can not see {what}: {sight.problem}; {instead}", kind="unseen")


@dataclass(frozen=True)
class _Looking:
    """`look_around` as a function for RDD elements that only choose the executor; returns also the stage and task ids."""

    look: Look

    def __call__(self, _: object) -> tuple[int, int, Sight]:
        from pyspark import TaskContext

        task = TaskContext.get()
        assert task is not None, "a task of Spark knows which one it is"
        return task.stageId(), task.taskAttemptId(), look_around(self.look)


def _seen_by(context: Any, executors: Sequence[Executor], look: Look) -> dict[Executor, Sight]:
    """What the executors see that ran the tasks for `executors`; usually they are the same executors."""
    looked = one_element_each(context, executors).map(_Looking(look)).collect()
    ran = executors_of_tasks(context, {stage for stage, _, _ in looked})
    return {ran[task]: sight for _, task, sight in looked if task in ran}


def _worst_last(sight: Sight) -> tuple[str, bool, int]:
    return sight.host, sight.problem is not None, len(sight.missing)


def _named(sight: Sight, host: str) -> Sight:
    """The sight with Spark's name of the host added, when it differs from the host's own name."""
    return sight if host == sight.host else Sight(f"{sight.host} ({host})", sight.problem, sight.missing)


def _is_there(path: Path, size: int) -> bool:
    try:
        with path.open("rb") as file:
            return file.seek(0, 2) == size
    except OSError:
        return False


def _problem(marker: Marker) -> str | None:
    other = "there is another folder, or none, under this path"
    own = f"task-{new_ulid()}"
    try:
        if marker.root.is_local:
            seen = marker.root.local_path(marker.path)
            if seen.read_bytes() != marker.token:
                return other
            # Must not create the folder again: a speculative copy of this task may end after the marker was removed.
            seen.with_name(own).write_bytes(marker.token)
            return None
        store = open_store(marker.root)
        if store.get_or_none(marker.path) != marker.token:
            return other
        place = f"{marker.path.rpartition('/')[0]}/{own}"
        store.put(place, marker.token)
        store.delete(place)
    except (FileNotFoundError, NotADirectoryError):
        return other
    except OSError as error:
        return from_os(error, action="write", location=marker.path, writes=False).message
    except OmnigraphError as error:
        return error.message
    return None
