"""The executors of a Spark session, and the executor of each task, from Spark's own records."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from omnigraph.spark.pyspark_private import elements_at, executor_records, stages_with_tag, task_records

#: Spark's executor id for tasks that run in the driver's own JVM.
_DRIVER = "driver"


@dataclass(frozen=True, order=True)
class Executor:
    """A process that runs tasks: Spark's id and host name of it."""

    id: str
    host: str


def active_executors(context: Any) -> list[Executor]:
    """The live executors of a session, sorted by id; empty when tasks run in the driver.
    An executor that has registered but not reported its address yet is left out.
    """
    found = [Executor(str(one.id()), str(one.hostPort() or "").rpartition(":")[0]) for one in executor_records(context)]
    return sorted(one for one in found if one.id != _DRIVER and one.host)


def one_element_each(context: Any, executors: Sequence[Executor]) -> Any:
    """An RDD with one element per executor, computed on that executor if it is free within `spark.locality.wait`."""
    return elements_at(context, [f"executor_{executor.host}_{executor.id}" for executor in executors])


def executors_of_tasks(context: Any, stages: Collection[int]) -> dict[int, Executor]:
    """The executor of each task of some stages, by task attempt id; tasks that Spark no longer records are left out."""
    return {
        int(task.taskId()): Executor(str(task.executorId()), str(task.host()))
        for stage in stages
        for task in task_records(context, stage)
    }


def host_of_failure(context: Any, tag: str) -> str | None:
    """The host of the last failed task of the jobs with a tag; None when it is this machine or Spark can not be asked."""
    try:
        tasks = [task for stage in stages_with_tag(context, tag) for task in task_records(context, stage)]
        failed = [task for task in tasks if str(task.status()) == "FAILED"]
    except Exception:  # py4j raises many kinds of errors; the host only adds to an error that is being raised already
        return None
    last = max(failed, key=lambda task: int(task.taskId()), default=None)
    return None if last is None or str(last.executorId()) == _DRIVER else str(last.host())
