"""What `spark/pyspark_private.py` relies on, one test for each function of it."""

from __future__ import annotations

import os
import pickle
import threading
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from omnigraph.spark import pyspark_private as private
from omnigraph.spark.connect import _FIRST_RETRIES, _RETRIES
from tests.spark.classic import classic_session


@pytest.fixture
def context() -> Any:
    return classic_session().context


def test_a_gateway_to_a_jvm_that_runs(context: Any) -> None:
    running = context._gateway.gateway_parameters
    again = private.connected_gateway(running.port, running.auth_token)
    try:
        assert again.jvm.java.lang.Runtime.version().feature() >= 17
    finally:
        again.close()
    assert not {"PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET"} & os.environ.keys()


def test_where_pyspark_keeps_its_context_and_its_jvm(context: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    held = context._gateway
    for owner, name in (
        (SparkContext, "_gateway"),
        (SparkContext, "_jvm"),
        (SparkContext, "_active_spark_context"),
        (SparkSession, "_instantiatedSession"),
    ):
        # Set to what it is, so that it is put back after the test; a name that is missing fails.
        monkeypatch.setattr(owner, name, getattr(owner, name))
    assert held is not None
    assert SparkContext._active_spark_context is context
    assert private.detach() is held
    assert private.detach() is None
    assert SparkContext._active_spark_context is None


def test_a_context_says_whether_it_is_stopped(context: Any) -> None:
    assert not private.is_stopped(context)
    assert private.is_stopped(SimpleNamespace(_jsc=None))
    assert private.is_stopped(SimpleNamespace(_jsc=SimpleNamespace(sc=lambda: 1 / 0)))


def test_all_local_properties_of_a_thread_go_to_another_one(context: Any) -> None:
    found = []
    context.setLocalProperty("omnigraph.test", "mine")
    try:
        properties = private.local_properties(context)
        context.setLocalProperty("omnigraph.test", "changed later")

        def elsewhere() -> None:
            private.set_local_properties(context, properties)
            found.append(context.getLocalProperty("omnigraph.test"))

        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
    finally:
        context.setLocalProperty("omnigraph.test", None)
    assert found == ["mine"]


def test_executors_are_recorded(context: Any) -> None:
    [driver] = private.executor_records(context)
    assert str(driver.id()) == "driver"
    assert ":" in str(driver.hostPort())


def test_tasks_are_recorded_and_found_by_the_tag_of_their_job(context: Any) -> None:
    context.addJobTag("substrate-test")
    try:
        assert context.parallelize(range(6), 3).count() == 6
    finally:
        context.removeJobTag("substrate-test")
    [stage] = private.stages_with_tag(context, "substrate-test")
    tasks = private.task_records(context, stage)
    assert [(str(task.status()), str(task.executorId())) for task in tasks] == [("SUCCESS", "driver")] * 3
    assert len({int(task.taskId()) for task in tasks}) == 3
    assert private.stages_with_tag(context, "no such tag") == []


def test_elements_have_preferred_places(context: Any) -> None:
    made = private.elements_at(context, ["executor_a.example_1", "executor_b.example_2"])
    assert made.collect() == [0, 1]
    java = made._jrdd.rdd()
    preferred = [java.preferredLocations(part).mkString(",") for part in java.partitions()]
    assert preferred == ["executor_a.example_1", "executor_b.example_2"]


def test_rows_of_a_frame_are_arrow_messages() -> None:
    frame = classic_session().sql.createDataFrame([(1, "a"), (2, "b")], "number int, text string").coalesce(1)
    schema = pa.schema([("number", pa.int32()), ("text", pa.string())])
    found = [
        row
        for message in private.arrow_batches(frame).collect()
        for row in pa.ipc.read_record_batch(pa.py_buffer(message), schema).to_pylist()
    ]
    assert found == [{"number": 1, "text": "a"}, {"number": 2, "text": "b"}]


def test_a_reader_with_push_filters_looks_like_one_without() -> None:
    from pyspark.sql.datasource import DataSourceReader

    pushing = private.PushFilters(list)
    # What Spark's worker compares to find readers that have overridden the method.
    assert pushing.__func__ is DataSourceReader.pushFilters
    assert pickle.loads(pickle.dumps(pushing)).__func__ is DataSourceReader.pushFilters
    assert pushing([1, 2]) == [1, 2]


def test_where_pyspark_keeps_sessions_of_connect(monkeypatch: pytest.MonkeyPatch) -> None:
    from pyspark.sql.connect.session import SparkSession

    made = SimpleNamespace(is_stopped=False)
    monkeypatch.setattr(SparkSession, "_default_session", made)
    monkeypatch.setattr(SparkSession._active_session, "session", None, raising=False)
    assert private.default_connect_session() is made
    assert private.forget_connect_sessions()
    assert private.default_connect_session() is None


@pytest.mark.parametrize("policy", [_FIRST_RETRIES, _RETRIES], ids=["first", "later"])
def test_a_client_of_connect_takes_a_policy_of_retries(policy: dict[str, Any]) -> None:
    from pyspark.sql.connect.client.core import SparkConnectClient

    taken: list[Any] = []
    client = SimpleNamespace(set_retry_policies=taken.extend)
    assert callable(SparkConnectClient.set_retry_policies)
    private.set_retries(SimpleNamespace(client=client), policy)
    assert {name: getattr(taken[0], name) for name in policy} == policy
