"""Whether the executors of a cluster see what a job needs: the graph, the files of an input, the folder of an export.

One task per executor looks, so that a place that only some machines see is named before anything is written there. A cluster
may get further executors later: tasks say themselves on which host a file is missing, and what they wrote is counted.
"""

from __future__ import annotations

import pickle
import shutil
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from omnigraph.errors import OmnigraphError, SparkFailed
from omnigraph.ids import new_ulid
from omnigraph.spark.runner import OnSpark, spark_errors
from omnigraph.storage.objects import open_store
from omnigraph.storage.root import Root


@dataclass(frozen=True)
class Marker:
    """An object that the driver has put; a task that reads the same bytes there sees the same storage."""

    root: Root
    path: str
    token: bytes


@dataclass(frozen=True)
class Look:
    """What a task looks for: a marker, and files of the driver's machine with their sizes in bytes."""

    marker: Marker | None
    files: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True)
class Sight:
    """What one executor sees. `problem`: why the marker is not there or nothing can be written beside it, else None."""

    host: str
    problem: str | None
    #: The files that are not there, or are others.
    missing: tuple[str, ...]


@contextmanager
def marker_in(root: Root, folder: str) -> Iterator[Marker]:
    """A marker below a folder of a store (`""`: the store itself), for a block."""
    store = open_store(root)
    place = f"{folder}/probe-{new_ulid()}" if folder else f"probe-{new_ulid()}"
    marker = Marker(root, f"{place}/driver", new_ulid().encode())
    store.put(marker.path, marker.token)
    try:
        yield marker
    finally:
        with suppress(OmnigraphError):  # it is a few bytes, in a folder that goes with its job
            store.delete_prefix(place)
        if root.is_local:
            shutil.rmtree(root.local_path(place), ignore_errors=True)


def look_around(look: Look) -> Sight:
    """What the executor that runs this sees."""
    missing = tuple(path for path, size in look.files if not _is_there(Path(path), size))
    return Sight(socket.gethostname(), None if look.marker is None else _problem(look.marker), missing)


def sights(runner: OnSpark, look: Look) -> list[Sight]:
    """What each executor sees; on a machine that all tasks share there is nothing to ask."""
    if runner.shares_disk:
        return []
    what = "a look at what the workers see"
    # The first job waits until there are executors.
    runner.run(look_around, [Look(None)])
    context = runner.session.context
    with spark_errors(runner.session, what):
        executors = _executors(context)
        if not executors:
            return runner.run(look_around, [look] * runner.parallelism)
        found = _one_each(context, executors).map(_Looking(look)).collect()
    named = zip(executors, found, strict=True)
    return [
        Sight(host if host == sight.host else f"{sight.host} ({host})", sight.problem, sight.missing)
        for (_, host), sight in named
    ]


def require_seen(runner: OnSpark, root: Root, folder: str, what: str, instead: str) -> None:
    """Refuse a place that some executor does not see, naming its host."""
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
    """`look_around` as Spark maps it over elements that only say where to run."""

    look: Look

    def __call__(self, _: object) -> Sight:
        return look_around(self.look)


def _is_there(path: Path, size: int) -> bool:
    try:
        with path.open("rb") as file:
            return file.seek(0, 2) == size
    except OSError:
        return False


def _problem(marker: Marker) -> str | None:
    store = open_store(marker.root)
    try:
        if store.get_or_none(marker.path) != marker.token:
            return "there is another folder, or none, under this path"
        store.put(f"{marker.path}-{new_ulid()}", marker.token)
    except OmnigraphError as error:
        return error.message
    return None


def _executors(context: Any) -> list[tuple[str, str]]:
    """The id and the host of every executor."""
    listed = context._jsc.sc().statusStore().executorList(True)
    found = [(str(one.id()), str(one.hostPort()).rpartition(":")[0]) for one in map(listed.apply, range(listed.size()))]
    return sorted(one for one in found if one[0] != "driver")


def _one_each(context: Any, executors: Sequence[tuple[str, str]]) -> Any:
    """A data set with one element for each executor, which Spark computes there."""
    from pyspark import RDD
    from pyspark.serializers import CPickleSerializer

    jvm = context._jvm
    elements = jvm.java.util.ArrayList()
    for place, (executor, host) in enumerate(executors):
        preferred = jvm.java.util.ArrayList()
        preferred.add(f"executor_{host}_{executor}")
        elements.add(jvm.scala.Tuple2(pickle.dumps(place), jvm.PythonUtils.toSeq(preferred)))
    kind = jvm.scala.reflect.ClassTag.apply(jvm.java.lang.Class.forName("[B"))
    made = context._jsc.sc().makeRDD(jvm.PythonUtils.toSeq(elements), kind)
    return RDD(made.toJavaRDD(), context, CPickleSerializer())
