"""The executors of a Spark session, and on which of them tasks ran: what Spark itself has recorded of it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from omnigraph.spark.pyspark_private import elements_at, executor_records, stages_with_tag, task_records

#: How Spark calls the executor of a session whose tasks run in the driver's own JVM.
_DRIVER = "driver"


@dataclass(frozen=True, order=True)
class Executor:
    """A process that runs tasks: Spark's id of it, and the host as Spark knows it."""

    id: str
    host: str


def active_executors(context: Any) -> list[Executor]:
    """Every executor of a session that lives now, by id; none where tasks run in the driver.

    One that has registered and not said its address yet, a moment later, is left out.
    """
    found = [Executor(str(one.id()), str(one.hostPort() or "").rpartition(":")[0]) for one in executor_records(context)]
    return sorted(one for one in found if one.id != _DRIVER and one.host)


def one_element_each(context: Any, executors: Sequence[Executor]) -> Any:
    """A data set with one element for each executor, which Spark computes there when it can within `spark.locality.wait`."""
    return elements_at(context, [f"executor_{executor.host}_{executor.id}" for executor in executors])


def executors_of_tasks(context: Any, stages: Collection[int]) -> dict[int, Executor]:
    """On which executor each task of some stages ran, by the id of its attempt; what Spark has forgotten is left out."""
    return {
        int(task.taskId()): Executor(str(task.executorId()), str(task.host()))
        for stage in stages
        for task in task_records(context, stage)
    }


def host_of_failure(context: Any, tag: str) -> str | None:
    """The host on which a task of the jobs with a tag failed last; None when it is this machine, or Spark can not be asked."""
    try:
        tasks = [task for stage in stages_with_tag(context, tag) for task in task_records(context, stage)]
        failed = [task for task in tasks if str(task.status()) == "FAILED"]
    except Exception:  # py4j raises many kinds of errors; what is looked for only adds to an error that is being told
        return None
    last = max(failed, key=lambda task: int(task.taskId()), default=None)
    return None if last is None or str(last.executorId()) == _DRIVER else str(last.host())
