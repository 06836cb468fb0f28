"""What is used of PySpark beyond its public API, each with why and with what would replace it.

`tests/substrate/test_pyspark_private.py` fails when a new version of PySpark has changed one of them. PySpark is imported by the
functions, not with this module.
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
    """py4j's connection to a JVM that runs already.

    PySpark starts a JVM by `spark-submit`, unless two variables of the environment say where one listens. They are set for the
    moment of the call. An argument for the address of a JVM would replace this.
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
    """Let PySpark forget its context and its JVM; returns py4j's connection to it, None when there was none.

    PySpark keeps both in its classes and would go on using a dead JVM. `SparkContext.stop()` asks that JVM, so it can not
    be called. A public way to drop a lost context would replace this.
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
    except Exception:  # whatever py4j says: a context that can not be asked can not be used
        return True


# --- what a thread has told Spark -------------------------------------------------------------------------------------


def local_properties(context: Any) -> Any:
    """A copy of the local properties of this thread: job group, tags, pool and others, as an object of Java.

    `getLocalProperty` reads one by its name, and nothing lists the names. A public call for all of them would replace this.
    """
    return context._jsc.sc().getLocalProperties().clone()


def set_local_properties(context: Any, properties: Any) -> None:
    """Give this thread the local properties that `local_properties` has copied on another one; replaced with it."""
    context._jsc.sc().setLocalProperties(properties)


# --- executors and tasks ----------------------------------------------------------------------------------------------


def executor_records(context: Any) -> list[Any]:
    """What Spark's status store knows of each executor that lives now: objects with `id()` and `hostPort()`.

    Python's `StatusTracker` does not tell of executors; the REST interface does, and needs the web page of Spark, which is
    off. Executors in `StatusTracker` would replace this.
    """
    return _listed(context._jsc.sc().statusStore().executorList(True))


def task_records(context: Any, stage: int) -> list[Any]:
    """What the status store knows of each task of a stage: objects with `taskId()`, `executorId()`, `host()`, `status()`.

    Waits until all that Spark has heard of is in the store. Python's `StatusTracker` only counts tasks. Their executors in it
    would replace this.
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
    """A `pushFilters` of a `DataSourceReader` that Spark accepts whether or not it pushes filters down; it calls `push`.

    Spark refuses a reader with this method where `spark.sql.python.filterPushdown.enabled` is off, which it is by default. The
    method that it finds here is that of its own base class; where the setting is on, it calls this object all the same. Spark
    ignoring the method instead of refusing the reader would replace this.
    """

    def __init__(self, push: Callable[[list[Any]], Any]) -> None:
        from pyspark.sql.datasource import DataSourceReader

        self._push = push
        self.__func__ = DataSourceReader.pushFilters

    def __call__(self, filters: list[Any]) -> Any:
        return self._push(filters)


# --- Spark Connect ----------------------------------------------------------------------------------------------------


def default_connect_session() -> Any:
    """The session of Spark Connect that PySpark takes for the current one of this thread or process; None when there is none.

    `SparkSession.getActiveSession` tells that of the thread only. The same for the process would replace this.
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
    """How often, and for how long, the client of a session of Spark Connect tries to reach its server.

    The default tries for ten minutes. A parameter of the address `sc://…` for it would replace this.
    """
    from pyspark.sql.connect.client.retries import DefaultPolicy

    session.client.set_retry_policies([DefaultPolicy(**policy)])
