"""The executors of a Spark session, and on which of them tasks ran: what Spark itself has recorded of it."""

from __future__ import annotations

import pickle
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

#: How Spark calls the executor of a session whose tasks run in the driver's own JVM.
_DRIVER = "driver"
_MOST_TASKS = 100_000


@dataclass(frozen=True, order=True)
class Executor:
    """A process that runs tasks: Spark's id of it, and the host as Spark knows it."""

    id: str
    host: str


def active_executors(context: Any) -> list[Executor]:
    """Every executor of a session that lives now, by id; none where tasks run in the driver.

    One that has registered and not said its address yet, a moment later, is left out.
    """
    listed = _listed(context._jsc.sc().statusStore().executorList(True))
    found = [Executor(str(one.id()), str(one.hostPort() or "").rpartition(":")[0]) for one in listed]
    return sorted(one for one in found if one.id != _DRIVER and one.host)


def one_element_each(context: Any, executors: Sequence[Executor]) -> Any:
    """A data set with one element for each executor, which Spark computes there when it can within `spark.locality.wait`."""
    from pyspark import RDD
    from pyspark.serializers import CPickleSerializer

    jvm = context._jvm
    elements = jvm.java.util.ArrayList()
    for place, executor in enumerate(executors):
        preferred = jvm.java.util.ArrayList()
        preferred.add(f"executor_{executor.host}_{executor.id}")
        elements.add(jvm.scala.Tuple2(pickle.dumps(place), jvm.PythonUtils.toSeq(preferred)))
    kind = jvm.scala.reflect.ClassTag.apply(jvm.java.lang.Class.forName("[B"))
    made = context._jsc.sc().makeRDD(jvm.PythonUtils.toSeq(elements), kind)
    return RDD(made.toJavaRDD(), context, CPickleSerializer())


def executors_of_tasks(context: Any, stages: Collection[int]) -> dict[int, Executor]:
    """On which executor each task of some stages ran, by the id of its attempt; what Spark has forgotten is left out."""
    return {
        int(task.taskId()): Executor(str(task.executorId()), str(task.host()))
        for stage in stages
        for task in _tasks_of(context, stage)
    }


def host_of_failure(context: Any, tag: str) -> str | None:
    """The host on which a task of the jobs with a tag failed last; None when it is this machine, or Spark can not be asked."""
    try:
        tracker = context._jsc.statusTracker()
        jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForTag(tag)]
        stages = [stage for job in jobs if job is not None for stage in job.stageIds()]
        failed = [task for stage in stages for task in _tasks_of(context, stage) if str(task.status()) == "FAILED"]
    except Exception:  # py4j raises many kinds of errors; what is looked for only adds to an error that is being told
        return None
    last = max(failed, key=lambda task: int(task.taskId()), default=None)
    return None if last is None or str(last.executorId()) == _DRIVER else str(last.host())


def _tasks_of(context: Any, stage: int) -> list[Any]:
    """What Spark has recorded of the tasks of a stage, when all of it has been recorded."""
    java = context._jsc.sc()
    java.listenerBus().waitUntilEmpty()
    store = java.statusStore()
    return _listed(store.taskList(stage, store.lastStageAttempt(stage).attemptId(), _MOST_TASKS))


def _listed(sequence: Any) -> list[Any]:
    """The elements of a sequence of Scala."""
    return [sequence.apply(place) for place in range(sequence.size())]
