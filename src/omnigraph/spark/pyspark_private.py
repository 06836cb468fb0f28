"""All uses of PySpark beyond its public API, each with its reason and with the public API that would replace it.
`tests/substrate/test_pyspark_private.py` fails when a new version of PySpark changes one of them. The functions import PySpark,
not this module.
"""

from __future__ import annotations

import os
import pickle
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

_MOST_TASKS = 100_000
_CONNECTING = threading.Lock()


# --- one JVM and one context per process ------------------------------------------------------------------------------


def connected_gateway(port: int, secret: str) -> Any:
    """py4j's connection to a running JVM.
    PySpark starts a JVM by `spark-submit`, unless two environment variables give the address of a JVM. They are set during the
    call. An argument for the address of a JVM would replace this.
    """
    from pyspark.java_gateway import launch_gateway

    named = {"PYSPARK_GATEWAY_PORT": str(port), "PYSPARK_GATEWAY_SECRET": secret}
    with _CONNECTING:
        os.environ.update(named)
        try:
            return launch_gateway()  # type: ignore[no-untyped-call]
        finally:
            for name in named:
                os.environ.pop(name, None)


def detach() -> Any:
    """Let PySpark forget its context and its JVM; returns py4j's connection to the JVM, None when there was none.
    PySpark keeps both in class attributes and would go on using a dead JVM. `SparkContext.stop()` calls the JVM, so it can
    not be
    used. A public way to drop a lost context would replace this.
    """
    from pyspark import SparkContext

    connection = SparkContext._gateway
    SparkContext._active_spark_context = None
    SparkContext._gateway = None
    SparkContext._jvm = None
    if "pyspark.sql.session" in sys.modules:
        from pyspark.sql import SparkSession

        SparkSession._instantiatedSession = None
    return connection


def is_stopped(context: Any) -> bool:
    """Whether a context can run no more jobs; True as well when its JVM does not answer.

    A context that others stopped, or whose JVM died, looks like a living one in Python. A public `SparkContext.is_stopped`
    would replace this.
    """
    java_context = getattr(context, "_jsc", None)
    if java_context is None:
        return True
    try:
        return bool(java_context.sc().isStopped())
    except Exception:  # any error of py4j means that the context can not be used
        return True


# --- local properties of a thread -------------------------------------------------------------------------------------


def local_properties(context: Any) -> Any:
    """A copy of the local properties of this thread: job group, tags, pool and others, as an object of Java.

    `getLocalProperty` reads one by its name, and nothing lists the names. A public call for all of them would replace this.
    """
    return context._jsc.sc().getLocalProperties().clone()


def set_local_properties(context: Any, properties: Any) -> None:
    """Set the local properties of this thread to a copy made by `local_properties` on another thread; replaced with it."""
    context._jsc.sc().setLocalProperties(properties)


# --- executors and tasks ----------------------------------------------------------------------------------------------


def executor_records(context: Any) -> list[Any]:
    """The records of the live executors in Spark's status store: objects with `id()` and `hostPort()`.
    Python's `StatusTracker` does not list executors; the REST interface does, but needs Spark's web UI, which is off.
    Executors in
    `StatusTracker` would replace this.
    """
    return _listed(context._jsc.sc().statusStore().executorList(True))


def task_records(context: Any, stage: int) -> list[Any]:
    """The records of the tasks of a stage in the status store, with `taskId()`, `executorId()`, `host()`, `status()`.
    Waits until all events that Spark has received are in the store. Python's `StatusTracker` only counts tasks; the executors
    of
    tasks in it would replace this.
    """
    java = context._jsc.sc()
    java.listenerBus().waitUntilEmpty()
    store = java.statusStore()
    return _listed(store.taskList(stage, store.lastStageAttempt(stage).attemptId(), _MOST_TASKS))


def stages_with_tag(context: Any, tag: str) -> list[int]:
    """The stages of all jobs with a tag.

    Python's `StatusTracker` finds jobs by their group, and the groups belong to the caller. Scala's tracker
    knows tags, Java's does not. `getJobIdsForTag` in Python would replace this.
    """
    tracker = context._jsc.sc().statusTracker()
    jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForTag(tag)]
    return [stage for job in jobs if job.isDefined() for stage in job.get().stageIds()]


def elements_at(context: Any, places: Sequence[str]) -> Any:
    """An RDD of the numbers from 0, each preferred to be computed at one of these places, such as `executor_host_3`.

    `SparkContext.parallelize` has no preferred places, unlike Scala's `makeRDD`. An argument for them would replace this.
    """
    from pyspark import RDD
    from pyspark.serializers import CPickleSerializer

    jvm = context._jvm
    elements = jvm.java.util.ArrayList()
    for number, place in enumerate(places):
        preferred = jvm.java.util.ArrayList()
        preferred.add(place)
        elements.add(jvm.scala.Tuple2(pickle.dumps(number), jvm.PythonUtils.toSeq(preferred)))
    kind = jvm.scala.reflect.ClassTag.apply(jvm.java.lang.Class.forName("[B"))
    made = context._jsc.sc().makeRDD(jvm.PythonUtils.toSeq(elements), kind)
    return RDD(made.toJavaRDD(), context, CPickleSerializer())


def _listed(sequence: Any) -> list[Any]:
    """The elements of a sequence of Scala."""
    return [sequence.apply(place) for place in range(sequence.size())]


# --- data frames ------------------------------------------------------------------------------------------------------


def arrow_batches(frame: Any) -> Any:
    """The rows of a data frame as an RDD of Arrow messages, made by the JVM.

    `mapInArrow` does the same and asks for pandas, which a load does not need. `mapInArrow` without pandas would replace this.
    """
    from pyspark import RDD
    from pyspark.serializers import NoOpSerializer

    return RDD(frame._jdf.toArrowBatchRdd().toJavaRDD(), frame.sparkSession.sparkContext, NoOpSerializer())


class PushFilters:
    """A `pushFilters` for a `DataSourceReader` that Spark accepts whether or not filter pushdown is on; it calls `push`.
    Spark refuses a reader that defines this method while `spark.sql.python.filterPushdown.enabled` is off, which is the
    default.
    Its check finds the base class's method here; when the setting is on, Spark calls this object. If Spark ignored the method
    instead of refusing the reader, this would not be needed.
    """

    def __init__(self, push: Callable[[list[Any]], Any]) -> None:
        from pyspark.sql.datasource import DataSourceReader

        self._push = push
        self.__func__ = DataSourceReader.pushFilters

    def __call__(self, filters: list[Any]) -> Any:
        return self._push(filters)


# --- Spark Connect ----------------------------------------------------------------------------------------------------


def default_connect_session() -> Any:
    """PySpark's current Spark Connect session of this thread or process; None when there is none.
    `SparkSession.getActiveSession` returns the thread's session only. A public call for the process would replace this.
    """
    if "pyspark.sql.connect.session" not in sys.modules:
        return None
    from pyspark.sql.connect.session import SparkSession

    return SparkSession.getActiveSession() or SparkSession._get_default_session()


def forget_connect_sessions() -> bool:
    """Let PySpark forget its sessions of Spark Connect without closing them; False when it has loaded none.

    A forked process must not use the connections of its parent, and `stop` would end the parent's session. PySpark doing so
    after a fork would replace this.
    """
    if "pyspark.sql.connect.session" not in sys.modules:
        return False
    from pyspark.sql.connect.session import SparkSession

    SparkSession._default_session = None
    SparkSession._active_session.session = None
    return True


def set_retries(session: Any, policy: Mapping[str, Any]) -> None:
    """Set how often, and for how long, the Connect client of a session retries to reach its server.
    The default retries for ten minutes. A parameter of the address `sc://…` would replace this.
    """
    from pyspark.sql.connect.client.retries import DefaultPolicy

    session.client.set_retry_policies([DefaultPolicy(**policy)])
